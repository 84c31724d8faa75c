//! The timeline worker: turns accepted writes into entries of inboxes.
//!
//! ```text
//!   jobs ──take──▶ worker ──▶ dispatch ──┬─ bucket 0 ─▶ execute: advance, a turn's worth at most ─▶ ring
//!     ▲              │                   ├─ bucket 1 ─▶   "
//!     │              │                   └─ …                        (a follow is one step)
//!     │              └─▶ finish the event in the Archive ─▶ ack ─▶ behind still? put again, at the end of the queue
//!   sweep ◀── events of the Archive that nobody has finished
//!   clean ──▶ inboxes that nobody has read for long
//!   erase ──▶ users who are to be erased, step by step
//!   index ──▶ the index of search
//!   own   ──▶ edges of authors to themselves, as the settings say
//!   renew ──▶ rankings whose items were edited or deleted
//!   push  ──▶ notices for readers who are away, to a webhook
//! ```
//!
//! Invariants:
//! - An event is outstanding until its fan-out is finished, not until it is relayed: it is finished
//!   in the Archive *before* its job is acknowledged, so a crash between any two lines repeats work
//!   and loses none.
//! - The queue may be lost or full: a worker puts all that is outstanding at its start, and when the
//!   queue is back or has room again.
//! - Repeating is harmless: the rules of a step are in [`fanout`], and each compares
//!   the progress it read. The worker holds no state that matters.
//! - Bounded: at most twice [`Settings::in_flight`] jobs, each with at most [`Settings::buckets_at_once`]
//!   steps at a time, and no more than 10,000 that wait for their next try.
//! - Nobody takes more than a share: posts, edges and jobs that are tried again have hands of their own. An author who
//!   posts all the time goes to the end of the queue after a bounded turn.
//!
//! # Where to begin
//!
//! The tour of all crates is in [`feedgate_common`]. Here, begin with [`Worker`], which takes the jobs. The steps that
//! it runs are in [`fanout`]. What the steps append is read by the [gateway](../feedgate_gateway/index.html), the next
//! crate of the tour.

mod clean;
mod clock;
mod crew;
mod dispatch;
mod erase;
mod execute;
pub mod fanout;
mod index;
mod metrics;
mod own_posts;
mod pulse;
pub mod push;
mod relay;
mod renew;
mod retry;
mod rounds;
mod said;
mod settings;
mod sweep;
mod worker;

pub use fanout::FanOut;
pub use pulse::Pulse;
pub use push::{Noter, PushSettings, Sender};
pub use relay::Relay;
pub use said::Said;
pub use settings::Settings;
pub use worker::Worker;
