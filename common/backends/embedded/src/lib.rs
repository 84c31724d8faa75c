//! Every trait of `feedgate-common` on one machine.
//!
//! ```text
//!   Archive ─┐
//!   Sessions ┴─▶ database: one fjall store, one writer thread, group commit
//!                    ▲ tables: typed rows      ▲ codec: order-preserving bytes
//!   Inboxes ───▶ a log of their own, and memory
//!   Jobs ──────▶ memory, filled from the Archive
//!   Doorbell ──▶ a call within the process          [`Embedded`] opens all five
//!                                                   [`backup`] copies the database, and makes it again
//!                                                   [`doctor`] looks whether it is sound
//! ```
//!
//! Invariant: whatever a caller reads of the Archive and the inboxes has already survived a crash (see [`database`]).
//!
//! # Where to begin
//!
//! The tour of all crates is in [`feedgate_common`], and the traits that are implemented here are there too. Begin with
//! [`Embedded`], then read [`database`]: a write waits in a queue, and one thread commits all that wait with one sync.
//! [`inboxes`] are kept apart, in files of their own. The stores of a cluster come next, beginning with
//! [`feedgate_postgres`](../feedgate_postgres/index.html).

mod answered;
pub mod archive;
pub mod backup;
pub mod codec;
pub mod database;
mod disk;
pub mod doctor;
pub mod doorbell;
mod files;
mod fjall_log;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod home;
pub mod inboxes;
pub mod jobs;
mod journal;
mod manifest;
mod request;
mod rows;
pub mod sessions;
pub mod table;
pub mod view;
mod vital;
mod writer;

pub use archive::{EmbeddedArchive, Kept};
pub use database::Database;
pub use doorbell::EmbeddedDoorbell;
pub use home::{Embedded, Opening};
pub use inboxes::EmbeddedInboxes;
pub use jobs::EmbeddedJobs;
pub use request::Durability;
pub use sessions::EmbeddedSessions;
