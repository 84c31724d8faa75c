//! Which nodes live: each node has a key with a time to live. In a cluster it has more of them, on several masters, so
//! that a node keeps its lease while one master is away. A node lives as long as one of its keys stands.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use feedgate_common::error::Result;
use futures_util::future::{join_all, try_join_all};
use parking_lot::Mutex;
use redis::cmd;
use tokio::time::Instant;

use super::scripts::{reply, words};
use crate::Link;
use crate::link::Script;

/// In a cluster a lease has a key in each of these slots too: 3300, 7365 and 15495. They are about a third of all slots
/// apart. So with three masters or more, which share the slots as `redis-cli --cluster create` does, no master holds
/// all keys of a lease.
const APART: [&str; 3] = ["{b}:", "{c}:", "{a}:"];

/// The leases of nodes, and which nodes were seen to have one lately.
///
/// Only nodes with a lease are remembered. A node that is not remembered is looked up each time, so that a node that
/// has just begun does not look like one that has ended.
pub(super) struct Leases {
    link: Link,
    lasts: Duration,
    seen: Mutex<HashMap<String, Instant>>,
}

impl Leases {
    pub(super) fn new(link: Link, lasts: Duration) -> Self {
        Self { link, lasts, seen: Mutex::default() }
    }

    /// Begins or prolongs the lease of a node. Answers whether a key of the lease was still there. Fails only if no key
    /// could be written.
    pub(super) async fn renew(&self, script: &Script, node: &str) -> Result<bool> {
        let lasts = &words![self.lasts.as_millis()];
        let renew = |key| async move { reply(self.link.script(script, &[key], lasts).await?) };
        let (renewed, failed): (Vec<_>, Vec<_>) =
            join_all(self.keys(node).map(renew)).await.into_iter().partition(Result::is_ok);
        match failed.into_iter().next() {
            Some(failure) if renewed.is_empty() => failure,
            _ => Ok(renewed.into_iter().any(|stood| stood.is_ok_and(|stood| stood))),
        }
    }

    /// Ends the lease of a node. After an error a key of it may stand until its time is over.
    pub(super) async fn end(&self, node: &str) -> Result<()> {
        let end = |key| async move { self.link.call(cmd("DEL").arg(key)).await.map(drop) };
        let ended = join_all(self.keys(node).map(end)).await;
        self.seen.lock().remove(node);
        ended.into_iter().collect()
    }

    /// The `nodes` that live now.
    pub(super) async fn living<'a>(&self, nodes: BTreeSet<&'a str>) -> Result<HashSet<&'a str>> {
        let asked = nodes.into_iter().map(|node| async move { Ok(self.stands(node).await?.then_some(node)) });
        Ok(try_join_all(asked).await?.into_iter().flatten().collect())
    }

    /// Which of the `nodes` live now or did a tenth of a lease ago, as far as the leases can be read.
    pub(super) async fn lately_living<'a>(&self, mut nodes: BTreeSet<&'a str>) -> Leased<'a> {
        let asked = Instant::now();
        let mut leased = Leased::default();
        {
            let mut seen = self.seen.lock();
            seen.retain(|_, seen| asked.duration_since(*seen) < self.lasts / 10);
            nodes.retain(|node| !seen.contains_key(*node) || !leased.living.insert(*node));
        }
        let found = join_all(nodes.into_iter().map(|node| async move { (node, self.stands(node).await) })).await;
        let mut seen = self.seen.lock();
        for (node, stands) in found {
            match stands {
                Ok(true) => {
                    seen.insert(node.to_owned(), asked);
                    leased.living.insert(node);
                }
                Ok(false) => {}
                Err(_) => _ = leased.unknown.insert(node),
            }
        }
        leased
    }

    /// Whether a key of the node's lease stands. Fails if none is found and one of them cannot be read.
    async fn stands(&self, node: &str) -> Result<bool> {
        let mut failure = None;
        for key in self.keys(node) {
            match self.link.call(cmd("EXISTS").arg(key)).await.and_then(reply) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    fn keys(&self, node: &str) -> impl Iterator<Item = String> {
        let apart = if self.link.is_cluster() { &APART[..] } else { &[] };
        std::iter::once("").chain(apart.iter().copied()).map(move |slot| format!("node:{slot}{node}"))
    }
}

/// What the leases say of some nodes.
#[derive(Default)]
pub(super) struct Leased<'a> {
    /// The nodes that live, or did a tenth of a lease ago.
    pub(super) living: HashSet<&'a str>,
    /// The nodes whose leases cannot be read, because their part of the store is away.
    pub(super) unknown: HashSet<&'a str>,
}
