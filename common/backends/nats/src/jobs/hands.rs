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
use feedgate_common::jobs::{Delivery, Job, Lane};
use tokio::time::Instant;

/// A message's place in the stream of its lane. A stream that was lost or rolled back gives a sequence again, but not
/// to a message of the same nanosecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) lane: Lane,
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
    /// Whether the answer to this delivery is under way; then nothing else may be sent about it.
    settling: bool,
}

impl Held {
    pub(crate) fn new(job: Job, place: Place, reply: String, connection: u64) -> Self {
        Self { job, place, reply, connection, settling: false }
    }
}

/// The jobs that this process holds: those that wait for a call, and those that were handed out.
#[derive(Default)]
pub(crate) struct Hands {
    held: BTreeMap<u64, Held>,
    posts: Waiting,
    edges: Waiting,
    last: u64,
}

/// What waits for each other in one lane.
#[derive(Default)]
struct Waiting {
    /// Not taken yet, with when they arrived.
    ready: VecDeque<(u64, Instant)>,
    /// Calls that wait for a job.
    takers: usize,
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
        let (id, lane) = (self.last, delivery.place.lane);
        self.held.insert(id, delivery);
        self.of_mut(lane).ready.push_back((id, now));
    }

    /// A call waits for a job of this lane.
    pub(crate) fn taker_came(&mut self, lane: Lane) {
        self.of_mut(lane).takers += 1;
    }

    /// A call that waited for a job of this lane waits no longer.
    pub(crate) fn taker_went(&mut self, lane: Lane) {
        self.of_mut(lane).takers -= 1;
    }

    /// The delivery of this lane that is longest ready, from now on taken.
    pub(crate) fn next(&mut self, lane: Lane) -> Option<Delivery> {
        let (id, _) = self.of_mut(lane).ready.pop_front()?;
        Some(Delivery { id, job: self.held[&id].job })
    }

    /// How many calls wait beyond what is ready for them.
    pub(crate) fn wanted(&self, lane: Lane) -> usize {
        let waiting = self.of(lane);
        waiting.takers.saturating_sub(waiting.ready.len())
    }

    /// When the delivery that is longest ready came.
    pub(crate) fn ready_since(&self, lane: Lane) -> Option<Instant> {
        self.of(lane).ready.front().map(|(_, since)| *since)
    }

    /// Gives the deliveries that no call has taken for `grace`, and holds them no longer.
    pub(crate) fn overdue(&mut self, lane: Lane, now: Instant, grace: Duration) -> Vec<Held> {
        let ready = &mut self.of_mut(lane).ready;
        let late = ready.iter().take_while(|(_, since)| now >= *since + grace).count();
        let late: Vec<_> = ready.drain(..late).collect();
        late.into_iter().filter_map(|(id, _)| self.held.remove(&id)).collect()
    }

    /// Everything of this lane, no longer held.
    pub(crate) fn let_go(&mut self, lane: Lane) -> Vec<Held> {
        self.of_mut(lane).ready.clear();
        let held = std::mem::take(&mut self.held).into_iter();
        let (own, others): (BTreeMap<_, _>, _) = held.partition(|(_, held)| held.place.lane == lane);
        self.held = others;
        own.into_values().collect()
    }

    /// Where to say that work of this lane goes on.
    pub(crate) fn at_work(&self, lane: Lane) -> Vec<String> {
        let at_work = self.held.values().filter(|held| held.place.lane == lane && !held.settling);
        at_work.map(|held| held.reply.clone()).collect()
    }

    fn of(&self, lane: Lane) -> &Waiting {
        match lane {
            Lane::Posts => &self.posts,
            Lane::Edges => &self.edges,
        }
    }

    fn of_mut(&mut self, lane: Lane) -> &mut Waiting {
        match lane {
            Lane::Posts => &mut self.posts,
            Lane::Edges => &mut self.edges,
        }
    }

    /// The delivery, whose answer is under way from now on.
    pub(crate) fn settling(&mut self, id: u64) -> Option<Held> {
        let held = self.held.get_mut(&id)?;
        held.settling = true;
        Some(held.clone())
    }

    /// The answer to a delivery was not confirmed: its job is at work again, and it is not known whether its message
    /// still stands.
    pub(crate) fn unsettled(&mut self, id: u64) {
        if let Some(held) = self.held.get_mut(&id) {
            held.settling = false;
            held.connection = UNKNOWN;
        }
    }

    /// The answer to a delivery was confirmed, or there is nothing left to answer.
    pub(crate) fn settled(&mut self, id: u64) {
        self.held.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::UserNo;

    use super::*;

    const LANE: Lane = Lane::Posts;

    fn delivery(sequence: u64, reply: &str) -> Held {
        let published = async_nats::datetime::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        let job = Job::FanOut { author: UserNo(sequence as u32) };
        Held::new(job, Place { lane: LANE, sequence, published }, reply.to_owned(), 1)
    }

    #[test]
    fn a_job_in_hand_is_not_handed_out_again_but_answered_as_last_delivered() {
        let (mut hands, now) = (Hands::default(), Instant::now());
        hands.arrived(delivery(1, "first"), now);
        let taken = hands.next(LANE).unwrap();
        hands.arrived(delivery(1, "second"), now);
        assert_eq!(hands.next(LANE), None);
        assert_eq!(hands.settling(taken.id).unwrap().reply, "second");
    }

    #[test]
    fn a_job_that_comes_again_before_its_answer_was_seen_to_be_heard_is_a_new_delivery() {
        let (mut hands, now) = (Hands::default(), Instant::now());
        hands.arrived(delivery(1, "first"), now);
        let taken = hands.next(LANE).unwrap();
        hands.settling(taken.id).unwrap();
        hands.arrived(delivery(1, "second"), now);
        hands.settled(taken.id);
        let again = hands.next(LANE).unwrap();
        assert_eq!((again.job, hands.at_work(LANE)), (taken.job, vec!["second".to_owned()]));
    }

    #[test]
    fn what_nobody_takes_is_given_back_after_the_grace() {
        let (mut hands, now, grace) = (Hands::default(), Instant::now(), Duration::from_millis(100));
        hands.arrived(delivery(1, "one"), now);
        hands.arrived(delivery(2, "two"), now + grace);
        assert!(hands.overdue(LANE, now + grace / 2, grace).is_empty());
        let back = hands.overdue(LANE, now + grace, grace);
        assert_eq!(back.iter().map(|held| &*held.reply).collect::<Vec<_>>(), ["one"]);
        assert_eq!(hands.next(LANE).map(|d| d.job), Some(delivery(2, "").job));
    }

    #[test]
    fn nothing_is_said_of_a_delivery_whose_answer_is_under_way() {
        let (mut hands, now) = (Hands::default(), Instant::now());
        hands.arrived(delivery(1, "one"), now);
        let id = hands.next(LANE).unwrap().id;
        hands.settling(id).unwrap();
        assert!(hands.at_work(LANE).is_empty(), "a sign of work would undo the delay of a job given back");
        hands.unsettled(id);
        assert_eq!((hands.at_work(LANE).len(), hands.settling(id).unwrap().connection), (1, 0));
    }
}
