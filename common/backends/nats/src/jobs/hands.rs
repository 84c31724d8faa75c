//! The deliveries that are this process's: those nobody has taken yet, and those in a worker's hands.
//!
//! ```text
//!   arrived ─▶ ready ──next──▶ taken ──settling──▶ settled
//!                └──overdue──▶ given back
//! ```
//!
//! Invariants: pure, no IO and no clock; a delivery is in exactly one of these states; a job that is redelivered
//! while it is in hand here is not handed out a second time.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use async_nats::datetime::DateTime;
use feedgate_common::jobs::{Delivery, Job};
use tokio::time::Instant;

/// A message's place in its stream. A stream that was lost or rolled back gives a sequence again, but not to a
/// message of the same nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) published: DateTime,
}

/// No connection: whether a message stands is to be looked up.
pub(crate) const UNKNOWN: u64 = 0;

/// A delivery that has not been settled.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) job: Job,
    pub(crate) place: Place,
    /// Where to answer it.
    pub(crate) reply: String,
    /// The connection on which its message was last known to stand in the stream.
    pub(crate) connection: u64,
    /// Its answer is under way; nothing else may be said of it.
    settling: bool,
}

impl Held {
    pub(crate) fn new(job: Job, place: Place, reply: String, connection: u64) -> Self {
        Self { job, place, reply, connection, settling: false }
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Hands {
    held: BTreeMap<u64, Held>,
    /// Not taken yet, with when they arrived.
    ready: VecDeque<(u64, Instant)>,
    last: u64,
    /// Calls that wait for a job.
    pub(crate) takers: usize,
}

impl Hands {
    /// A delivery has come.
    pub(crate) fn arrived(&mut self, delivery: Held, now: Instant) {
        let same = self.held.values_mut().find(|held| held.place == delivery.place && !held.settling);
        if let Some(held) = same {
            *held = delivery;
            return;
        }
        self.last += 1;
        self.held.insert(self.last, delivery);
        self.ready.push_back((self.last, now));
    }

    /// The delivery that is longest ready, from now on taken.
    pub(crate) fn next(&mut self) -> Option<Delivery> {
        let (id, _) = self.ready.pop_front()?;
        Some(Delivery { id, job: self.held[&id].job })
    }

    /// How many calls wait beyond what is ready for them.
    pub(crate) fn wanted(&self) -> usize {
        self.takers.saturating_sub(self.ready.len())
    }

    /// When the delivery that is longest ready came.
    pub(crate) fn ready_since(&self) -> Option<Instant> {
        self.ready.front().map(|(_, since)| *since)
    }

    /// Those that nobody has taken for `grace`, no longer held.
    pub(crate) fn overdue(&mut self, now: Instant, grace: Duration) -> Vec<Held> {
        let late = self.ready.iter().take_while(|(_, since)| now >= *since + grace).count();
        self.ready.drain(..late).filter_map(|(id, _)| self.held.remove(&id)).collect()
    }

    /// Everything, no longer held.
    pub(crate) fn let_go(&mut self) -> Vec<Held> {
        self.ready.clear();
        std::mem::take(&mut self.held).into_values().collect()
    }

    /// Where to say that work goes on.
    pub(crate) fn at_work(&self) -> Vec<String> {
        self.held.values().filter(|held| !held.settling).map(|held| held.reply.clone()).collect()
    }

    /// The delivery, whose answer is under way from now on.
    pub(crate) fn settling(&mut self, id: u64) -> Option<Held> {
        let held = self.held.get_mut(&id)?;
        held.settling = true;
        Some(held.clone())
    }

    /// Its answer was not heard: it is at work again, and whether its message still stands is not known.
    pub(crate) fn unsettled(&mut self, id: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.settling = false;
            held.connection = UNKNOWN;
        }
    }

    /// Its answer was heard, or there is nothing left to answer.
    pub(crate) fn settled(&mut self, id: u64) {
        self.held.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;

    use super::*;

    fn delivery(sequence: u64, reply: &str) -> Held {
        let published = async_nats::datetime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        let job = Job::FanOut { author: UserNo(sequence as u32) };
        Held::new(job, Place { sequence, published }, reply.to_owned(), 1)
    }

    #[test]
    fn a_job_in_hand_is_not_handed_out_again_but_answered_as_last_delivered() {
        let (mut hands, now) = (Hands::default(), Instant::now());
        hands.arrived(delivery(1, "first"), now);
        let taken = hands.next().unwrap();
        hands.arrived(delivery(1, "second"), now);
        assert_eq!(hands.next(), None);
        assert_eq!(hands.settling(taken.id).unwrap().reply, "second");
    }

    #[test]
    fn a_job_that_comes_again_before_its_answer_was_seen_to_be_heard_is_a_new_delivery() {
        let (mut hands, now) = (Hands::default(), Instant::now());
        hands.arrived(delivery(1, "first"), now);
        let taken = hands.next().unwrap();
        hands.settling(taken.id).unwrap();
        hands.arrived(delivery(1, "second"), now);
        hands.settled(taken.id);
        let again = hands.next().unwrap();
        assert_eq!((again.job, hands.at_work()), (taken.job, vec!["second".to_owned()]));
    }

    #[test]
    fn what_nobody_takes_is_given_back_after_the_grace() {
        let (mut hands, now, grace) = (Hands::default(), Instant::now(), Duration::from_millis(100));
        hands.arrived(delivery(1, "one"), now);
        hands.arrived(delivery(2, "two"), now + grace);
        assert!(hands.overdue(now + grace / 2, grace).is_empty());
        let back = hands.overdue(now + grace, grace);
        assert_eq!(back.iter().map(|held| &*held.reply).collect::<Vec<_>>(), ["one"]);
        assert_eq!(hands.next().map(|d| d.job), Some(delivery(2, "").job));
    }

    #[test]
    fn nothing_is_said_of_a_delivery_whose_answer_is_under_way() {
        let (mut hands, now) = (Hands::default(), Instant::now());
        hands.arrived(delivery(1, "one"), now);
        let id = hands.next().unwrap().id;
        hands.settling(id).unwrap();
        assert!(hands.at_work().is_empty(), "a sign of work would undo the delay of a job given back");
        hands.unsettled(id);
        assert_eq!((hands.at_work().len(), hands.settling(id).unwrap().connection), (1, 0));
    }
}
