//! Comments on items, and how many there are.

use async_trait::async_trait;

use crate::around::{Comment, CommentOrder, CommentPage, CommentPlace, CommentWrite, Commented, Onlooker, Uncommented};
use crate::error::Result;
use crate::{ItemId, Millis};

/// Keeps the comments of items. Comments are state of the item: no comment enters an outbox or an inbox.
#[async_trait]
pub trait Comments: Send + Sync + 'static {
    /// Makes these changes in order, in one durable transaction, and answers each in its place; a refused one stops no
    /// other. [`CommentRows::apply`](crate::around::CommentRows::apply) decides. `now` is in Unix ms. A dropped future
    /// leaves all changes done or none. Repeating a change whose answer was lost changes nothing; for this, a new
    /// comment needs an id or a key.
    async fn comment(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Vec<std::result::Result<Commented, Uncommented>>>;

    /// The comments of an item that the onlooker [sees](crate::around::shows_comment), strictly behind the place `from`
    /// in `order`; at most `limit`, which is at least 1. Empty if the item does not live. A call looks at no more than
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

    /// Comments by their items and ids, in the order asked, as a user without blocks sees them; `None` for a comment
    /// that does not stand. One read, however many are asked for.
    async fn comments_of(&self, of: &[(ItemId, ItemId)]) -> Result<Vec<Option<Comment>>>;

    /// The first living item after `after` by id that may have comments or placeholders. For an export.
    async fn commented_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>>;
}
