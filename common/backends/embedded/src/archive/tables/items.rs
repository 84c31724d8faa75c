//! Items with their bodies, and what is left of deleted ones.
//!
//! A deleted item keeps what a retry of its publish must be answered with, and nothing else.

use compact_str::CompactString;
use feedgate_common::error::Result;
use feedgate_common::{FeedId, ItemId, Millis, OutboxSeq, UserNo};

use super::{AuthorFeed, fields, table};
use crate::codec::{Code, Short};
use crate::view::Read;

table! {
    /// Each item, living or deleted.
    Items: b'i', Items, ItemId => ItemRow
}

/// The sequence number of an item that stands in no outbox.
pub(crate) const NO_SEQ: OutboxSeq = 0;

/// A hash of the payload that was accepted first; edits do not change it.
pub(crate) type Fingerprint = [u8; 16];

/// An item, living or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemRow {
    pub(crate) author: UserNo,
    /// The sequence number of the item's `add` in the author's outbox, or [`NO_SEQ`].
    pub(crate) seq: OutboxSeq,
    pub(crate) published_at: Millis,
    pub(crate) fingerprint: Fingerprint,
    /// The feed of the item's `add`, and of every later record of the item.
    pub(crate) feed: FeedId,
    pub(crate) life: Life,
}

impl ItemRow {
    /// The key of the item's `add` in the table of adds, if the item stands in the outbox.
    pub(crate) fn add(&self) -> (AuthorFeed, OutboxSeq) {
        (AuthorFeed { feed: self.feed, author: self.author }, self.seq)
    }
}

/// Whether the item exists and was not deleted.
///
/// # Errors
/// `Corrupt` if the row of the item cannot be read.
pub(crate) fn lives(from: &impl Read, item: ItemId) -> Result<bool> {
    Ok(from.get::<Items>(&item)?.is_some_and(|row| row.life != Life::Gone))
}

fields!(ItemRow { author, seq, published_at, fingerprint, feed, life });

/// The content of an item, while it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    Gone,
    Living {
        version: u32,
        rank: i64,
        kind: Option<CompactString>,
        foreign_id: Option<CompactString>,
        repost_of: Option<ItemId>,
        narrowed: bool,
        /// The users whom the item mentions, as one [text](feedgate_common::mentions::text_of).
        mentions: Option<CompactString>,
        body: String,
    },
}

/// The first byte of what is kept of a deleted item.
const GONE: u8 = 0;

/// The first byte of a living item that is no repost.
const LIVING: u8 = 1;

/// The first byte of a repost; the id of its original follows. Stores from before there were reposts have no such row.
const REPOST: u8 = 2;

/// What is added to the first byte of a living item that is for its audience alone.
const NARROWED: u8 = 2;

/// What is added to the first byte of a living item that mentions users. Stores from before there were mentions have no
/// such row.
const MENTIONING: u8 = 4;

impl Code for Life {
    fn put(&self, out: &mut Vec<u8>) {
        let Self::Living { version, rank, kind, foreign_id, repost_of, narrowed, mentions, body } = self else {
            return out.push(GONE);
        };
        let narrowed = if *narrowed { NARROWED } else { 0 };
        let mentioning = if mentions.is_some() { MENTIONING } else { 0 };
        match repost_of {
            None => out.push(LIVING + narrowed + mentioning),
            Some(original) => {
                out.push(REPOST + narrowed + mentioning);
                original.put(out);
            }
        }
        version.put(out);
        rank.put(out);
        kind.clone().map(Short).put(out);
        foreign_id.clone().map(Short).put(out);
        if let Some(mentions) = mentions {
            Short(mentions.clone()).put(out);
        }
        out.extend_from_slice(body.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        const NARROWED_ITEM: u8 = LIVING + NARROWED;
        const NARROWED_REPOST: u8 = REPOST + NARROWED;
        let first = u8::take(from)?;
        let mentioning = first > MENTIONING;
        let (is_repost, narrowed) = match if mentioning { first - MENTIONING } else { first } {
            GONE => return Some(Self::Gone),
            LIVING => (false, false),
            REPOST => (true, false),
            NARROWED_ITEM => (false, true),
            NARROWED_REPOST => (true, true),
            _ => return None,
        };
        let repost_of = if is_repost { Some(Code::take(from)?) } else { None };
        Some(Self::Living {
            version: Code::take(from)?,
            rank: Code::take(from)?,
            kind: short(from)?,
            foreign_id: short(from)?,
            repost_of,
            narrowed,
            mentions: if mentioning { Some(Short::take(from)?.0) } else { None },
            body: String::from_utf8(std::mem::take(from).to_vec()).ok()?,
        })
    }
}

fn short(from: &mut &[u8]) -> Option<Option<CompactString>> {
    let text: Option<Short> = Code::take(from)?;
    Some(text.map(|text| text.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_item_comes_back_as_it_was(
            (author, seq, published_at, rank) in any::<(u32, u64, i64, i64)>(),
            feed in 0u16..3,
            fingerprint: [u8; 16],
            version: u32,
            kind in proptest::option::of(".{0,20}"),
            foreign_id in proptest::option::of(".{0,128}"),
            narrowed: bool,
            mentions in proptest::option::of("[a-z ]{0,40}"),
            repost_of in proptest::option::of(any::<u64>().prop_map(ItemId)),
            body in ".{0,200}",
        ) {
            let living = Life::Living {
                version,
                rank,
                kind: kind.map(Into::into),
                foreign_id: foreign_id.map(Into::into),
                repost_of,
                narrowed,
                mentions: mentions.map(Into::into),
                body,
            };
            for life in [living, Life::Gone] {
                let row = ItemRow { author: UserNo(author), seq, published_at, fingerprint, feed: FeedId(feed), life };
                prop_assert_eq!(value_of(&bytes_of(&row)), Some(row));
            }
        }
    }
}
