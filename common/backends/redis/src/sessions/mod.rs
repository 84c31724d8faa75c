//! The session pool of all nodes, in Redis.
//!
//! ```text
//!   {s005}         hash    replid, epoch, counter    the bucket's life
//!                          <user> → its live sessions: device, token, node, connection, since
//!   {s005}:<user>  hash    <device> → token, position, seen            stored; 60 days after the last save it goes
//!                          <device> feeds → its positions in named feeds, if it has any
//!   node:<node>    string  there while the node's lease stands; in a cluster also node:{a}:<node>, {b} and {c}
//!
//!   claim ─▶ life stands? ─yes─▶ token = (epoch, ++counter), newest wins
//!              └ no ─▶ an epoch from the Archive ─▶ the bucket is emptied and begins a new life in it
//!   renew ─▶ all lives as at the last renewal, and the lease stood? ─▶ Kept
//!              └ no ─▶ Anew: the node confirms what it holds, and what was lost is entered again
//! ```
//!
//! Users lie in as many buckets as their inboxes do, so the readers of one fan-out step lie in one slot here too. Every
//! write is one script on one bucket.
//!
//! Invariants:
//! - **Life.** A bucket's live sessions, its counter of tokens and its life are one hash: lost together or not at all.
//!   A life is made under the server's replication id; under another one (a restart, a promotion, a resharding), or
//!   where the hash is gone, the next call that needs a life begins a new one in a greater epoch. So tokens only grow
//!   (I17).
//! - **Ended or lost.** A session of this life that is absent has ended. A session of an earlier life may have been
//!   lost: it is entered again unless a newer token is known, from a session or from the fence in the device's row,
//!   which a save, a revocation, and the end of a session of an earlier life leave behind. So the order of
//!   confirmations does not matter.
//! - A session counts while its node's lease stands. A node renews its lease before its first claim.
//! - A device without an id of its own has no row, unless its session ended in a later life than it began. Then its row
//!   is a fence, which is removed first when room is needed.
//!
//! When Redis loses its memory, positions are lost, and revocations that were answered and that the node of the session
//! has not heard yet. A session that the pool has lost is not known to it until its node has confirmed it, which
//! [`nodes`](Sessions::nodes) cannot make up for.

mod batch;
mod leases;
mod lives;
mod scripts;
mod sweep;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::archive::Epochs;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::named::NAMED_MAX;
use feedgate_common::sessions::{
    Claim, Claimed, Confirmed, DEVICE_TTL_MS, DEVICES_MAX, Held, Holders, LEASE, Renewed, SavePosition, SessionInfo,
    Sessions, Token,
};
use feedgate_common::{Bucket, DeviceId, Epoch, FeedId, Millis, Position, UserNo};
use futures_util::future::join_all;
use parking_lot::Mutex;
use redis::cmd;
use tokio::time::timeout;

use crate::Link;
use leases::{Leased, Leases};
use scripts::{Scripts, bucket_key, devices_key, feeds_field, reply, words};
use sweep::Round;

/// The times after which a node that does not renew its lease is dead, and after which its sessions are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spans {
    /// A lease, from its renewal: [`LEASE`].
    pub lease: Duration,
    /// How long a node is dead before its sessions are removed: an hour. Until then the node may come back to them.
    pub dead: Duration,
}

impl Default for Spans {
    fn default() -> Self {
        Self { lease: LEASE, dead: Duration::from_secs(3600) }
    }
}

/// The Redis home of [`Sessions`].
///
/// What it costs, with a node's name of 23 characters and a device's of 15, Redis 7.0 on a busy machine of two cores:
///
/// | | |
/// |---|---|
/// | a user online with one device | 120 B by `MEMORY USAGE`, 140 B in all |
/// | a user with one stored device | 104 B by `MEMORY USAGE`, 180 B in all with its key and time to live |
/// | a device's first position in a named feed | 48 B by `MEMORY USAGE` |
/// | a claim | 17 µs of the server's time: 60,000 claims/s of a core |
/// | `nodes` of 1000 readers of a bucket, all online | 400 µs of the server's time |
/// | a renewal | one write, in a cluster four; a read of each bucket's life, some 20 µs; a stretch of the sweep |
///
/// This test prints the numbers, and fails if the bytes are more: `cargo test -p feedgate-redis --test sessions
/// a_session_and_a_device_cost_what_is_documented -- --nocapture`.
pub struct RedisSessions {
    link: Link,
    epochs: Arc<dyn Epochs>,
    buckets: u16,
    spans: Spans,
    scripts: Scripts,
    leases: Leases,
    /// The lives of all buckets at the last renewal of each node that renews here.
    renewed: Mutex<HashMap<String, Vec<Option<Epoch>>>>,
    round: Mutex<Round>,
}

impl RedisSessions {
    /// The pool behind `link`, in as many buckets as the inboxes lie in
    /// ([`buckets`](feedgate_common::Inboxes::buckets)): all processes have to agree on them.
    pub fn new(link: Link, epochs: Arc<dyn Epochs>, buckets: u16, spans: Spans) -> Self {
        let leases = Leases::new(link.clone(), spans.lease);
        let (renewed, round, scripts) = (Mutex::default(), Mutex::default(), Scripts::new());
        Self { link, epochs, buckets, spans, scripts, leases, renewed, round }
    }

    fn bucket(&self, user: UserNo) -> Bucket {
        user.bucket(self.buckets)
    }
}

#[async_trait]
impl Sessions for RedisSessions {
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        checked(&claim.node)?;
        let Claim { user, device, node, connection, since, .. } = &claim;
        let arguments = words!["", user.0, device, node, connection, since, scripts::kept(&claim)].into();
        let answer = self.in_life(&self.scripts.claim, &[bucket_key(self.bucket(*user))], arguments).await?;
        let (token, replaced) = scripts::claimed(&reply::<Vec<String>>(answer)?)?;
        Ok(Claimed { token, replaced })
    }

    async fn release(&self, user: UserNo, device: &DeviceId, token: Token) -> Result<()> {
        let bucket = self.bucket(user);
        let keys = [bucket_key(bucket), devices_key(bucket, user)];
        let (epoch, counter) = (token.epoch.0, token.counter);
        let arguments = words!["", user.0, device, epoch, counter, DEVICES_MAX, DEVICE_TTL_MS].into();
        self.in_life(&self.scripts.release, &keys, arguments).await.map(drop)
    }

    async fn revoke(&self, user: UserNo, device: &DeviceId) -> Result<Option<(String, u64)>> {
        let bucket = self.bucket(user);
        let keys = [bucket_key(bucket), devices_key(bucket, user)];
        let arguments = words!["", user.0, device, DEVICES_MAX, DEVICE_TTL_MS].into();
        let answer = self.in_life(&self.scripts.revoke, &keys, arguments).await?;
        let Some(place) = scripts::place(&reply::<Vec<String>>(answer)?)? else { return Ok(None) };
        let lives = !self.leases.living([&*place.0].into()).await?.is_empty();
        Ok(lives.then_some(place))
    }

    async fn renew(&self, node: &str) -> Result<Renewed> {
        checked(node)?;
        let lives = self.lives().await?;
        let stood = self.leases.renew(&self.scripts.lease, node).await?;
        // The sweep must not make the renewal late.
        let swept = timeout(self.spans.lease / 10, sweep::sweep(self, &self.round)).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "what dead nodes left could not be swept; trying again");
        }
        // The lives are noted last. So if a renewal is given up on the way, the next one finds the change of lives too.
        let mut renewed = self.renewed.lock();
        let before = renewed.remove(node).unwrap_or_default();
        // While the server of a bucket is away, nobody can claim anything there. So the bucket's last known life counts
        // until the server answers again.
        let unseen = before.iter().copied().chain(std::iter::repeat(None));
        let lives: Vec<_> = lives.into_iter().zip(unseen).map(|(life, before)| life.or(before)).collect();
        let kept = stood && before == lives;
        renewed.insert(node.to_owned(), lives);
        Ok(if kept { Renewed::Kept } else { Renewed::Anew })
    }

    async fn retire(&self, node: &str) -> Result<()> {
        self.renewed.lock().remove(node);
        self.leases.end(node).await
    }

    async fn confirm(&self, held: Vec<Held>) -> Result<Vec<Confirmed>> {
        held.iter().try_for_each(|held| checked(&held.claim.node))?;
        let chunks = batch::cut(&held, self.buckets, &words![""], |Held { claim, token }| {
            let Claim { user, device, node, connection, since, .. } = claim;
            let (epoch, kept) = (token.epoch.0, scripts::kept(claim));
            (*user, words![user.0, device, epoch, token.counter, node, connection, since, kept])
        });
        let confirm = |chunk: batch::Chunk| async move {
            reply(self.in_life(&self.scripts.confirm, &chunk.keys, chunk.arguments).await?)
        };
        let confirmed = |digit| match digit {
            b'1' => Confirmed::Kept,
            b'2' => Confirmed::Displaced,
            _ => Confirmed::Ended,
        };
        Ok(batch::run(chunks, confirm).await?.into_iter().map(confirmed).collect())
    }

    async fn nodes(&self, users: &[UserNo]) -> Result<Vec<Holders>> {
        let mut by_bucket: BTreeMap<Bucket, Vec<usize>> = BTreeMap::new();
        users.iter().enumerate().for_each(|(place, user)| by_bucket.entry(self.bucket(*user)).or_default().push(place));
        let asked = join_all(by_bucket.into_iter().map(|(bucket, places)| async move {
            let mut get = cmd("HMGET");
            get.arg(bucket_key(bucket));
            places.iter().for_each(|place| _ = get.arg(users[*place].0));
            let lines: Result<Vec<Option<String>>> = async { reply(self.link.call(&get).await?) }.await;
            (places, lines)
        }))
        .await;
        let (mut answer, mut held, mut failure) = (vec![Holders::default(); users.len()], vec![], None);
        for (places, lines) in asked {
            match lines {
                Ok(lines) => held.extend(places.into_iter().zip(lines)),
                Err(error) => {
                    places.into_iter().for_each(|place| answer[place].partial = true);
                    failure = Some(error);
                }
            }
        }
        if let (Some(error), true) = (failure, held.is_empty()) {
            return Err(error);
        }
        let held: Vec<(usize, String)> = held.into_iter().filter_map(|(place, lines)| Some((place, lines?))).collect();
        let met = held.iter().flat_map(|(_, lines)| scripts::nodes(lines)).collect();
        let Leased { living, unknown } = self.leases.lately_living(met).await;
        for (place, lines) in &held {
            let of_user: BTreeSet<&str> = scripts::nodes(lines).collect();
            let partial = of_user.iter().any(|node| unknown.contains(node));
            let nodes = of_user.into_iter().filter(|node| living.contains(node) || unknown.contains(node));
            answer[*place] = Holders { nodes: nodes.map(str::to_owned).collect(), partial };
        }
        Ok(answer)
    }

    async fn list(&self, user: UserNo) -> Result<Vec<SessionInfo>> {
        let bucket = self.bucket(user);
        let keys = [bucket_key(bucket), devices_key(bucket, user)];
        let answer: Vec<String> = reply(self.link.script(&self.scripts.list, &keys, &words![user.0]).await?)?;
        let Some((lines, rows)) = answer.split_first() else { return Ok(vec![]) };
        let rows: HashMap<&str, &str> = rows.chunks_exact(2).map(|row| (&*row[0], &*row[1])).collect();
        let mut sessions = lines.lines().map(scripts::session).collect::<Result<Vec<_>>>()?;
        let living = self.leases.living(scripts::nodes(lines).collect()).await?;
        sessions.retain(|session| living.contains(&*session.node));
        for session in sessions.iter_mut().filter(|session| session.position.is_none()) {
            let row = rows.get(session.device.as_str());
            session.position = row.map_or(Ok(None), |row| scripts::stored(row).map(|(main, _)| main))?;
        }
        sessions.sort_unstable_by(|a, b| a.device.cmp(&b.device));
        Ok(sessions)
    }

    async fn save(&self, positions: Vec<SavePosition>, now: Millis) -> Result<Vec<bool>> {
        let head = words![now, DEVICES_MAX, NAMED_MAX, DEVICE_TTL_MS];
        let chunks = batch::cut(&positions, self.buckets, &head, |save| {
            let SavePosition { user, device, token, feed, position } = save;
            let (token_epoch, to_epoch) = (token.epoch.0, position.epoch.0);
            (*user, words![user.0, device, token_epoch, token.counter, feed.0, to_epoch, position.offset])
        });
        let save = |chunk: batch::Chunk| async move {
            reply(self.link.script(&self.scripts.save, &chunk.keys, &chunk.arguments).await?)
        };
        let saved = batch::run(chunks, save).await?;
        Ok(saved.into_iter().map(|digit| digit == b'1').collect())
    }

    async fn position(&self, user: UserNo, device: &DeviceId, feed: FeedId, now: Millis) -> Result<Option<Position>> {
        let devices = devices_key(self.bucket(user), user);
        let get = cmd("HMGET").arg(devices).arg(device.as_str()).arg(feeds_field(device)).take();
        let (row, feeds): (Option<String>, Option<String>) = reply(self.link.call(&get).await?)?;
        let Some(row) = row else { return Ok(None) };
        let (main, seen) = scripts::stored(&row)?;
        if now.saturating_sub(seen) >= DEVICE_TTL_MS {
            return Ok(None);
        }
        if feed == FeedId::MAIN { Ok(main) } else { feeds.map_or(Ok(None), |feeds| scripts::named(&feeds, feed)) }
    }

    async fn ping(&self) -> Result<()> {
        self.link.ping().await
    }
}

/// Checks the name of a node, which must be one word, since it stands in the lines of sessions.
fn checked(node: &str) -> Result<()> {
    if !node.is_empty() && node.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(StoreError::unavailable(format_args!(
        "the name of a node must be of visible ASCII characters without spaces, such as gateway-1, it is {node:?}"
    )))
}
