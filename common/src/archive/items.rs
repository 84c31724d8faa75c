//! Items, as they are shown.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::{DisplayKey, FeedId, Item, ItemId, UserNo};

/// Reads items, an author's list of them, and for whom they are.
#[async_trait]
pub trait Items: Send + Sync + 'static {
    /// The items of these ids in the order asked; `None` for one that does not live.
    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>>;

    /// The item with this key of the backend: the living one, else the one deleted last; `None` if no item has it. Any
    /// text may be asked for.
    async fn item_by_foreign_id(&self, foreign_id: &str) -> Result<Option<ItemId>>;

    /// The living items that `author` has published to `feed`, strictly below `before` in display order, newest first,
    /// at most `limit`.
    async fn profile(
        &self,
        author: UserNo,
        feed: FeedId,
        before: Option<DisplayKey>,
        limit: usize,
    ) -> Result<Vec<DisplayKey>>;

    /// Gives the `items` that are addressed to `reader` and whose author is in no block with the reader now, in no
    /// order.
    async fn addressed(&self, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>>;
}
