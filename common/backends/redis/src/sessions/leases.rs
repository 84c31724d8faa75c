//! Which nodes live: a key with a time to live for each, in whatever slot it falls.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use feedgate_common::error::Result;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use redis::cmd;

use super::scripts::reply;
use crate::Link;

/// The leases, and who was seen alive lately.
///
/// Only life is remembered, never death: a node that is not known to live is looked up, so that one
/// which has just begun is never overlooked.
pub(super) struct Leases {
    link: Link,
    lasts: Duration,
    seen: Mutex<HashMap<String, Instant>>,
}

impl Leases {
    pub(super) fn new(link: Link, lasts: Duration) -> Self {
        Self { link, lasts, seen: Mutex::default() }
    }

    /// Begins or prolongs a lease; whether it stood.
    pub(super) async fn renew(&self, node: &str) -> Result<bool> {
        let lasts = u64::try_from(self.lasts.as_millis()).unwrap_or(u64::MAX);
        let set = cmd("SET").arg(key(node)).arg(1).arg("PX").arg(lasts).arg("GET").take();
        let before: Option<String> = reply(self.link.call(&set).await?)?;
        Ok(before.is_some())
    }

    pub(super) async fn end(&self, node: &str) -> Result<()> {
        self.link.call(cmd("DEL").arg(key(node))).await?;
        self.seen.lock().remove(node);
        Ok(())
    }

    /// Those of `nodes` that live now.
    pub(super) async fn living<'a>(&self, nodes: BTreeSet<&'a str>) -> Result<HashSet<&'a str>> {
        let asked = nodes.into_iter().map(|node| async move {
            let stands: bool = reply(self.link.call(cmd("EXISTS").arg(key(node))).await?)?;
            Ok(stands.then_some(node))
        });
        Ok(try_join_all(asked).await?.into_iter().flatten().collect())
    }

    /// Those of `nodes` that live now or did a tenth of a lease ago.
    pub(super) async fn lately_living<'a>(&self, mut nodes: BTreeSet<&'a str>) -> Result<HashSet<&'a str>> {
        let asked = Instant::now();
        let mut living = HashSet::new();
        {
            let mut seen = self.seen.lock();
            seen.retain(|_, seen| asked.duration_since(*seen) < self.lasts / 10);
            nodes.retain(|node| !seen.contains_key(*node) || !living.insert(*node));
        }
        let found = self.living(nodes).await?;
        self.seen.lock().extend(found.iter().map(|node| ((*node).to_owned(), asked)));
        living.extend(found);
        Ok(living)
    }
}

fn key(node: &str) -> String {
    format!("node:{node}")
}
