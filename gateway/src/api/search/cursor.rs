//! The cursor that leads to the next page of a search: the place of the last hit that was looked at, sealed.
//!
//! ```text
//!   time i64 | id u64
//! ```

use feedgate_common::sealed::{open, seal};
use feedgate_common::search::SearchPlace;

use crate::api::problem::Problem;
use crate::api::query::Params;

/// The purpose with which a cursor is sealed.
pub(in crate::api) const PURPOSE: &str = "feedgate search cursor";

/// The text of a cursor whose page begins strictly behind `place`.
pub(in crate::api) fn text(place: SearchPlace) -> String {
    let mut bytes = place.at.to_be_bytes().to_vec();
    bytes.extend(place.id.to_be_bytes());
    seal(PURPOSE, bytes)
}

/// Reads a cursor; `None` if the text is no cursor.
pub(in crate::api) fn parse(text: &str) -> Option<SearchPlace> {
    let place = open(PURPOSE, text)?;
    let (at, rest) = place.split_first_chunk()?;
    Some(SearchPlace { at: i64::from_be_bytes(*at), id: u64::from_be_bytes(rest.try_into().ok()?) })
}

/// The place behind which the page of `?cursor=` begins; `None` for the first page.
pub(super) fn behind(params: &Params) -> Result<Option<SearchPlace>, Problem> {
    let wrong = || Problem::parameter("cursor", "cursor must be one that an earlier page of this search has given");
    params.get("cursor").map(|text| parse(text).ok_or_else(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_comes_back_as_it_went_out(at: i64, id: u64) {
            let place = SearchPlace { at, id };
            prop_assert_eq!(parse(&text(place)), Some(place));
        }

        #[test]
        fn any_other_text_is_refused(text in ".{0,40}") {
            prop_assert_eq!(parse(&text), None);
        }
    }
}
