//! The timeline worker: turns accepted writes into entries of inboxes.
//!
//! ```text
//!   jobs ──take──▶ worker ──▶ dispatch ──┬─ bucket 0 ─▶ execute: advance … until at the head ─▶ ring
//!     ▲              │                   ├─ bucket 1 ─▶   "
//!     │              │                   └─ …                        (a follow is one step)
//!     │              └─▶ finish the event in the Archive ─▶ ack
//!   sweep ◀── events of the Archive that nobody has finished
//!   clean ──▶ inboxes that nobody has read for long
//! ```
//!
//! Invariants:
//! - An event is outstanding until its fan-out is finished, not until it is relayed: it is finished
//!   in the Archive *before* its job is acknowledged, so a crash between any two lines repeats work
//!   and loses none.
//! - Repeating is harmless: the rules of a step live in [`feedgate_common::feed`], and each compares
//!   the progress it read. The worker holds no state that matters.
//! - Bounded: at most [`Settings::in_flight`] jobs, each with at most [`Settings::buckets_at_once`]
//!   steps at a time; nothing here queues.

mod clean;
mod dispatch;
mod execute;
mod pulse;
mod retry;
mod rounds;
mod settings;
mod sweep;
mod worker;

pub use pulse::Pulse;
pub use settings::Settings;
pub use worker::Worker;
