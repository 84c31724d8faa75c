//! The follow door: brings one inbox to one edge's *current* generation and state.
//!
//! The work names only (reader, author), so repeated and reordered follows and unfollows merge by
//! themselves (I15).

use futures_util::future::try_join;

use super::{Feeds, TRIES, contended};
use crate::archive::Event;
use crate::doorbell::Growth;
use crate::error::Result;
use crate::inboxes::{EdgeStep, EdgeStepped, KEEP};
use crate::{Cut, Entry, Generation, InboxKey, Op, UserNo, failpoint};

/// A follow that was imported from far back may bring more than a log keeps: then the inbox is left to its next rebuild,
/// which brings the newest of it.
const ADDS_MAX: usize = 2 * KEEP;

impl Feeds {
    /// Takes in the edge as it is now, in each of the reader's feeds. Answers what is thereby finished, and where those
    /// logs stand that have grown.
    pub async fn step_edge(&self, reader: UserNo, author: UserNo) -> Result<(Event, Vec<Growth>)> {
        let (mut least, growth) = self.step_edge_of(InboxKey::main(reader), author).await?;
        let mut grown = Vec::from_iter(growth);
        for feed in self.named_feeds().await? {
            let (generation, growth) = self.step_edge_of(InboxKey { reader, feed }, author).await?;
            least = least.min(generation);
            grown.extend(growth);
        }
        Ok((Event::Edge { reader, author, generation: least }, grown))
    }

    /// The same for one inbox: the generation that it has taken in, and where its log stands if it has grown.
    async fn step_edge_of(&self, key: InboxKey, author: UserNo) -> Result<(Generation, Option<Growth>)> {
        let bucket = key.reader.bucket(self.inboxes.buckets());
        for _ in 0..TRIES {
            let (progress, stand) =
                try_join(self.inboxes.progress(&[(author, bucket)]), self.inboxes.stand(key)).await?;
            let expected = Cut { progress: progress[0], pull: stand.map_or(0, |stand| stand.taken.pull) };
            let state = self.archive.edge_state(key, author, expected, self.backfill).await?;
            let generation = state.edge.generation;
            if state.adds.len() > ADDS_MAX {
                self.inboxes.discard(key).await?;
                return Ok((generation, None));
            }
            let adds = state
                .adds
                .iter()
                .map(|add| Entry { op: Op::Add, author, outbox_seq: add.outbox_seq, generation, key: add.key })
                .collect();
            let step = EdgeStep { key, author, generation, on: state.edge.on, expected, adds };
            let stepped = self.inboxes.step_edge(step).await?;
            failpoint::hit("edge-step-done");
            match stepped {
                EdgeStepped::Applied(_) if state.quiet => return Ok((generation, None)),
                EdgeStepped::Applied(head) => return Ok((generation, Some(Growth::of_one(key, author, head)))),
                EdgeStepped::Nothing | EdgeStepped::Missing => return Ok((generation, None)),
                EdgeStepped::Overtaken => {}
            }
        }
        Err(contended("a follow step"))
    }
}
