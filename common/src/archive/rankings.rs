//! Rankings that recommenders put into named feeds of readers.

use async_trait::async_trait;

use crate::around::Terms;
use crate::error::Result;
use crate::ranking::{NoSuchItem, Ranked, Renewed};
use crate::{DisplayKey, InboxKey, ItemId, Millis, UserNo};

/// Keeps for each reader and feed the [ranking](crate::ranking) that stands in the feed. A ranking is addressed to the
/// reader, item by item, so [`Content`](super::Content) answers a ranking like direct items.
#[async_trait]
pub trait Rankings: Send + Sync + 'static {
    /// Replaces the ranking of a feed in one durable transaction, accepted at `now`, and addresses to the reader what
    /// has [changed](crate::ranking::changes). An item that does not live refuses the whole ranking; of several, the
    /// first is named. No item may stand in `ranking` twice. A dropped future leaves all of it done or nothing.
    async fn rank(
        &self,
        key: InboxKey,
        ranking: &[DisplayKey],
        now: Millis,
    ) -> Result<std::result::Result<Ranked, NoSuchItem>>;

    /// The ranking of a feed, the greatest key first, without items that were deleted.
    async fn ranking(&self, key: InboxKey) -> Result<Vec<DisplayKey>>;

    /// Gives the pairs of a reader and an item whose item stands in a ranking of the reader, in any feed, each once and
    /// in no order, with the terms between the reader and the author. One read, however many are asked about. It shows
    /// every ranking, every shield and every private author that was answered before.
    async fn ranked(&self, asked: &[(UserNo, ItemId)]) -> Result<Vec<((UserNo, ItemId), Terms)>>;

    /// Brings edits and deletes of items to rankings that hold them, at most `limit` rankings of one item: an update or
    /// a delete is addressed to the reader, and a deleted item leaves the ranking. The transaction of an edit or a
    /// delete only notes this work. The call is one durable transaction; a dropped future leaves all of it done or
    /// nothing.
    async fn renew_rankings(&self, now: Millis, limit: usize) -> Result<Renewed>;
}
