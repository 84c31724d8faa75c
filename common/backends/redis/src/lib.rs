//! Inboxes and the session pool on Redis, one server or a cluster.

mod epochs;
mod link;
mod sessions;

pub use epochs::Epochs;
pub use link::{Link, Timeouts};
pub use sessions::{RedisSessions, Spans};
