//! Puts jobs on the queue for events that nobody has finished. A crash may have left them behind, the queue may have
//! lost their jobs or had no room for them, or a store that was rolled back has reopened them.
//!
//! ```text
//!   the start; the queue is back, or has room again ─▶ all that is outstanding, page after page
//!   a page is refused for want of room              ─▶ that page again soon, and so on
//!   every now and then                              ─▶ a page of what is overdue
//! ```
//!
//! Invariants:
//! - A restart relays all outstanding events at once.
//! - The sweep goes through the list again and again, so events that always fail do not hide the younger events after
//!   them.
//! - Each lane has its own place in the list, so edges for which the queue has no room hold up no posts.
//! - It is harmless to relay an event too often: equal jobs merge, and a job whose work is done finds nothing to do.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Events, Outstanding};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::jobs::{Job, Lane};
use feedgate_common::{Jobs, Millis};
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use crate::Pulse;
use crate::clock::before;
use crate::rounds::Rounds;

/// How many events are read from the list, and relayed, at a time.
const PAGE: usize = 1000;

/// How long to wait between two tries to relay everything.
const AGAIN: Duration = Duration::from_millis(250);

/// How far the events of one lane are swept.
#[derive(Default)]
struct Place {
    behind: Option<Outstanding>,
    /// How often the sweep must still reach the end of the list until all outstanding events were relayed. At 0 it
    /// relays only events that are overdue.
    ends: u8,
}

impl Place {
    /// Begins to relay all events that are outstanding now: from here to the end of the list, and then from its start.
    fn all(&mut self) {
        self.ends = 1 + u8::from(self.behind.is_some());
    }

    fn go_on(&mut self, behind: Option<Outstanding>) {
        self.ends -= u8::from(behind.is_none()).min(self.ends);
        self.behind = behind;
    }
}

/// Relays the unfinished events of one Archive.
pub(crate) struct Sweep {
    pub(crate) events: Arc<dyn Events>,
    pub(crate) jobs: Arc<dyn Jobs>,
    pub(crate) every: Duration,
    pub(crate) overdue: Duration,
    pub(crate) pulse: Arc<Pulse>,
}

impl Sweep {
    /// Sweeps until the shutdown. A failed sweep is a warning; the next one finds the same events.
    pub(crate) async fn run(&self, shutdown: &CancellationToken) {
        let mut rounds = Rounds::of("a sweep", self.every, shutdown);
        let mut returns = self.jobs.returns();
        let mut places: [Place; Lane::ALL.len()] = Default::default();
        places.iter_mut().for_each(Place::all);
        let mut go_on = true;
        while go_on {
            go_on = tokio::select! {
                biased;
                Some(()) = returns.next() => {
                    places.iter_mut().for_each(Place::all);
                    true
                }
                go_on = rounds.next(self.sweep(&mut places)) => go_on,
            };
            if places.iter().any(|place| place.ends > 0) {
                rounds.next_after(AGAIN);
            }
        }
    }

    async fn sweep(&self, places: &mut [Place; Lane::ALL.len()]) -> Result<()> {
        for (lane, place) in Lane::ALL.into_iter().zip(places) {
            match self.sweep_lane(lane, place).await {
                // The page that the queue had no room for is the next page of this lane.
                Err(StoreError::Overloaded { .. }) => {}
                swept => swept?,
            }
        }
        Ok(())
    }

    /// Relays the events of `lane` that are to be relayed now. After an error, `place` is before the page that failed.
    async fn sweep_lane(&self, lane: Lane, place: &mut Place) -> Result<()> {
        loop {
            let not_after = if place.ends > 0 { Millis::MAX } else { before(self.overdue) };
            place.go_on(self.relay(lane, place.behind, not_after).await?);
            if place.ends == 0 {
                return Ok(());
            }
        }
    }

    /// Reads the page of events after `behind`, and relays those of `lane`. Gives where the next page begins; `None` at
    /// the end of the list.
    async fn relay(&self, lane: Lane, behind: Option<Outstanding>, not_after: Millis) -> Result<Option<Outstanding>> {
        self.pulse.swept();
        let page = self.events.outstanding(behind, not_after, PAGE).await?;
        let jobs = page.iter().map(|line| Job::from(line.event));
        let mut jobs: Vec<Job> = jobs.filter(|job| job.lane() == lane).collect();
        jobs.sort_unstable();
        jobs.dedup();
        if !jobs.is_empty() {
            self.jobs.put(&jobs).await?;
            tracing::info!(jobs = jobs.len(), ?lane, "relayed what was outstanding");
        }
        Ok(page.last().copied().filter(|_| page.len() == PAGE))
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::Body;
    use feedgate_common::archive::{Publish, Write, Writes};
    use feedgate_embedded::{Embedded, EmbeddedJobs};

    use super::*;

    /// Writes that are accepted and never relayed.
    async fn accept(archive: &dyn Writes, writes: impl Iterator<Item = Write>, at: Millis) {
        archive.write(writes.collect(), at).await.unwrap();
    }

    fn posts(authors: usize) -> impl Iterator<Item = Write> {
        let body = || Body::parse("1".to_owned()).unwrap();
        (0..authors).map(move |n| Write::Publish(Publish::new(format!("a{n}").parse().unwrap(), body())))
    }

    /// A sweep of what the stores have outstanding, to a queue with `room` jobs.
    fn sweep(stores: &Embedded, room: usize) -> Sweep {
        let (events, jobs) = (stores.archive.clone(), Arc::new(EmbeddedJobs::with_room(room)));
        Sweep { events, jobs, every: Duration::ZERO, overdue: Duration::ZERO, pulse: Arc::default() }
    }

    #[tokio::test]
    async fn events_that_nobody_can_finish_do_not_hide_the_younger_ones() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        accept(&*stores.archive, posts(PAGE + 1), 1).await;
        let (sweep, mut places) = (sweep(&stores, 2 * PAGE), Default::default());
        for wants in [PAGE, PAGE + 1] {
            sweep.sweep(&mut places).await.unwrap();
            assert_eq!(sweep.jobs.pending().await.unwrap(), wants as u64);
        }
    }

    #[tokio::test]
    async fn a_start_relays_everything_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        accept(&*stores.archive, posts(2 * PAGE + 1), 1).await;
        let (sweep, mut place) = (sweep(&stores, 3 * PAGE), Place::default());
        place.all();
        sweep.sweep_lane(Lane::Posts, &mut place).await.unwrap();
        assert_eq!((sweep.jobs.pending().await.unwrap(), place.ends), (2 * PAGE as u64 + 1, 0));
    }

    #[tokio::test]
    async fn what_has_no_room_is_the_next_to_be_relayed_and_edges_hold_up_no_posts() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        let follow = |n| Write::Follow { reader: format!("r{n}").parse().unwrap(), author: "a".parse().unwrap() };
        accept(&*stores.archive, (0..2 * PAGE).map(follow), 1).await;
        accept(&*stores.archive, posts(2), 2).await;
        let (sweep, mut places) = (sweep(&stores, PAGE), <[Place; 2]>::default());
        places.iter_mut().for_each(Place::all);
        sweep.sweep(&mut places).await.unwrap();
        assert_eq!(sweep.jobs.pending().await.unwrap(), PAGE as u64 + 2, "both posts, and edges as there is room");
        sweep.jobs.take(Lane::Edges).await.unwrap();
        sweep.sweep(&mut places).await.unwrap();
        assert_eq!(sweep.jobs.pending().await.unwrap(), PAGE as u64 + 3, "and one edge in place of that in flight");
        assert_eq!(places.map(|place| place.ends), [0, 1], "the other edges are still to be relayed");
    }

    #[tokio::test]
    async fn all_that_is_outstanding_is_also_what_lies_before_the_place_of_the_sweep() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        accept(&*stores.archive, posts(PAGE + 1), 1).await;
        let (sweep, mut place) = (sweep(&stores, 2 * PAGE), Place::default());
        place.behind = stores.archive.outstanding(None, Millis::MAX, PAGE).await.unwrap().pop();
        place.all();
        sweep.sweep_lane(Lane::Posts, &mut place).await.unwrap();
        assert_eq!(sweep.jobs.pending().await.unwrap(), PAGE as u64 + 1);
    }
}
