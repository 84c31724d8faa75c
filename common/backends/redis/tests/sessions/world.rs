//! A server, pools over it, and a device or two.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::sessions::{Claim, Confirmed, Held, Renewed, SavePosition};
use feedgate_common::{Epoch, FeedId, Millis, Position, Sessions, UserNo};
use feedgate_redis::{Link, RedisSessions, Spans};
use parking_lot::Mutex;

use crate::support::{EPOCHS, patient};
pub(crate) use crate::support::{server, until};

pub(crate) const BUCKETS: u16 = 16;
pub(crate) const USER: UserNo = UserNo(7);
pub(crate) const NOW: Millis = 1_764_000_000_000;

pub(crate) async fn open(url: &str, spans: Spans) -> Arc<RedisSessions> {
    let link = Link::connect(url, patient()).await.unwrap();
    Arc::new(RedisSessions::new(link, EPOCHS.clone(), BUCKETS, spans))
}

/// A handle for each of the nodes n1 and n2, which live.
pub(crate) async fn two_nodes(url: &str) -> [Arc<RedisSessions>; 2] {
    let nodes = [open(url, long()).await, open(url, long()).await];
    for (pool, node) in nodes.iter().zip(["n1", "n2"]) {
        assert_eq!(pool.renew(node).await.unwrap(), Renewed::Anew);
        assert_eq!(pool.renew(node).await.unwrap(), Renewed::Kept);
    }
    nodes
}

pub(crate) fn a_claim(user: UserNo, name: &str, node: &str, connection: u64) -> Claim {
    let device = name.parse().unwrap();
    Claim { user, device, durable: true, node: node.to_owned(), connection, since: NOW }
}

pub(crate) async fn claim(pool: &RedisSessions, user: UserNo, name: &str, node: &str, connection: u64) -> Held {
    enter(pool, a_claim(user, name, node, connection)).await
}

pub(crate) async fn enter(pool: &RedisSessions, claim: Claim) -> Held {
    Held { token: pool.claim(claim.clone()).await.unwrap().token, claim }
}

pub(crate) async fn is_confirmed(pool: &RedisSessions, held: &Held) -> bool {
    pool.confirm(vec![held.clone()]).await.unwrap() == [Confirmed::Kept]
}

pub(crate) fn a_position(held: &Held, offset: u64) -> SavePosition {
    let (user, device, position) = (held.claim.user, held.claim.device.clone(), Position { epoch: Epoch(1), offset });
    SavePosition { user, device, token: held.token, feed: FeedId::MAIN, position }
}

pub(crate) async fn saves(pool: &RedisSessions, held: &Held, offset: u64) -> bool {
    pool.save(vec![a_position(held, offset)], NOW).await.unwrap() == [true]
}

/// The nodes of these users, all of which the pool knows.
pub(crate) async fn nodes(pool: &RedisSessions, users: &[UserNo]) -> Vec<Vec<String>> {
    let holders = pool.nodes(users).await.unwrap();
    assert!(holders.iter().all(|holders| !holders.partial));
    holders.into_iter().map(|holders| holders.nodes).collect()
}

/// (device, connection) of the user's sessions.
pub(crate) async fn shown(pool: &RedisSessions) -> Vec<(String, u64)> {
    let list = pool.list(USER).await.unwrap();
    list.into_iter().map(|session| (session.device.to_string(), session.connection)).collect()
}

pub(crate) fn lines(lines: &[(&str, u64)]) -> Vec<(String, u64)> {
    lines.iter().map(|(device, connection)| ((*device).to_owned(), *connection)).collect()
}

/// What a renewal finds, as soon as Redis is back.
pub(crate) async fn renewed(pool: &RedisSessions, node: &str) -> Renewed {
    let found = Mutex::new(None);
    until("a lease can be renewed", async || {
        let renewed = pool.renew(node).await.ok();
        *found.lock() = renewed;
        renewed.is_some()
    })
    .await;
    found.into_inner().unwrap()
}

/// Leases that no test outlives.
pub(crate) fn long() -> Spans {
    Spans { lease: Duration::from_secs(3600), ..Spans::default() }
}

/// Leases short enough to see them lapse.
pub(crate) fn short() -> Spans {
    Spans { lease: Duration::from_millis(200), ..Spans::default() }
}
