//! Items as they were published and as readers get them.

use std::sync::Arc;

use compact_str::CompactString;
use serde::Serialize;

use crate::{Body, DisplayKey, ItemId, Millis, OutboxSeq, UserId, UserNo};

/// An item that lives. It is serialized as the JSON that the API and the SDKs show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// The id: one that Feedgate gave, ordered by time, or the backend's own.
    pub id: ItemId,
    /// The user who published the item.
    pub author: UserId,
    /// The number of the author inside Feedgate.
    #[serde(skip)]
    pub author_no: UserNo,
    /// The backend's own word for the type of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<CompactString>,
    /// The backend's own key of the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_id: Option<CompactString>,
    /// The item that this item reposts, as it was published. The [`Original`](crate::around::Original) may be deleted
    /// since.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub repost_of: Option<ItemId>,
    /// The users whom the item [mentions](crate::mentions), each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<UserId>,
    /// The content of the item.
    pub body: Body,
    /// The display time that the backend gave, in Unix ms.
    pub published_at: Millis,
    /// The rank, which decides the item's place on a page.
    pub rank: i64,
    /// Whether the item is addressed to named readers, and not to the followers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// Whether the item is only for the followers who are in its audience.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub narrowed: bool,
    /// The version of the item: 1 at first, one more with each new body or rank.
    pub version: u32,
    /// The sequence number of the item's `add` in the author's outbox; 0 if the item is direct.
    #[serde(skip)]
    pub outbox_seq: OutboxSeq,
}

/// How many former bodies of an item are kept: the newest ones. A moderator looks at the last few. However often an
/// author edits, the former bodies take at most this number times the size of the largest body.
pub const BODIES_KEPT: usize = 20;

/// A body that an item had before it was edited.
#[derive(Debug, Clone, PartialEq)]
pub struct Replaced {
    /// The version that the item had when the body was replaced. A new rank makes a version with the same body.
    pub version: u32,
    /// The body that was replaced.
    pub body: Body,
    /// When the body was replaced, in Unix ms.
    pub at: Millis,
}

#[cfg(test)]
impl Item {
    /// An item of ann's for the followers, for unit tests.
    pub(crate) fn sample(id: u64) -> Self {
        Self {
            id: ItemId(id),
            author: "ann".parse().unwrap(),
            author_no: UserNo(1),
            kind: None,
            foreign_id: None,
            repost_of: None,
            mentions: vec![],
            body: Body::parse("1".to_owned()).unwrap(),
            published_at: 1,
            rank: 1,
            direct: false,
            narrowed: false,
            version: 1,
            outbox_seq: 1,
        }
    }
}

impl Item {
    /// About how many bytes of JSON it takes that users have written: its body, and the names of those whom it
    /// mentions.
    pub fn bytes(&self) -> usize {
        self.body.get().len() + self.mentions.iter().map(|user| user.as_str().len() + 3).sum::<usize>()
    }

    /// The place of the item in display order.
    pub fn key(&self) -> DisplayKey {
        DisplayKey { rank: self.rank, item: self.id }
    }

    /// The item with the rank that a log, or a window of one, gives it. The Archive may know a later rank already: then
    /// a delete and an add will come, which move the item.
    pub fn at(self: Arc<Self>, key: DisplayKey) -> Arc<Self> {
        if self.rank == key.rank { self } else { Arc::new(Self { rank: key.rank, ..(*self).clone() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mentions::MENTIONS_MAX;

    #[test]
    fn i18_the_names_of_those_whom_an_item_mentions_count_as_its_body_does() {
        let plain = Item::sample(1);
        assert_eq!(plain.bytes(), plain.body.get().len());
        let mentions = vec!["u".repeat(64).parse().unwrap(); MENTIONS_MAX];
        let item = Item { mentions, ..Item::sample(1) };
        let json = |item: &Item| serde_json::to_string(item).unwrap().len();
        let around = json(&plain) + "\"mentions\":[],".len() - plain.bytes();
        assert_eq!(item.bytes() + around - 1, json(&item), "with a comma between two names");
    }
}
