//! Inboxes and the session pool on Redis, one server or a cluster.

mod epochs;
mod link;

pub use epochs::Epochs;
pub use link::{Link, Timeouts};
