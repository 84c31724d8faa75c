//! Items, as they are shown.

use std::sync::Arc;

use async_trait::async_trait;

use crate::around::Viewer;
use crate::error::Result;
use crate::{DisplayKey, FeedId, Item, ItemId, Millis, Replaced, UserNo};

/// Reads items, an author's list of them, and for whom they are.
#[async_trait]
pub trait Items: Send + Sync + 'static {
    /// The items of these ids in the order asked; `None` for one that does not live.
    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>>;

    /// The items of these ids in the order asked, as `viewer` [may see them](crate::around::shows_original) as
    /// originals of reposts; `None` for one that does not live or that the viewer may not see. One read, however many
    /// are asked for. It shows every delete and every shield that was answered before.
    async fn originals(&self, ids: &[ItemId], viewer: Viewer) -> Result<Vec<Option<Arc<Item>>>>;

    /// Gives the living reposts of an item, for all readers or for some, with an id below `before`, the greatest id
    /// first, at most `limit`. The item itself may be deleted or unknown.
    async fn reposts(&self, original: ItemId, before: Option<ItemId>, limit: usize) -> Result<Vec<ItemId>>;

    /// The bodies that the item had before it was edited, the newest first, at most
    /// [`BODIES_KEPT`](crate::BODIES_KEPT); none if it was never edited, or does not live. A notification keeps none.
    async fn versions(&self, item: ItemId) -> Result<Vec<Replaced>>;

    /// By whom and when the items of these ids were published, in Unix ms and in the order asked, whether they live or
    /// were deleted; `None` for an id that no item ever had. Reads no bodies, so that many may be asked about.
    async fn published(&self, ids: &[ItemId]) -> Result<Vec<Option<(UserNo, Millis)>>>;

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

    /// The living direct items that `user` has sent, whether they have reached anybody or not, strictly below `before`
    /// in display order, newest first, at most `limit`. A [notification](crate::notify::is_notification) is not among
    /// them.
    async fn sent(&self, user: UserNo, before: Option<DisplayKey>, limit: usize) -> Result<Vec<DisplayKey>>;

    /// Gives the `items` that are addressed to `reader`, or whose audience has the reader, and whose author is in no
    /// block with the reader now, in no order.
    async fn addressed(&self, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>>;
}
