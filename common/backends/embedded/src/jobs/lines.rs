//! Which jobs wait and which are in flight: a line for each lane. Pure: no lock, no clock.
//!
//! Invariants:
//! - A job is held at most once: it waits or is in flight.
//! - At most `room` jobs of each lane wait (I18), about 50 bytes each. A job beyond that is refused, but a job that is
//!   given back always has a place.
//! - After a lane has refused a job, it says once that it has room: when half of its line is free.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use feedgate_common::jobs::{Delivery, Job, Lane};

/// The jobs that the queue holds.
pub(super) struct Lines {
    room: usize,
    lines: [Line; Lane::ALL.len()],
    held: HashMap<Job, Now>,
    in_flight: HashMap<u64, Job>,
    /// How many deliveries there were; the count is the id of the newest.
    deliveries: u64,
}

/// The jobs of one lane that wait, in the order in which they are delivered.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Job>,
    /// Whether a job was refused and the line has not said since that it has room.
    refused: bool,
}

enum Now {
    Waits,
    InFlight {
        /// Whether an equal job was put while this one is being worked off.
        again: bool,
    },
}

impl Lines {
    /// Empty lines, with place for `room` waiting jobs each; at least 1.
    pub(super) fn new(room: usize) -> Self {
        let (lines, room) = (Default::default(), room.max(1));
        Self { room, lines, held: HashMap::new(), in_flight: HashMap::new(), deliveries: 0 }
    }

    /// Takes in a job, or merges the job with an equal job that is held. False if the lane of the job has no room.
    pub(super) fn put(&mut self, job: Job) -> bool {
        let line = &mut self.lines[job.lane() as usize];
        match self.held.entry(job) {
            Entry::Occupied(mut held) => {
                if let Now::InFlight { again } = held.get_mut() {
                    *again = true;
                }
            }
            Entry::Vacant(_) if line.waiting.len() >= self.room => {
                line.refused = true;
                return false;
            }
            Entry::Vacant(place) => {
                place.insert(Now::Waits);
                line.waiting.push_back(job);
            }
        }
        true
    }

    /// Takes the job of the lane that waits longest and puts it in flight; `None` if none waits.
    pub(super) fn take(&mut self, lane: Lane) -> Option<Delivery> {
        let job = self.lines[lane as usize].waiting.pop_front()?;
        self.deliveries += 1;
        self.held.insert(job, Now::InFlight { again: false });
        self.in_flight.insert(self.deliveries, job);
        Some(Delivery { id: self.deliveries, job })
    }

    /// Whether the lane, which has refused a job, has room again. True once for all jobs that it refused.
    pub(super) fn has_room_again(&mut self, lane: Lane) -> bool {
        let line = &mut self.lines[lane as usize];
        let now = line.refused && line.waiting.len() <= self.room / 2;
        line.refused &= !now;
        now
    }

    /// Notes that the job of the delivery `id` is done. True if an equal job was put meanwhile, which waits from now
    /// on.
    pub(super) fn acknowledge(&mut self, id: u64) -> bool {
        let Some(job) = self.in_flight.remove(&id) else { return false };
        let again = matches!(self.held.remove(&job), Some(Now::InFlight { again: true }));
        if again {
            self.held.insert(job, Now::Waits);
            self.lines[job.lane() as usize].waiting.push_back(job);
        }
        again
    }

    /// Lets the job of the delivery `id` wait again, before all others. An equal job that was put meanwhile is merged.
    pub(super) fn give_back(&mut self, id: u64) {
        let Some(job) = self.in_flight.remove(&id) else { return };
        self.held.insert(job, Now::Waits);
        self.lines[job.lane() as usize].waiting.push_front(job);
    }

    /// How many jobs wait or are in flight.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;

    use super::*;

    fn job(n: u32) -> Job {
        Job::FanOut { author: UserNo(n) }
    }

    fn edges(n: u32) -> Job {
        Job::Edges { reader: UserNo(n) }
    }

    /// Takes the next job of the lane of posts.
    fn taken(lines: &mut Lines) -> Delivery {
        lines.take(Lane::Posts).expect("a job waits")
    }

    #[test]
    fn i18_a_full_lane_refuses_what_is_new_and_the_other_lane_takes_it() {
        let mut lines = Lines::new(2);
        assert_eq!([1, 2, 3].map(|n| lines.put(job(n))), [true, true, false]);
        assert!(lines.put(job(2)), "merged, it needs no room");
        assert!(lines.put(edges(1)));
        assert_eq!(lines.len(), 3);
        let first = taken(&mut lines);
        assert!(lines.put(job(3)), "what is in flight takes no room of what waits");
        lines.give_back(first.id);
        assert_eq!([(); 3].map(|()| taken(&mut lines).job), [1, 2, 3].map(job), "what is given back has a place");
    }

    #[test]
    fn a_lane_that_has_refused_says_once_that_half_of_it_is_free() {
        let mut lines = Lines::new(4);
        (1..=4).for_each(|n| assert!(lines.put(job(n))));
        assert!(!lines.has_room_again(Lane::Posts), "nothing was refused");
        assert!(!lines.put(job(5)));
        taken(&mut lines);
        assert!(!lines.has_room_again(Lane::Posts), "three still wait");
        taken(&mut lines);
        assert!(!lines.has_room_again(Lane::Edges), "this lane has refused nothing");
        assert!(lines.has_room_again(Lane::Posts));
        assert!(!lines.has_room_again(Lane::Posts), "it was said");
    }

    #[test]
    fn a_job_given_back_is_the_next_and_what_is_merged_with_it_waits_with_it() {
        let mut lines = Lines::new(9);
        assert!(lines.put(job(1)) && lines.put(job(2)));
        let first = taken(&mut lines);
        assert!(lines.put(job(1)));
        lines.give_back(first.id);
        assert!(lines.put(job(1)));
        let again = taken(&mut lines);
        assert_eq!(again.job, job(1));
        assert!(!lines.acknowledge(first.id));
        assert_eq!(lines.len(), 2, "an old delivery settles nothing");
        assert!(!lines.acknowledge(again.id), "merged jobs need one turn");
        assert_eq!(lines.len(), 1);
    }
}
