//! Comments on items. Stores that were made before these tables existed have no rows in them.

use compact_str::CompactString;
use feedgate_common::{ItemId, Millis, UserNo};

use super::{fields, table};
use crate::codec::{Code, Short};

table! {
    /// The row that the comments of an item have in common, for each living item that ever got a comment.
    Talks: b'I', Archive, ItemId => TalkRow
}

table! {
    /// The comments of an item by place, also the deleted ones.
    Comments: b'M', Archive, (ItemId, Millis, ItemId) => CommentRow
}

table! {
    /// The place of the comment with an id: the item, and the time of the comment.
    CommentIds: b'N', Archive, ItemId => (ItemId, Millis)
}

table! {
    /// The comment on an item that was made with this key of this author.
    CommentKeys: b'O', Archive, (ItemId, UserNo, CompactString) => ItemId
}

table! {
    /// Deleted items whose comments are still to be removed.
    CommentEnds: b'Q', Archive, ItemId => ()
}

/// How many comments of an item live, and the last place that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TalkRow {
    pub(crate) count: u64,
    pub(crate) last: Option<(Millis, ItemId)>,
}

fields!(TalkRow { count, last });

/// What is stored of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommentRow {
    pub(crate) author: UserNo,
    pub(crate) reply_to: Option<ItemId>,
    pub(crate) replies: u64,
    pub(crate) version: u32,
    pub(crate) fingerprint: [u8; 16],
    pub(crate) key: Option<Short>,
    /// The users whom the comment mentions, as one [text](feedgate_common::mentions::text_of).
    pub(crate) mentions: Option<CompactString>,
    /// JSON, as it came; `None` if the comment was deleted.
    pub(crate) body: Option<CompactString>,
}

/// What stands before the body: of a deleted comment nothing follows. The first two are those of stores from before
/// there were mentions.
const DELETED: u8 = 0;
const BODY: u8 = 1;
const MENTIONS_AND_BODY: u8 = 2;

impl Code for CommentRow {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { author, reply_to, replies, version, fingerprint, key, mentions, body } = self;
        (*author, *reply_to, *replies, *version).put(out);
        fingerprint.put(out);
        key.put(out);
        match (body, mentions) {
            (None, _) => out.push(DELETED),
            (Some(body), None) => {
                out.push(BODY);
                body.put(out);
            }
            (Some(body), Some(mentions)) => {
                out.push(MENTIONS_AND_BODY);
                Short(mentions.clone()).put(out);
                body.put(out);
            }
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (author, reply_to, replies, version) = Code::take(from)?;
        let (fingerprint, key) = (Code::take(from)?, Code::take(from)?);
        let (mentions, body) = match u8::take(from)? {
            DELETED => (None, None),
            BODY => (None, Some(Code::take(from)?)),
            MENTIONS_AND_BODY => (Some(Short::take(from)?.0), Some(Code::take(from)?)),
            _ => return None,
        };
        Some(Self { author, reply_to, replies, version, fingerprint, key, mentions, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn the_rows_of_comments_come_back_as_they_were() {
        for last in [None, Some((5, ItemId(7)))] {
            let talk = TalkRow { count: 3, last };
            assert_eq!(value_of(&bytes_of(&talk)), Some(talk));
        }
        let row = CommentRow {
            author: UserNo(3),
            reply_to: Some(ItemId(9)),
            replies: 2,
            version: 4,
            fingerprint: [7; 16],
            key: Some(Short("k".into())),
            mentions: None,
            body: Some("{\"a\" : 1}".into()),
        };
        let deleted = CommentRow { reply_to: None, key: None, body: None, ..row.clone() };
        let mentioning = CommentRow { mentions: Some("ann bob".into()), ..row.clone() };
        for row in [row, deleted, mentioning] {
            assert_eq!(value_of(&bytes_of(&row)), Some(row));
        }
    }
}
