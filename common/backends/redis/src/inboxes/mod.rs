//! The inboxes in Redis: a list each, and one script for one step.
//!
//! ```text
//!   step ─▶ script on one bucket ─▶ answer             layout    what stands in Redis
//!             │ "this life is not mine"                push      the push step as bytes
//!             └▶ a new epoch ─▶ renew ─▶ again         scripts   Lua, and its answers
//!                                                      trim      what has become too long
//! ```
//!
//! Invariants: see [`Inboxes`]. Redis may lose anything: everything, the end of what was written, or any key by
//! eviction. So every script compares the bucket's life with the server's replication id in the same breath as it
//! reads or writes (see `scripts/bucket.lua`), and one that finds another does nothing.
//! Durable means what Redis is set to: what it loses costs a rebuild, never content.

mod layout;
mod push;
mod scripts;
mod trim;

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::inboxes::{
    Advance, Advanced, Build, EdgeStep, EdgeStepped, InboxCounts, KEEP, Log, Numbered, Read, floor_of_cut,
};
use feedgate_common::{Bucket, Entry, Epoch, InboxKey, Inboxes, Position, Progress, UserNo};
use futures_util::future::try_join_all;
use redis::{Value, cmd};
use tokio::sync::Mutex;

use crate::link::Script;
use crate::{Epochs, Link};
use layout::{
    Header, bucket_key, entry_bytes, entry_of, field, inbox_key, layout, mark_author, mark_generation, number,
    progress_text, token,
};
use push::Push;
use scripts::{Reply, Scripts};

/// A log is cut back when it has this many changes more than it must keep.
const SLACK: usize = 256;

/// The length of a list that is to be cut: a log and its header.
const LONG: usize = KEEP + SLACK + 1;

/// How often a bucket may turn out to have no life within one call.
const TRIES: usize = 4;

/// How many logs one call of `heads` asks for in one script, so that none holds the server long.
const HEADS: usize = 500;

/// The Redis home of [`Inboxes`]. See the module.
pub struct RedisInboxes {
    link: Link,
    epochs: Arc<dyn Epochs>,
    scripts: Scripts,
    layout: String,
    /// One call at a time renews a bucket.
    renewals: Vec<Mutex<()>>,
}

impl RedisInboxes {
    /// The inboxes behind `link`, in so many buckets. Whoever shares them must name the same number.
    ///
    /// # Errors
    /// `Corrupt` if they were made with another number of buckets, or another version of this; `Unavailable` if Redis or the
    /// source of epochs is.
    pub async fn open(link: Link, epochs: Arc<dyn Epochs>, buckets: u16) -> Result<Self> {
        assert!(buckets > 0, "a store has at least one bucket");
        let renewals = (0..buckets).map(|_| Mutex::default()).collect();
        let inboxes = Self { link, epochs, scripts: Scripts::new(LONG), layout: layout(buckets), renewals };
        inboxes.progress(&[(UserNo(0), Bucket(0))]).await?;
        Ok(inboxes)
    }

    fn bucket_of(&self, key: InboxKey) -> Bucket {
        key.reader.bucket(self.buckets())
    }

    /// A script on one inbox.
    async fn on_inbox(&self, script: &Script, key: InboxKey, arguments: Vec<Vec<u8>>) -> Result<Reply> {
        let bucket = self.bucket_of(key);
        self.run(script, bucket, &[bucket_key(bucket), inbox_key(bucket, key)], arguments).await
    }

    /// A script on one bucket; if the bucket has no life here, it gets one first.
    async fn run(
        &self,
        script: &Script,
        bucket: Bucket,
        keys: &[Vec<u8>],
        mut arguments: Vec<Vec<u8>>,
    ) -> Result<Reply> {
        arguments.insert(0, self.layout.clone().into_bytes());
        let mut renewing = None;
        for _ in 0..TRIES {
            let reply = self.judged(Reply::of(self.link.script(script, keys, &arguments).await?)?)?;
            match (&*reply.word, &renewing) {
                ("life", None) => renewing = Some(self.renewals[usize::from(bucket.0)].lock().await),
                ("life", Some(_)) => self.renew(bucket).await?,
                _ => return Ok(reply),
            }
        }
        Err(StoreError::unavailable(format_args!("{bucket:?} loses its life in Redis as fast as it gets one")))
    }

    /// What any script may answer instead of doing anything.
    fn judged(&self, mut reply: Reply) -> Result<Reply> {
        match &*reply.word {
            "replica" => {
                self.link.look_again();
                Err(StoreError::unavailable("Redis answers as a replica; its master is looked for again"))
            }
            "layout" => Err(StoreError::corrupt(format_args!(
                "Redis holds inboxes of layout {} (version/buckets) and this process is set to {}: set the same number of buckets \
                 everywhere, or empty this Redis",
                String::from_utf8_lossy(&reply.bytes()?),
                self.layout
            ))),
            _ => Ok(reply),
        }
    }

    /// Gives the bucket a life, and with it a least epoch that none of what it holds has. See `scripts/renew.lua`.
    async fn renew(&self, bucket: Bucket) -> Result<()> {
        let mut claim = Vec::new();
        for _ in 0..TRIES {
            let epoch = number(self.epochs.next_epoch().await?.0)?.to_string().into_bytes();
            let arguments = [self.layout.clone().into_bytes(), epoch, claim];
            let reply = self.link.script(&self.scripts.renew, &[bucket_key(bucket)], &arguments).await?;
            let mut reply = self.judged(Reply::of(reply)?)?;
            match &*reply.word {
                "claimed" => claim = reply.bytes()?,
                "alive" => return Ok(()),
                "renewed" => {
                    match reply.number()? {
                        0 => tracing::info!(
                            ?bucket,
                            "Redis holds nothing of it: it is new, or was lost; inboxes are built as readers come"
                        ),
                        _ => tracing::warn!(
                            ?bucket,
                            "Redis was restarted, replaced or rolled back: inboxes are rebuilt as readers come"
                        ),
                    }
                    return Ok(());
                }
                "back" => {
                    return Err(StoreError::corrupt(format_args!(
                        "the Archive gives epochs that were given before ({} was): was it restored from a copy?",
                        String::from_utf8_lossy(&reply.bytes()?)
                    )));
                }
                _ => return Err(reply.unexpected()),
            }
        }
        Err(StoreError::unavailable(format_args!("others renew {bucket:?} at the same time")))
    }
}

/// Entries as they stand in a list, the first with sequence id `first`.
fn numbered(entries: &[Vec<u8>], first: u64) -> Result<Vec<Numbered>> {
    entries.iter().zip(first..).map(|(bytes, seq)| Ok(Numbered { seq, entry: entry_of(bytes)? })).collect()
}

/// What belongs to the same bucket, with the places it came from.
fn by_bucket<T: Copy>(
    of: &[T],
    buckets: u16,
    bucket_of: impl Fn(&T) -> Bucket,
) -> impl Iterator<Item = (Bucket, Vec<(usize, T)>)> {
    let mut groups: Vec<Vec<(usize, T)>> = vec![Vec::new(); usize::from(buckets)];
    of.iter().enumerate().for_each(|(at, each)| groups[usize::from(bucket_of(each).0)].push((at, *each)));
    (0..buckets).map(Bucket).zip(groups).filter(|(_, group)| !group.is_empty())
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
        let groups = by_bucket(of, self.buckets(), |(_, bucket)| *bucket).map(async |(bucket, group)| {
            let mut arguments = vec![b"epoch".to_vec()];
            arguments.extend(group.iter().map(|(_, (author, _))| field(*author)));
            let mut reply = self.run(&self.scripts.progress, bucket, &[bucket_key(bucket)], arguments).await?;
            let reached = reply.all_bytes()?;
            group.into_iter().zip(reached).map(|((at, _), text)| Ok((at, layout::progress_of(&text)?))).collect()
        });
        let mut reached = vec![Progress::default(); of.len()];
        let groups: Vec<Vec<(usize, Progress)>> = try_join_all(groups).await?;
        groups.into_iter().flatten().for_each(|(at, progress)| reached[at] = progress);
        Ok(reached)
    }

    async fn advance(&self, step: Advance) -> Result<Advanced> {
        step.check(self.buckets());
        let mut push = Push::of(&step)?;
        let arguments = std::mem::take(&mut push.arguments);
        let mut reply = self.run(&self.scripts.advance, step.bucket, &push.keys, arguments).await?;
        match &*reply.word {
            "moved" => {
                let (grown, long) = push.moved(&step, reply)?;
                self.trim_all(long).await;
                Ok(Advanced::Moved(grown))
            }
            "overtaken" => Ok(Advanced::Overtaken(reply.progress()?)),
            "stale" => Ok(Advanced::Stale),
            _ => Err(reply.unexpected()),
        }
    }

    async fn step_edge(&self, step: EdgeStep) -> Result<EdgeStepped> {
        let mark = mark_generation(step.generation)?;
        let expected = if step.on { progress_text(step.expected) } else { b"*".to_vec() };
        let adds = if step.on { &step.adds[..] } else { &[] };
        let generation = step.generation.to_string().into_bytes();
        let mut arguments = vec![field(step.author), expected, mark_author(step.author).to_vec(), generation, mark];
        arguments.push(entry_bytes(&Entry::forget(step.author, step.generation)));
        arguments.extend(adds.iter().map(entry_bytes));
        let mut reply = self.on_inbox(&self.scripts.edge, step.key, arguments).await?;
        match &*reply.word {
            "applied" => {
                let (head, length) = (reply.position()?, reply.number()?);
                if length as usize > LONG {
                    self.trim_all(vec![step.key]).await;
                }
                Ok(EdgeStepped::Applied(head))
            }
            "nothing" => Ok(EdgeStepped::Nothing),
            "missing" => Ok(EdgeStepped::Missing),
            "overtaken" => Ok(EdgeStepped::Overtaken),
            _ => Err(reply.unexpected()),
        }
    }

    async fn begin_build(&self, key: InboxKey, epoch: Epoch, authors: &[UserNo]) -> Result<Option<Vec<Progress>>> {
        let mut arguments = vec![b"epoch".to_vec(), token(epoch)?];
        arguments.extend(authors.iter().map(|author| field(*author)));
        let mut reply = self.on_inbox(&self.scripts.begin, key, arguments).await?;
        match &*reply.word {
            "begun" => reply.all_bytes()?.iter().map(|text| layout::progress_of(text)).collect::<Result<_>>().map(Some),
            "exists" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn finish_build(&self, build: Build) -> Result<bool> {
        let len = build.entries.len();
        let cut = if len > KEEP + SLACK { len - KEEP } else { 0 };
        let floor = build.floor.max(floor_of_cut(build.entries.iter().copied(), cut));
        let (epoch, built_at) = (build.epoch, build.built_at);
        let header = Header { epoch, base: cut as u64, built_at, floor, marks: vec![] };
        let mut arguments = vec![b"epoch".to_vec(), token(epoch)?, epoch.0.to_string().into_bytes(), header.bytes()?];
        arguments.extend(build.entries[cut..].iter().map(entry_bytes));
        let reply = self.on_inbox(&self.scripts.finish, build.key, arguments).await?;
        match &*reply.word {
            "swapped" => Ok(true),
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
                let head = reply.position()?.offset;
                Ok(Read::Entries { entries: numbered(&reply.all_bytes()?, after.offset + 1)?, head })
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
                Ok(Some(Log { head, floor: header.floor, entries: numbered(entries, header.base + 1)? }))
            }
            "missing" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn heads(&self, keys: &[InboxKey]) -> Result<Vec<Option<Position>>> {
        let groups = by_bucket(keys, self.buckets(), |key| self.bucket_of(*key)).map(async |(bucket, group)| {
            let mut heads = Vec::with_capacity(group.len());
            for part in group.chunks(HEADS) {
                let inboxes = part.iter().map(|(_, key)| inbox_key(bucket, *key));
                let keys: Vec<_> = std::iter::once(bucket_key(bucket)).chain(inboxes).collect();
                let mut reply = self.run(&self.scripts.heads, bucket, &keys, vec![]).await?;
                heads.extend(part.iter().map(|(at, _)| *at).zip(reply.all_positions()?));
            }
            Ok::<_, StoreError>(heads)
        });
        let mut heads = vec![None; keys.len()];
        try_join_all(groups).await?.into_iter().flatten().for_each(|(at, head)| heads[at] = head);
        Ok(heads)
    }

    async fn discard(&self, key: InboxKey) -> Result<()> {
        self.on_inbox(&self.scripts.discard, key, vec![]).await.map(drop)
    }

    /// Exact as long as Redis evicts nothing.
    async fn counts(&self) -> Result<InboxCounts> {
        let counts = (0..self.buckets()).map(Bucket).map(async |bucket| {
            let mut command = cmd("HMGET");
            command.arg(bucket_key(bucket)).arg("inboxes").arg("entries");
            let held: Vec<Option<u64>> = self
                .link
                .call(&command)
                .await
                .and_then(|value: Value| redis::from_redis_value(value).map_err(StoreError::corrupt))?;
            Ok::<_, StoreError>(held.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>())
        });
        let counts = try_join_all(counts).await?;
        let sum = |at: usize| counts.iter().map(|count| count[at]).sum();
        Ok(InboxCounts { inboxes: sum(0), entries: sum(1) })
    }
}
