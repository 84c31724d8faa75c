//! Jobs and wakes on NATS.
//!
//! ```text
//!   NatsJobs ─────▶ JetStream: FEED_WORK, the queue of fan-out work
//!          └──────▶ JetStream: FEED, what was accepted, for programs outside Feedgate
//!   NatsDoorbell ─▶ core NATS: feed.node.<node>, wakes, feed.all.>, what every node is told; nothing is kept
//!        Bus ─────── one connection under all of it, which connects again by itself
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
//! Stream `FEED` holds a message per accepted event, under `feed.event.fan-out.<author>` (the author's outbox has
//! grown), `feed.event.edge.<reader>.<author>` (an edge has changed) and `feed.event.direct.<reader>` (something was
//! addressed to the reader), with the same in JSON: `{"v":1,"kind":"fan-out","author":7}`,
//! `{"v":1,"kind":"edge","reader":3,"author":7}` or `{"v":1,"kind":"direct","reader":3}`. It says *that* something
//! changed, not what; the HTTP API says what. The numbers are Feedgate's own for its users. An event may be there
//! several times, and may be missing if NATS was away: nothing in Feedgate reads this stream. It is kept for an hour and
//! holds at most 256 MiB; beyond that the oldest events go first.
//!
//! Invariants: no call waits for NATS longer than its bound; whatever NATS loses comes again from the Archive
//! (jobs) or was allowed to be lost (wakes, events for outsiders).

mod bus;
mod doorbell;
mod jobs;

pub use bus::{Bus, BusError};
pub use doorbell::NatsDoorbell;
pub use jobs::{NatsJobs, Settings};
