//! A feed page as JSON, the same by HTTP and by `rpc page`, and the cursor that leads to the next page.
//!
//! ```text
//!   {"items":[{…}], "next":"AQAAA…" | null, "position":{"epoch":"7","offset":12}, "unread":3,
//!    "people":{"ann":{"name":"Ann","avatar":"/a.png"}}}   only if there is anything to show of an author
//!
//!   an item to which somebody has reacted: {…, "counts":{"like":3}, "own":["like"]}
//!   a repost: {…, "ref":"7", "ref_item":{…}}, or "ref_gone":true in place of "ref_item"
//!
//!   cursor = base64url( version 1 | rank i64 | item u64 | first 4 bytes of a digest of these )
//! ```
//!
//! The cursor of a profile also has the ids of what was pinned on the first page, before the digest: whatever is
//! pinned or unpinned meanwhile, the pages that follow leave out what the first one has shown, and nothing else.
//!
//! A cursor is opaque: clients send it back as it came. The digest is no secret; it detects text that was never a
//! cursor of ours, or was cut.

use feedgate_common::around::Onlooker;
use feedgate_common::feed::{Cards, Page};
use feedgate_common::pins::PINS_MAX;
use feedgate_common::{Archive, DisplayKey, ItemId, Position, error};
use serde::Serialize;

use super::sealed::{open, seal};
use crate::around::{self, Shown};

/// The most items on a page.
pub(crate) const LIMIT_MAX: usize = 100;

/// The number of items on a page if the client names none.
pub(crate) const LIMIT_DEFAULT: usize = 20;

const VERSION: u8 = 1;
const KEY_LEN: usize = 17;

/// What a cursor is sealed for.
const PURPOSE: &str = "feedgate page cursor";

/// A page as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct PageJson {
    items: Vec<Shown>,
    next: Option<String>,
    position: Position,
    unread: usize,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

impl PageJson {
    /// The page as the onlooker sees it: its items are joined with what stands around them, and its people with the authors
    /// of originals. A page that would hold more than about `cut` bytes with it is shorter.
    pub(crate) async fn joined(
        page: Page,
        archive: &dyn Archive,
        onlooker: Onlooker,
        cut: usize,
    ) -> error::Result<Self> {
        let Page { items, mut next, position, unread, mut people } = page;
        let all = items.len();
        let items = around::join(archive, onlooker, items, cut).await?;
        if items.len() < all {
            next = items.last().map(|shown| shown.item().key());
            people.retain(|author, _| items.iter().any(|shown| shown.item().author == *author));
        }
        people.extend(around::authors_of_originals(archive, &items).await?);
        Ok(Self { items, next: next.map(cursor_text), position, unread, people })
    }
}

/// The text of a cursor whose page begins strictly below `key`.
pub(crate) fn cursor_text(key: DisplayKey) -> String {
    profile_cursor_text(key, &[])
}

/// The text of a cursor of a profile whose page begins strictly below `key`, and on whose first page these were pinned.
pub(crate) fn profile_cursor_text(key: DisplayKey, pinned: &[ItemId]) -> String {
    let mut bytes = Vec::with_capacity(KEY_LEN + 8 * pinned.len() + 4);
    bytes.push(VERSION);
    bytes.extend(key.rank.to_be_bytes());
    bytes.extend(key.item.0.to_be_bytes());
    bytes.extend(pinned.iter().flat_map(|item| item.0.to_be_bytes()));
    seal(PURPOSE, bytes)
}

/// What is wrong with a text that is no cursor.
const FOREIGN: &str = "a cursor is the `next` of an earlier page, unchanged; this one is not";

/// Reads a cursor; the error says what would be right.
pub(crate) fn parse_cursor(text: &str) -> Result<DisplayKey, &'static str> {
    let (key, pinned) = parse_profile_cursor(text)?;
    if pinned.is_empty() { Ok(key) } else { Err(FOREIGN) }
}

/// Reads a cursor of a profile; the error says what would be right.
pub(crate) fn parse_profile_cursor(text: &str) -> Result<(DisplayKey, Vec<ItemId>), &'static str> {
    let bytes = open(PURPOSE, text).filter(|bytes| bytes.len() >= KEY_LEN && bytes[0] == VERSION).ok_or(FOREIGN)?;
    let (numbers, rest) = bytes[1..].as_chunks::<8>();
    let (&[rank, item], pinned) = numbers.split_first_chunk().ok_or(FOREIGN)?;
    if !rest.is_empty() || pinned.len() > PINS_MAX {
        return Err(FOREIGN);
    }
    let id = |bytes: [u8; 8]| ItemId(u64::from_be_bytes(bytes));
    let key = DisplayKey { rank: i64::from_be_bytes(rank), item: id(item) };
    Ok((key, pinned.iter().copied().map(id).collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_comes_back_as_it_went_out(rank: i64, item: u64) {
            let key = DisplayKey { rank, item: ItemId(item) };
            let text = cursor_text(key);
            prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
            prop_assert_eq!(parse_cursor(&text), Ok(key));
        }

        #[test]
        fn a_cursor_of_a_profile_names_what_was_pinned(rank: i64, ids in proptest::collection::vec(any::<u64>(), 1..9)) {
            let key = DisplayKey { rank, item: ItemId(ids[0]) };
            let pinned: Vec<ItemId> = ids[1..].iter().map(|id| ItemId(*id)).collect();
            let text = profile_cursor_text(key, &pinned);
            prop_assert_eq!(parse_cursor(&text).is_ok(), pinned.is_empty(), "no page of a feed begins there");
            let wanted = if pinned.len() > PINS_MAX { Err(FOREIGN) } else { Ok((key, pinned)) };
            prop_assert_eq!(parse_profile_cursor(&text), wanted);
        }

        #[test]
        fn any_other_text_is_refused(text in ".{0,40}") {
            prop_assert!(parse_cursor(&text).is_err());
        }
    }

    #[test]
    fn a_cursor_with_one_character_changed_or_cut_is_refused() {
        let text = cursor_text(DisplayKey { rank: 1_763_600_000_000, item: ItemId(42) });
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            assert!(parse_cursor(std::str::from_utf8(&other).unwrap()).is_err(), "{at}");
            assert!(parse_cursor(&text[..at]).is_err(), "{at}");
        }
    }
}
