//! Items in memory, up to a bound in bytes.
//!
//! ```text
//!   reader:  note the shelf's count ─▶ view ─▶ read ─▶ insert, if the count is still the same
//!   writer:  publish the view ─▶ count + 1, remove ─▶ answer
//! ```
//!
//! Invariant: once a change of an item is answered, no reader gets the old item. An item read from a view older than
//! the change is refused by the count; one that was inserted before is removed. A call that overlaps a change may get
//! some items from before it and others from after it.

use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::{Body, Item, ItemId, StoreError, UserId, mentions};
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::tables::{ItemRow, Items, Life, NO_SEQ};
use super::users::KnownUsers;
use crate::database::Database;
use crate::view::{Read, View};

/// How many bytes the items may take together with their bodies.
const BYTES_MAX: u64 = 64 << 20;

/// About how many bytes an item takes besides its body.
const ITEM_BYTES: u64 = 320;

/// How many counts of changes there are. Items share them: a change of one item keeps a few others from being inserted
/// once.
const SHELVES: usize = 64;

/// The cache of items, with a count of changes for each shelf.
pub(super) struct HotItems {
    items: Cache<ItemId, Arc<Item>, ByBytes>,
    changes: [Mutex<u64>; SHELVES],
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<ItemId, Arc<Item>> for ByBytes {
    fn weight(&self, _id: &ItemId, item: &Arc<Item>) -> u64 {
        ITEM_BYTES + item.bytes() as u64
    }
}

impl Default for HotItems {
    fn default() -> Self {
        let about = usize::try_from(BYTES_MAX / (2 * ITEM_BYTES)).expect("a constant that fits");
        Self { items: Cache::with_weighter(about, BYTES_MAX, ByBytes), changes: std::array::from_fn(|_| Mutex::new(0)) }
    }
}

impl HotItems {
    /// The items of these ids, in the order of the ids; `None` for an item that does not live.
    pub(super) fn items(&self, db: &Database, users: &KnownUsers, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        let mut found: Vec<Option<Arc<Item>>> = ids.iter().map(|id| self.items.get(id)).collect();
        let missing: Vec<usize> = (0..ids.len()).filter(|&at| found[at].is_none()).collect();
        let counts: Vec<u64> = missing.iter().map(|&at| *self.shelf(ids[at]).lock()).collect();
        // The view is taken after the counts were read, so that a change between the two is noticed.
        let view = db.view()?;
        for (at, count) in missing.into_iter().zip(counts) {
            found[at] = item_of(&view, users, ids[at])?.map(Arc::new);
            if let Some(item) = &found[at] {
                self.insert(ids[at], item, count);
            }
        }
        Ok(found)
    }

    fn insert(&self, id: ItemId, item: &Arc<Item>, count: u64) {
        let changes = self.shelf(id).lock();
        if *changes == count {
            self.items.insert(id, item.clone());
        }
    }

    /// Drops these items. Call this once every new view shows the change of the items.
    pub(super) fn forget(&self, ids: &[ItemId]) {
        for id in ids {
            let mut changes = self.shelf(*id).lock();
            *changes += 1;
            self.items.remove(id);
        }
    }

    /// Drops all items. Call this after a failure, since an operation that has failed may still have changed items.
    pub(super) fn forget_all(&self) {
        self.changes.iter().for_each(|changes| *changes.lock() += 1);
        self.items.clear();
    }

    /// The count of changes for an item. Ids differ most in their middle bits: their high bits are time, their low bits
    /// a small count.
    fn shelf(&self, id: ItemId) -> &Mutex<u64> {
        let mixed = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        &self.changes[mixed as usize % SHELVES]
    }
}

/// The users whom an item or a comment mentions, from the text that is stored of them.
pub(super) fn mentions_of(text: Option<&str>, of: ItemId) -> Result<Vec<UserId>> {
    mentions::read(text)
        .ok_or_else(|| StoreError::corrupt(format_args!("{of} mentions {text:?}, which is no list of users")))
}

fn item_of(view: &View, users: &KnownUsers, id: ItemId) -> Result<Option<Item>> {
    let Some(ItemRow { author, seq, published_at, life, .. }) = view.get::<Items>(&id)? else { return Ok(None) };
    let Life::Living { version, rank, kind, foreign_id, repost_of, narrowed, mentions, body } = life else {
        return Ok(None);
    };
    let mentions = mentions_of(mentions.as_deref(), id)?;
    let body = Body::stored(body).map_err(|error| StoreError::corrupt(format_args!("item {id}: {error}")))?;
    Ok(Some(Item {
        id,
        author: users.learn_id(view, author)?,
        author_no: author,
        kind,
        foreign_id,
        repost_of,
        mentions,
        body,
        published_at,
        rank,
        version,
        outbox_seq: seq,
        direct: seq == NO_SEQ,
        narrowed,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_read_before_its_change_is_not_put_back_after_it() {
        let hot = HotItems::default();
        let id = ItemId(7);
        let old = Arc::new(Item {
            id,
            author: "ann".parse().unwrap(),
            author_no: feedgate_common::UserNo(1),
            kind: None,
            foreign_id: None,
            repost_of: None,
            mentions: vec![],
            body: Body::parse("1".into()).unwrap(),
            published_at: 0,
            rank: 0,
            version: 1,
            outbox_seq: 1,
            direct: false,
            narrowed: false,
        });
        let before = *hot.shelf(id).lock();
        hot.insert(id, &old, before);
        assert!(hot.items.get(&id).is_some());
        hot.forget(&[id]);
        assert!(hot.items.get(&id).is_none(), "a change drops what was there");
        hot.insert(id, &old, before);
        assert!(hot.items.get(&id).is_none(), "and what a slow reader still holds stays out");
    }
}
