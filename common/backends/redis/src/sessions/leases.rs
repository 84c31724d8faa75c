//! Which nodes live: each node has a key with a time to live, in any slot.

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

    /// Begins or prolongs the lease of a node. Answers whether the lease was still there.
    pub(super) async fn renew(&self, script: &Script, node: &str) -> Result<bool> {
        reply(self.link.script(script, &[key(node)], &words![self.lasts.as_millis()]).await?)
    }

    pub(super) async fn end(&self, node: &str) -> Result<()> {
        self.link.call(cmd("DEL").arg(key(node))).await?;
        self.seen.lock().remove(node);
        Ok(())
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

    async fn stands(&self, node: &str) -> Result<bool> {
        reply(self.link.call(cmd("EXISTS").arg(key(node))).await?)
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

fn key(node: &str) -> String {
    format!("node:{node}")
}
