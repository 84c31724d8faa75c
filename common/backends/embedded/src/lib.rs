//! Every trait of `feedgate-common` on one machine's disk.
//!
//! ```text
//!   Archive ─┐
//!   Jobs     ├─▶ database: one fjall store, one writer thread, group commit
//!   Sessions ┘       ▲ tables: typed rows      ▲ codec: order-preserving bytes
//! ```
//!
//! Invariant: whatever a caller reads has already survived a crash (see [`database`]).

pub mod archive;
pub mod codec;
pub mod database;
pub mod doorbell;
pub mod inboxes;
pub mod jobs;
pub mod sessions;
pub mod table;
pub mod view;
mod writer;

pub use archive::EmbeddedArchive;
pub use database::{Database, Durability};
pub use doorbell::EmbeddedDoorbell;
pub use inboxes::EmbeddedInboxes;
pub use jobs::EmbeddedJobs;
pub use sessions::EmbeddedSessions;
