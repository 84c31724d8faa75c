//! An item as it was published, and as readers get it.

use compact_str::CompactString;
use serde::Serialize;

use crate::{Body, DisplayKey, ItemId, Millis, OutboxSeq, UserId, UserNo};

/// An item that lives. Serializes to the JSON that the API and the SDKs show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Feedgate's id (time-ordered) or the backend's own.
    pub id: ItemId,
    /// Who published it.
    pub author: UserId,
    /// The author's number.
    #[serde(skip)]
    pub author_no: UserNo,
    /// The business's word for what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<CompactString>,
    /// The backend's own key for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_id: Option<CompactString>,
    /// What it says.
    pub body: Body,
    /// When the business says it was published; display only.
    pub published_at: Millis,
    /// Where it stands on a page.
    pub rank: i64,
    /// Whether it is addressed to named readers, and not to the followers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// 1 at first, one more with each edit.
    pub version: u32,
    /// Where its `add` stands in the author's outbox; 0 if it is direct.
    #[serde(skip)]
    pub outbox_seq: OutboxSeq,
}

impl Item {
    /// Its place in display order.
    pub fn key(&self) -> DisplayKey {
        DisplayKey { rank: self.rank, item: self.id }
    }
}
