//! Comments on items, and how many there are.

use async_trait::async_trait;

use crate::around::{Comment, CommentOrder, CommentPage, CommentPlace, CommentWrite, Commented, Onlooker, Uncommented};
use crate::error::Result;
use crate::{ItemId, Millis};

/// Keeps the comments of items. They are state of the item: nothing of them enters an outbox or an inbox.
#[async_trait]
pub trait Comments: Send + Sync + 'static {
    /// Makes these changes in order, in one durable transaction, and answers each in its place; a refused one stops no
    /// other. [`CommentRows::apply`](crate::around::CommentRows::apply) decides. `now` is in Unix ms. A dropped future
    /// leaves all of them done or none; to repeat a change whose answer was lost changes nothing, except that a new
    /// comment needs an id or a key for that.
    async fn comment(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Vec<std::result::Result<Commented, Uncommented>>>;

    /// The comments of an item that the onlooker [sees](crate::around::shows_comment), strictly behind the place `from`
    /// in `order`; at most `limit`, which is at least 1. Empty if the item does not live. It looks at no more than
    /// [`COMMENTS_LOOKED_AT`](crate::around::COMMENTS_LOOKED_AT) rows, so a page may be shorter and yet go on.
    async fn comments(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        order: CommentOrder,
        from: Option<CommentPlace>,
        limit: usize,
    ) -> Result<CommentPage>;

    /// One comment of an item, if it stands and the onlooker sees it.
    async fn comment_of(&self, item: ItemId, id: ItemId, onlooker: Onlooker) -> Result<Option<Comment>>;

    /// Comments by their items and ids, each in its place, as they stand for somebody without blocks; `None` for one
    /// that does not stand. One read, however many they are.
    async fn comments_of(&self, of: &[(ItemId, ItemId)]) -> Result<Vec<Option<Comment>>>;

    /// The first living item after `after` by id that may have comments or placeholders. For an export.
    async fn commented_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>>;
}
