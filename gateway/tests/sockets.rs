//! Real sockets over a real gateway, real stores and a real worker, in one process.
//!
//! Everything is awaited on the socket or on the doorbell; nothing sleeps and hopes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

#[path = "sockets/acknowledging.rs"]
mod acknowledging;
#[path = "sockets/asking.rs"]
mod asking;
#[path = "sockets/breaking.rs"]
mod breaking;
#[path = "sockets/delivering.rs"]
mod delivering;
#[path = "sockets/phone.rs"]
mod phone;
#[path = "sockets/replacing.rs"]
mod replacing;
#[path = "sockets/rig.rs"]
mod rig;
#[path = "sockets/stalling.rs"]
mod stalling;
#[path = "sockets/timing.rs"]
mod timing;
