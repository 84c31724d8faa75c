//! How far each process has come, and what it has read. Ordered, so that equal processes can be kept sorted.

use feedgate_common::Cut;
use feedgate_common::archive::{Edge, Recipient};

use crate::numbers::{AUTHORS, READERS, Reached, Taken, View, reader_no};

/// An edge as somebody read it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Seen {
    pub on: bool,
    pub generation: u8,
    pub from: u8,
    /// From where on the reader sees everything; before it, the newest. Where `from` is, unless the follow shows the
    /// whole past.
    pub since: u8,
}

impl Seen {
    /// As the follow door sees it: what is shown of the past is reckoned from `since`.
    pub(crate) fn door(self) -> Edge {
        Edge { from: self.since.into(), ..self.into() }
    }
}

impl From<Seen> for Edge {
    fn from(seen: Seen) -> Self {
        Self { on: seen.on, generation: seen.generation.into(), from: seen.from.into() }
    }
}

/// A recipient as an executor read it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct To {
    pub generation: u8,
    pub from: u8,
    pub counter: u8,
    /// Whether the inbox was there. Set only by the variant that breaks that rule.
    pub active: bool,
}

impl To {
    /// This recipient, in the type of the product.
    pub fn recipient(self, reader: usize) -> Recipient {
        Recipient {
            reader: reader_no(reader),
            generation: self.generation.into(),
            from: self.from.into(),
            counter: self.counter.into(),
            listens: false,
        }
    }
}

/// Whether a worker has begun after it was told that what it works on had been reopened. In the product that is a
/// number, which a finish compares. Only the newest is of any use, so here the next one to be given out takes it from
/// all others.
pub(crate) type Told = bool;

/// A worker that fans out.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Executor {
    #[default]
    Idle,
    /// Has a job, and looks whether there is (more) to do. Used only where events are followed; elsewhere a worker is
    /// idle.
    Holding { author: u8, told: Told },
    /// Has read the progress, then the records up to `head`.
    Records { author: u8, told: Told, expected: Reached, head: u8 },
    /// Has read the recipients after the records; or has taken those that were `kept`.
    Recipients { author: u8, told: Told, expected: Reached, head: u8, to: [Option<To>; READERS], kept: bool },
    /// Has found nothing to do beyond the record `upto`.
    AtHead { author: u8, told: Told, upto: u8 },
    /// Has given out a sequence id and not filled it: only where that rule is broken.
    Filling { log: u8, at: u8 },
}

/// What a follow worker is at.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Work {
    pub log: u8,
    pub author: u8,
    /// The generation up to which the main feed has been served; 0 if this is the main feed.
    pub least: u8,
    /// How many feeds there were when the edge was read.
    pub feeds: u8,
}

/// A worker that brings a reader's inboxes to an edge.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum FollowWorker {
    #[default]
    Idle,
    /// Has read where to cut. With the variant that breaks that rule, also whether there was a build in flight.
    Cut { of: Work, progress: Reached, pull: u8, head: u8, building: bool },
    /// Has then read the edge, and the outbox up to `head`.
    Edge { of: Work, progress: Reached, pull: u8, head: u8, edge: Seen, counter: u8, building: bool },
    /// Has served the main feed, up to this generation, and there is another.
    Served { reader: u8, author: u8, least: u8 },
}

impl FollowWorker {
    /// The cut at `progress` and `pull`, in the type of the product.
    pub fn cut(progress: Reached, pull: u8) -> Cut {
        Cut { progress: progress.into(), pull: pull.into() }
    }
}

/// Somebody who takes in what no push brings: a read, or the worker for what is addressed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Taker {
    #[default]
    Idle,
    /// Has read where the inbox stands, then the news beyond it.
    News(News),
    /// The worker has served the main feed, up to here. Only where there may be others.
    Served { reader: u8, least: u8 },
    /// The worker has found no inbox, and will finish every event there is by then: only where that rule is broken.
    Finishing { reader: u8 },
}

/// The news that somebody read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct News {
    pub log: u8,
    /// Whether a worker reads the news, and finishes events; else a reader does.
    pub worker: bool,
    /// 0 if there was no inbox.
    pub epoch: u8,
    pub expected: Taken,
    /// What was asked: beyond `expected` if more is known to hold nothing.
    pub after: Taken,
    pub upto: Taken,
    /// The events this finishes.
    pub finishes: u8,
    /// Those that the main feed finishes, if this is another.
    pub least: u8,
    pub edges: [Seen; AUTHORS],
    pub counter: u8,
}

/// Somebody who rebuilds an inbox.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rebuild {
    #[default]
    Idle,
    /// Has taken an epoch, then read the progress.
    Looked { log: u8, placeholder: u8, reached: [Reached; AUTHORS] },
    /// Has written the epoch as the placeholder, or found one, and so many notes beside it.
    Begun { log: u8, placeholder: u8, notes: u8, reached: [Reached; AUTHORS], counter: u8 },
    /// Then everything else, in one snapshot; what is `ahead` may have to be reopened.
    Read(Snapshot),
}

/// What a rebuild read.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Snapshot {
    pub log: u8,
    pub placeholder: u8,
    pub notes: u8,
    pub reached: [Reached; AUTHORS],
    pub edges: [Seen; AUTHORS],
    pub heads: [u8; AUTHORS],
    pub counter: u8,
    pub taken: Taken,
    /// Up to which record, of whom push is behind; else 0.
    pub ahead: [u8; AUTHORS],
    /// Push that is behind has been looked after.
    pub reopened: bool,
}

/// A device, at a position of its log.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    pub epoch: u8,
    pub offset: u8,
    pub view: View,
    /// The answer was `Gone` and the log was read for page one; the Archive's part of it comes next.
    pub page: Option<HalfPage>,
}

/// The part of a page that comes from the log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HalfPage {
    pub epoch: u8,
    pub offset: u8,
    /// Living in the log, above the floor.
    pub shown: View,
    pub floor: Option<u8>,
}
