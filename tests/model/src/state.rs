//! A state of the model: what the Archive holds, the store of inboxes, and how far each process has come (`processes`).
//!
//! Numbers are `u8` so that a state is small and hashed quickly; the product's own types are made from them where a
//! rule of the product is asked. Nothing here decides anything.

use std::hash::{Hash, Hasher};

use feedgate_common::change::{Class, Entry, Op, Route};
use feedgate_common::{DisplayKey, ItemId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Bounds;
pub(crate) use crate::numbers::{
    ADDRESSED_MAX, AUTHORS, Item, LOGS, OUTBOX_MAX, READERS, Reached, Taken, View, addressed_item, author_no, item_of,
    reader_no,
};
pub(crate) use crate::processes::{
    Device, Executor, FollowWorker, HalfPage, News, Rebuild, Seen, Snapshot, Taker, To, Work,
};
use crate::shared::Bytes;
pub(crate) use crate::shared::Shared;

/// A record of an outbox; its place is its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Posted {
    pub op: Op,
    pub route: Route,
    /// The feed of the item, which never changes.
    pub feed: u8,
    pub item: Item,
    /// Its key is that of the place to which the item has moved; else that of where it was posted.
    pub moved: bool,
    /// 0 unless its route is pull.
    pub pull_seq: u8,
    /// The audience of a narrowed item: the readers in it, a bit each. 0 for other items.
    pub to: u8,
}

/// Whether a rebuild has made what was finished outstanding again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reopened {
    No,
    /// It was reopened, and no worker that would have finished it has been told yet.
    Yes,
    /// It was reopened, and each worker that has been told since goes through it once more.
    Told,
}

/// An author and the outstanding events of the outbox.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Author {
    pub outbox: Vec<Posted>,
    pub class: Class,
    /// The outbox head when everyone began to follow.
    pub everyone_since: Option<u8>,
    /// Every event up to here is finished.
    pub finished: u8,
    pub reopened: Reopened,
    /// A job waits or is not acknowledged.
    pub job: bool,
}

/// What the Archive holds of (reader, author).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Row {
    /// Whether there is one at all.
    pub held: bool,
    pub follows: bool,
    /// The bits of [`Shields`](feedgate_common::graph::Shields) that are up.
    pub shields: u8,
    pub generation: u8,
    pub from: u8,
    /// From where on everything is wanted: where `from` is, unless the follow shows the whole past.
    pub since: u8,
    /// The edge's events up to this generation are finished.
    pub finished: u8,
}

/// A record of what was addressed to a reader; its place is its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ToReader {
    pub op: Op,
    pub item: Item,
    /// As of a [`Posted`].
    pub moved: bool,
}

/// What the Archive holds of a reader.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Reader {
    /// The last generation that any edge of the reader took.
    pub counter: u8,
    pub rows: [Row; AUTHORS],
    pub direct: Vec<ToReader>,
    /// Direct events up to here are finished.
    pub direct_finished: u8,
}

/// An item for named readers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Addressed {
    pub author: u8,
    pub feed: u8,
    /// The readers to whom it is addressed, a bit each.
    pub to: u8,
    /// 0 if it is deleted.
    pub version: u8,
    /// Whether it stands where it has moved to.
    pub moved: bool,
    /// The item in whose place it came; 0 if there is none.
    pub replaces: Item,
}

/// What the Archive holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Truth {
    pub authors: [Author; AUTHORS],
    pub readers: [Reader; READERS],
    pub addressed: Vec<Addressed>,
    pub pull_seq: u8,
    /// How many feeds there are: the main one, and one that has a name.
    pub feeds: u8,
    /// The last epoch that was given.
    pub epoch: u8,
}

/// A line of a log. Its sequence id is where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Line {
    pub op: Op,
    pub author: u8,
    /// 0 for what is addressed, and for `Forget`.
    pub outbox_seq: u8,
    pub generation: u8,
    /// Of a `Forget` the item at its floor; 0 if it has none.
    pub item: Item,
    /// As of a [`Posted`].
    pub moved: bool,
    /// Its sequence id is given but it is not there yet: only where that rule is broken.
    pub awaited: bool,
}

impl Line {
    /// The line that holds `entry`.
    pub fn of(entry: Entry) -> Self {
        let small = |n: u64| n as u8;
        Self {
            op: entry.op,
            author: (entry.author.0 - author_no(0).0) as u8,
            outbox_seq: small(entry.outbox_seq),
            generation: small(entry.generation),
            item: small(entry.key.item.0),
            moved: Bounds::is_moved(entry.key),
            awaited: false,
        }
    }

    /// The entry that this line holds, with the key of its item.
    pub fn entry(self, key: DisplayKey) -> Entry {
        Entry {
            op: self.op,
            author: author_no(self.author.into()),
            outbox_seq: self.outbox_seq.into(),
            generation: self.generation.into(),
            key: if self.item == 0 { DisplayKey { rank: 0, item: ItemId(0) } } else { key },
        }
    }
}

/// One inbox with its log.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inbox {
    pub epoch: u8,
    /// All there ever was in this epoch; the first `cut` are gone for everybody but the properties.
    pub log: Vec<Line>,
    pub cut: u8,
    /// The rank; ranks of items differ.
    pub floor: Option<u8>,
    pub built_at: u8,
    /// The generation taken in by a follow step; 0 if none has run.
    pub taken_in: [u8; AUTHORS],
    /// The record up to which the rebuild was ahead of push; 0 if push had come that far, or has since.
    pub ahead: [u8; AUTHORS],
    pub taken: Taken,
}

/// A change that a push step left beside a placeholder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Note {
    pub line: Line,
    /// The edge counter as the executor read it.
    pub counter: u8,
}

/// A build in flight, and what push has brought since it began.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Placeholder {
    /// 0 if there is none.
    pub epoch: u8,
    pub notes: Vec<Note>,
}

/// The store of inboxes: what a rollback takes back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Store {
    pub progress: [Reached; AUTHORS],
    pub inboxes: [Option<Inbox>; LOGS],
    pub placeholders: [Placeholder; LOGS],
}

/// How much of what may happen has happened.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Spent {
    pub records: u8,
    pub narrowed: u8,
    pub moves: u8,
    pub replaced: u8,
    pub addressed: u8,
    pub classes: u8,
    pub follows: u8,
    pub shields: u8,
    pub sleeps: u8,
    pub trims: u8,
    pub crashes: u8,
    pub rollbacks: u8,
}

/// One state of the model: the stores, and what each process is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    pub truth: Shared<Truth>,
    pub store: Shared<Store>,
    /// Inboxes of an epoch below are missing.
    pub least_epoch: u8,
    /// What the store may be rolled back to.
    pub snapshot: Option<Shared<Store>>,
    /// Rolled back, and nobody has noticed yet: only where that rule is broken.
    pub unnoticed: bool,
    /// What each log had reached when it was rolled back, as (epoch, sequence id).
    pub lost: [(u8, u8); LOGS],
    /// What a node knows to hold nothing for an inbox, as (epoch, pull number).
    pub looked: [(u8, u8); LOGS],
    /// The followers of each author as they were read last, if they are kept.
    pub kept: [Option<[Option<To>; READERS]>; AUTHORS],
    pub executors: [Executor; 2],
    pub follow_workers: [FollowWorker; 2],
    pub takers: [Taker; 2],
    pub rebuilds: [Rebuild; 2],
    pub devices: [Device; 2],
    pub spent: Spent,
    /// A sequence id was used again within its epoch (I16).
    pub reused: bool,
    /// A mark, a watermark or the progress went back (I10).
    pub went_back: bool,
    /// A page has shown an item at two places (I7).
    pub twice: bool,
}

impl State {
    /// Hashes what was written to and is shared with the states after this one.
    pub(crate) fn seal(&mut self) {
        self.truth.seal();
        self.store.seal();
        self.snapshot.iter_mut().for_each(Shared::seal);
    }

    /// A number of the state: two states have the same one if they are equal, and hardly ever if not.
    pub(crate) fn fingerprint(&self) -> u64 {
        let Self {
            truth,
            store,
            least_epoch,
            snapshot,
            unnoticed,
            lost,
            looked,
            kept,
            executors,
            follow_workers,
            takers,
            rebuilds,
            devices,
            spent,
            reused,
            went_back,
            twice,
        } = self;
        let stores = (truth, store, least_epoch, snapshot, unnoticed, lost, looked, kept);
        let processes = (executors, follow_workers, takers, rebuilds, devices, spent, reused, went_back, twice);
        Bytes::of(&(stores, processes), xxh3_64_with_seed)
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.fingerprint());
    }
}
