//! The follow door: brings a reader's inboxes to one edge's *current* generation and state.
//!
//! ```text
//!   where all inboxes stand ─▶ the edge and what it shows, one snapshot ─┬─▶ a step where there is an inbox
//!       ▲                                                                └─▶ elsewhere a build in flight starts over
//!       └── overtaken, an inbox has come, a feed was unknown here ───────────┘
//! ```
//!
//! Most readers have opened one feed: the others cost a name in a call.
//!
//! The work names only (reader, author), so repeated and reordered follows and unfollows merge by
//! themselves (I15).

use futures_util::future::{try_join, try_join_all};

use super::{Feeds, TRIES, contended};
use crate::archive::{EdgeState, Event};
use crate::doorbell::Growth;
use crate::error::Result;
use crate::inboxes::{EdgeStep, EdgeStepped, KEEP};
use crate::{Cut, Entry, Generation, InboxKey, Op, UserNo, failpoint};

/// A follow that was imported from far back may bring more than a log keeps: then the inbox is left to its next rebuild,
/// which brings the newest of it.
const ADDS_MAX: usize = 2 * KEEP;

/// What became of one inbox.
enum Stepped {
    /// It has taken the edge in.
    Done(Option<Growth>),
    /// Read again.
    Overtaken,
}

impl Feeds {
    /// Takes in the edge as it is now, in each of the reader's inboxes. Answers what is thereby finished, and where those
    /// logs stand that have grown.
    pub async fn step_edge(&self, reader: UserNo, author: UserNo) -> Result<(Event, Vec<Growth>)> {
        let (mut generation, mut grown) = (Generation::MAX, vec![]);
        let (mut served, mut left) = (vec![], self.known_feeds());
        for _ in 0..TRIES {
            let keys: Vec<InboxKey> = left.iter().map(|feed| InboxKey { reader, feed: *feed }).collect();
            let of = (author, reader.bucket(self.inboxes.buckets()));
            let (progress, stands) = try_join(self.inboxes.progress(&[of]), self.inboxes.stands(&keys)).await?;
            let (mut cuts, mut missing) = (vec![], vec![]);
            for (key, stand) in keys.into_iter().zip(stands) {
                match stand {
                    Some(stand) => cuts.push((key.feed, Cut { progress: progress[0], pull: stand.taken.pull })),
                    None => missing.push(key),
                }
            }
            let now = self.archive.edge_states(reader, author, &cuts, self.backfill).await?;
            generation = generation.min(now.edge.generation);
            let steps = cuts.iter().zip(now.states).map(async |(&(feed, cut), state)| {
                Ok((feed, self.step_inbox(InboxKey { reader, feed }, author, cut, state).await?))
            });
            let (stepped, come) = try_join(try_join_all(steps), self.inboxes.cancel_builds(&missing)).await?;
            for (feed, stepped) in stepped {
                if let Stepped::Done(growth) = stepped {
                    served.push(feed);
                    grown.extend(growth);
                }
            }
            served.extend(missing.iter().filter(|key| !come.contains(key)).map(|key| key.feed));
            left = self.unserved(now.feeds, &served);
            if left.is_empty() {
                return Ok((Event::Edge { reader, author, generation }, grown));
            }
        }
        Err(contended("a follow step"))
    }

    /// Brings one inbox to `state`, which was read with this cut.
    async fn step_inbox(&self, key: InboxKey, author: UserNo, expected: Cut, state: EdgeState) -> Result<Stepped> {
        let generation = state.edge.generation;
        if state.adds.len() > ADDS_MAX {
            self.inboxes.discard(key).await?;
            return Ok(Stepped::Done(None));
        }
        let adds = state
            .adds
            .iter()
            .map(|add| Entry { op: Op::Add, author, outbox_seq: add.outbox_seq, generation, key: add.key })
            .collect();
        let step = EdgeStep { key, author, generation, on: state.edge.on, expected, adds };
        let stepped = self.inboxes.step_edge(step).await?;
        failpoint::hit("edge-step-done");
        Ok(match stepped {
            EdgeStepped::Applied(_) if state.quiet => Stepped::Done(None),
            EdgeStepped::Applied(head) => Stepped::Done(Some(Growth::of_one(key, author, head))),
            EdgeStepped::Nothing | EdgeStepped::Missing => Stepped::Done(None),
            EdgeStepped::Overtaken => Stepped::Overtaken,
        })
    }
}
