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
mod disk;
pub mod doorbell;
mod files;
mod fjall_log;
mod home;
pub mod inboxes;
pub mod jobs;
mod manifest;
pub mod sessions;
pub mod table;
pub mod view;
mod vital;
mod writer;

pub use archive::EmbeddedArchive;
pub use database::{Database, Durability};
pub use doorbell::EmbeddedDoorbell;
pub use home::{Embedded, Opening};
pub use inboxes::EmbeddedInboxes;
pub use jobs::EmbeddedJobs;
pub use sessions::EmbeddedSessions;
