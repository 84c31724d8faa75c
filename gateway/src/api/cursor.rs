//! The cursors of lists: the place behind which the next page begins, sealed as text.
//!
//! A cursor is opaque: clients send it back as it came. Each list seals with a purpose of its own, so it refuses the
//! cursor of another list.

use feedgate_common::around::{self, CommentPlace};
use feedgate_common::sealed::{open, seal};
use feedgate_common::search::SearchPlace;
use feedgate_common::{ItemId, Millis, UserNo};

/// A place in a list.
pub(super) trait Place: Sized {
    /// The purpose with which a cursor is sealed.
    const PURPOSE: &str;

    /// The place as bytes.
    fn bytes(&self) -> Vec<u8>;

    /// Reads what [`bytes`](Self::bytes) gives; `None` for other bytes.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// The text of a cursor whose page begins strictly behind `place`.
pub(super) fn text<P: Place>(place: &P) -> String {
    seal(P::PURPOSE, place.bytes())
}

/// Reads a cursor; `None` if the text is no cursor of such a list.
pub(super) fn parse<P: Place>(text: &str) -> Option<P> {
    P::read(&open(P::PURPOSE, text)?)
}

/// A time and a number, 8 bytes each.
fn timed(at: Millis, number: u64) -> Vec<u8> {
    [at.to_be_bytes(), number.to_be_bytes()].concat()
}

fn read_timed(bytes: &[u8]) -> Option<(Millis, u64)> {
    let (at, number) = bytes.split_first_chunk()?;
    Some((i64::from_be_bytes(*at), u64::from_be_bytes(number.try_into().ok()?)))
}

/// The comments of an item, in either order.
impl Place for CommentPlace {
    const PURPOSE: &str = "feedgate comments cursor";

    fn bytes(&self) -> Vec<u8> {
        timed(self.at, self.id.0)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        read_timed(bytes).map(|(at, id)| Self { at, id: ItemId(id) })
    }
}

/// The hits of a search: the last one that was looked at.
impl Place for SearchPlace {
    const PURPOSE: &str = "feedgate search cursor";

    fn bytes(&self) -> Vec<u8> {
        timed(self.at, self.id)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        read_timed(bytes).map(|(at, id)| Self { at, id })
    }
}

/// The reactions to an item, also in an export: the time, the user in 4 bytes, the kind.
impl Place for around::Place {
    const PURPOSE: &str = "feedgate reactions cursor";

    fn bytes(&self) -> Vec<u8> {
        [&self.at.to_be_bytes()[..], &self.user.0.to_be_bytes(), self.kind.as_str().as_bytes()].concat()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first_chunk()?;
        let (user, kind) = rest.split_first_chunk()?;
        let kind = std::str::from_utf8(kind).ok()?.parse().ok()?;
        Some(Self { at: i64::from_be_bytes(*at), user: UserNo(u32::from_be_bytes(*user)), kind })
    }
}

/// The reposts of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repost(pub(super) ItemId);

impl Place for Repost {
    const PURPOSE: &str = "feedgate reposts cursor";

    fn bytes(&self) -> Vec<u8> {
        self.0.0.to_be_bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self(ItemId(u64::from_be_bytes(bytes.try_into().ok()?))))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    fn comes_back<P: Place + PartialEq + Debug>(place: P) {
        assert_eq!(parse(&text(&place)), Some(place));
    }

    proptest! {
        #[test]
        fn a_cursor_comes_back_as_it_went_out(at: i64, id: u64, user: u32, kind in "[a-zü❤]{1,16}") {
            comes_back(CommentPlace { at, id: ItemId(id) });
            comes_back(SearchPlace { at, id });
            comes_back(around::Place { at, user: UserNo(user), kind: kind.parse().unwrap() });
            comes_back(Repost(ItemId(id)));
        }

        #[test]
        fn any_other_text_is_refused(other in ".{0,40}", at: i64, id: u64) {
            let others = [other, text(&CommentPlace { at, id: ItemId(id) })];
            prop_assert!(others.iter().all(|text| parse::<SearchPlace>(text).is_none()));
            prop_assert!(others.iter().all(|text| parse::<around::Place>(text).is_none()));
            prop_assert!(others.iter().all(|text| parse::<Repost>(text).is_none()));
            prop_assert!(parse::<CommentPlace>(&others[0]).is_none());
        }
    }
}
