//! Whether the store is there, and how much it holds.

use async_trait::async_trait;

use crate::error::Result;

/// The counts that `/v1/stats` shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveCounts {
    /// How many users were ever named.
    pub users: u64,
    /// How many items live.
    pub items: u64,
    /// How many edges are on.
    pub edges: u64,
    /// How many events are outstanding.
    pub events: u64,
}

/// Answers for the state of the store.
#[async_trait]
pub trait Status: Send + Sync + 'static {
    /// Answers a small read as soon as it can: whether the store is there.
    async fn ping(&self) -> Result<()>;

    /// The counts for the statistics page. They may be some seconds old.
    async fn counts(&self) -> Result<ArchiveCounts>;
}
