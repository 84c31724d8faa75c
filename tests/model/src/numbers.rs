//! The numbers of a state: authors, readers, items and versions, all of them small.

use feedgate_common::{Progress, UserNo, Watermarks};

/// Authors are 0 and 1.
pub(crate) const AUTHORS: usize = 2;
/// Readers are 0 and 1, both of one bucket.
pub(crate) const READERS: usize = 2;
/// Inboxes are 0 and 1: those of the readers, or, where there are two feeds, those of the one reader.
pub(crate) const LOGS: usize = 2;
/// How many records an outbox can hold.
pub(crate) const OUTBOX_MAX: u8 = 6;
/// How many items can be addressed to readers.
pub(crate) const ADDRESSED_MAX: u8 = 3;

/// An item: 1 to 6 are the adds of author 0 by their place in the outbox, 7 to 12 those of author 1, 13 to 15 the
/// addressed ones.
pub(crate) type Item = u8;

/// The item that record `seq` of `author` adds.
pub(crate) fn item_of(author: usize, seq: u8) -> Item {
    author as u8 * OUTBOX_MAX + seq
}

/// The `n`-th addressed item, from 0.
pub(crate) fn addressed_item(n: usize) -> Item {
    AUTHORS as u8 * OUTBOX_MAX + 1 + n as u8
}

/// Authors as the product numbers users.
pub(crate) fn author_no(author: usize) -> UserNo {
    UserNo(author as u32 + 11)
}

/// Readers as the product numbers users.
pub(crate) fn reader_no(reader: usize) -> UserNo {
    UserNo(reader as u32 + 1)
}

/// What somebody sees: the version of each item, 0 where it is not seen, and whether it stands where it has moved to. A
/// nibble an item, of which the greatest bit is the place.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct View(u64);

impl View {
    /// The version of `item`; 0 if it is not seen.
    pub fn version(self, item: Item) -> u8 {
        (self.0 >> (4 * item)) as u8 & 7
    }

    /// Whether `item` is seen where it has moved to.
    pub fn moved(self, item: Item) -> bool {
        (self.0 >> (4 * item)) & 8 > 0
    }

    /// Shows `item` in `version`, which is less than 8, at its place; or no longer if the version is 0.
    pub fn set(&mut self, item: Item, version: u8, moved: bool) {
        debug_assert!(version < 8, "a version that does not fit");
        let seen = if version > 0 { version | u8::from(moved) << 3 } else { 0 };
        self.0 = self.0 & !(15 << (4 * item)) | u64::from(seen) << (4 * item);
    }

    /// Shows `item` no longer.
    pub fn remove(&mut self, item: Item) {
        self.set(item, 0, false);
    }

    /// All items of this set of seen items.
    pub fn items(self) -> impl Iterator<Item = Item> {
        (1..16).filter(move |item| self.version(*item) > 0)
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seen = self.items().map(|item| (item, (self.version(item), if self.moved(item) { "moved" } else { "" })));
        f.debug_map().entries(seen).finish()
    }
}

/// The [`Progress`] of an author, packed. It stands in many places of a state.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Reached {
    pub done: u8,
    /// 0 if it is nobody; else as the product numbers users.
    pub last: u8,
}

impl Reached {
    /// The progress at which all records up to `done` have reached every reader.
    pub(crate) fn at(done: u8) -> Self {
        Self { done, last: 0 }
    }
}

impl From<Reached> for Progress {
    fn from(reached: Reached) -> Self {
        let last = (reached.last > 0).then_some(UserNo(reached.last.into()));
        Self { done: reached.done.into(), last }
    }
}

impl From<Progress> for Reached {
    fn from(progress: Progress) -> Self {
        Self { done: progress.done as u8, last: progress.last.map_or(0, |last| last.0 as u8) }
    }
}

/// How far an inbox has taken in what no push brings.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Taken {
    pub pull: u8,
    pub direct: u8,
}

impl From<Taken> for Watermarks {
    fn from(taken: Taken) -> Self {
        Self { pull: taken.pull.into(), direct: taken.direct.into() }
    }
}

impl From<Watermarks> for Taken {
    fn from(taken: Watermarks) -> Self {
        Self { pull: taken.pull as u8, direct: taken.direct as u8 }
    }
}
