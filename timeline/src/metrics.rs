//! What a worker counts of its jobs and steps, for operators. `docs/metrics.md` explains each number.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::jobs::Lane;
use feedgate_common::metrics::{Counter, Histogram, Labels, Reading, Registry, Series, Unit};

use crate::Pulse;

/// How a turn of a job has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The job is acknowledged. If work was left, the job was put again.
    Done,
    /// The job has failed, and is held to be tried again.
    Failed,
    /// A shutdown could not wait for the end of the turn.
    CutShort,
    /// The job has found a store damaged. It is tried again like one that has failed.
    Damaged,
}

/// The lane of a job, and how its turn has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turned(pub(crate) Lane, pub(crate) Ended);

/// The ways in which a turn may end, with their names.
const ENDS: [(Ended, &str); 4] =
    [(Ended::Done, "done"), (Ended::Failed, "failed"), (Ended::CutShort, "cut_short"), (Ended::Damaged, "damaged")];

impl Labels for Turned {
    fn all() -> Vec<Self> {
        Lane::ALL.into_iter().flat_map(|lane| ENDS.map(|(ended, _)| Self(lane, ended))).collect()
    }

    fn index(self) -> usize {
        self.0.index() * ENDS.len() + self.1 as usize
    }

    fn pairs(self) -> Vec<(&'static str, &'static str)> {
        [self.0.pairs(), vec![("outcome", ENDS[self.1 as usize].1)]].concat()
    }
}

/// The numbers of a worker. All clones share the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    turns: Series<Turned, Counter>,
    times: Series<Lane, Histogram>,
    /// How many inboxes a step has brought changes to.
    pub(crate) steps: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let times = Series::new(Histogram::of_times);
        Self { turns: Series::default(), times, steps: Histogram::of_counts() }
    }
}

impl Metrics {
    /// Counts a turn of a job of this lane, which has taken `time`.
    pub(crate) fn turned(&self, lane: Lane, ended: Ended, time: Duration) {
        self.turns.of(Turned(lane, ended)).inc();
        self.times.of(lane).took(time);
    }

    /// Registers these numbers, and what `pulse` tells.
    pub(crate) fn register(&self, pulse: &Arc<Pulse>, registry: &mut Registry) {
        let Self { turns, times, steps } = self;
        registry.register("jobs", "Turns of jobs that have ended", turns.clone());
        registry.register_with_unit("job", "How long a turn of a job takes", Unit::Seconds, times.clone());
        registry.register("step_inboxes", "Inboxes to which one step has brought changes", steps.clone());
        let mut age = |name: &str, help: &str, of: fn(&Pulse) -> Duration| {
            let pulse = pulse.clone();
            registry.register_with_unit(name, help, Unit::Seconds, Reading::new(move || of(&pulse).as_secs_f64()));
        };
        age("sweep_age", "Since the worker has last looked for what is outstanding", Pulse::sweep_age);
        age("worker_standstill", "How long the worker has had work and done no step of it", Pulse::standstill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_and_end_has_a_series_of_its_own() {
        assert!(Turned::all().into_iter().enumerate().all(|(n, turned)| turned.index() == n));
        assert!(ENDS.into_iter().enumerate().all(|(n, (ended, _))| ended as usize == n));
        assert_eq!(Turned(Lane::Edges, Ended::Failed).pairs(), [("lane", "edges"), ("outcome", "failed")]);
    }
}
