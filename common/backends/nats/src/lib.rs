//! Jobs and wakes on NATS.
//!
//! ```text
//!   NatsJobs ─────▶ JetStream: FEED_WORK, the queue of fan-out work
//!          └──────▶ JetStream: FEED, what was accepted, for programs outside Feedgate
//!   NatsDoorbell ─▶ core NATS: feed.node.<node>, wakes, feed.all.>, what every node is told; nothing is kept
//!   NatsIntake ───▶ JetStream: FEED_IN, calls of backends; FEED_REFUSED, those that were refused
//!          └──────▶ core NATS: feed.call.>, calls that are answered; nothing is kept
//!        Bus ─────── one connection under all of it, and another for NatsIntake; each connects again by itself
//! ```
//!
//! # Where to begin
//!
//! The tour of all crates is in [`feedgate_common`]. Here, begin with [`NatsJobs`] for work that must not be lost, and
//! [`NatsDoorbell`] for wakes that may be lost. What every store must promise is in
//! [`feedgate_conformance`](../feedgate_conformance/index.html), the next crate of the tour.
//!
//! # What outsiders get
//!
//! Stream `FEED` holds a message for each accepted write, under `feed.event.<kind>.<user>`, with names, item id and
//! version as JSON ([`PublicEvent`](feedgate_common::announce::PublicEvent)). A relay in each worker takes these
//! messages from the Archive, so none is missing, whatever happens to NATS meanwhile. A message may be there twice,
//! under one id. Nothing in Feedgate reads this stream. By default the stream keeps events for a day and holds at most
//! 256 MiB; the oldest events go first.
//!
//! Invariants: no call waits for NATS longer than its bound; whatever NATS loses comes again from the Archive
//! (jobs, events until they are acknowledged) or was allowed to be lost (wakes).

mod bus;
mod doorbell;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod intake;
mod jobs;
mod set_up;
mod traces;

pub use bus::{Bus, BusError};
pub use doorbell::NatsDoorbell;
pub use intake::{IntakeSettings, NatsIntake};
pub use jobs::{NatsJobs, Settings};
pub use traces::share_traces;
