//! News of authors who are pulled, brought to those of their followers who are online here.
//!
//! ```text
//!   Hot(author, number) ──▶ waiting ──▶ join: followers ∩ readers of this node ──▶ wakes, paced ──▶ each session reads
//!                              ▲
//!   every pull_repair_interval: whose newest number is beyond the last one asked for? A lost broadcast costs that long.
//! ```
//!
//! Invariants:
//! - Reads know of a number before anybody is joined for it: who sits here by then is woken, who comes later reads it
//!   anyway.
//! - A number is asked past only when its author waits, or was joined for it.
//! - Bounded: at most [`WAITING_MAX`] authors wait, and a few more whose join has failed. What finds no room was not
//!   asked past, so it is asked for.

mod followers;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use feedgate_common::archive::PullHead;
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

/// Authors that may wait for their join.
const WAITING_MAX: usize = 4096;

/// Authors joined at a time, so that a few followers do not wait behind a million.
const JOINS: usize = 4;

/// Authors asked for in one call.
const ASKED: usize = 500;

/// After a call has failed.
const AGAIN: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Default)]
pub(crate) struct PullNews {
    state: Mutex<State>,
    /// There may be something to join.
    heard: Notify,
    /// Broadcasts may have been lost.
    missed: Notify,
}

#[derive(Default)]
struct State {
    /// To be joined, and for which number.
    waiting: FxHashMap<UserNo, PullSeq>,
    /// In which order; the keys of `waiting`.
    order: VecDeque<UserNo>,
    /// Joined for numbers that were not asked past yet. One that is missing here is joined twice.
    joined: FxHashMap<UserNo, PullSeq>,
    /// All up to here was asked for; `None` until it is known where to begin.
    asked: Option<PullSeq>,
}

impl PullNews {
    /// The author has news. Quick, never blocks.
    pub(crate) fn hear(&self, head: PullHead) {
        if self.state.lock().add(head) {
            self.heard.notify_one();
        }
    }

    /// Broadcasts may have been lost: what is new is asked for at once.
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
    /// False if there is nothing to do for it, or no room.
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

    /// These, in the order of their numbers, are all that is new beyond what was asked for before, or the first of
    /// it. If they are all, what else there is up to `upto` is history. True if all found room.
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

/// Learns how far pull records go: only from then on does a read know whether it has taken them in.
pub(crate) async fn begin(node: &Node) {
    if node.hot.state.lock().asked.is_none()
        && let Err(error) = learn(node).await
    {
        tracing::warn!(%error, "it is not known yet how far the items that readers pull go; trying again");
    }
}

async fn learn(node: &Node) -> Result<()> {
    let feeds = &node.feeds;
    let head = bounded(feeds.archive().pull_head()).await?;
    feeds.heard_pull(head);
    node.hot.state.lock().asked = Some(head);
    Ok(())
}

/// Forever. Cancel it only when the node ends: who is being joined is not joined again.
pub(crate) async fn keep_joining(node: &Node) {
    let every = Duration::from_secs(node.settings.pull_repair_interval_secs.into());
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

/// Asks for what nobody has told of.
async fn ask(node: &Node) {
    if let Err(error) = ask_once(node).await {
        tracing::warn!(%error, "authors with news could not be asked for; trying again");
    }
}

async fn ask_once(node: &Node) -> Result<()> {
    let (hot, feeds) = (&node.hot, &node.feeds);
    let (asked, room) = {
        let state = hot.state.lock();
        (state.asked, state.room())
    };
    let Some(after) = asked else {
        learn(node).await?;
        // Those who sit here have read without knowing.
        node.pool.missed();
        return Ok(());
    };
    // With what nobody is told of: it is history, yet whoever reads is to find it.
    let head = bounded(feeds.archive().pull_head()).await?;
    feeds.heard_pull(head);
    let limit = room.min(ASKED);
    if limit == 0 || head <= after {
        return Ok(());
    }
    let heads = bounded(feeds.archive().pull_heads(after, limit)).await?;
    if hot.state.lock().asked(&heads, (heads.len() < limit).then_some(head)) && heads.len() == limit {
        hot.missed();
    }
    Ok(())
}

/// Wakes the author's followers among the readers of this node.
async fn join(node: &Node, head: PullHead) {
    if let Err(error) = followers::wake(node, head.author).await {
        tracing::warn!(%error, "an author's followers could not be told of news; trying again");
        sleep(AGAIN).await;
        node.hot.failed(head);
    }
}
