//! Inboxes and the session pool on Redis, one server or a cluster.
//!
//! ```text
//!   RedisInboxes ──▶ a list for each inbox; one script does one step          inboxes/
//!   RedisSessions ─▶ a hash for each bucket of readers, a lease for each node  sessions/
//!        Link ──────── the way to one server or a cluster; calls end in time   link/
//! ```
//!
//! Redis may lose all that it holds: inboxes are derived from the Archive and are rebuilt from it, in a new epoch.
//!
//! # Where to begin
//!
//! The tour of all crates is in [`feedgate_common`]. Here, begin with [`RedisInboxes`]: a step is atomic because one
//! script compares the progress, appends and moves the progress. [`RedisSessions`] says which node serves which device.
//! How a step is asked for, and how devices hear of it, is in [`feedgate_nats`](../feedgate_nats/index.html).

#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod inboxes;
mod link;
mod sessions;

pub use inboxes::RedisInboxes;
pub use link::{Link, Timeouts};
pub use sessions::{RedisSessions, Spans};
