//! The change logs of all readers. They are derived: a log that is lost is rebuilt from the Archive.
//!
//! Invariants every home keeps:
//! - Each method is one atomic step on one bucket (or one inbox): all of it or none, also across a
//!   crash, and durable before it answers. Reads see only what is durable.
//! - Sequence ids are dense from 1 within an epoch (I1), allocated together with the record, and
//!   never reused for another change within an epoch (I16).
//! - A log is cut only as a prefix, and never below [`KEEP`] changes; cutting raises `floor`.
//! - A store that lost or rolled back what it held says so by `Missing`: what it held before is never
//!   served or appended to again, for its epochs lie below those it takes from then on (I16).
//! - No implementation reads the Archive: what a step needs comes in as a value.

use async_trait::async_trait;
use futures_util::future::join_all;

use crate::archive::Recipient;
use crate::change::{DisplayKey, Entry, Op, Record};
use crate::error::Result;
use crate::{
    Bucket, Cut, Epoch, FeedId, Generation, InboxKey, Millis, OutboxSeq, Position, Progress, UserNo, Watermarks,
};

/// The least number of changes a log keeps.
pub const KEEP: usize = 1000;

/// The most recipients of one step.
pub const STEP_MAX: usize = 1000;

/// The most appends a caller should ask of one step: several records at once for the same recipients,
/// so that a burst costs one sync and one wake, yet not so many that others wait long for the bucket.
pub const APPENDS_MAX: usize = 8 * STEP_MAX;

/// How many follow steps of different authors an inbox remembers. Each remembered step makes every push to the inbox
/// read a few bytes more. An inbox with more steps than this must be built anew; then one number stands for all of
/// them.
pub const MARKS_MAX: usize = 1024;

/// How many changes a placeholder keeps that push has brought since; one more, and the placeholder goes: the build
/// starts over.
pub const NOTES_MAX: usize = 4096;

/// An entry with its sequence id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// Its place in the log.
    pub seq: u64,
    /// The change that stands there.
    pub entry: Entry,
}

/// One push step: `records` of `author` to `recipients`, who all belong to `bucket`.
///
/// A recipient gets the records beyond [`pushed_from`](crate::marks::pushed_from), in order, if its inbox exists and
/// [`push_verdict`](crate::marks::push_verdict) says `Append`. Once the last record of a step has reached the record up
/// to which an inbox was [`ahead`](Build::ahead) of push, the inbox need not remember that any longer. Where the inbox
/// is missing and a build is in flight, what it would get (the records beyond `from`, each with the recipient's
/// counter) is noted beside the placeholder, at most [`NOTES_MAX`].
#[derive(Debug, Clone)]
pub struct Advance {
    /// The author whose records these are.
    pub author: UserNo,
    /// The bucket to which all recipients belong.
    pub bucket: Bucket,
    /// The feed whose inboxes of these recipients grow.
    pub feed: FeedId,
    /// The progress behind which the records begin. It was read before the records and recipients were, or is taken
    /// from where events are finished.
    pub expected: Progress,
    /// The progress after this step; greater than `expected`.
    pub next: Progress,
    /// What to append: the records between `expected` and `next` whose route is push, all of one feed, in outbox
    /// order. Where `expected` or `next` stands inside a record, only that record.
    pub records: Vec<Record>,
    /// At most [`STEP_MAX`], ascending by reader.
    pub recipients: Vec<Recipient>,
    /// Whether the counters of the recipients may have been read before the records were. Then the step is stale if a
    /// build of a recipient's inbox is in flight: a note with such a counter could not say whether the build has the
    /// record. A home may answer so to all of these steps.
    pub kept: bool,
}

impl Advance {
    /// Checks that this is a step as [`Inboxes::advance`] takes it. Every home calls this before it does anything.
    ///
    /// # Panics
    /// If it is not: then the caller has a bug.
    pub fn check(&self, buckets: u16) {
        assert!(self.bucket.0 < buckets, "{:?} of a store with {buckets} buckets", self.bucket);
        assert!(self.next > self.expected, "a push step moves the progress forward");
        let to = &self.recipients;
        assert!(to.len() <= STEP_MAX, "a push step has at most {STEP_MAX} recipients");
        assert!(to.is_sorted_by(|a, b| a.reader < b.reader), "recipients ascend");
        assert!(to.iter().all(|to| to.reader.bucket(buckets) == self.bucket), "recipients share the bucket");
        assert!(self.records.iter().all(|record| record.feed == self.feed), "records share the feed");
    }
}

/// An inbox that has grown in a push step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    /// The inbox that has grown.
    pub key: InboxKey,
    /// Where its log stood right after.
    pub head: Position,
    /// How many of the step's records it took in: always the last ones, at least one.
    pub appended: u32,
    /// The generation of the edge under which the inbox took them in.
    pub generation: Generation,
}

/// What became of an [`Advance`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advanced {
    /// Done; these inboxes have grown.
    Moved(Vec<Grown>),
    /// Somebody else has moved the progress to this; nothing was done.
    Overtaken(Progress),
    /// An inbox knows of later edges: nothing was done, read edges and counter again.
    Stale,
}

/// One follow or unfollow step: brings one inbox to one edge's current state.
///
/// Acts only if [`edge_step_acts`](crate::marks::edge_step_acts); then it appends a [`forget`](Self::forget), then
/// the adds, raises the floor of the log to that of the step, and sets the author's entry to the generation.
#[derive(Debug, Clone)]
pub struct EdgeStep {
    /// The inbox that takes in the edge.
    pub key: InboxKey,
    /// The author whom the reader follows, or has left.
    pub author: UserNo,
    /// The generation of the edge: it grows with each change of it.
    pub generation: Generation,
    /// Whether the edge is on; if it is off there are no adds and the cut is not compared.
    pub on: bool,
    /// Where the adds were cut: the progress of (author, the reader's bucket) and the inbox's own watermark, as they
    /// were read before the adds were.
    pub expected: Cut,
    /// The items that the follow brings, in outbox order.
    pub adds: Vec<Entry>,
    /// The greatest key that the follow shows and does not bring; nothing if the edge is off.
    pub floor: Option<DisplayKey>,
}

impl EdgeStep {
    /// The entry that begins what the step appends.
    pub fn forget(&self) -> Entry {
        Entry::forget(self.author, self.generation, self.floor.filter(|_| self.on))
    }
}

/// What became of an [`EdgeStep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeStepped {
    /// The log has grown, up to here.
    Applied(Position),
    /// The inbox had taken in this generation or a later one.
    Nothing,
    /// There is no inbox and no build in flight.
    Missing,
    /// There is no inbox, but a build in flight, which may have read before this edge changed: nothing was done.
    Building,
    /// The progress or the watermark has moved since it was read: read again.
    Overtaken,
    /// The inbox remembers [`MARKS_MAX`] follow steps already, none of this author's: nothing was done.
    Full,
}

/// Takes in what no push brings: what the reader pulls, and what was addressed to the reader.
///
/// Acts only if the inbox's epoch and both watermarks are as expected. Entries that were addressed are appended. Pulled
/// entries are appended if [`push_verdict`](crate::marks::push_verdict) says `Append`, and left out if it says `Skip`:
/// a follow step will bring these, since it compares the watermark.
#[derive(Debug, Clone)]
pub struct Take {
    /// The inbox that takes in the entries.
    pub key: InboxKey,
    /// The inbox's epoch as it was read.
    pub epoch: Epoch,
    /// The inbox's watermarks as they were read, before the entries were.
    pub expected: Watermarks,
    /// The watermarks after this step; none below the expected one.
    pub next: Watermarks,
    /// What to append, in the order of the log.
    pub entries: Vec<Entry>,
    /// The edge counter of the reader, as [`Recipient::counter`], read in one snapshot with the entries.
    pub counter: Generation,
}

impl Take {
    /// Checks that the step keeps the contract; every home calls this before it does anything.
    ///
    /// # Panics
    /// If a watermark moves back: then the caller has a bug.
    pub fn check(&self) {
        let (from, to) = (self.expected, self.next);
        assert!(
            to.pull >= from.pull && to.direct >= from.direct,
            "a take moves watermarks forward: {from:?} to {to:?}"
        );
    }
}

/// What became of a [`Take`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Done; the log stands here.
    Moved {
        /// Epoch and last sequence id.
        head: Position,
        /// How many of the entries were appended.
        appended: u32,
    },
    /// The epoch or a watermark is another, or the inbox knows of later edges: nothing was done, read again.
    Overtaken,
    /// There is no inbox and no build in flight.
    Missing,
    /// There is no inbox, but a build in flight, which may have read before the entries were there: nothing was done.
    Building,
}

/// Where an inbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    /// Epoch and last sequence id.
    pub head: Position,
    /// How far it has taken in what no push brings.
    pub taken: Watermarks,
}

/// A build in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// The placeholder that stands.
    pub placeholder: Epoch,
    /// How many changes were noted beside the placeholder before this call. What the builder reads from now on shows
    /// them.
    pub notes: u64,
}

/// A rebuilt inbox, to be swapped in whole.
#[derive(Debug, Clone)]
pub struct Build {
    /// The inbox that was built.
    pub key: InboxKey,
    /// The placeholder of [`Inboxes::begin_build`]; becomes the inbox's epoch.
    pub epoch: Epoch,
    /// The edge counter, read in one snapshot with the edges.
    pub built_at: Generation,
    /// The log, from sequence id 1.
    pub entries: Vec<Entry>,
    /// The greatest key left out.
    pub floor: Option<DisplayKey>,
    /// How far the entries go for what no push brings.
    pub taken: Watermarks,
    /// Authors of whom the entries hold more than push had brought to the bucket, each up to which record.
    pub ahead: Vec<(UserNo, OutboxSeq)>,
    /// The number of [`Begun::notes`]: older notes are in the entries already.
    pub notes_from: u64,
    /// The inbox is kept at least until this time, as by [`Inboxes::touch`].
    pub until: Millis,
}

/// The answer to a read by position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The changes after the position, without a hole; fewer than asked means that `head` is
    /// reached.
    Entries {
        /// Their first is `after.offset + 1`.
        entries: Vec<Numbered>,
        /// The log's last sequence id.
        head: u64,
        /// How far the log has taken in what no push brings.
        taken: Watermarks,
    },
    /// The position is of another epoch, cut off, or beyond the head: never a part of an answer.
    Gone {
        /// Where the log stands.
        head: Position,
    },
    /// There is no inbox.
    Missing,
}

/// All that one log keeps, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Epoch and last sequence id.
    pub head: Position,
    /// At or below this key the log does not tell what the feed holds; the Archive does.
    pub floor: Option<DisplayKey>,
    /// How far it has taken in what no push brings.
    pub taken: Watermarks,
    /// All that is kept, ascending.
    pub entries: Vec<Numbered>,
}

/// What a trim that cuts the first `cut` entries of `log` must raise the floor to: the greatest key of
/// a cut add that no later entry of `log` removes. Entries after the cut may be left out of `log` if none
/// of them is a `delete` or a `forget`.
pub fn floor_of_cut(log: impl Iterator<Item = Entry>, cut: usize) -> Option<DisplayKey> {
    let mut gone = Vec::with_capacity(cut);
    for (at, entry) in log.enumerate() {
        match entry.op {
            Op::Add if at < cut => gone.push((entry.author, entry.key, entry.is_direct())),
            Op::Add | Op::Update => {}
            Op::Delete => gone.retain(|(_, key, _)| key.item != entry.key.item),
            Op::Forget => gone.retain(|(author, _, direct)| *direct || *author != entry.author),
        }
    }
    gone.into_iter().map(|(_, key, _)| key).max()
}

/// The numbers that `/v1/stats` shows of the inboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InboxCounts {
    /// How many inboxes there are.
    pub inboxes: u64,
    /// How many entries the logs hold in all.
    pub entries: u64,
}

/// The change logs of all readers, by reader and feed.
///
/// A method changes one bucket or one inbox in one atomic step, which is durable when it answers. A dropped future
/// leaves the step done or not done, never half of it. While the store cannot work every method fails with
/// `Unavailable` or `Down`, which leave the step done or not done as well, or with `Overloaded`, which leaves it not
/// done; `Corrupt` says that the store holds what cannot have been written.
#[async_trait]
pub trait Inboxes: Send + Sync + 'static {
    /// How many buckets this store has; fixed when it was made.
    fn buckets(&self) -> u16;

    /// Answers a small read, as soon as it can: whether the store is there.
    async fn ping(&self) -> Result<()>;

    /// The progress of several (author, bucket).
    async fn progress(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>>;

    /// Takes a push step: appends the records to the inboxes and moves the progress, in one atomic step. Nothing is
    /// done if the progress is not the expected one, or if an inbox knows of later edges.
    async fn advance(&self, step: Advance) -> Result<Advanced>;

    /// Takes push steps of one author, each in another bucket, at the same time. Each is atomic by itself, and is
    /// answered in its place: one that fails takes nothing from the others.
    ///
    /// # Panics
    /// A home may panic if the steps are of several authors.
    async fn advance_all(&self, steps: Vec<Advance>) -> Vec<Result<Advanced>> {
        join_all(steps.into_iter().map(|step| self.advance(step))).await
    }

    /// Takes follow steps of one inbox, at least one, each of another author, at once: each acts or not by itself, as
    /// if they were taken one after another in this order, and is answered in its place. All of them answer that there
    /// is no inbox, or none.
    async fn step_edges(&self, steps: Vec<EdgeStep>) -> Result<Vec<EdgeStepped>>;

    /// Appends what no push brings and moves the watermarks, in one atomic step.
    async fn take(&self, step: Take) -> Result<Taken>;

    /// Where inboxes stand; `None` where there is none.
    async fn stands(&self, keys: &[InboxKey]) -> Result<Vec<Option<Stand>>>;

    /// Where one inbox stands; `None` if there is none.
    async fn stand(&self, key: InboxKey) -> Result<Option<Stand>> {
        Ok(self.stands(&[key]).await?.pop().flatten())
    }

    /// The keys of which there is an inbox, or a build in flight; in any order.
    async fn present(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>>;

    /// Writes a placeholder for an inbox that is missing, and answers it. If a placeholder stands already, answers that
    /// one, with how many changes are noted beside it. So builds of several nodes do not take each other's. `None` if
    /// the inbox exists.
    ///
    /// A builder that comes with a placeholder that was given before the store lost anything does not join a
    /// build: the swap will be refused.
    async fn begin_build(&self, key: InboxKey, placeholder: Epoch) -> Result<Option<Begun>>;

    /// Swaps the inbox in if its placeholder still stands; false if not. Then the changes noted beside the placeholder
    /// from `notes_from` on are appended, in order, as far as they [belong](crate::marks::note_belongs) there.
    ///
    /// A placeholder goes only when the inbox is swapped in or discarded, when more than [`NOTES_MAX`] changes are
    /// noted, when the store has lost anything since it was given, and when no builder came back for an hour.
    async fn finish_build(&self, build: Build) -> Result<bool>;

    /// At most `limit` changes after `after`.
    async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read>;

    /// The whole log; `None` if there is no inbox.
    async fn log(&self, key: InboxKey) -> Result<Option<Log>>;

    /// Drops an inbox (it becomes dormant) and its placeholder.
    async fn discard(&self, key: InboxKey) -> Result<()>;

    /// Keeps these inboxes at least until `until`, unless somebody discards them. Never shortens an earlier promise. A
    /// crash may forget the promise, and an inbox that is missing gets none.
    async fn touch(&self, keys: &[InboxKey], until: Millis) -> Result<()>;

    /// Drops inboxes whose time is past at `now`, about `limit` at most, and answers how many: they become dormant. A
    /// home that drops them by itself has nothing to do.
    async fn discard_expired(&self, now: Millis, limit: usize) -> Result<usize>;

    /// The counts for `/v1/stats`, which may be a little old.
    async fn counts(&self) -> Result<InboxCounts>;
}
