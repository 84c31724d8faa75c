//! Bytes: connections as they arrive, the addresses they count for, and the WebSocket as frames.
//!
//! Nothing here knows what a message says or who a user is.

pub(crate) mod address;
pub(crate) mod arrivals;
mod frame_heads;
pub(crate) mod lobby;
pub(crate) mod refusals;
pub(crate) mod socket;
pub(crate) mod surface;
pub(crate) mod timed_stream;
