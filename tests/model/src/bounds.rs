//! The bounds of a configuration: its users and processes, its first state, and how often each thing may happen.

use feedgate_common::change::Class;
use feedgate_common::{DisplayKey, ItemId};
use feedgate_timeline::fanout::StepSize;

use crate::state::{AUTHORS, Item};

/// How the display order of items relates to the order in which they are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranks {
    /// An item that is posted later stands higher.
    AsPosted,
    /// An item that is posted later stands lower.
    Reversed,
    /// The two orders have nothing to do with each other.
    Mixed,
}

/// One configuration of the model. A field that a configuration does not name is as in [`Bounds::SMALL`].
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The name of the configuration, and of its test.
    pub name: &'static str,

    /// How many readers there are: 1 or 2, all in one bucket.
    pub readers: usize,
    /// How many authors there are: 1 or 2.
    pub authors: usize,
    /// How many feeds a reader has: 1 or 2. With 2 there is one reader.
    pub feeds: usize,
    /// How many workers fan out: at most 2, as for each kind of process below.
    pub executors: usize,
    /// How many workers take follow steps.
    pub follow_workers: usize,
    /// How many readers and workers take in what is pulled and what is addressed.
    pub takers: usize,
    /// How many nodes rebuild inboxes.
    pub rebuilds: usize,
    /// How many devices there are. The first has the first inbox, and so on in turn.
    pub devices: usize,

    /// The class that each author has at first.
    pub classes: [Class; AUTHORS],
    /// Whether all readers follow each author at first.
    pub follows: [bool; AUTHORS],

    /// The second feed has no name at first, and may be given one at any moment.
    pub named_meanwhile: bool,

    /// The size of a push step.
    pub step: StepSize,
    /// How many items a follow step brings from before the follow.
    pub backfill: usize,
    /// How many pieces of news one take brings at most.
    pub news_limit: usize,
    /// How many entries a rebuilt log holds at most.
    pub keep: usize,
    /// How many notes a placeholder keeps.
    pub notes: usize,
    /// How the display order of items relates to the order of posts.
    pub ranks: Ranks,
    /// Whether a node remembers that there was nothing to pull.
    pub remembers: bool,
    /// Whether a worker may begin where events are finished, without asking the inboxes.
    pub unasked: bool,
    /// Whether a worker may take the followers that were read before, if their edges have not changed since.
    pub keeps: bool,

    /// Records that authors write: adds, and updates and deletes if they are allowed.
    pub records: u8,
    /// Whether items may be updated.
    pub edits: bool,
    /// Whether items may be deleted.
    pub deletes: bool,
    /// How many of the adds may be narrowed to an audience: any followers of that moment.
    pub narrowed: u8,
    /// How often an item may get another rank: it moves, or moves back.
    pub moves: u8,
    /// Records addressed to readers, likewise.
    pub addressed: u8,
    /// How often what is addressed to readers may give way to another item that is.
    pub replaced: u8,
    /// How often a class may change.
    pub classes_changed: u8,
    /// Whether an author may become everyone's.
    pub everyone: bool,
    /// How many follows and unfollows there may be.
    pub follows_changed: u8,
    /// Whether the first reader is the first author.
    pub own: bool,
    /// Whether a follow that begins shows all of the outbox from the first record on.
    pub whole_past: bool,
    /// Shields that go up or down: a mute; where items are addressed, a block by the author.
    pub shields_changed: u8,
    /// How often an inbox may be dropped.
    pub sleeps: u8,
    /// How often a log may be cut, anywhere.
    pub trims: u8,
    /// How often a process may die, or die between its step and finishing the event.
    pub crashes: u8,
    /// How often the store may go back to what it was at any earlier time.
    pub rollbacks: u8,
}

impl Bounds {
    /// One author, followed by one reader with one device; one of each process; two records, no edits; nothing else
    /// happens.
    pub const SMALL: Self = Self {
        name: "small",
        readers: 1,
        authors: 1,
        feeds: 1,
        executors: 1,
        follow_workers: 1,
        takers: 1,
        rebuilds: 1,
        devices: 1,
        classes: [Class::Push; AUTHORS],
        follows: [true; AUTHORS],
        named_meanwhile: false,
        step: StepSize { recipients: 9, appends: 1 },
        backfill: 1,
        news_limit: 9,
        keep: 9,
        notes: 9,
        ranks: Ranks::AsPosted,
        remembers: false,
        unasked: false,
        keeps: false,
        records: 2,
        edits: false,
        deletes: true,
        narrowed: 0,
        moves: 0,
        addressed: 0,
        replaced: 0,
        classes_changed: 0,
        everyone: false,
        follows_changed: 0,
        own: false,
        whole_past: false,
        shields_changed: 0,
        sleeps: 0,
        trims: 0,
        crashes: 0,
        rollbacks: 0,
    };

    /// Where an item stands on a page: where it was posted, or where it has moved to. No two have one rank.
    ///
    /// An item of an odd number moves above all that were posted, and one of an even number below them.
    pub fn rank(&self, item: Item, moved: bool) -> u8 {
        match self.ranks {
            _ if moved && item % 2 == 1 => POSTED.end + item,
            _ if moved => item,
            Ranks::AsPosted => POSTED.start + item,
            Ranks::Reversed => POSTED.end - item,
            Ranks::Mixed => POSTED.start + item * 7 % 16,
        }
    }

    /// The display key of an item at one of its places, in the type of the product.
    pub fn key(&self, item: Item, moved: bool) -> DisplayKey {
        DisplayKey { rank: self.rank(item, moved).into(), item: ItemId(item.into()) }
    }

    /// Whether a key is that of the place to which its item has moved.
    pub(crate) fn is_moved(key: DisplayKey) -> bool {
        key.item.0 > 0 && !POSTED.contains(&(key.rank as u8))
    }
}

/// The ranks of items where they were posted.
const POSTED: std::ops::Range<u8> = 16..32;
