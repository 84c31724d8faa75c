//! The follow door: brings a reader's inboxes to the *current* generation and state of edges that have changed.
//!
//! ```text
//!   where all inboxes stand ─▶ the edges and what they show, one snapshot ─┬─▶ one step of each inbox that there is
//!       ▲                                                                  └─▶ elsewhere: is one being built now?
//!       │                                                                         └─▶ builds it too
//!       └── none is in all inboxes: overtaken, an inbox has come, a feed was unknown here ──┘
//! ```
//!
//! A step cannot change an inbox that is still being built, and that build may have read the edge before it changed. A
//! build that begins later reads the edge as it is then. So the step asks after its snapshot whether an inbox is being
//! built.
//!
//! All outstanding edges of a reader go together, [`EDGES_MAX`] at most. A step compares each edge by itself. An edge
//! that is overtaken holds up no other: it stays outstanding, and the next step takes it.
//!
//! Most readers have opened one feed. Each other feed costs such a reader only its key in a call.
//!
//! The job names only the reader, so repeated and reordered follows and unfollows merge by themselves (I15).

use feedgate_common::archive::{EDGE_ADDS_MAX, EDGES_MAX, EdgeState, Event, FeedAdd};
use feedgate_common::doorbell::Growth;
use feedgate_common::error::Result;
use feedgate_common::feed::{TRIES, contended};
use feedgate_common::inboxes::{EdgeStep, EdgeStepped, Stand};
use feedgate_common::{Cut, Entry, FeedId, Generation, InboxKey, Op, Progress, PullSeq, UserNo, failpoint};
use futures_util::future::{try_join, try_join_all};

use super::FanOut;

/// A pull number that no inbox ever reaches: a step that expects it changes nothing, and only asks whether there is
/// anything to do.
const NOWHERE: PullSeq = (1 << 53) - 1;

/// An edge that is not in all inboxes yet.
struct Due {
    author: UserNo,
    /// The least generation of this edge that any inbox has taken in.
    generation: Generation,
    /// The feeds that are done: their inbox has taken in the edge, or they have no inbox.
    served: Vec<FeedId>,
}

impl Due {
    fn new(author: UserNo) -> Self {
        Self { author, generation: Generation::MAX, served: vec![] }
    }
}

/// What became of an inbox in a step.
struct Stepped {
    /// For each edge of the step, whether the inbox has taken it in.
    took: Vec<bool>,
    growth: Option<Growth>,
}

impl FanOut {
    /// Brings the outstanding edges of the reader, or the first of them if they are many, to each of the reader's
    /// inboxes. Gives the events that are finished by this call, at least one unless no edge is outstanding, and where
    /// the logs that have grown end now.
    pub async fn step_edges(&self, reader: UserNo) -> Result<(Vec<Event>, Vec<Growth>)> {
        let authors = self.archive().edges_due(reader, EDGES_MAX).await?;
        let (mut due, mut grown): (Vec<Due>, _) = (authors.into_iter().map(Due::new).collect(), vec![]);
        if due.is_empty() {
            return Ok((vec![], grown));
        }
        for _ in 0..TRIES {
            let feeds = self.round(reader, &mut due, &mut grown).await?;
            let done = due.iter().filter(|due| feeds.iter().all(|feed| due.served.contains(feed)));
            let finished = done.map(|due| Event::Edge { reader, author: due.author, generation: due.generation });
            let finished: Vec<Event> = finished.collect();
            if !finished.is_empty() {
                return Ok((finished, grown));
            }
        }
        Err(contended("a follow step"))
    }

    /// Takes one step for each inbox that lacks any of these edges. Removes from `due` the edges that are too many for
    /// one step. Gives all feeds that there are.
    async fn round(&self, reader: UserNo, due: &mut Vec<Due>, grown: &mut Vec<Growth>) -> Result<Vec<FeedId>> {
        let mut left = self.known.all();
        left.retain(|feed| due.iter().any(|due| !due.served.contains(feed)));
        let keys: Vec<InboxKey> = left.into_iter().map(|feed| InboxKey { reader, feed }).collect();
        let bucket = reader.bucket(self.inboxes().buckets());
        let of: Vec<_> = due.iter().map(|due| (due.author, bucket)).collect();
        let (progress, stands) = try_join(self.inboxes().progress(&of), self.inboxes().stands(&keys)).await?;
        let edges: Vec<(UserNo, Progress)> = due.iter().map(|due| due.author).zip(progress).collect();
        let (mut there, mut missing) = (vec![], vec![]);
        for (key, stand) in keys.into_iter().zip(stands) {
            match stand {
                Some(stand) => there.push((key, stand)),
                None => missing.push(key),
            }
        }
        let pulled: Vec<_> = there.iter().map(|(key, stand)| (key.feed, stand.taken.pull)).collect();
        let now = self.archive().edge_states(reader, &edges, &pulled, self.feeds.backfill()).await?;
        due.truncate(now.edges.len());
        for (due, edge) in due.iter_mut().zip(&now.edges) {
            due.generation = due.generation.min(edge.generation);
        }
        let steps = there.iter().zip(now.states).map(|(&at, states)| self.step_inbox(at, &edges, states));
        let (stepped, come) = try_join(try_join_all(steps), self.inboxes().present(&missing)).await?;
        for ((key, _), stepped) in there.iter().zip(stepped) {
            for (due, took) in due.iter_mut().zip(stepped.took) {
                due.served.extend(took.then_some(key.feed));
            }
            grown.extend(stepped.growth);
        }
        for key in missing.into_iter().filter(|key| !come.contains(key)) {
            due.iter_mut().for_each(|due| due.served.push(key.feed));
        }
        for key in come {
            self.feeds.rebuild(key).await?;
        }
        Ok(self.known.learn(now.feeds, &[]))
    }

    /// Brings the edges `states` to one inbox. The inbox was read as `stand`, and the states were read with these cuts.
    async fn step_inbox(
        &self,
        (key, stand): (InboxKey, Stand),
        edges: &[(UserNo, Progress)],
        states: Vec<EdgeState>,
    ) -> Result<Stepped> {
        let too_many = states.iter().map(|state| state.adds.len()).sum::<usize>() > EDGE_ADDS_MAX;
        let (mut quiet, mut steps) = (vec![], vec![]);
        for (&(author, progress), state) in edges.iter().zip(states) {
            let (generation, on) = (state.edge.generation, state.edge.on);
            let entry = |FeedAdd { outbox_seq, key, .. }| Entry { op: Op::Add, author, outbox_seq, generation, key };
            let adds = if too_many { vec![] } else { state.adds.into_iter().map(entry).collect() };
            let floor = state.floor;
            let expected = Cut { progress, pull: if too_many { NOWHERE } else { stand.taken.pull } };
            quiet.push(state.quiet);
            steps.push(EdgeStep { key, author, generation, on, expected, adds, floor });
        }
        let stepped = self.inboxes().step_edges(steps).await?;
        failpoint::hit("edge-step-done");
        let full = stepped.contains(&EdgeStepped::Full) || too_many && stepped.contains(&EdgeStepped::Overtaken);
        let last = |grew: &dyn Fn(&EdgeStepped) -> bool| {
            let told = stepped.iter().zip(&quiet).rposition(|(stepped, quiet)| grew(stepped) && !quiet);
            told.map(|at| edges[at].0)
        };
        if full {
            // The edges bring more than a step may bring, or than the inbox can remember. A rebuild will bring
            // everything.
            self.inboxes().discard(key).await?;
            // Devices that are online are woken. Such a device reads again, and is told to load the feed anew.
            let acted = last(&|stepped| !matches!(stepped, EdgeStepped::Nothing));
            let growth = acted.map(|author| Growth::of_one(key, author, stand.head));
            return Ok(Stepped { took: vec![true; stepped.len()], growth });
        }
        let mut heads = stepped.iter().filter_map(|stepped| match stepped {
            EdgeStepped::Applied(head) => Some(*head),
            _ => None,
        });
        let acted = last(&|stepped| matches!(stepped, EdgeStepped::Applied(_)));
        let growth = acted.zip(heads.next_back()).map(|(author, head)| Growth::of_one(key, author, head));
        let again = |stepped: &EdgeStepped| matches!(stepped, EdgeStepped::Overtaken | EdgeStepped::Building);
        Ok(Stepped { took: stepped.iter().map(|stepped| !again(stepped)).collect(), growth })
    }
}
