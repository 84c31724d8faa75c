//! Inboxes and the session pool on Redis, one server or a cluster.

mod epochs;
mod inboxes;
mod link;
mod sessions;

pub use epochs::Epochs;
pub use inboxes::RedisInboxes;
pub use link::{Link, Timeouts};
pub use sessions::{RedisSessions, Spans};
