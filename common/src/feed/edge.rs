//! The follow door: brings a reader's inboxes to one edge's *current* generation and state.
//!
//! ```text
//!   where all inboxes stand ─▶ the edge and what it shows, one snapshot ─┬─▶ a step where there is an inbox
//!       ▲                                                                └─▶ elsewhere: is one being built now?
//!       │                                                                       └─▶ builds it too
//!       └── overtaken, an inbox has come, a feed was unknown here ───────────────────┘
//! ```
//!
//! A build in flight may have read before the edge changed, and the step cannot act on an inbox that is not there. A build that
//! begins later reads the edge as it is by then. So whether there is one is asked after the snapshot.
//!
//! Most readers have opened one feed: the others cost a name in a call.
//!
//! The work names only (reader, author), so repeated and reordered follows and unfollows merge by
//! themselves (I15).

use futures_util::future::{try_join, try_join_all};

use super::{Feeds, TRIES, contended};
use crate::archive::{EDGE_ADDS_MAX, EdgeState, Event};
use crate::doorbell::Growth;
use crate::error::Result;
use crate::inboxes::{EdgeStep, EdgeStepped};
use crate::{Cut, Entry, Generation, InboxKey, Op, Position, PullSeq, UserNo, failpoint};

/// No inbox has pulled so far: a step that expects this only asks whether there is anything to do.
const NOWHERE: PullSeq = (1 << 53) - 1;

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
            let (mut heads, mut cuts, mut missing) = (vec![], vec![], vec![]);
            for (key, stand) in keys.into_iter().zip(stands) {
                match stand {
                    Some(stand) => {
                        heads.push(stand.head);
                        cuts.push((key.feed, Cut { progress: progress[0], pull: stand.taken.pull }));
                    }
                    None => missing.push(key),
                }
            }
            let now = self.archive.edge_states(reader, author, &cuts, self.backfill).await?;
            generation = generation.min(now.edge.generation);
            let steps = cuts.iter().zip(heads).zip(now.states).map(async |((&(feed, cut), head), state)| {
                Ok((feed, self.step_inbox((InboxKey { reader, feed }, head), author, cut, state).await?))
            });
            let (stepped, come) = try_join(try_join_all(steps), self.inboxes.present(&missing)).await?;
            for (feed, stepped) in stepped {
                if let Stepped::Done(growth) = stepped {
                    served.push(feed);
                    grown.extend(growth);
                }
            }
            served.extend(missing.iter().filter(|key| !come.contains(key)).map(|key| key.feed));
            for key in come {
                self.rebuild(key).await?;
            }
            left = self.unserved(now.feeds, &served);
            if left.is_empty() {
                return Ok((Event::Edge { reader, author, generation }, grown));
            }
        }
        Err(contended("a follow step"))
    }

    /// Brings one inbox, whose log stood there, to `state`, which was read with this cut.
    async fn step_inbox(
        &self,
        (key, head): (InboxKey, Position),
        author: UserNo,
        mut expected: Cut,
        mut state: EdgeState,
    ) -> Result<Stepped> {
        let generation = state.edge.generation;
        let too_many = state.adds.len() > EDGE_ADDS_MAX;
        if too_many {
            expected.pull = NOWHERE;
            state.adds.clear();
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
            // More than a step brings, or than the inbox remembers: a rebuild brings all of it.
            EdgeStepped::Full | EdgeStepped::Overtaken if too_many || stepped == EdgeStepped::Full => {
                self.inboxes.discard(key).await?;
                // Who is online reads again, and is told to start over.
                Stepped::Done((!state.quiet).then(|| Growth::of_one(key, author, head)))
            }
            EdgeStepped::Overtaken | EdgeStepped::Full | EdgeStepped::Building => Stepped::Overtaken,
        })
    }
}
