//! Every trait of `feedgate-common` on one machine's disk.
//!
//! ```text
//!   Archive ─┐
//!   Jobs     ├─▶ database: one fjall store, one writer thread, group commit
//!   Sessions ┘       ▲ tables: typed rows      ▲ codec: order-preserving bytes
//!   Inboxes ───▶ a log of their own, and memory
//!   Doorbell ──▶ a call within the process          [`Embedded`] opens all five
//! ```
//!
//! Invariant: whatever a caller reads has already survived a crash (see [`database`]).

pub mod archive;
pub mod codec;
pub mod database;
pub mod doorbell;
mod home;
pub mod inboxes;
pub mod jobs;
pub mod sessions;
pub mod table;
pub mod view;
mod writer;

pub use archive::EmbeddedArchive;
pub use database::{Database, Durability};
pub use doorbell::EmbeddedDoorbell;
pub use home::Embedded;
pub use inboxes::EmbeddedInboxes;
pub use jobs::EmbeddedJobs;
pub use sessions::EmbeddedSessions;
