//! The authors, their followers, and their posts.
//!
//! ```text
//!   star    ◀── every reader
//!   modest  ◀── the first ten       posts as often as the star
//! ```

use std::ops::Add;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use feedgate_common::archive::{Event, Write, Written};
use feedgate_common::change::Class;
use feedgate_common::feed::DEFAULT_BACKFILL;
use feedgate_common::inboxes::Read;
use feedgate_common::{InboxKey, Position, UserId};
use feedgate_tests::load::Report;
use feedgate_tests::process;
use feedgate_tests::town::{Town, item, now};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use crate::ears::Ears;

/// The author whom all readers follow.
pub(crate) const STAR: &str = "star";

/// The author whom [`FEW`] readers follow.
pub(crate) const MODEST: &str = "modest";

/// How many readers follow [`MODEST`].
pub(crate) const FEW: usize = 10;

/// The number of buckets that a new store has by default.
pub(crate) const BUCKETS: u16 = 16;

/// Of those who could come to read, so many do, at most.
pub(crate) const COMING: usize = 10_000;

/// Calls in flight, where many are.
const AT_ONCE: usize = 64;

/// Follows in a transaction, names or inboxes in a call.
const BATCH: usize = 1000;

const BODY_BYTES: usize = 200;

/// The stores, the worker and the followers of the star.
pub(crate) struct World {
    pub(crate) town: Town,
    pub(crate) ears: Ears,
    /// The inboxes of all who follow the star.
    pub(crate) followers: Vec<InboxKey>,
}

impl World {
    /// Writes the edges and makes every inbox.
    pub(crate) async fn make(dir: &Path, followers: usize, report: &mut Report) -> anyhow::Result<Self> {
        let town = Town::open(dir, BUCKETS, DEFAULT_BACKFILL)?;
        let ears = Ears::at(&*town.stores.doorbell);
        let readers = users("reader", followers)?;
        let start = Instant::now();
        let followers = follow(&town, &readers, STAR).await?;
        report.figure("follows, 1000 in a transaction", per_second(readers.len(), start), "per second");
        follow(&town, &readers[..FEW], MODEST).await?;
        let start = Instant::now();
        build(&town, &followers).await?;
        report.figure(&format!("inboxes made, {AT_ONCE} at a time"), per_second(readers.len(), start), "per second");
        Ok(Self { town, ears, followers })
    }

    /// The inboxes of the readers who come to read.
    pub(crate) fn coming(&self) -> &[InboxKey] {
        &self.followers[..COMING.min(self.followers.len())]
    }

    /// The head of each of these inboxes.
    pub(crate) async fn heads(&self, keys: &[InboxKey]) -> anyhow::Result<Vec<Position>> {
        let mut heads = Vec::with_capacity(keys.len());
        for some in keys.chunks(BATCH) {
            for stand in self.town.stores.inboxes.stands(some).await? {
                heads.push(stand.context("everybody has an inbox")?.head);
            }
        }
        Ok(heads)
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.town.close().await
    }
}

/// Lets them follow and finishes what that leaves to do, as the worker would: there is no inbox yet to take it in.
async fn follow(town: &Town, readers: &[UserId], author: &str) -> anyhow::Result<Vec<InboxKey>> {
    let (archive, author) = (&town.stores.archive, author.parse::<UserId>()?);
    let mut keys = Vec::with_capacity(readers.len());
    for some in readers.chunks(BATCH) {
        let follow = |reader: &UserId| Write::Follow { reader: reader.clone(), author: author.clone() };
        let mut finished = vec![];
        for written in archive.write(some.iter().map(follow).collect(), now()).await? {
            let Written::Edge { reader, author, edge, .. } = written? else { bail!("a follow answers with its edge") };
            keys.push(InboxKey::main(reader));
            finished.push(Event::Edge { reader, author, generation: edge.generation });
        }
        archive.finish(&finished).await?;
    }
    Ok(keys)
}

/// The inboxes of users who have never followed anybody.
pub(crate) async fn newcomers(town: &Town, names: &[UserId]) -> anyhow::Result<Vec<InboxKey>> {
    let mut keys = Vec::with_capacity(names.len());
    for some in names.chunks(BATCH) {
        keys.extend(town.stores.archive.intern(some).await?.into_iter().map(InboxKey::main));
    }
    Ok(keys)
}

/// Builds these inboxes, many at a time.
pub(crate) async fn build(town: &Town, keys: &[InboxKey]) -> anyhow::Result<()> {
    all(keys, |key| async { Ok(town.feeds.rebuild(*key).await?) }).await
}

/// Does `work` for each, many at a time.
pub(crate) async fn all<T, F: Future<Output = anyhow::Result<()>>>(
    each: impl IntoIterator<Item = T>,
    work: impl FnMut(T) -> F,
) -> anyhow::Result<()> {
    stream::iter(each).map(Ok).try_for_each_concurrent(AT_ONCE, work).await
}

/// Publishes one post of `author`.
pub(crate) async fn post(town: &Town, author: &str) -> anyhow::Result<()> {
    let body = "x".repeat(BODY_BYTES - 2);
    town.write(vec![item(&author.parse()?, None, now(), &body)]).await
}

/// The class counts from the next post on.
pub(crate) async fn classify(town: &Town, author: &str, class: Class) -> anyhow::Result<()> {
    town.write(vec![Write::Classify { author: author.parse()?, class }]).await
}

/// Reads what an inbox has grown by since then, items and all, as a gateway does. It should be one change.
pub(crate) async fn read_one(town: &Town, key: InboxKey, after: Position) -> anyhow::Result<Seen> {
    let Read::Entries { entries, .. } = town.changes.read(key, after, BATCH).await? else {
        bail!("the log goes on where it was");
    };
    let changes = town.changes.hydrate(key, entries.iter().map(|numbered| &numbered.entry)).await?;
    ensure!(changes.len() == entries.len(), "{} changes of {} entries", changes.len(), entries.len());
    Ok(Seen::of(1, changes.len() as u64))
}

pub(crate) fn users(kind: &str, count: usize) -> anyhow::Result<Vec<UserId>> {
    (0..count).map(|n| Ok(format!("{kind}-{n}").parse()?)).collect()
}

fn per_second(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}

/// Processor time of this process so far, in seconds.
pub(crate) fn cpu() -> anyhow::Result<f64> {
    process::cpu_seconds(std::process::id())
}

/// Whether inboxes have grown by what they should.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) missing: u64,
    pub(crate) repeated: u64,
}

impl Seen {
    pub(crate) fn of(due: u64, came: u64) -> Self {
        Self { missing: due.saturating_sub(came), repeated: came.saturating_sub(due) }
    }

    /// Each inbox that stood at one of `before` has grown by `due`.
    pub(crate) fn grown(before: &[Position], after: &[Position], due: u64) -> Self {
        let grown = |(before, after): (&Position, &Position)| match before.epoch == after.epoch {
            true => Self::of(due, after.offset - before.offset),
            false => Self { missing: due, repeated: 0 },
        };
        before.iter().zip(after).map(grown).fold(Self::default(), Self::add)
    }
}

impl Add for Seen {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { missing: self.missing + other.missing, repeated: self.repeated + other.repeated }
    }
}
