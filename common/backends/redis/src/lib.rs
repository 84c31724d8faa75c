//! Inboxes and the session pool on Redis, one server or a cluster.

mod inboxes;
mod link;
mod sessions;

pub use inboxes::RedisInboxes;
pub use link::{Link, Timeouts};
pub use sessions::{RedisSessions, Spans};
