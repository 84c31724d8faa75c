//! Removes the sessions that dead nodes have left: a part of one bucket with each renewal of a lease.
//!
//! The next claim of a device replaces such a session; the sweep is for devices that never return. Only nodes that this
//! handle has seen dead for long are swept: a node that was merely cut off comes back to its sessions.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use feedgate_common::Bucket;
use feedgate_common::error::Result;
use parking_lot::Mutex;
use redis::cmd;
use tokio::time::Instant;

use super::RedisSessions;
use super::scripts::{bucket_key, nodes, reply, words};

/// About how many users one renewal looks at.
const STRETCH: usize = 256;

/// How long a node that is not met any more is remembered beyond the time after which it is swept.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// How far the sweep has come.
#[derive(Default)]
pub(super) struct Round {
    bucket: u16,
    cursor: u64,
    /// The dead nodes that the sweep has met, and since when each is known to be dead.
    dead: HashMap<String, Instant>,
}

impl Round {
    /// Notes which of the nodes `met` are alive. Gives the nodes that have been dead for `long` by now.
    fn long_dead<'a>(&mut self, met: BTreeSet<&'a str>, living: &HashSet<&str>, long: Duration) -> Vec<&'a str> {
        let now = Instant::now();
        self.dead.retain(|node, since| !living.contains(&**node) && now.duration_since(*since) < long + REMEMBERED);
        let dead = met.into_iter().filter(|node| !living.contains(*node));
        dead.filter(|node| match self.dead.get(*node) {
            Some(since) => now.duration_since(*since) >= long,
            None => {
                self.dead.insert((*node).to_owned(), now);
                false
            }
        })
        .collect()
    }
}

/// Looks at the next stretch.
pub(super) async fn sweep(pool: &RedisSessions, round: &Mutex<Round>) -> Result<()> {
    let (bucket, cursor) = {
        let round = round.lock();
        (Bucket(round.bucket), round.cursor)
    };
    let scan = cmd("HSCAN").arg(bucket_key(bucket)).arg(cursor).arg("COUNT").arg(STRETCH).take();
    let (next, found): (u64, Vec<(String, String)>) = reply(pool.link.call(&scan).await?)?;
    let met: BTreeSet<&str> = found.iter().flat_map(|(_, lines)| nodes(lines)).collect();
    let living = pool.leases.living(met.clone()).await?;
    let dead: HashSet<&str> = {
        let mut round = round.lock();
        round.cursor = next;
        if next == 0 {
            round.bucket = (bucket.0 + 1) % pool.buckets;
        }
        round.long_dead(met, &living, pool.spans.dead).into_iter().collect()
    };
    if dead.is_empty() {
        return Ok(());
    }
    let users = found.iter().filter(|(_, lines)| nodes(lines).any(|node| dead.contains(node))).map(|(user, _)| user);
    let mut arguments = Vec::from(words![dead.len()]);
    arguments.extend(dead.iter().map(|node| node.as_bytes().to_vec()));
    arguments.extend(users.map(|user| user.as_bytes().to_vec()));
    pool.link.script(&pool.scripts.sweep, &[bucket_key(bucket)], &arguments).await?;
    Ok(())
}
