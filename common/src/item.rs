//! An item as it was published, and as readers get it.

use std::sync::Arc;

use compact_str::CompactString;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{DisplayKey, ItemId, Millis, OutboxSeq, UserId, UserNo};

/// Any JSON value, kept to the byte as it came. At most [`Body::MAX_BYTES`].
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Body(Arc<RawValue>);

impl Body {
    /// The most a body may hold.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// Takes JSON text. `Err` says what is wrong with it.
    pub fn parse(json: String) -> Result<Self, String> {
        if json.len() > Self::MAX_BYTES {
            return Err(format!("a body holds at most {} bytes of JSON, this one has {}", Self::MAX_BYTES, json.len()));
        }
        RawValue::from_string(json).map(|raw| Self(raw.into())).map_err(|e| format!("a body must be JSON: {e}"))
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

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
