//! The cursor that leads to the next page of reactions, also in an export: a place of the list, sealed.
//!
//! ```text
//!   time i64 | user u32 | kind
//! ```

use feedgate_common::UserNo;
use feedgate_common::around::Place;
use feedgate_common::sealed::{open, seal};

/// The purpose with which a cursor is sealed.
pub(in crate::api) const PURPOSE: &str = "feedgate reactions cursor";

/// The text of a cursor whose page begins strictly below `place`.
pub(in crate::api) fn text(place: &Place) -> String {
    let mut bytes = place.at.to_be_bytes().to_vec();
    bytes.extend(place.user.0.to_be_bytes());
    bytes.extend(place.kind.as_str().as_bytes());
    seal(PURPOSE, bytes)
}

/// Reads a cursor; `None` if the text is no cursor.
pub(in crate::api) fn parse(text: &str) -> Option<Place> {
    let place = open(PURPOSE, text)?;
    let (at, rest) = place.split_first_chunk()?;
    let (user, kind) = rest.split_first_chunk()?;
    let kind = std::str::from_utf8(kind).ok()?.parse().ok()?;
    Some(Place { at: i64::from_be_bytes(*at), user: UserNo(u32::from_be_bytes(*user)), kind })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_comes_back_as_it_went_out(at: i64, user: u32, kind in "[a-zü❤]{1,16}") {
            let place = Place { at, user: UserNo(user), kind: kind.parse().unwrap() };
            prop_assert_eq!(parse(&text(&place)), Some(place));
        }

        #[test]
        fn any_other_text_is_refused(text in ".{0,40}") {
            prop_assert_eq!(parse(&text), None);
        }
    }
}
