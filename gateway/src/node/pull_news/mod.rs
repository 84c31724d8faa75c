//! Brings news of pulled authors to those of their followers who are online here.
//!
//! ```text
//!   Hot(author, number) ──▶ waiting ──▶ join: followers ∩ readers of this node ──▶ wakes, paced ──▶ each session reads
//!                              ▲
//!   every pull_repair_interval: who has a number beyond the last one asked for? This finds lost broadcasts.
//! ```
//!
//! Invariants:
//! - Reads know of a number before its author is joined. So a session that is here at the join is woken, and a session
//!   that comes later reads the news without a wake.
//! - The node asks for numbers beyond `asked`. `asked` moves past a number only when the author of that number waits,
//!   or was joined for it.
//! - Bounded: at most [`WAITING_MAX`] authors wait, and a few more whose join has failed. `asked` does not move past
//!   news that finds no room, so the node asks for that news again.

mod followers;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Outboxes, PullHead};
use feedgate_common::error::Result;
use feedgate_common::{PullSeq, UserNo};
use futures_util::future::Either;
use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::node::Node;
use crate::node::bounded::bounded;

/// The most authors that wait for their join.
const WAITING_MAX: usize = 4096;

/// How many authors are joined at a time, so that an author with few followers need not wait for one with a million.
const JOINS: usize = 4;

/// The most authors that are asked for in one call.
const ASKED: usize = 500;

/// How long to wait after a call has failed.
const AGAIN: Duration = Duration::from_millis(500);

/// The authors with news for which followers are still to be woken.
pub(crate) struct PullNews {
    outboxes: Arc<dyn Outboxes>,
    state: Mutex<State>,
    /// Wakes the task when there may be something to join.
    heard: Notify,
    /// Wakes the task when broadcasts may have been lost.
    missed: Notify,
}

#[derive(Default)]
struct State {
    /// The authors to be joined, each with the pull number that it waits for.
    waiting: FxHashMap<UserNo, PullSeq>,
    /// The keys of `waiting`, in the order in which they are joined.
    order: VecDeque<UserNo>,
    /// The authors that were joined, with numbers after `asked`. An author that is missing here may be joined twice.
    joined: FxHashMap<UserNo, PullSeq>,
    /// All numbers up to this one were asked for; `None` until it is known where to begin.
    asked: Option<PullSeq>,
}

impl PullNews {
    pub(crate) fn new(outboxes: Arc<dyn Outboxes>) -> Self {
        Self { outboxes, state: Mutex::default(), heard: Notify::new(), missed: Notify::new() }
    }

    /// Takes the news of an author; never blocks.
    pub(crate) fn hear(&self, head: PullHead) {
        if self.state.lock().add(head) {
            self.heard.notify_one();
        }
    }

    /// Says that broadcasts may have been lost: the archive is asked for news at once.
    pub(crate) fn missed(&self) {
        self.missed.notify_one();
    }

    fn next(&self) -> Option<PullHead> {
        self.state.lock().next()
    }

    fn failed(&self, head: PullHead) {
        self.state.lock().put_back(head);
    }
}

impl State {
    /// Adds the author to those that wait; false if it was joined already, or if there is no room.
    fn add(&mut self, PullHead { author, pull_seq }: PullHead) -> bool {
        let done = self.joined.get(&author).copied().max(self.asked).unwrap_or(0);
        if pull_seq <= done || (self.room() == 0 && !self.waiting.contains_key(&author)) {
            return false;
        }
        self.put(author, pull_seq);
        true
    }

    fn room(&self) -> usize {
        WAITING_MAX.saturating_sub(self.waiting.len())
    }

    fn put(&mut self, author: UserNo, pull_seq: PullSeq) {
        match self.waiting.get_mut(&author) {
            Some(waits_for) => *waits_for = pull_seq.max(*waits_for),
            None => {
                self.waiting.insert(author, pull_seq);
                self.order.push_back(author);
            }
        }
    }

    fn next(&mut self) -> Option<PullHead> {
        let author = self.order.pop_front()?;
        let pull_seq = self.waiting.remove(&author)?;
        if self.joined.len() < WAITING_MAX {
            self.joined.insert(author, pull_seq);
        }
        Some(PullHead { author, pull_seq })
    }

    fn put_back(&mut self, PullHead { author, pull_seq }: PullHead) {
        self.joined.remove(&author);
        self.put(author, pull_seq);
    }

    /// Takes `heads`, which are all news after `asked` in the order of their numbers, or the first of these. `upto` is
    /// given if they are all: other numbers up to it are history, which wakes nobody. True if all found room.
    fn asked(&mut self, heads: &[PullHead], upto: Option<PullSeq>) -> bool {
        for head in heads {
            let known = self.joined.get(&head.author).is_some_and(|joined| *joined >= head.pull_seq);
            if !known && !self.add(*head) {
                return false;
            }
            self.asked = self.asked.max(Some(head.pull_seq));
        }
        self.asked = self.asked.max(upto);
        self.joined.retain(|_, joined| Some(*joined) > self.asked);
        true
    }
}

/// Reads how far pull records go, if this is not known: only then can a read know whether it has seen them all.
pub(crate) async fn begin(node: &Node) {
    if node.hot.state.lock().asked.is_none()
        && let Err(error) = learn(node).await
    {
        tracing::warn!(%error, "it is not known yet how far the items that readers pull go; trying again");
    }
}

async fn learn(node: &Node) -> Result<()> {
    let head = bounded(node.hot.outboxes.pull_head()).await?;
    node.reads.changes.heard_pull(head);
    node.hot.state.lock().asked = Some(head);
    Ok(())
}

/// Joins for ever. Drop it only when the node ends: an author whose join is not complete is not joined again.
pub(crate) async fn keep_joining(node: &Node) {
    let every = Duration::from_secs(node.settings.now().pull_repair_interval_secs.into());
    let (hot, mut due) = (&node.hot, interval(every));
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = hot.heard.notified() => {}
            () = hot.missed.notified() => work.push(Either::Left(ask(node))),
            _ = due.tick() => work.push(Either::Left(ask(node))),
            Some(()) = work.next() => {}
        }
        while work.len() < JOINS
            && let Some(head) = hot.next()
        {
            work.push(Either::Right(join(node, head)));
        }
    }
}

/// Asks the archive for news, which finds lost broadcasts.
async fn ask(node: &Node) {
    if let Err(error) = ask_once(node).await {
        tracing::warn!(%error, "authors with news could not be asked for; trying again");
    }
}

async fn ask_once(node: &Node) -> Result<()> {
    let hot = &node.hot;
    let (asked, room) = {
        let state = hot.state.lock();
        (state.asked, state.room())
    };
    let Some(after) = asked else {
        learn(node).await?;
        // Until now, sessions have read without knowing how far pull records go, so they look again.
        node.local.pool.missed();
        return Ok(());
    };
    // This number includes history, which no broadcast tells of, but reads are to find it.
    let head = bounded(node.hot.outboxes.pull_head()).await?;
    node.reads.changes.heard_pull(head);
    let limit = room.min(ASKED);
    if limit == 0 || head <= after {
        return Ok(());
    }
    let heads = bounded(node.hot.outboxes.pull_heads(after, limit)).await?;
    if hot.state.lock().asked(&heads, (heads.len() < limit).then_some(head)) && heads.len() == limit {
        hot.missed();
    }
    Ok(())
}

/// Wakes the author's followers among the readers of this node. If that fails, the author waits for another join.
async fn join(node: &Node, head: PullHead) {
    if let Err(error) = followers::wake(node, head.author).await {
        tracing::warn!(%error, "an author's followers could not be told of news; trying again");
        sleep(AGAIN).await;
        node.hot.failed(head);
    }
}
