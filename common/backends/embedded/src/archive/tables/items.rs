//! Items with their bodies, and what is left of deleted ones.
//!
//! A deleted item keeps what a retry of its publish must be answered with, and nothing else.

use compact_str::CompactString;
use feedgate_common::{FeedId, ItemId, Millis, OutboxSeq, UserNo};

use super::{AuthorFeed, fields, table};
use crate::codec::{Code, Short};

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
    /// The sequence number of its `add` in the author's outbox, or [`NO_SEQ`].
    pub(crate) seq: OutboxSeq,
    pub(crate) published_at: Millis,
    pub(crate) fingerprint: Fingerprint,
    /// The feed of its `add`, and of every later record of the item.
    pub(crate) feed: FeedId,
    pub(crate) life: Life,
}

impl ItemRow {
    /// The key of its `add` in the table of adds, if the item stands in the outbox.
    pub(crate) fn add(&self) -> (AuthorFeed, OutboxSeq) {
        (AuthorFeed { feed: self.feed, author: self.author }, self.seq)
    }
}

fields!(ItemRow { author, seq, published_at, fingerprint, feed, life });

/// The content of an item, while it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    Gone,
    Living { version: u32, rank: i64, kind: Option<CompactString>, foreign_id: Option<CompactString>, body: String },
}

impl Code for Life {
    fn put(&self, out: &mut Vec<u8>) {
        let Self::Living { version, rank, kind, foreign_id, body } = self else { return out.push(0) };
        out.push(1);
        version.put(out);
        rank.put(out);
        kind.clone().map(Short).put(out);
        foreign_id.clone().map(Short).put(out);
        out.extend_from_slice(body.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(Self::Gone),
            1 => Some(Self::Living {
                version: Code::take(from)?,
                rank: Code::take(from)?,
                kind: short(from)?,
                foreign_id: short(from)?,
                body: String::from_utf8(std::mem::take(from).to_vec()).ok()?,
            }),
            _ => None,
        }
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
            body in ".{0,200}",
        ) {
            let living = Life::Living {
                version,
                rank,
                kind: kind.map(Into::into),
                foreign_id: foreign_id.map(Into::into),
                body,
            };
            for life in [living, Life::Gone] {
                let row = ItemRow { author: UserNo(author), seq, published_at, fingerprint, feed: FeedId(feed), life };
                prop_assert_eq!(value_of(&bytes_of(&row)), Some(row));
            }
        }
    }
}
