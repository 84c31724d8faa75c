//! Keeps changes as JSON on one line, so that a change is encoded once, however many readers get it.
//!
//! Only the offset differs from inbox to inbox; the rest, `{"op":"add","item":{…}}`, is kept here by item and version.
//! A version never changes its contents, so what is kept is never out of date. Whether an item is still there was
//! decided by the code that made the [`Change`].

use std::sync::Arc;

use feedgate_common::feed::Change;
use feedgate_common::{Item, ItemId, OutboxSeq, UserNo};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::protocol::one_line::one_line;

/// The most bytes of JSON that are kept.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The key of a change's JSON. An `add` has one place in one outbox only, so an id that is used again after a delete
/// has another key. A change from before a move of its item shows the rank that the item had then. A direct item is in
/// no outbox and has few readers: it is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    add: bool,
    item: ItemId,
    version: u32,
    author: UserNo,
    outbox_seq: OutboxSeq,
    rank: i64,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Key, Arc<[u8]>> for ByBytes {
    fn weight(&self, _: &Key, json: &Arc<[u8]>) -> u64 {
        (json.len() + size_of::<Key>() + 64) as u64
    }
}

/// The JSON of changes that were encoded lately.
pub(crate) struct Bodies(Cache<Key, Arc<[u8]>, ByBytes>);

impl Bodies {
    pub(crate) fn new() -> Self {
        Self(Cache::with_weighter((BYTES_MAX / 512) as usize, BYTES_MAX, ByBytes))
    }

    /// Calls `write` with the JSON of a change, and gives what it returns.
    pub(crate) fn with<R>(&self, change: &Change, write: impl FnOnce(&[u8]) -> R) -> R {
        match change {
            Change::Add { item } if !item.direct => write(&self.kept(Key::of(true, item), change)),
            Change::Update { item } if !item.direct => write(&self.kept(Key::of(false, item), change)),
            Change::Add { .. } | Change::Update { .. } | Change::Delete { .. } | Change::Forget { .. } => {
                write(&encode(change))
            }
        }
    }

    fn kept(&self, key: Key, change: &Change) -> Arc<[u8]> {
        if let Some(json) = self.0.get(&key) {
            return json;
        }
        let json: Arc<[u8]> = encode(change).into();
        self.0.insert(key, json.clone());
        json
    }
}

impl Key {
    fn of(add: bool, item: &Item) -> Self {
        let Item { id, version, author_no, outbox_seq, rank, .. } = *item;
        Self { add, item: id, version, author: author_no, outbox_seq, rank }
    }
}

fn encode(change: &Change) -> Vec<u8> {
    let mut json = serde_json::to_vec(change).expect("a change is plain data");
    one_line(&mut json);
    json
}

#[cfg(test)]
mod tests {
    use feedgate_common::Body;

    use super::*;

    fn item(version: u32, outbox_seq: u64) -> Change {
        ranked(version, outbox_seq, 10)
    }

    fn ranked(version: u32, outbox_seq: u64, rank: i64) -> Change {
        Change::Add {
            item: Arc::new(Item {
                id: ItemId(5),
                author: "ann".parse().unwrap(),
                author_no: UserNo(1),
                kind: None,
                foreign_id: None,
                repost_of: None,
                mentions: vec![],
                body: Body::parse(format!("{{\"v\": {version}}}")).unwrap(),
                published_at: 10,
                rank,
                direct: false,
                narrowed: false,
                version,
                outbox_seq,
            }),
        }
    }

    #[test]
    fn each_version_and_each_life_of_an_item_has_its_own_json() {
        let bodies = Bodies::new();
        let text = |change: &Change| bodies.with(change, |json| String::from_utf8(json.to_vec()).unwrap());
        insta::assert_snapshot!(text(&item(1, 1)), @r#"{"op":"add","item":{"id":"5","author":"ann","body":{"v": 1},"published_at":10,"rank":10,"version":1}}"#);
        for change in [item(1, 1), item(2, 1), item(1, 9), ranked(1, 9, 11), Change::Delete { item_id: ItemId(5) }] {
            assert_eq!(text(&change), serde_json::to_string(&change).unwrap());
        }
    }
}
