//! What an outbox and an inbox are made of.
//!
//! ```text
//!   author's outbox:  Record 1, Record 2, …   (dense outbox_seq, each with its route)
//!         │ fan-out
//!   reader's inbox:   Entry 1, Entry 2, …     (dense sequence id within an epoch)
//! ```

use serde::{Deserialize, Serialize};

use crate::{FeedId, Generation, ItemId, OutboxSeq, UserNo};

/// What a change does to a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Op {
    /// An item appears.
    Add = 1,
    /// An item that the reader may hold has a new version.
    Update = 2,
    /// An item that the reader may hold is gone.
    Delete = 3,
    /// Everything of one author leaves the feed. Only inboxes have it; its item is 0.
    Forget = 4,
}

impl Op {
    /// The op with this number, if there is one.
    pub fn from_u8(n: u8) -> Option<Self> {
        [Self::Add, Self::Update, Self::Delete, Self::Forget].into_iter().find(|op| *op as u8 == n)
    }
}

/// Which way a record reaches its readers. An `add` gets it once and for all; its updates and
/// deletes inherit it, so that a delete takes the same door as its add, behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Route {
    /// Written into every follower's inbox.
    Push = 1,
    /// Taken from the outbox as each follower reads.
    Pull = 2,
}

/// How an author's items reach the followers, as the business asks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Class {
    /// By the number of followers.
    #[default]
    Auto = 0,
    /// Push, whatever their number.
    Push = 1,
    /// Pull, whatever their number.
    Pull = 2,
    /// Pull, and everybody follows without an edge. Once given it stays.
    Everyone = 3,
}

impl Class {
    /// The class with this number, if there is one.
    pub fn from_u8(n: u8) -> Option<Self> {
        [Self::Auto, Self::Push, Self::Pull, Self::Everyone].into_iter().find(|class| *class as u8 == n)
    }
}

/// Above how many followers an author of class `auto` is pulled, unless configured otherwise.
pub const DEFAULT_PULL_ABOVE: u64 = 10_000;

/// The route of an `add` that is accepted now. `followers` is how many edges are in effect; it may be a
/// little behind, for either route is right at any time (I13).
pub fn route_of(class: Class, followers: u64, pull_above: u64) -> Route {
    match class {
        Class::Push => Route::Push,
        Class::Pull | Class::Everyone => Route::Pull,
        Class::Auto if followers > pull_above => Route::Pull,
        Class::Auto => Route::Push,
    }
}

/// Display order: greater is newer and stands higher on the page. Ties of `rank` fall to the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DisplayKey {
    /// `published_at` in ms unless the business supplied one.
    pub rank: i64,
    /// The item.
    pub item: ItemId,
}

/// One line of an author's outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its place in the outbox, dense from 1.
    pub seq: OutboxSeq,
    /// `Add`, `Update` or `Delete`; never `Forget`.
    pub op: Op,
    /// The door it takes.
    pub route: Route,
    /// Which of its readers' feeds it goes to; an update or a delete goes where its `add` went.
    pub feed: FeedId,
    /// The item it speaks of, with the rank its `add` had.
    pub key: DisplayKey,
}

/// One line of a reader's inbox. Its sequence id is where it stands (see
/// [`Numbered`](crate::inboxes::Numbered)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What happened.
    pub op: Op,
    /// Whose record it was.
    pub author: UserNo,
    /// The record's place in the author's outbox; 0 for `Forget` and for what was addressed to the reader.
    pub outbox_seq: OutboxSeq,
    /// The generation of the edge under which it was taken in; 0 for what needs no edge of its own.
    pub generation: Generation,
    /// The item and its rank; all zero for `Forget`.
    pub key: DisplayKey,
}

impl Entry {
    /// The entry that `record` of `author` becomes under an edge of `generation`.
    pub fn of(record: &Record, author: UserNo, generation: Generation) -> Self {
        Self { op: record.op, author, outbox_seq: record.seq, generation, key: record.key }
    }

    /// The entry that something addressed to the reader becomes. It stands in no outbox and under no edge.
    pub fn direct(op: Op, author: UserNo, key: DisplayKey) -> Self {
        Self { op, author, outbox_seq: 0, generation: 0, key }
    }

    /// Whether it was addressed to the reader: then no `Forget` takes it out of the feed.
    pub fn is_direct(&self) -> bool {
        self.outbox_seq == 0 && self.op != Op::Forget
    }

    /// The entry that takes everything of `author` out of the feed, but for what was addressed to the reader.
    pub fn forget(author: UserNo, generation: Generation) -> Self {
        let key = DisplayKey { rank: 0, item: ItemId(0) };
        Self { op: Op::Forget, author, outbox_seq: 0, generation, key }
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
}
