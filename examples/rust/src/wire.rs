//! What the server sends, and what an app stores, in JSON.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Reads JSON, however deeply it nests: a body may have 128 levels, and what stands around it has more. `serde_json`
/// takes 127 if it is not told.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_slice(text);
    json.disable_recursion_limit();
    let value = T::deserialize(&mut json)?;
    json.end()?;
    Ok(value)
}

/// A place in the change log of a feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Offsets of different epochs have nothing to do with each other.
    pub epoch: String,
    /// Counts the changes of the epoch from 1.
    pub offset: u64,
}

/// Where an item stands in a list: by rank, ties by id. The newer place is the greater one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    rank: i64,
    #[serde(with = "decimal")]
    id: (u64, String),
}

/// Ids are 64-bit numbers in strings: a place keeps both.
mod decimal {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>((_, text): &(u64, String), out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(text)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<(u64, String), D::Error> {
        let text = String::deserialize(input)?;
        Ok((text.parse().map_err(de::Error::custom)?, text))
    }
}

/// What an author published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Its rank and its id.
    #[serde(flatten)]
    pub place: Place,
    /// The user who published the item.
    pub author: String,
    /// What the author gave.
    pub body: Value,
    /// Unix time in milliseconds.
    pub published_at: i64,
    /// It is addressed to this reader.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// Counts its edits from 1.
    pub version: u64,
    /// What only pages say of the item.
    #[serde(flatten)]
    pub around: Around,
    /// What else the server says of it, such as its kind.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}

/// What pages say of an item besides; a pushed change says none of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// How many reacted, by kind, and how many comments and reposts there are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, u64>,
    /// The kinds with which the reader has reacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
    /// The original of a repost, as it was when the page was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ref_item: Option<Box<Item>>,
    /// The original of a repost is not to be seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ref_gone: bool,
}

/// How a user is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// The name, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where the picture is, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avatar: Option<String>,
}

impl Item {
    /// The id as the server writes it.
    pub fn id(&self) -> &str {
        &self.place.id.1
    }
}

/// A stretch of a feed in display order.
#[derive(Debug, Clone, Deserialize)]
pub struct Page {
    /// The items, newest first.
    pub items: Vec<Item>,
    /// The cursor of the next older page; none at the end.
    pub next: Option<String>,
    /// Where the change log stood when the page was read.
    pub position: Position,
    /// How the authors of the items are shown, and those of reposted originals.
    #[serde(default)]
    pub people: BTreeMap<String, Person>,
}

/// One entry of the change log.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Change {
    /// An item appears in the feed.
    Add { item: Item },
    /// An item has a new version.
    Update { item: Item },
    /// An item is gone.
    Delete { item_id: String },
    /// All items of this author leave, but for those addressed to the reader.
    Forget {
        author: String,
        #[serde(flatten)]
        rest: Option<Rest>,
    },
    /// Something is new: fetch it (notify mode).
    Behind,
    /// The reader has seen more, on whatever device: so much is unread now.
    Seen { unread: u64 },
}

/// Given with a `forget` if pages have more of an author who is followed now than the changes after it bring.
#[derive(Debug, Clone, Deserialize)]
pub struct Rest {
    /// The loaded stretch ends above this place.
    pub floor: Place,
    /// The cursor of the page that goes on from there.
    pub next: String,
}

/// What the server's settings say of a named feed; the main feed has no limits.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct Limits {
    /// Items shown at most.
    pub cap: Option<usize>,
    /// Milliseconds that an item is shown.
    pub ttl: Option<i64>,
}

/// Changes are missing between the position and what came: the app loads page one again. It holds what the feed has
/// and what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Where the list stands.
    pub at: Position,
    /// The offset of the change that came.
    pub came: u64,
}
