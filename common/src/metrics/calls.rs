//! Counts the calls of a process to a server that keeps data for the process: how many of each kind there were, how
//! they ended, and how long they took.

use std::time::Instant;

use super::{Counter, Histogram, Labels, Registry, Series, Unit};

/// How a call has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The server has answered, and the answer was of use.
    Answered,
    /// The server was not reached, was late, or has answered with an error.
    Failed,
    /// The caller gave up before the server answered.
    Dropped,
}

/// The outcomes, with their names.
const OUTCOMES: [(Outcome, &str); 3] =
    [(Outcome::Answered, "answered"), (Outcome::Failed, "failed"), (Outcome::Dropped, "dropped")];

/// A verb, and how a call with it has ended.
#[derive(Debug, Clone, Copy)]
struct Ended<V>(V, Outcome);

impl<V: Labels> Labels for Ended<V> {
    fn all() -> Vec<Self> {
        V::all().into_iter().flat_map(|verb| OUTCOMES.map(|(outcome, _)| Self(verb, outcome))).collect()
    }

    fn index(self) -> usize {
        self.0.index() * OUTCOMES.len() + self.1 as usize
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        [self.0.pairs(), vec![("outcome", OUTCOMES[self.1 as usize].1)]].concat()
    }
}

/// The numbers and times of the calls with the verbs `V` to one server. All clones share the same numbers.
#[derive(Debug)]
pub struct Calls<V> {
    ended: Series<Ended<V>, Counter>,
    times: Series<V, Histogram>,
}

impl<V> Clone for Calls<V> {
    fn clone(&self) -> Self {
        Self { ended: self.ended.clone(), times: self.times.clone() }
    }
}

impl<V: Labels> Default for Calls<V> {
    fn default() -> Self {
        Self { ended: Series::default(), times: Series::new(Histogram::of_times) }
    }
}

impl<V: Labels> Calls<V> {
    /// Begins to count a call, which is made now; `now` gives the time. The caller ends it with [`Call::ended`].
    pub fn begin(&self, verb: V, now: fn() -> Instant) -> Call<'_, V> {
        Call { calls: self, verb, now, began: now(), outcome: Outcome::Dropped }
    }

    /// Registers these numbers as `<server>_calls` and `<server>_call_seconds`.
    pub fn register(&self, server: &str, registry: &mut Registry) {
        registry.register(format!("{server}_calls"), "Calls to the server, by how they ended", self.ended.clone());
        let name = format!("{server}_call");
        registry.register_with_unit(name, "How long a call takes until it ends", Unit::Seconds, self.times.clone());
    }
}

/// A call that has not ended. If this is dropped without an answer, it counts as dropped, and its time is not kept.
#[derive(Debug)]
#[must_use = "a call that is not ended counts as dropped"]
pub struct Call<'a, V: Labels> {
    calls: &'a Calls<V>,
    verb: V,
    now: fn() -> Instant,
    began: Instant,
    outcome: Outcome,
}

impl<V: Labels> Call<'_, V> {
    /// Ends the call with this answer, keeps how long the call took, and gives the answer back.
    pub fn ended<T, E>(mut self, answer: Result<T, E>) -> Result<T, E> {
        self.calls.times.of(self.verb).took((self.now)() - self.began);
        self.outcome = if answer.is_ok() { Outcome::Answered } else { Outcome::Failed };
        answer
    }
}

impl<V: Labels> Drop for Call<'_, V> {
    fn drop(&mut self) {
        self.calls.ended.of(Ended(self.verb, self.outcome)).inc();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::super::{registry, text};
    use super::*;
    use crate::labels;

    #[derive(Debug, Clone, Copy)]
    enum Verb {
        Read,
        Write,
    }
    labels!(Verb, "call": Read "read", Write "write");

    /// Each time that is asked for is three seconds after the one before.
    #[expect(clippy::disallowed_methods, reason = "a point from which this clock counts")]
    fn now() -> Instant {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        static ASKED: AtomicU64 = AtomicU64::new(0);
        *BEGUN + Duration::from_secs(3 * ASKED.fetch_add(1, Ordering::Relaxed))
    }

    #[test]
    fn a_call_counts_once_by_its_kind_and_by_how_it_ended() {
        let (calls, mut registry) = (Calls::<Verb>::default(), registry());
        calls.register("redis", &mut registry);
        assert_eq!(calls.begin(Verb::Read, now).ended(Ok::<_, ()>(7)), Ok(7));
        assert_eq!(calls.begin(Verb::Read, now).ended(Err::<(), _>(8)), Err(8));
        drop(calls.begin(Verb::Write, now));
        let text = text(&[&registry]);
        let lines = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
        let totals = [
            r#"feedgate_redis_calls_total{call="read",outcome="answered"} 1"#,
            r#"feedgate_redis_calls_total{call="read",outcome="failed"} 1"#,
            r#"feedgate_redis_calls_total{call="read",outcome="dropped"} 0"#,
            r#"feedgate_redis_calls_total{call="write",outcome="answered"} 0"#,
            r#"feedgate_redis_calls_total{call="write",outcome="failed"} 0"#,
            r#"feedgate_redis_calls_total{call="write",outcome="dropped"} 1"#,
        ];
        assert_eq!(lines("feedgate_redis_calls_total"), totals);
        let sums = [
            r#"feedgate_redis_call_seconds_sum{call="read"} 6.0"#,
            r#"feedgate_redis_call_seconds_sum{call="write"} 0.0"#,
        ];
        assert_eq!(lines("feedgate_redis_call_seconds_sum"), sums, "a dropped call took no time");
    }
}
