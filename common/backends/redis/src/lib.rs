//! Inboxes and the session pool on Redis, one server or a cluster.

mod link;

pub use link::{Link, Timeouts};
