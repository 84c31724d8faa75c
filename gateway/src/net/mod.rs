//! Bytes: connections as they arrive, the addresses they count for, and what carries a session: a WebSocket, or an
//! endless answer.
//!
//! Nothing here knows what a message says or who a user is.

pub(crate) mod address;
pub(crate) mod arrivals;
mod frame_heads;
pub(crate) mod header;
pub(crate) mod link;
pub(crate) mod lobby;
pub(crate) mod mailboxes;
pub(crate) mod maybe_tls;
pub(crate) mod refusals;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod surface;
pub(crate) mod timed_stream;
pub(crate) mod tls;
pub(crate) mod transport;
