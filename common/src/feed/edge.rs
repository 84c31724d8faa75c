//! The follow door: brings one inbox to one edge's *current* generation and state.
//!
//! The work names only (reader, author), so repeated and reordered follows and unfollows merge by
//! themselves (I15).

use futures_util::future::try_join;

use super::{Feeds, TRIES, contended};
use crate::archive::Event;
use crate::doorbell::Growth;
use crate::error::Result;
use crate::inboxes::{EdgeStep, EdgeStepped};
use crate::{Cut, Entry, InboxKey, Op, UserNo, failpoint};

impl Feeds {
    /// Takes in the edge as it is now. Answers what is thereby finished, and where the log stands if it
    /// has grown.
    pub async fn step_edge(&self, reader: UserNo, author: UserNo) -> Result<(Event, Option<Growth>)> {
        let key = InboxKey::main(reader);
        let bucket = reader.bucket(self.inboxes.buckets());
        for _ in 0..TRIES {
            let (progress, stand) =
                try_join(self.inboxes.progress(&[(author, bucket)]), self.inboxes.stand(key)).await?;
            let expected = Cut { progress: progress[0], pull: stand.map_or(0, |stand| stand.taken.pull) };
            let state = self.archive.edge_state(reader, author, expected, self.backfill).await?;
            let generation = state.edge.generation;
            let adds = state
                .adds
                .iter()
                .map(|add| Entry { op: Op::Add, author, outbox_seq: add.outbox_seq, generation, key: add.key })
                .collect();
            let step = EdgeStep { key, author, generation, on: state.edge.on, expected, adds };
            let stepped = self.inboxes.step_edge(step).await?;
            failpoint::hit("edge-step-done");
            let event = Event::Edge { reader, author, generation };
            match stepped {
                EdgeStepped::Applied(_) if state.quiet => return Ok((event, None)),
                EdgeStepped::Applied(head) => return Ok((event, Some(Growth::of_one(key, author, head)))),
                EdgeStepped::Nothing | EdgeStepped::Missing => return Ok((event, None)),
                EdgeStepped::Overtaken => {}
            }
        }
        Err(contended("a follow step"))
    }
}
