//! Records and entries: of these, outboxes and inboxes are made.
//!
//! ```text
//!   author's outbox:  Record 1, Record 2, …   (dense outbox_seq, each with its route)
//!         │ fan-out
//!   reader's inbox:   Entry 1, Entry 2, …     (dense sequence id within an epoch)
//! ```

use serde::{Deserialize, Serialize};

use crate::{FeedId, Generation, ItemId, OutboxSeq, UserNo};

/// Gives a type of numbered values the reverse of `as u8`. Stores keep these numbers.
macro_rules! from_u8 {
    ($name:ident { $($value:ident),+ }) => {
        impl $name {
            /// The value with this number, if there is one.
            pub fn from_u8(n: u8) -> Option<Self> {
                [$(Self::$value),+].into_iter().find(|value| *value as u8 == n)
            }
        }
    };
}
pub(crate) use from_u8;

/// What a change does to a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    /// A new item appears in the feed.
    Add = 1,
    /// An item that the reader may hold has a new version.
    Update = 2,
    /// An item that the reader may hold is gone.
    Delete = 3,
    /// All items of one author leave the feed. Only inboxes have this op; its item is 0.
    Forget = 4,
}

from_u8!(Op { Add, Update, Delete, Forget });

/// The way of a record to its readers. An item gets it once and for all, with its first `add`. All later records of the
/// item have the same route, so that they come after the add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Route {
    /// The record is written into every follower's inbox.
    Push = 1,
    /// The record stays in the outbox; each follower takes it from there when it reads.
    Pull = 2,
    /// The record is written only into the inboxes of those followers who are in the audience of the item.
    Narrow = 3,
}

from_u8!(Route { Push, Pull, Narrow });

/// How an author's items reach the followers, as the backend asks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Class {
    /// Push or pull, by the number of followers.
    #[default]
    Auto = 0,
    /// Push, however many followers there are.
    Push = 1,
    /// Pull, however many followers there are.
    Pull = 2,
    /// Pull, and every user follows without an edge of its own. An author keeps this class for ever.
    Everyone = 3,
}

from_u8!(Class { Auto, Push, Pull, Everyone });

/// An author of class `auto` with more followers than this is pulled, unless configured otherwise.
pub const DEFAULT_PULL_ABOVE: u64 = 10_000;

/// The route of an `add` that is accepted now. `followers` is how many edges are on. The number may be a little old,
/// since either route is right at any time (I13).
pub fn route_of(class: Class, followers: u64, pull_above: u64) -> Route {
    match class {
        Class::Push => Route::Push,
        Class::Pull | Class::Everyone => Route::Pull,
        Class::Auto if followers > pull_above => Route::Pull,
        Class::Auto => Route::Push,
    }
}

/// A place in display order. A greater key is newer and stands higher on the page; equal ranks are ordered by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DisplayKey {
    /// The rank: `published_at` in Unix ms, unless the backend gave another one.
    pub rank: i64,
    /// The id of the item.
    pub item: ItemId,
}

impl DisplayKey {
    /// No key stands lower.
    pub const LEAST: Self = Self { rank: i64::MIN, item: ItemId(0) };

    /// No key stands higher.
    pub const GREATEST: Self = Self { rank: i64::MAX, item: ItemId(u64::MAX) };

    /// The least key above it; `None` above the greatest of all.
    pub fn just_above(self) -> Option<Self> {
        match self.item.0.checked_add(1) {
            Some(item) => Some(Self { rank: self.rank, item: ItemId(item) }),
            None => Some(Self { rank: self.rank.checked_add(1)?, item: ItemId(0) }),
        }
    }

    /// The greatest key below it; `None` below the least of all.
    pub fn just_below(self) -> Option<Self> {
        match self.item.0.checked_sub(1) {
            Some(item) => Some(Self { rank: self.rank, item: ItemId(item) }),
            None => Some(Self { rank: self.rank.checked_sub(1)?, item: ItemId(u64::MAX) }),
        }
    }
}

/// A change in an author's outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The sequence number of the record in the outbox, dense from 1.
    pub seq: OutboxSeq,
    /// `Add`, `Update` or `Delete`; never `Forget`.
    pub op: Op,
    /// The way it takes to readers.
    pub route: Route,
    /// The feed of each reader to which it goes; an update or a delete goes where its `add` went.
    pub feed: FeedId,
    /// The item that has changed, with the rank of its newest `add`.
    pub key: DisplayKey,
}

/// A change in a reader's inbox. Its sequence id is its place there (see [`Numbered`](crate::inboxes::Numbered)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What it does to the feed.
    pub op: Op,
    /// The author of the record.
    pub author: UserNo,
    /// The record's sequence number in the author's outbox; 0 for `Forget` and for what is addressed to the reader.
    pub outbox_seq: OutboxSeq,
    /// The generation of the edge under which it was taken in; 0 if it needs no edge of its own.
    pub generation: Generation,
    /// The item and its rank. Of a `Forget` it is the [floor](Self::floor), or all zero if there is none.
    pub key: DisplayKey,
}

/// The key of a `Forget` that has no floor.
const NO_FLOOR: DisplayKey = DisplayKey { rank: 0, item: ItemId(0) };

impl Entry {
    /// The entry for `record` of `author`, under an edge of this generation.
    pub fn of(record: &Record, author: UserNo, generation: Generation) -> Self {
        Self { op: record.op, author, outbox_seq: record.seq, generation, key: record.key }
    }

    /// The entry for a change that is addressed to the reader. It stands in no outbox and under no edge.
    pub fn direct(op: Op, author: UserNo, key: DisplayKey) -> Self {
        Self { op, author, outbox_seq: 0, generation: 0, key }
    }

    /// Whether it was addressed to the reader. If so, no `Forget` takes it out of the feed.
    pub fn is_direct(&self) -> bool {
        self.outbox_seq == 0 && self.op != Op::Forget
    }

    /// The entry that takes all items of `author` out of the feed, except those addressed to the reader. At or below
    /// `floor` the feed holds more of the author than the entries after this one bring.
    pub fn forget(author: UserNo, generation: Generation, floor: Option<DisplayKey>) -> Self {
        // A floor may be too high, never too low. So the place that stands for none is told as the one above it.
        let above = DisplayKey { item: ItemId(1), ..NO_FLOOR };
        let key = floor.map_or(NO_FLOOR, |floor| if floor == NO_FLOOR { above } else { floor });
        Self { op: Op::Forget, author, outbox_seq: 0, generation, key }
    }

    /// Of a `Forget`: the place at or below which the log does not tell what the feed holds; pages do. `None` if this
    /// entry changes nothing about that.
    pub fn floor(&self) -> Option<DisplayKey> {
        (self.op == Op::Forget && self.key != NO_FLOOR).then_some(self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_decides_the_route_and_else_the_number_of_followers() {
        let cases = [
            (Class::Auto, 10_000, Route::Push),
            (Class::Auto, 10_001, Route::Pull),
            (Class::Push, 1_000_000, Route::Push),
            (Class::Pull, 0, Route::Pull),
            (Class::Everyone, 0, Route::Pull),
        ];
        for (class, followers, route) in cases {
            assert_eq!(route_of(class, followers, DEFAULT_PULL_ABOVE), route, "{class:?} with {followers}");
        }
    }

    #[test]
    fn s12_a_forget_tells_its_floor_and_never_one_that_is_too_low() {
        let key = |rank, item| DisplayKey { rank, item: ItemId(item) };
        let told = |floor| Entry::forget(UserNo(1), 2, floor).floor();
        assert_eq!([told(None), told(Some(key(5, 7)))], [None, Some(key(5, 7))]);
        assert_eq!(told(Some(key(0, 0))), Some(key(0, 1)));
        assert_eq!(Entry::direct(Op::Add, UserNo(1), key(5, 7)).floor(), None);
    }

    #[test]
    fn neighbours_of_a_key_are_the_next_ones_and_end_at_the_extremes() {
        let key = |rank, item| DisplayKey { rank, item: ItemId(item) };
        assert_eq!(key(5, 7).just_above(), Some(key(5, 8)));
        assert_eq!(key(5, u64::MAX).just_above(), Some(key(6, 0)));
        assert_eq!(key(i64::MAX, u64::MAX).just_above(), None, "not a key below it, which would lose it");
        assert_eq!(key(5, 7).just_below(), Some(key(5, 6)));
        assert_eq!(key(5, 0).just_below(), Some(key(4, u64::MAX)));
        assert_eq!(key(i64::MIN, 0).just_below(), None);
    }
}
