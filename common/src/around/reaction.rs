//! Reactions: a set of (item, kind, user), and the list of those who have reacted, newest first.

use std::fmt;
use std::str::FromStr;

use compact_str::CompactString;
use serde::{Serialize, Serializer};

use crate::{ItemId, Millis, UserId, UserNo};

/// The most kinds with which users may ever have reacted to one item. This bounds the counts that a page holds for an
/// item.
pub const KINDS_MAX: usize = 32;

/// The most bytes of a kind. An item carries up to [`KINDS_MAX`] of them wherever it is shown.
pub const KIND_MAX_BYTES: usize = 64;

/// The name of the number of comments among the counts of an item.
pub const COMMENTS: &str = "comments";

/// The name of the number of reposts among the counts of an item.
pub const REPOSTS: &str = "reposts";

/// The names in the counts of an item that are no reactions, so no kind may have these names.
const RESERVED: [&str; 2] = [COMMENTS, REPOSTS];

/// The backend's word for a kind of reaction, such as `like`: 1 to [`KIND_MAX_BYTES`] bytes of UTF-8 without a control
/// character; not `comments` or `reposts`, which are other names in the counts of an item.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReactionKind(CompactString);

impl ReactionKind {
    /// The word as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ReactionKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if RESERVED.contains(&text) {
            return Err(format!("no kind of reaction is named {text:?}: counts have that name for something else"));
        }
        if (1..=KIND_MAX_BYTES).contains(&text.len()) && !text.contains(char::is_control) {
            return Ok(Self(text.into()));
        }
        let shown: String = text.chars().take(KIND_MAX_BYTES).collect();
        Err(format!("a kind of reaction has 1 to {KIND_MAX_BYTES} bytes and no control character, it is {shown:?}"))
    }
}

impl fmt::Display for ReactionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ReactionKind {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

/// One reaction that is to be given or taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reaction {
    /// The item to which the user reacts.
    pub item: ItemId,
    /// The kind of reaction.
    pub kind: ReactionKind,
    /// The user who reacts.
    pub user: UserNo,
    /// When the user reacted, in Unix ms. A reaction that is there keeps its time.
    pub at: Millis,
}

/// Why a reaction was refused. A refused reaction changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreacted {
    /// There is no such item, or it was deleted.
    #[error("there is no item {0}")]
    NoSuchItem(ItemId),
    /// Users have reacted to the item with [`KINDS_MAX`] other kinds.
    #[error("item {0} has reactions of {KINDS_MAX} kinds, and takes no other kind")]
    TooManyKinds(ItemId),
}

/// Whether an item takes a reaction of a kind, to which users have reacted with `known` kinds before.
pub fn may_have_kind(known: usize, is_known: bool) -> bool {
    is_known || known < KINDS_MAX
}

/// A place in the list of those who reacted to an item. A later place is greater, so the newest comes first when the
/// list goes down. No two reactions to an item have the same place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When the user reacted, in Unix ms.
    pub at: Millis,
    /// The user who reacted.
    pub user: UserNo,
    /// The kind of reaction.
    pub kind: ReactionKind,
}

/// One line of the list of those who reacted to an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reacted {
    /// The name of the user who reacted.
    pub user: UserId,
    /// The place of the line, from which the list goes on.
    pub place: Place,
}

/// Merges lists, each of one kind, and gives the first `limit` places of all of them, newest first.
pub fn newest_of(lists: impl IntoIterator<Item = Place>, limit: usize) -> Vec<Place> {
    let mut all: Vec<Place> = lists.into_iter().collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.truncate(limit);
    all
}

/// Whether a reaction of `kind`, by the user of `before` and at the same time, still comes after `before` in the list.
pub fn place_after(before: &Place, kind: &ReactionKind) -> bool {
    *kind < before.kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_word_of_the_backend() {
        for good in ["like", "❤️", "thumbs up", &"ü".repeat(KIND_MAX_BYTES / 2)] {
            assert_eq!(good.parse::<ReactionKind>().unwrap().as_str(), good);
        }
        for bad in ["", "a\n", "\u{7f}", &"x".repeat(KIND_MAX_BYTES + 1)] {
            assert!(bad.parse::<ReactionKind>().unwrap_err().contains("1 to 64 bytes"), "{bad:?}");
        }
        for reserved in RESERVED {
            assert!(reserved.parse::<ReactionKind>().unwrap_err().contains("something else"), "{reserved}");
        }
    }

    #[test]
    fn an_item_takes_so_many_kinds_and_those_it_has_for_ever() {
        assert!(may_have_kind(KINDS_MAX - 1, false) && may_have_kind(KINDS_MAX, true));
        assert!(!may_have_kind(KINDS_MAX, false));
    }

    #[test]
    fn lists_of_single_kinds_make_one_that_goes_on_where_it_ended() {
        let place = |at, user, kind: &str| Place { at, user: UserNo(user), kind: kind.parse().unwrap() };
        let all =
            [place(1, 1, "like"), place(2, 1, "like"), place(2, 1, "sad"), place(2, 3, "like"), place(3, 2, "sad")];
        let mut walked = vec![];
        let mut before: Option<Place> = None;
        loop {
            let below = all.iter().filter(|place| match &before {
                Some(before) if (place.at, place.user) == (before.at, before.user) => place_after(before, &place.kind),
                Some(before) => (place.at, place.user) < (before.at, before.user),
                None => true,
            });
            let page = newest_of(below.cloned(), 2);
            let Some(last) = page.last() else { break };
            before = Some(last.clone());
            walked.extend(page);
        }
        walked.reverse();
        assert_eq!(walked, all);
    }
}
