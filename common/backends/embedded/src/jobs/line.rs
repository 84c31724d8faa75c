//! The line of jobs: who waits, who is being worked off, who may try again when. Pure: no disk, no clock.
//!
//! ```text
//!   disk:    1 2 3 4 5 6 7 8 9        every job not acknowledged, by its order
//!            └── in memory ─┘ └ later ┘
//!                     `reached` = 6    `last` = 9
//! ```
//!
//! Invariants:
//! - A job is in the line in memory at most once: it waits (ready or delayed) or is in flight.
//! - Memory holds every unacknowledged job of an order up to `reached`, and none beyond; never more than `room`
//!   jobs in all (I18), about 100 bytes each.
//! - What is in memory is on disk; it leaves memory in the step that takes it off the disk.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use feedgate_common::jobs::{Delivery, Job};
use tokio::time::Instant;

/// See the module.
pub(super) struct Line {
    room: usize,
    places: HashMap<Job, Place>,
    ready: VecDeque<Job>,
    /// By the moment they become ready, then by when they were given back.
    delayed: BTreeMap<(Instant, u64), Job>,
    in_flight: HashMap<u64, Job>,
    reached: u64,
    /// The greatest order known to be on disk.
    last: u64,
    /// The greatest order given; those beyond `last` are on their way to disk or were lost on it.
    given: u64,
    /// Unacknowledged jobs, in memory or not.
    total: u64,
    /// Deliveries so far, which gives each its id.
    deliveries: u64,
}

struct Place {
    order: u64,
    now: Now,
}

enum Now {
    Waits,
    InFlight {
        /// An equal job was put meanwhile.
        again: bool,
    },
}

/// The answer to a worker that asks for a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This one.
    Job(Delivery),
    /// Jobs of an order beyond `after`, up to `until` at least, are on disk; memory has place for `room`.
    OnDisk { after: u64, until: u64, room: usize },
    /// None before this moment, unless something happens.
    Nothing(Option<Instant>),
}

impl Line {
    /// A line over a disk that holds `total` jobs up to the order `last`, none of them in memory yet.
    pub(super) fn new(room: usize, last: u64, total: u64) -> Self {
        Self {
            room: room.max(1),
            places: HashMap::new(),
            ready: VecDeque::new(),
            delayed: BTreeMap::new(),
            in_flight: HashMap::new(),
            reached: 0,
            last,
            given: last,
            total,
            deliveries: 0,
        }
    }

    /// Begins again over a disk that holds these. What is in flight is no longer known: it waits again, and its
    /// acknowledgement is nothing.
    pub(super) fn begin_again(&mut self, last: u64, total: u64) {
        *self = Self { deliveries: self.deliveries, ..Self::new(self.room, last, total) };
    }

    /// Merges a job that is put with its equal in memory; false if there is none.
    pub(super) fn merge(&mut self, job: Job) -> bool {
        let Some(place) = self.places.get_mut(&job) else { return false };
        if let Now::InFlight { again } = &mut place.now {
            *again = true;
        }
        true
    }

    /// The order for a job that is put, unless it is merged: with its equal in memory, or with the one that the
    /// disk has in the order `on_disk`, if memory has not reached that yet.
    pub(super) fn place_for(&mut self, job: Job, on_disk: Option<u64>) -> Option<u64> {
        if self.merge(job) || on_disk.is_some_and(|order| order > self.reached) {
            return None;
        }
        self.given += 1;
        Some(self.given)
    }

    /// Jobs that were put are on disk, ascending by order.
    pub(super) fn stored(&mut self, jobs: &[(u64, Job)]) {
        self.total += jobs.len() as u64;
        for &(order, job) in jobs {
            let nothing_between = self.reached >= self.last;
            self.last = self.last.max(order);
            if nothing_between && self.places.len() < self.room {
                self.admit(order, job);
            }
        }
    }

    /// Jobs read from disk, ascending by order: the next ones after `reached`. If they are all there are up to
    /// `all_until`, the orders between them were given but lost.
    pub(super) fn read(&mut self, jobs: Vec<(u64, Job)>, all_until: Option<u64>) {
        for (order, job) in jobs {
            if self.places.len() >= self.room {
                return;
            }
            self.admit(order, job);
        }
        self.reached = self.reached.max(all_until.unwrap_or(0));
    }

    fn admit(&mut self, order: u64, job: Job) {
        if order > self.reached {
            self.reached = order;
            self.places.insert(job, Place { order, now: Now::Waits });
            self.ready.push_back(job);
        }
    }

    /// The job that waits longest, now in flight.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        while let Some(due) = self.delayed.first_entry().filter(|first| first.key().0 <= now) {
            self.ready.push_back(due.remove());
        }
        if let Some(job) = self.ready.pop_front() {
            self.deliveries += 1;
            let id = self.deliveries;
            self.in_flight.insert(id, job);
            self.places.get_mut(&job).expect("what is ready has a place").now = Now::InFlight { again: false };
            return Next::Job(Delivery { id, job });
        }
        let room = self.room.saturating_sub(self.places.len());
        if self.reached < self.last && room > 0 {
            return Next::OnDisk { after: self.reached, until: self.last, room };
        }
        Next::Nothing(self.delayed.keys().next().map(|(due, _)| *due))
    }

    /// The job is done. Answers where it stands on disk if it is to be taken off there; not if an equal one
    /// was put meanwhile, which now waits in its place. An id that is not in flight is nothing.
    pub(super) fn acknowledge(&mut self, id: u64) -> Option<(u64, Job)> {
        let job = self.in_flight.remove(&id)?;
        let place = self.places.get_mut(&job).expect("what is in flight has a place");
        let order = place.order;
        if matches!(place.now, Now::InFlight { again: true }) {
            place.now = Now::Waits;
            self.ready.push_back(job);
            return None;
        }
        self.places.remove(&job);
        self.total -= 1;
        Some((order, job))
    }

    /// The job waits again, not before `delay` has passed. What was put meanwhile waits with it.
    pub(super) fn give_back(&mut self, id: u64, now: Instant, delay: Duration) {
        let Some(job) = self.in_flight.remove(&id) else { return };
        self.places.get_mut(&job).expect("what is in flight has a place").now = Now::Waits;
        if delay.is_zero() {
            self.ready.push_front(job);
        } else {
            self.delayed.insert((now + delay, id), job);
        }
    }

    /// Jobs that wait or are in flight.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;

    use super::*;

    fn job(n: u64) -> Job {
        Job::FanOut { author: UserNo(n as u32) }
    }

    fn jobs(orders: std::ops::RangeInclusive<u64>) -> Vec<(u64, Job)> {
        orders.map(|n| (n, job(n))).collect()
    }

    fn taken(line: &mut Line, now: Instant) -> Delivery {
        match line.next(now) {
            Next::Job(delivery) => delivery,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn i18_memory_holds_no_more_than_its_room_and_the_rest_is_read_when_it_is_empty() {
        let now = Instant::now();
        let mut line = Line::new(3, 0, 0);
        line.stored(&jobs(1..=5));
        assert_eq!((line.places.len(), line.total()), (3, 5));
        let first: Vec<Delivery> = (0..3).map(|_| taken(&mut line, now)).collect();
        assert_eq!(line.next(now), Next::Nothing(None), "what is in flight takes up the room");
        line.acknowledge(first[0].id);
        assert_eq!(line.next(now), Next::OnDisk { after: 3, until: 5, room: 1 });
        line.read(jobs(4..=4), None);
        assert_eq!(taken(&mut line, now).job, job(4));
        line.acknowledge(first[1].id);
        assert_eq!(line.next(now), Next::OnDisk { after: 4, until: 5, room: 1 });
    }

    #[test]
    fn a_job_read_from_disk_before_its_put_was_answered_is_admitted_once() {
        let now = Instant::now();
        let mut line = Line::new(9, 2, 2);
        assert_eq!(line.next(now), Next::OnDisk { after: 0, until: 2, room: 9 });
        line.read(jobs(1..=3), None);
        line.stored(&jobs(3..=3));
        assert_eq!((line.places.len(), line.total()), (3, 3));
    }

    #[test]
    fn what_is_put_behind_jobs_on_disk_does_not_overtake_them() {
        let now = Instant::now();
        let mut line = Line::new(9, 2, 2);
        line.stored(&jobs(3..=3));
        assert_eq!(line.next(now), Next::OnDisk { after: 0, until: 3, room: 9 });
        line.read(jobs(1..=3), None);
        let order: Vec<Job> = (0..3).map(|_| taken(&mut line, now).job).collect();
        assert_eq!(order, [job(1), job(2), job(3)]);
    }

    #[test]
    fn a_gap_in_the_order_does_not_make_the_line_look_at_the_disk_forever() {
        let now = Instant::now();
        let mut line = Line::new(9, 7, 1);
        line.read(jobs(4..=4), Some(7));
        let only = taken(&mut line, now);
        assert_eq!(line.next(now), Next::Nothing(None));
        assert_eq!(line.acknowledge(only.id), Some((4, job(4))));
        assert_eq!(line.total(), 0);
    }

    #[test]
    fn a_delayed_job_is_ready_at_its_moment_and_what_is_merged_with_it_waits_too() {
        let now = Instant::now();
        let mut line = Line::new(9, 0, 0);
        line.stored(&jobs(1..=1));
        let first = taken(&mut line, now);
        assert!(line.merge(job(1)));
        line.give_back(first.id, now, Duration::from_secs(1));
        assert!(line.merge(job(1)));
        let due = now + Duration::from_secs(1);
        assert_eq!(line.next(now), Next::Nothing(Some(due)));
        let again = taken(&mut line, due);
        assert_ne!(again.id, first.id);
        assert_eq!(line.acknowledge(first.id), None, "an old delivery settles nothing");
        assert_eq!(line.acknowledge(again.id), Some((1, job(1))), "merged jobs need one turn");
    }
}
