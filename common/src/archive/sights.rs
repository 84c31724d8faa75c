//! What readers have seen of their feeds.

use async_trait::async_trait;

use crate::error::Result;
use crate::{InboxKey, Seen};

/// Keeps what each reader has seen of each feed. This outlives the inbox.
#[async_trait]
pub trait Sights: Send + Sync + 'static {
    /// What the reader has seen of this feed; `None` if nothing was ever stored. The answer shows every [`Self::see`]
    /// that was answered before.
    async fn seen(&self, key: InboxKey) -> Result<Option<Seen>>;

    /// Stores what [`Seen::or_later`] gives for `seen` and what is stored, in one atomic step. Answers whether anything
    /// changed; durable when it answers. Unless it changes something, nothing is written. A dropped future leaves the
    /// step done or not done.
    async fn see(&self, key: InboxKey, seen: Seen) -> Result<bool>;
}
