//! The index of search: the marks by which items and users are found. The whole index is derived from other rows.

use compact_str::CompactString;
use feedgate_common::search::{Mark, SearchPlace, Subject};

use super::{fields, table};
use crate::codec::Code;

table! {
    /// The items and users that have a mark, newest first. A row counts only if its build is the build of
    /// [`SearchState`].
    Postings: b'X', Archive, (Build, Subject, Mark, SearchPlace) => ()
}

table! {
    /// What the index is of, and how far it is built.
    SearchState: b'Y', Archive, () => SearchRow
}

/// The number of a building of the index from its beginning.
pub(crate) type Build = u32;

/// What is done to the index besides what writes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The index is built, and nothing is left to do.
    Built = 0,
    /// The rows of earlier builds are removed, up to the mark `at` of the build `swept`.
    Sweep = 1,
    /// Items are taken in, from the greatest id down to `at`.
    Items = 2,
    /// Users are taken in, up to the number `at`.
    Users = 3,
}

impl Code for Stage {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let number = u8::take(from)?;
        [Self::Built, Self::Sweep, Self::Items, Self::Users].into_iter().find(|stage| *stage as u8 == number)
    }
}

/// What the index is of, and how far it is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SearchRow {
    pub(crate) build: Build,
    pub(crate) stage: Stage,
    /// How far the stage has come.
    pub(crate) at: u64,
    /// No build before this one has rows any more.
    pub(crate) swept: Build,
    /// The [recipe](feedgate_common::search::TextFields::recipe) of what is indexed; empty for nothing.
    pub(crate) recipe: CompactString,
}

fields!(SearchRow { build, stage, at, swept, recipe });

impl Code for Subject {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Self::from_u8(u8::take(from)?)
    }
}

/// A greater place has lesser bytes, so that a scan brings the newest first.
impl Code for SearchPlace {
    fn put(&self, out: &mut Vec<u8>) {
        (!self.at).put(out);
        (!self.id).put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self { at: !i64::take(from)?, id: !u64::take(from)? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::{bytes_of, value_of};

    proptest! {
        #[test]
        fn places_come_back_and_sort_the_newest_first(a: (i64, u64), b: (i64, u64)) {
            let [a, b] = [a, b].map(|(at, id)| SearchPlace { at, id });
            prop_assert_eq!(value_of(&bytes_of(&a)), Some(a));
            prop_assert_eq!(a.cmp(&b), bytes_of(&b).cmp(&bytes_of(&a)));
        }
    }

    #[test]
    fn the_state_of_the_index_comes_back_as_it_was() {
        for stage in [Stage::Built, Stage::Sweep, Stage::Items, Stage::Users] {
            let row = SearchRow { build: 3, stage, at: 9, swept: 2, recipe: "1\ntext".into() };
            assert_eq!(value_of(&bytes_of(&row)), Some(row));
        }
    }
}
