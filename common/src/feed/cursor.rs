//! The cursor that leads to the next page of a feed, as text.
//!
//! ```text
//!   cursor = base64url( version 1 | rank i64 | item u64 | first 4 bytes of a digest of these )
//! ```
//!
//! The cursor of a profile also has, before the digest, the ids of the items that were pinned on the first page. So the
//! pages that follow leave out exactly these items, also if others were pinned or unpinned meanwhile.
//!
//! A cursor is opaque: clients send it back as it came. The digest is no secret; it detects text that was never a
//! cursor of ours, or was cut.

use crate::pins::PINS_MAX;
use crate::sealed::{open, seal};
use crate::{DisplayKey, ItemId};

const VERSION: u8 = 1;
const KEY_LEN: usize = 17;

/// The purpose with which cursors are sealed, so that no other sealed text is taken for a cursor.
pub(crate) const PURPOSE: &str = "feedgate page cursor";

/// What is wrong with a text that is no cursor.
const FOREIGN: &str = "a cursor is the `next` of an earlier page, unchanged; this one is not";

/// The text of a cursor whose page begins strictly below `key`.
pub fn cursor_text(key: DisplayKey) -> String {
    profile_cursor_text(key, &[])
}

/// The text of a cursor of a profile whose page begins strictly below `key`, and on whose first page `pinned` were
/// pinned.
pub fn profile_cursor_text(key: DisplayKey, pinned: &[ItemId]) -> String {
    let mut bytes = Vec::with_capacity(KEY_LEN + 8 * pinned.len() + 4);
    bytes.push(VERSION);
    bytes.extend(key.rank.to_be_bytes());
    bytes.extend(key.item.0.to_be_bytes());
    bytes.extend(pinned.iter().flat_map(|item| item.0.to_be_bytes()));
    seal(PURPOSE, bytes)
}

/// Reads a cursor; the error says what would be right.
pub fn parse_cursor(text: &str) -> Result<DisplayKey, &'static str> {
    let (key, pinned) = parse_profile_cursor(text)?;
    if pinned.is_empty() { Ok(key) } else { Err(FOREIGN) }
}

/// Reads a cursor of a profile; the error says what would be right.
pub fn parse_profile_cursor(text: &str) -> Result<(DisplayKey, Vec<ItemId>), &'static str> {
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
