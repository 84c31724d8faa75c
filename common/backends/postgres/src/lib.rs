//! The truth on PostgreSQL: [`Archive`] for any number of processes over one database.
//!
//! ```text
//!   write ─▶ what waits together: one transaction, lock, load, plan, store      write/
//!   read  ─▶ one snapshot: a walk along indexes; of items what waits together   read/
//!            groups   calls that wait together are carried out together
//!            pool     connections and the bounds in time of all of it
//!            fault    what went wrong, sorted by what can be done about it
//! ```
//!
//! Invariants, besides those of the trait:
//! - Nothing is kept in memory that another process could change: names and numbers never do, nor where a backfill
//!   begins. Items are always asked for.
//! - Edge generations are counted per reader, in a row that is in every snapshot with the reader's edges.
//! - No call takes longer than some seconds, whatever the server or the network does.
//!
//! A standby that takes over must have everything that was accepted (`synchronous_standby_names`): numbers given twice
//! would be the least of it.

mod connect;
mod epochs;
mod events;
mod fault;
mod groups;
mod pool;
mod read;
mod rows;
mod users;
mod write;

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::archive::{
    Archive, ArchiveCounts, Built, Edge, EdgeState, Event, FeedAdd, Follow, Outbox, Outstanding, Recipient, Refused,
    Write, Written,
};
use feedgate_common::error::Result;
use feedgate_common::{Bucket, DisplayKey, Epoch, Item, ItemId, Millis, OutboxSeq, Progress, UserId, UserNo};

pub use connect::Options;
use epochs::Epochs;
use pool::{Pool, work};
use read::{Lows, SharedItems, counts, door, items, lists};
use users::Users;
use write::Queue;

/// See the crate. Share it: every handle has its own connections.
pub struct PostgresArchive {
    pool: Arc<Pool>,
    /// By how many the index of followers divides readers.
    buckets: u16,
    users: Arc<Users>,
    queue: Queue,
    items: SharedItems,
    lows: Lows,
    epochs: Epochs,
}

impl PostgresArchive {
    /// Connects to `postgres://user:password@host:port/database` and brings its tables to this version. Any number of
    /// processes may do so at once. Within a tokio runtime, where tasks of its own write and read items until the Archive is dropped.
    ///
    /// # Errors
    /// `Unavailable`, naming what is wrong and what would be right: the URL, the server, its version, the password, the
    /// database, or settings under which what is accepted could be lost.
    pub async fn connect(url: &str, options: Options) -> Result<Self> {
        let (pool, buckets) = connect::open(url, options).await?;
        let (pool, users) = (Arc::new(pool), Arc::new(Users::default()));
        let queue = Queue::start(pool.clone(), users.clone(), buckets);
        let items = SharedItems::start(pool.clone());
        Ok(Self { pool, buckets, users, queue, items, lows: Lows::default(), epochs: Epochs::default() })
    }

    /// Into how many buckets this store divides readers: what it was made with.
    pub fn buckets(&self) -> u16 {
        self.buckets
    }
}

#[async_trait]
impl Archive for PostgresArchive {
    async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        self.queue.write(writes, now).await
    }

    async fn intern(&self, names: &[UserId]) -> Result<Vec<UserNo>> {
        self.users.intern(&self.pool, names).await
    }

    async fn user_nos(&self, names: &[UserId]) -> Result<Vec<Option<UserNo>>> {
        self.users.numbers(&self.pool, names).await
    }

    async fn user_ids(&self, users: &[UserNo]) -> Result<Vec<UserId>> {
        self.users.names(&self.pool, users).await
    }

    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        self.items.get(ids).await
    }

    async fn item_by_foreign_id(&self, foreign_id: &str) -> Result<Option<ItemId>> {
        self.pool.read(work!(|connection| items::by_foreign_id(connection, foreign_id))).await
    }

    async fn outbox(&self, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox> {
        self.pool.read(work!(|connection| lists::outbox(connection, author, after, limit))).await
    }

    async fn profile(&self, author: UserNo, before: Option<DisplayKey>, limit: usize) -> Result<Vec<DisplayKey>> {
        self.pool.snapshot(work!(|connection| door::profile(connection, author, before, limit))).await
    }

    async fn recipients(
        &self,
        author: UserNo,
        bucket: Bucket,
        buckets: u16,
        after: Option<UserNo>,
        limit: usize,
    ) -> Result<Vec<Recipient>> {
        let share = lists::Share { author, bucket, buckets, layout: self.buckets };
        self.pool.read(work!(|connection| lists::recipients(connection, share, after, limit))).await
    }

    async fn all_recipients(&self, author: UserNo, limit: usize) -> Result<Vec<Recipient>> {
        self.pool.read(work!(|connection| lists::all_recipients(connection, author, limit))).await
    }

    async fn edge(&self, reader: UserNo, author: UserNo) -> Result<Edge> {
        self.pool.read(work!(|connection| lists::edge(connection, reader, author))).await
    }

    async fn followees(&self, reader: UserNo) -> Result<Vec<UserNo>> {
        self.pool.read(work!(|connection| lists::followees(connection, reader))).await
    }

    async fn following(&self, reader: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>> {
        self.pool.read(work!(|connection| lists::following(connection, reader, cursor, limit))).await
    }

    async fn followers(&self, author: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>> {
        self.pool.read(work!(|connection| lists::followers(connection, author, cursor, limit))).await
    }

    async fn edge_state(
        &self,
        reader: UserNo,
        author: UserNo,
        progress: Progress,
        backfill: usize,
    ) -> Result<EdgeState> {
        let edge = (reader, author);
        let lows = &self.lows;
        self.pool.snapshot(work!(|connection| door::edge_state(connection, lows, edge, progress, backfill))).await
    }

    async fn build(
        &self,
        reader: UserNo,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<Built> {
        let lows = &self.lows;
        self.pool.snapshot(work!(|connection| door::build(connection, lows, reader, progress, backfill, limit))).await
    }

    async fn feed_below(
        &self,
        reader: UserNo,
        before: Option<DisplayKey>,
        backfill: usize,
        limit: usize,
    ) -> Result<Vec<FeedAdd>> {
        let lows = &self.lows;
        self.pool
            .snapshot(work!(|connection| door::feed_below(connection, lows, reader, before, backfill, limit)))
            .await
    }

    async fn next_epoch(&self) -> Result<Epoch> {
        self.epochs.next(&self.pool).await
    }

    async fn outstanding(
        &self,
        after: Option<Outstanding>,
        not_after: Millis,
        limit: usize,
    ) -> Result<Vec<Outstanding>> {
        self.pool.read(work!(|connection| events::outstanding(connection, after, not_after, limit))).await
    }

    async fn finish(&self, finished: &[Event]) -> Result<bool> {
        self.pool.write(work!(|connection| events::finish(connection, finished))).await
    }

    async fn reopen(&self, authors: &[UserNo]) -> Result<()> {
        self.pool.write(work!(|connection| events::reopen(connection, authors))).await
    }

    async fn ping(&self) -> Result<()> {
        self.pool.read(work!(|connection| sqlx::query("SELECT 1").execute(connection))).await.map(drop)
    }

    async fn counts(&self) -> Result<ArchiveCounts> {
        self.pool.snapshot(work!(|connection| counts::counts(connection))).await
    }
}
