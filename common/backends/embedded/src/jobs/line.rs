//! The line of jobs of one lane: which jobs wait and which are being worked off. Pure: no disk, no clock.
//!
//! ```text
//!   disk:    1 2 3 4 5 6 7 8 9        every job of the lane that is not acknowledged, by its order
//!            └── in memory ─┘ └ later ┘
//!                     `reached` = 6    `last` = 9
//! ```
//!
//! Invariants:
//! - A job is in the line in memory at most once: it waits or is in flight.
//! - Memory holds every unacknowledged job of an order up to `reached`, and none beyond; never more than `room`
//!   jobs in all (I18), about 100 bytes each.
//! - What is in memory is on disk; it leaves memory in the step that takes it off the disk.

use std::collections::{HashMap, VecDeque};

use feedgate_common::jobs::Job;

/// The jobs of one lane that are in memory, and how far on disk they reach.
pub(super) struct Line {
    room: usize,
    places: HashMap<Job, Place>,
    ready: VecDeque<Job>,
    in_flight: HashMap<u64, Job>,
    reached: u64,
    /// The greatest order of a job of this lane that is known to be on disk.
    last: u64,
    /// How many jobs are not acknowledged, in memory or on disk alone.
    total: u64,
}

struct Place {
    order: u64,
    now: Now,
}

enum Now {
    Waits,
    InFlight {
        /// Whether an equal job was put while this one is being worked off.
        again: bool,
    },
}

/// The answer to a worker that asks for a job.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The job to work off; it is in flight from now on.
    Job(Job),
    /// No job waits in memory. Jobs with an order above `after`, up to at least `until`, are on disk; memory has place
    /// for `room` of them.
    OnDisk { after: u64, until: u64, room: usize },
    /// No job waits in memory or on disk, or memory is full.
    Nothing,
}

impl Line {
    /// A line over a disk that holds `total` jobs up to the order `last`, none of them in memory yet.
    pub(super) fn new(room: usize, last: u64, total: u64) -> Self {
        Self {
            room: room.max(1),
            places: HashMap::new(),
            ready: VecDeque::new(),
            in_flight: HashMap::new(),
            reached: 0,
            last,
            total,
        }
    }

    /// Starts over with a disk that holds `total` jobs up to the order `last`. Jobs in flight are forgotten: they wait
    /// again, and their acknowledgements do nothing.
    pub(super) fn begin_again(&mut self, last: u64, total: u64) {
        *self = Self::new(self.room, last, total);
    }

    /// Merges a job that is put with its equal in memory; false if there is none.
    pub(super) fn merge(&mut self, job: Job) -> bool {
        let Some(place) = self.places.get_mut(&job) else { return false };
        if let Now::InFlight { again } = &mut place.now {
            *again = true;
        }
        true
    }

    /// Whether a job that is put is merged: with its equal in memory, or with the one that the disk has in the order
    /// `on_disk`, if memory has not reached that yet.
    pub(super) fn has(&mut self, job: Job, on_disk: Option<u64>) -> bool {
        self.merge(job) || on_disk.is_some_and(|order| order > self.reached)
    }

    /// Takes note that jobs that were put are on disk now. `jobs` ascend by order.
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

    /// Takes in jobs read from disk, ascending by order: the next ones after `reached`. With `all_until` they are all
    /// the jobs there are up to that order; the orders missing between them were given but lost.
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

    /// Takes the job that waits longest and puts it in flight as the delivery `id`.
    pub(super) fn next(&mut self, id: u64) -> Next {
        if let Some(job) = self.ready.pop_front() {
            self.in_flight.insert(id, job);
            self.places.get_mut(&job).expect("what is ready has a place").now = Now::InFlight { again: false };
            return Next::Job(job);
        }
        let room = self.room.saturating_sub(self.places.len());
        if self.reached < self.last && room > 0 {
            return Next::OnDisk { after: self.reached, until: self.last, room };
        }
        Next::Nothing
    }

    /// Marks the delivery `id` as done. Answers the order and the job to remove from disk; `None` if an equal job was
    /// put meanwhile, which now waits in its place, or if `id` is not in flight.
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

    /// Gives back the delivery `id`: its job waits again, before all others. An equal job that was put meanwhile is the
    /// same one.
    pub(super) fn give_back(&mut self, id: u64) {
        let Some(job) = self.in_flight.remove(&id) else { return };
        self.places.get_mut(&job).expect("what is in flight has a place").now = Now::Waits;
        self.ready.push_front(job);
    }

    /// How many jobs wait or are in flight, in memory and on disk.
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

    /// Takes as delivery `id`.
    fn taken(line: &mut Line, id: u64) -> Job {
        match line.next(id) {
            Next::Job(job) => job,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn i18_memory_holds_no_more_than_its_room_and_the_rest_is_read_when_it_is_empty() {
        let mut line = Line::new(3, 0, 0);
        line.stored(&jobs(1..=5));
        assert_eq!((line.places.len(), line.total()), (3, 5));
        (1..=3).for_each(|id| assert_eq!(taken(&mut line, id), job(id)));
        assert_eq!(line.next(4), Next::Nothing, "what is in flight takes up the room");
        line.acknowledge(1);
        assert_eq!(line.next(4), Next::OnDisk { after: 3, until: 5, room: 1 });
        line.read(jobs(4..=4), None);
        assert_eq!(taken(&mut line, 4), job(4));
        line.acknowledge(2);
        assert_eq!(line.next(5), Next::OnDisk { after: 4, until: 5, room: 1 });
    }

    #[test]
    fn a_job_read_from_disk_before_its_put_was_answered_is_admitted_once() {
        let mut line = Line::new(9, 2, 2);
        assert_eq!(line.next(1), Next::OnDisk { after: 0, until: 2, room: 9 });
        line.read(jobs(1..=3), None);
        line.stored(&jobs(3..=3));
        assert_eq!((line.places.len(), line.total()), (3, 3));
    }

    #[test]
    fn what_is_put_behind_jobs_on_disk_does_not_overtake_them() {
        let mut line = Line::new(9, 2, 2);
        line.stored(&jobs(3..=3));
        assert_eq!(line.next(1), Next::OnDisk { after: 0, until: 3, room: 9 });
        line.read(jobs(1..=3), None);
        let order: Vec<Job> = (1..=3).map(|id| taken(&mut line, id)).collect();
        assert_eq!(order, [job(1), job(2), job(3)]);
    }

    #[test]
    fn a_gap_in_the_order_does_not_make_the_line_look_at_the_disk_forever() {
        let mut line = Line::new(9, 7, 1);
        line.read(jobs(4..=4), Some(7));
        taken(&mut line, 1);
        assert_eq!(line.next(2), Next::Nothing);
        assert_eq!(line.acknowledge(1), Some((4, job(4))));
        assert_eq!(line.total(), 0);
    }

    #[test]
    fn a_job_given_back_is_the_next_and_what_is_merged_with_it_waits_with_it() {
        let mut line = Line::new(9, 0, 0);
        line.stored(&jobs(1..=2));
        taken(&mut line, 1);
        assert!(line.merge(job(1)));
        line.give_back(1);
        assert!(line.merge(job(1)));
        assert_eq!(taken(&mut line, 2), job(1));
        assert_eq!(line.acknowledge(1), None, "an old delivery settles nothing");
        assert_eq!(line.acknowledge(2), Some((1, job(1))), "merged jobs need one turn");
    }
}
