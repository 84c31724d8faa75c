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
#[path = "sockets/channels.rs"]
mod channels;
#[path = "sockets/clock.rs"]
mod clock;
#[path = "sockets/delivering.rs"]
mod delivering;
#[path = "sockets/faults.rs"]
mod faults;
#[path = "sockets/inlining.rs"]
mod inlining;
#[path = "sockets/leasing.rs"]
mod leasing;
#[path = "sockets/lines.rs"]
mod lines;
#[path = "sockets/outages.rs"]
mod outages;
#[path = "sockets/phone.rs"]
mod phone;
#[path = "sockets/pulling.rs"]
mod pulling;
#[path = "sockets/reaching.rs"]
mod reaching;
#[path = "sockets/replacing.rs"]
mod replacing;
#[path = "sockets/returning.rs"]
mod returning;
#[path = "sockets/revoking.rs"]
mod revoking;
#[path = "sockets/rig.rs"]
mod rig;
#[path = "sockets/seeing.rs"]
mod seeing;
#[path = "sockets/stalling.rs"]
mod stalling;
#[path = "sockets/timing.rs"]
mod timing;
#[path = "sockets/watching.rs"]
mod watching;
