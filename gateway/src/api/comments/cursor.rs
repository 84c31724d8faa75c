//! The cursor that leads to more comments of an item, in either order: a place among them, sealed.
//!
//! ```text
//!   time i64 | id u64
//! ```

use feedgate_common::ItemId;
use feedgate_common::around::CommentPlace;

use feedgate_common::sealed::{open, seal};

/// The purpose with which a cursor is sealed.
pub(in crate::api) const PURPOSE: &str = "feedgate comments cursor";

/// The text of a cursor whose page begins strictly behind `place`.
pub(in crate::api) fn text(place: CommentPlace) -> String {
    let mut bytes = place.at.to_be_bytes().to_vec();
    bytes.extend(place.id.0.to_be_bytes());
    seal(PURPOSE, bytes)
}

/// Reads a cursor; `None` if the text is no cursor.
pub(in crate::api) fn parse(text: &str) -> Option<CommentPlace> {
    let place = open(PURPOSE, text)?;
    let (at, rest) = place.split_first_chunk()?;
    let id = rest.try_into().ok()?;
    Some(CommentPlace { at: i64::from_be_bytes(*at), id: ItemId(u64::from_be_bytes(id)) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_comes_back_as_it_went_out(at: i64, id: u64) {
            let place = CommentPlace { at, id: ItemId(id) };
            prop_assert_eq!(parse(&text(place)), Some(place));
        }

        #[test]
        fn any_other_text_is_refused(text in ".{0,40}") {
            prop_assert_eq!(parse(&text), None);
        }
    }
}
