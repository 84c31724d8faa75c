//! The session pool as all nodes see it, and the positions devices have acknowledged.
//!
//! ```text
//!   user ──1:n── device ──1:1── session (node, token, since)
//!                     └─1:n── position in a feed: the main one, and each named one it has acknowledged
//!   node ──1:1── lease: while it stands, the node's sessions count; when it has lapsed, none of them
//! ```
//!
//! Invariants every home keeps:
//! - At most one claim per (user, device): the newest token wins (I17). Tokens only grow.
//! - Every write of a claim or a position compares the token atomically; an older one changes
//!   nothing.
//! - A stored position only moves forward within an epoch, and to a greater epoch (I10). Those of a device in its feeds
//!   know nothing of each other, but are forgotten together, with the device.
//! - A renewal of a node's lease costs a fixed number of writes, however many sessions the node holds.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::{DeviceId, Epoch, FeedId, Millis, Position, UserId, UserNo};

/// For how many devices of one user positions are stored at most. For one device more, the positions of the device that
/// was unseen longest are removed.
pub const DEVICES_MAX: usize = 32;

/// A device unseen for this long, in whatever feed, loses its stored positions: 60 days.
pub const DEVICE_TTL_MS: i64 = 60 * 24 * 3600 * 1000;

/// How long a node's lease lasts from its renewal. The sessions of a node that has died count as gone
/// after at most this long, all at once.
pub const LEASE: Duration = Duration::from_secs(10);

/// What a renewal of a lease has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease stood all the time, and the pool has forgotten nothing.
    Kept,
    /// The lease had lapsed or was new, or the pool has lost memory: the sessions that the node holds must be
    /// [confirmed](Sessions::confirm).
    Anew,
}

/// A session that a node holds. The node asks the pool whether the session still stands.
#[derive(Debug, Clone)]
pub struct Held {
    /// The claim that made the session.
    pub claim: Claim,
    /// What the claim was answered with.
    pub token: Token,
}

/// What the pool says of a session that a node holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// The session is still the one session of its device.
    Kept,
    /// A newer connection of the device has replaced it, or it was revoked.
    Ended,
    /// A connection of the device that was made earlier has its place: the claim of that one was carried out late. The
    /// clocks of two nodes may differ a little, so this may also be a newer connection that was made at nearly the same
    /// time.
    Displaced,
}

/// Orders the connections of one device: a later claim has a greater token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token {
    /// Grows when the home of the pool lost its memory.
    pub epoch: Epoch,
    /// Grows with each claim.
    pub counter: u64,
}

/// A live connection that wants to be the one session of its device.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The user to whom the device belongs.
    pub user: UserNo,
    /// The device, by the id that the client gave it.
    pub device: DeviceId,
    /// False for a device that gave no id of its own: it is never stored.
    pub durable: bool,
    /// The node that holds the connection.
    pub node: String,
    /// The connection within the node.
    pub connection: u64,
    /// When the connection was made.
    pub since: Millis,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// What this session shows with every write.
    pub token: Token,
    /// The session that this one replaced, as (node, connection). That connection is to be closed with code 4500.
    pub replaced: Option<(String, u64)>,
}

/// One line of a user's session list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The device of the session.
    pub device: DeviceId,
    /// The node that holds it.
    pub node: String,
    /// The connection within the node.
    pub connection: u64,
    /// What its claim was answered with, or would have been: the session is [released](Sessions::release) with it.
    pub token: Token,
    /// The position that the device has acknowledged in the main feed, if any.
    pub position: Option<Position>,
    /// When the connection was made.
    pub since: Millis,
}

/// The nodes that hold sessions of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// The living nodes with a session of the user, each node once.
    pub nodes: Vec<String>,
    /// Whether a part of the pool did not answer. Then other nodes may hold sessions too, and a node that is named may
    /// have ended.
    pub partial: bool,
}

impl Holders {
    /// All holders of a user.
    pub fn all(nodes: Vec<String>) -> Self {
        Self { nodes, partial: false }
    }
}

/// A position to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavePosition {
    /// The user to whom the device belongs.
    pub user: UserNo,
    /// The device, by the id that the client gave it.
    pub device: DeviceId,
    /// The token of the session that saves.
    pub token: Token,
    /// In which of the user's feeds.
    pub feed: FeedId,
    /// Acknowledged up to here.
    pub position: Position,
}

/// The pool of sessions: which connection is the session of a device, and which positions devices have acknowledged.
///
/// Every method fails with `Unavailable` or `Down` while the pool cannot work. Each change of one session is atomic; a
/// dropped future leaves it done or not done.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// Makes this connection the device's session. Its node has [renewed](Self::renew) its lease before: until then
    /// the session need not count.
    async fn claim(&self, claim: Claim) -> Result<Claimed>;

    /// Ends the session if the token is still the newest. Its stored positions stay.
    async fn release(&self, user: UserNo, device: &DeviceId, token: Token) -> Result<()>;

    /// Ends the device's session, on whichever node the session is. Answers its node and connection, or `None` if there
    /// was no session. From now on the token of that session changes nothing and is not confirmed.
    async fn revoke(&self, user: UserNo, device: &DeviceId) -> Result<Option<(String, u64)>>;

    /// Extends the lease of `node` to [`LEASE`] after the time of this call.
    async fn renew(&self, node: &str) -> Result<Renewed>;

    /// Ends the lease of a `node` that shuts down, and with the lease every session that the node still has.
    async fn retire(&self, node: &str) -> Result<()>;

    /// Answers for each session whether it is still the session of its device. A session that the pool has lost, not
    /// ended, is entered again under its token, unless a newer session of the device is there.
    async fn confirm(&self, held: Vec<Held>) -> Result<Vec<Confirmed>>;

    /// For each user the living nodes that hold a session of the user. The answer may be about a second old, but lacks
    /// a node whose claim was answered before this call only if it is [partial](Holders::partial). Fails if no part of
    /// the pool that was asked answers.
    async fn nodes(&self, users: &[UserNo]) -> Result<Vec<Holders>>;

    /// Every session of a user on living nodes, by device.
    async fn list(&self, user: UserNo) -> Result<Vec<SessionInfo>>;

    /// Stores positions whose token is the newest of their device, in their order; for each whether it did. `now` is
    /// when the device was last seen. A device has positions in at most [`NAMED_MAX`](crate::named::NAMED_MAX) named
    /// feeds; the one saved longest ago makes room. A device without an id of its own keeps what it has acknowledged
    /// in the main feed while its session lasts, for the list, and nothing of named feeds.
    async fn save(&self, positions: Vec<SavePosition>, now: Millis) -> Result<Vec<bool>>;

    /// The position that a device has acknowledged in one feed, if the position is stored and younger than
    /// [`DEVICE_TTL_MS`].
    async fn position(&self, user: UserNo, device: &DeviceId, feed: FeedId, now: Millis) -> Result<Option<Position>>;

    /// Makes a small read, to find out whether the pool answers.
    async fn ping(&self) -> Result<()>;
}

/// The name and the number of a user, passed on together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct User {
    /// The name by which clients and backends know the user.
    pub id: UserId,
    /// The number by which the stores know the user.
    pub no: UserNo,
}
