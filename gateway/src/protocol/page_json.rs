//! A feed page as JSON, the same by HTTP and by `rpc page`, and the cursor that leads to the next page.
//!
//! ```text
//!   {"items":[{…}], "next":"AQAAA…" | null, "position":{"epoch":"7","offset":12}}
//!
//!   cursor = base64url( version 1 | rank i64 | item u64 | first 4 bytes of a digest of these )
//! ```
//!
//! A cursor is opaque: clients send it back as it came. The digest is no secret; it detects text that was never a
//! cursor of ours, or was cut.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use feedgate_common::feed::Page;
use feedgate_common::{DisplayKey, Item, ItemId, Position};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The most items on a page.
pub(crate) const LIMIT_MAX: usize = 100;

/// The number of items on a page if the client names none.
pub(crate) const LIMIT_DEFAULT: usize = 20;

const VERSION: u8 = 1;
const KEY_LEN: usize = 17;

/// A page as clients see it.
#[derive(Debug, Serialize)]
pub(crate) struct PageJson {
    items: Vec<Arc<Item>>,
    next: Option<String>,
    position: Position,
}

impl From<Page> for PageJson {
    fn from(page: Page) -> Self {
        Self { items: page.items, next: page.next.map(cursor_text), position: page.position }
    }
}

/// The text of a cursor whose page begins strictly below `key`.
pub(crate) fn cursor_text(key: DisplayKey) -> String {
    let mut bytes = Vec::with_capacity(KEY_LEN + 4);
    bytes.push(VERSION);
    bytes.extend(key.rank.to_be_bytes());
    bytes.extend(key.item.0.to_be_bytes());
    bytes.extend(check(&bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a cursor; the error says what would be right.
pub(crate) fn parse_cursor(text: &str) -> Result<DisplayKey, &'static str> {
    const FOREIGN: &str = "a cursor is the `next` of an earlier page, unchanged; this one is not";
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| FOREIGN)?;
    let (key, digest) = bytes.split_at_checked(KEY_LEN).ok_or(FOREIGN)?;
    if key[0] != VERSION || digest != check(key) {
        return Err(FOREIGN);
    }
    let number = |at: usize| <[u8; 8]>::try_from(&key[at..at + 8]).expect("the key has its length");
    Ok(DisplayKey { rank: i64::from_be_bytes(number(1)), item: ItemId(u64::from_be_bytes(number(9))) })
}

fn check(bytes: &[u8]) -> [u8; 4] {
    let digest = Sha256::new().chain_update("feedgate page cursor").chain_update(bytes).finalize();
    [digest[0], digest[1], digest[2], digest[3]]
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
