//! The cursor that leads to the next page of a feed, as text.
//!
//! ```text
//!   cursor = base64url( version 1 | rank i64 | item u64 | first 4 bytes of a digest of these )
//! ```
//!
//! A cursor is opaque: clients send it back as it came. The digest is no secret; it detects text that was never a
//! cursor of ours, or was cut.

use crate::sealed::{open, seal};
use crate::{DisplayKey, ItemId};

const VERSION: u8 = 1;
const KEY_LEN: usize = 17;

/// What a cursor is sealed for.
const PURPOSE: &str = "feedgate page cursor";

/// The text of a cursor whose page begins strictly below `key`.
pub fn cursor_text(key: DisplayKey) -> String {
    let mut bytes = Vec::with_capacity(KEY_LEN + 4);
    bytes.push(VERSION);
    bytes.extend(key.rank.to_be_bytes());
    bytes.extend(key.item.0.to_be_bytes());
    seal(PURPOSE, bytes)
}

/// Reads a cursor; the error says what would be right.
pub fn parse_cursor(text: &str) -> Result<DisplayKey, &'static str> {
    const FOREIGN: &str = "a cursor is the `next` of an earlier page, unchanged; this one is not";
    let key = open(PURPOSE, text).filter(|key| key.len() == KEY_LEN && key[0] == VERSION).ok_or(FOREIGN)?;
    let number = |at: usize| <[u8; 8]>::try_from(&key[at..at + 8]).expect("the key has its length");
    Ok(DisplayKey { rank: i64::from_be_bytes(number(1)), item: ItemId(u64::from_be_bytes(number(9))) })
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
