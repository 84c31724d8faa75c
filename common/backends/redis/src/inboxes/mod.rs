//! The inboxes in Redis: a list for each inbox, and one script for each step.
//!
//! ```text
//!   step ─▶ script on one bucket ─▶ answer             layout      what stands in Redis
//!             │ "this life is not mine"                scripts     Lua, and its answers
//!             └▶ a new epoch ─▶ renew ─▶ again         life        a script, in the bucket's life
//!                                                      push, take  steps as bytes
//!                                                      batch       what is asked of many inboxes
//!                                                      trim        what has become too long
//!                                                      census      what there is
//! ```
//!
//! Invariants: see [`Inboxes`]. Redis may lose anything: everything, the end of what was written, or any key by
//! eviction. So every script compares the bucket's life with the server's replication id in the same breath as it reads
//! or writes (see `scripts/bucket.lua`), and one that finds another does nothing. An inbox that nobody reads expires in
//! Redis by itself, and then is missing as after a loss. How durable a step is depends on the settings of Redis: a loss
//! costs a rebuild, never content.

mod batch;
mod census;
mod layout;
mod life;
mod packed;
mod push;
mod scripts;
mod take;
mod trim;

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::Epochs;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::{
    Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, InboxCounts, KEEP, Log, Numbered, Read, Stand, Take, Taken,
    floor_of_cut,
};
use feedgate_common::{Bucket, Epoch, InboxKey, Inboxes, Millis, Position, Progress, UserNo};
use futures_util::future::join_all;
use tokio::sync::Mutex;

use crate::Link;
use layout::{
    Header, entry_bytes, entry_of, field, floor_bytes, layout, mark_author, mark_generation, marks, number,
    placeholder, progress_text, pull_watermark,
};
use push::{Push, in_scripts, of_author};
use scripts::{Reply, Scripts};

/// A log is cut back when it has this many changes more than it must keep.
const SLACK: usize = 256;

/// The length of a list that is to be cut: a log and its header.
const LONG: usize = KEEP + SLACK + 1;

/// The Redis home of [`Inboxes`].
pub struct RedisInboxes {
    link: Link,
    epochs: Arc<dyn Epochs>,
    scripts: Scripts,
    layout: String,
    /// One call at a time renews a bucket.
    renewals: Vec<Mutex<()>>,
    /// The last sample of the census.
    sample: Mutex<Option<census::Sample>>,
}

impl RedisInboxes {
    /// Opens the inboxes behind `link`, in this number of buckets. Every process that shares these inboxes must give
    /// the same number.
    ///
    /// # Errors
    /// `Corrupt` if the inboxes were made with another number of buckets, or by a later version of Feedgate;
    /// `Unavailable` if Redis or the source of epochs is away.
    pub async fn open(link: Link, epochs: Arc<dyn Epochs>, buckets: u16) -> Result<Self> {
        assert!(buckets > 0, "a store has at least one bucket");
        let renewals = (0..buckets).map(|_| Mutex::default()).collect();
        let (scripts, layout, sample) = (Scripts::new(), layout(buckets), Mutex::default());
        let inboxes = Self { link, epochs, scripts, layout, renewals, sample };
        inboxes.progress(&[(UserNo(0), Bucket(0))]).await?;
        Ok(inboxes)
    }

    fn bucket_of(&self, key: InboxKey) -> Bucket {
        key.reader.bucket(self.buckets())
    }

    /// Takes several steps by one script.
    async fn advance_on_one_server(&self, steps: Vec<Advance>) -> Vec<Result<Advanced>> {
        match self.push_all(&steps).await {
            Ok(pushed) => {
                let each = steps.into_iter().zip(pushed).map(async |(step, (push, reply))| match &*reply.word {
                    // The bucket of this step has no life yet.
                    "life" => self.advance(step).await,
                    _ => self.advanced(&step, &push, reply).await,
                });
                join_all(each).await
            }
            Err(error) => steps.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Sends steps of one author to one server, and gives the answer to each.
    async fn push_all(&self, steps: &[Advance]) -> Result<Vec<(Push, Reply)>> {
        let author = steps[0].author;
        let (mut keys, mut pushes) = (vec![], Vec::with_capacity(steps.len()));
        let mut arguments = vec![self.layout.clone().into_bytes()];
        arguments.extend(of_author(author));
        for step in steps {
            step.check(self.buckets());
            assert!(step.author == author, "steps that are taken at once are of one author");
            let mut push = Push::of(step)?;
            keys.append(&mut push.keys);
            arguments.append(&mut push.arguments);
            pushes.push(push);
        }
        let reply = self.link.script(&self.scripts.advance, &keys, &arguments).await?;
        let replies = self.judged(Reply::of(reply)?)?.all_replies()?;
        if replies.len() != steps.len() {
            return Err(StoreError::corrupt(format_args!("{} steps had {} answers", steps.len(), replies.len())));
        }
        Ok(pushes.into_iter().zip(replies).collect())
    }

    /// What the answer to a push step means. Logs that have become too long are cut.
    async fn advanced(&self, step: &Advance, push: &Push, reply: Reply) -> Result<Advanced> {
        let mut reply = self.judged(reply)?;
        match &*reply.word {
            "moved" => {
                let (grown, long) = push.moved(step, &mut reply)?;
                self.trim_all(long).await;
                Ok(Advanced::Moved(grown))
            }
            "overtaken" => Ok(Advanced::Overtaken(reply.progress()?)),
            "stale" => Ok(Advanced::Stale),
            "damaged" => {
                let why = reply.bytes()?;
                Err(StoreError::corrupt(format_args!("Redis: {}", String::from_utf8_lossy(&why))))
            }
            _ => Err(reply.unexpected()),
        }
    }
}

/// Entries as they stand in a list, the first with sequence id `first`.
fn numbered(entries: &[Vec<u8>], first: u64) -> Result<Vec<Numbered>> {
    entries.iter().zip(first..).map(|(bytes, seq)| Ok(Numbered { seq, entry: entry_of(bytes)? })).collect()
}

#[async_trait]
impl Inboxes for RedisInboxes {
    fn buckets(&self) -> u16 {
        self.renewals.len() as u16
    }

    async fn ping(&self) -> Result<()> {
        self.link.ping().await
    }

    async fn progress(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>> {
        self.progress_of(of).await
    }

    async fn advance(&self, step: Advance) -> Result<Advanced> {
        step.check(self.buckets());
        let mut push = Push::of(&step)?;
        let mut arguments = of_author(step.author).to_vec();
        arguments.append(&mut push.arguments);
        let reply = self.run(&self.scripts.advance, step.bucket, &push.keys, arguments).await?;
        self.advanced(&step, &push, reply).await
    }

    /// On a single server a script takes several steps. On a cluster each bucket may be on another node, so each step
    /// is a script.
    async fn advance_all(&self, steps: Vec<Advance>) -> Vec<Result<Advanced>> {
        if steps.len() < 2 || self.link.is_cluster() {
            return join_all(steps.into_iter().map(|step| self.advance(step))).await;
        }
        join_all(in_scripts(steps).into_iter().map(|steps| self.advance_on_one_server(steps))).await.concat()
    }

    async fn step_edges(&self, steps: Vec<EdgeStep>) -> Result<Vec<EdgeStepped>> {
        let key = steps[0].key;
        let mut arguments = vec![b"epoch".to_vec()];
        for step in &steps {
            let adds = if step.on { &step.adds[..] } else { &[] };
            arguments.push(field(step.author));
            arguments.push(if step.on { progress_text(step.expected.progress) } else { b"*".to_vec() });
            arguments.push(pull_watermark(step.expected.pull)?);
            arguments.push(mark_author(step.author).to_vec());
            arguments.push(step.generation.to_string().into_bytes());
            arguments.push(mark_generation(step.generation)?);
            let forget = step.forget();
            arguments.push(floor_bytes(forget.floor()));
            arguments.push((1 + adds.len()).to_string().into_bytes());
            arguments.push(entry_bytes(&forget));
            arguments.extend(adds.iter().map(entry_bytes));
        }
        let mut reply = self.on_inbox(&self.scripts.edges, key, arguments).await?;
        match &*reply.word {
            "stepped" => {
                let (epoch, length) = (Epoch(reply.number()?), reply.number()?);
                let stepped = reply.all_stepped(epoch)?;
                self.trim_long(key, length).await;
                Ok(stepped)
            }
            "missing" => Ok(vec![EdgeStepped::Missing; steps.len()]),
            "building" => Ok(vec![EdgeStepped::Building; steps.len()]),
            _ => Err(reply.unexpected()),
        }
    }

    async fn take(&self, step: Take) -> Result<Taken> {
        let mut reply = self.on_inbox(&self.scripts.take, step.key, take::arguments(&step)?).await?;
        match &*reply.word {
            "moved" => {
                let (head, appended, length) = (reply.position()?, reply.number()?, reply.number()?);
                self.trim_long(step.key, length).await;
                Ok(Taken::Moved { head, appended: appended as u32 })
            }
            "missing" => Ok(Taken::Missing),
            "building" => Ok(Taken::Building),
            "overtaken" => Ok(Taken::Overtaken),
            _ => Err(reply.unexpected()),
        }
    }

    async fn stands(&self, keys: &[InboxKey]) -> Result<Vec<Option<Stand>>> {
        Ok(self.standings(keys).await?.into_iter().map(|standing| standing.map(|standing| standing.at)).collect())
    }

    async fn present(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        self.present_of(keys).await
    }

    async fn begin_build(&self, key: InboxKey, epoch: Epoch) -> Result<Option<Begun>> {
        let arguments = vec![b"epoch".to_vec(), placeholder(epoch)?, epoch.0.to_string().into_bytes()];
        let mut reply = self.on_inbox(&self.scripts.begin, key, arguments).await?;
        match &*reply.word {
            "begun" => Ok(Some(Begun { placeholder: Epoch(reply.number()?), notes: reply.number()? })),
            "exists" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn finish_build(&self, build: Build) -> Result<bool> {
        let len = build.entries.len();
        let cut = if len > KEEP + SLACK { len - KEEP } else { 0 };
        let floor = build.floor.max(floor_of_cut(build.entries.iter().copied(), cut));
        let Build { key, epoch, built_at, taken, notes_from, .. } = build;
        let marks = marks(&build.ahead)?;
        let header = Header { epoch, base: cut as u64, built_at, taken, floor, marks };
        let until = if build.until == Millis::MAX { String::new() } else { build.until.to_string() };
        let numbers = [epoch.0.to_string(), until, notes_from.to_string(), number(built_at)?.to_string()];
        let mut arguments = vec![b"epoch".to_vec(), placeholder(epoch)?];
        arguments.extend(numbers.map(String::into_bytes));
        arguments.push(header.bytes()?);
        arguments.extend(build.entries[cut..].iter().map(entry_bytes));
        let mut reply = self.on_inbox(&self.scripts.finish, key, arguments).await?;
        match &*reply.word {
            "swapped" => {
                self.trim_long(key, reply.number()?).await;
                Ok(true)
            }
            "refused" => Ok(false),
            _ => Err(reply.unexpected()),
        }
    }

    async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read> {
        let limit = limit.min(usize::from(u16::MAX)) as u64;
        let mut arguments = vec![b"epoch".to_vec()];
        arguments.extend([after.epoch.0, after.offset, limit].map(|n| n.to_string().into_bytes()));
        let mut reply = self.on_inbox(&self.scripts.read, key, arguments).await?;
        match &*reply.word {
            "entries" => {
                let (head, taken) = (reply.position()?.offset, reply.watermarks()?);
                Ok(Read::Entries { entries: numbered(&reply.all_bytes()?, after.offset + 1)?, head, taken })
            }
            "gone" => Ok(Read::Gone { head: reply.position()? }),
            "missing" => Ok(Read::Missing),
            _ => Err(reply.unexpected()),
        }
    }

    async fn log(&self, key: InboxKey) -> Result<Option<Log>> {
        let mut reply = self.on_inbox(&self.scripts.log, key, vec![]).await?;
        match &*reply.word {
            "log" => {
                let elements = reply.all_bytes()?;
                let (header, entries) = elements.split_first().ok_or_else(|| reply.unexpected())?;
                let header = Header::of(header)?;
                let head = Position { epoch: header.epoch, offset: header.base + entries.len() as u64 };
                let entries = numbered(entries, header.base + 1)?;
                Ok(Some(Log { head, floor: header.floor, taken: header.taken, entries }))
            }
            "missing" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn discard(&self, key: InboxKey) -> Result<()> {
        self.on_inbox(&self.scripts.discard, key, vec![]).await.map(drop)
    }

    async fn touch(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        self.expire_at(keys, until).await
    }

    /// Does nothing, since Redis drops expired inboxes by itself.
    async fn discard_expired(&self, _: Millis, _: usize) -> Result<usize> {
        Ok(0)
    }

    /// Exact while no server holds more than some thousand keys, then an estimate. Of many inboxes it may be some
    /// seconds old. See `census.rs`.
    async fn counts(&self) -> Result<InboxCounts> {
        self.census().await
    }
}

/// The fuzz target: what Redis keeps of inboxes, and the lists that scripts answer.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    layout::fuzzed(bytes);
    packed::fuzzed(bytes);
}
