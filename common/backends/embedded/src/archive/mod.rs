//! The Archive of one machine: [`feedgate_common::Archive`] over the embedded store.
//!
//! ```text
//!   write ─▶ accept ─┬ feedgate_common::accept   what becomes of each operation
//!                    ├ load      the rows that a decision needs
//!                    ├ store     the changes it makes, as rows
//!                    └ ledger    what they share: counters, new users, events ─▶ one transaction ─▶ answer
//!   read  ─▶ view ───┬ lists     outbox, recipients
//!                    ├ people    edges, follows, shields
//!                    ├ news      what is pulled, what is addressed to the reader
//!                    ├ door      which adds a feed shows: follow, rebuild, deep pages, profile
//!                    └ hot       items in memory
//! ```
//!
//! Invariants, besides those of the trait:
//! - All operations of a call are one transaction on the only writer, so they need no lock.
//! - Edge generations come from one counter of the store. Each snapshot holds it together with the edges.
//! - What is kept in memory either never changes (names), or is dropped when a change becomes visible and before that
//!   is answered (items).

mod accept;
mod door;
mod epochs;
mod events;
mod export;
mod feeds;
mod hot;
mod ledger;
mod lists;
mod load;
mod news;
mod people;
mod store;
mod sweep;
mod tables;
mod users;

use std::sync::Arc;

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::accept::Ask;
use feedgate_common::archive::{
    self, ArchiveCounts, Author, Content, EdgeStates, Event, Events, FeedAdd, FeedState, Follow, Graph, Held, Items,
    Names, News, Outbox, Outboxes, Outstanding, PullHead, Recipient, Refused, Status, Transfer, Write, Writes, Written,
    may_be_foreign_id,
};
use feedgate_common::change::DEFAULT_PULL_ABOVE;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::graph::Shield;
use feedgate_common::{
    Bucket, DisplayKey, Epoch, FeedId, InboxKey, Item, ItemId, Millis, OutboxSeq, Progress, PullSeq, UserId, UserNo,
    Watermarks,
};

use crate::database::Database;
use crate::request::{Durability, Request};
use crate::view::{Read, View};
use door::{Doors, Stretch};
use epochs::Epochs;
use hot::HotItems;
use ledger::Setup;
use news::{Ends, Stretches};
use sweep::Sweep;
use tables::{Counters, CountersRow, FORMAT, Incarnation, Layout, LayoutRow};
use users::KnownUsers;

use crate::manifest;

/// More epochs than are given out between two writes of the manifest.
const EPOCHS_LOST: u64 = 1 << 32;

/// The Archive of one machine. Reads do not wait for writes.
pub struct EmbeddedArchive {
    db: Arc<Database>,
    setup: Setup,
    users: Arc<KnownUsers>,
    hot: Arc<HotItems>,
    doors: Arc<Doors>,
    stretches: Arc<Stretches>,
    epochs: Epochs,
    sweep: Arc<Sweep>,
}

impl EmbeddedArchive {
    /// Opens the Archive in `db`, which may be empty. `buckets` is the number of buckets into which the inbox store
    /// divides readers. A new store lays out its followers that way; an existing one keeps its layout and still answers
    /// correctly, only slower.
    ///
    /// # Errors
    /// `Corrupt` if the store is of a format that this version does not read; else the errors of a read and a write of
    /// the store.
    pub async fn open(db: Arc<Database>, buckets: u16) -> Result<Self> {
        let buckets = match db.view()?.get::<Layout>(&())? {
            Some(LayoutRow { format: FORMAT, buckets }) => buckets,
            Some(LayoutRow { format, .. }) => {
                return Err(StoreError::corrupt(format_args!(
                    "the Archive is of format {format}, and this version reads format {FORMAT} only"
                )));
            }
            None => {
                let buckets = buckets.max(1);
                let make = move |tx: &mut crate::view::Tx<'_>| {
                    tx.put::<Layout>(&(), &LayoutRow { format: FORMAT, buckets });
                    Ok(buckets)
                };
                db.write(Durability::Synced, make).await?
            }
        };
        let hot: Arc<HotItems> = Arc::default();
        let cached = hot.clone();
        db.when_reopened(move || cached.forget_all());
        Ok(Self {
            db,
            setup: Setup { buckets, pull_above: DEFAULT_PULL_ABOVE },
            users: Arc::default(),
            hot,
            doors: Arc::default(),
            stretches: Arc::default(),
            epochs: Epochs::default(),
            sweep: Arc::default(),
        })
    }

    /// This Archive, with another number of followers above which an author of class `auto` is pulled.
    #[must_use]
    pub fn with_pull_above(self, pull_above: u64) -> Self {
        Self { setup: Setup { pull_above, ..self.setup }, ..self }
    }

    /// The counters that never shrink, by name.
    pub(crate) fn counters(&self) -> Result<manifest::Counters> {
        counters(&*self.db.view()?)
    }

    /// Goes on with what is left after a loss, for an Archive that had given out epochs up to at least `epoch`. No
    /// epoch is given twice, and the Archive forgets its inbox store, so that this starts empty. Atomic and durable.
    pub(crate) async fn accept_loss(&self, epoch: u64) -> Result<()> {
        let accept = move |tx: &mut crate::view::Tx<'_>| {
            let row = tx.get::<Counters>(&())?.unwrap_or_default();
            tx.put::<Counters>(&(), &CountersRow { epoch: row.epoch.max(epoch) + EPOCHS_LOST, ..row });
            tx.remove::<Incarnation>(&());
            Ok(())
        };
        self.db.write(Durability::Synced, accept).await
    }

    /// The incarnation of the inbox store that this Archive last worked with.
    pub(crate) fn incarnation(&self) -> Result<Option<String>> {
        Ok(self.db.view()?.get::<Incarnation>(&())?.map(Into::into))
    }

    /// Stores the incarnation of the inbox store that this Archive works with. It is durable when this answers.
    pub(crate) async fn set_incarnation(&self, incarnation: &str) -> Result<()> {
        let incarnation = incarnation.into();
        let remember = move |tx: &mut crate::view::Tx<'_>| {
            tx.put::<Incarnation>(&(), &incarnation);
            Ok(())
        };
        self.db.write(Durability::Synced, remember).await
    }
}

/// The counters of an Archive that never shrink, by name.
pub(crate) fn counters(from: &impl Read) -> Result<manifest::Counters> {
    let row = from.get::<Counters>(&())?.unwrap_or_default();
    let CountersRow { users, generation, epoch, item, pull, feeds, .. } = row;
    let all = [
        ("users", users.into()),
        ("generation", generation),
        ("epoch", epoch),
        ("item", item),
        ("pull", pull),
        ("feeds", feeds.into()),
    ];
    Ok(all.map(|(name, count)| (name.to_owned(), count)).into())
}

#[async_trait]
impl Writes for EmbeddedArchive {
    async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        let asks: Vec<Ask> = writes.into_iter().map(|write| Ask::new(write, now)).collect();
        let bytes = asks.iter().map(Ask::bytes).sum();
        let changed: Vec<ItemId> = asks.iter().filter_map(accept::changed_item).collect();
        let (users, hot, sweep, setup) = (self.users.clone(), self.hot.clone(), self.sweep.clone(), self.setup);
        let request = Request::new(Durability::Synced, move |tx| {
            sweep.run(tx, now)?;
            accept::all(tx, &users, setup, &asks, now)
        });
        self.db.submit(request.bytes(bytes).then(move |_| hot.forget(&changed))).await
    }
}

#[async_trait]
impl Names for EmbeddedArchive {
    async fn intern(&self, names: &[UserId]) -> Result<Vec<UserNo>> {
        let known = self.user_nos(names).await?;
        if let Some(all) = known.iter().copied().collect::<Option<Vec<_>>>() {
            return Ok(all);
        }
        let (users, setup, names) = (self.users.clone(), self.setup, names.to_vec());
        self.db.write(Durability::Synced, move |tx| ledger::intern_all(tx, &users, setup, &names)).await
    }

    async fn user_nos(&self, names: &[UserId]) -> Result<Vec<Option<UserNo>>> {
        let view = self.db.view()?;
        names.iter().map(|name| self.users.learn_no(&view, name)).collect()
    }

    async fn user_ids(&self, users: &[UserNo]) -> Result<Vec<UserId>> {
        let view = self.db.view()?;
        users.iter().map(|user| self.users.learn_id(&view, *user)).collect()
    }

    async fn intern_feeds(&self, names: &[CompactString]) -> Result<Vec<FeedId>> {
        let known = feeds::known(&*self.db.view()?, names)?;
        if let Some(all) = known.into_iter().collect() {
            return Ok(all);
        }
        let names = names.to_vec();
        self.db.write(Durability::Synced, move |tx| feeds::intern(tx, &names)).await
    }

    async fn feeds(&self) -> Result<Vec<FeedId>> {
        feeds::all(&*self.db.view()?)
    }
}

#[async_trait]
impl Items for EmbeddedArchive {
    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        self.hot.items(&self.db, &self.users, ids)
    }

    async fn item_by_foreign_id(&self, foreign_id: &str) -> Result<Option<ItemId>> {
        if !may_be_foreign_id(foreign_id) {
            return Ok(None);
        }
        self.db.view()?.get::<tables::ForeignIds>(&foreign_id.into())
    }

    async fn profile(
        &self,
        author: UserNo,
        feed: FeedId,
        before: Option<DisplayKey>,
        limit: usize,
    ) -> Result<Vec<DisplayKey>> {
        door::profile(&*self.db.view()?, author, feed, before, limit)
    }

    async fn addressed(&self, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>> {
        people::addressed(&*self.db.view()?, reader, items)
    }
}

#[async_trait]
impl Outboxes for EmbeddedArchive {
    async fn outbox(&self, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox> {
        lists::outbox(&*self.db.view()?, author, after, limit)
    }

    async fn author(&self, author: UserNo) -> Result<Author> {
        people::author(&*self.db.view()?, author)
    }

    async fn recipients(
        &self,
        author: UserNo,
        bucket: Bucket,
        buckets: u16,
        after: Option<UserNo>,
        limit: usize,
    ) -> Result<Vec<Recipient>> {
        let share = lists::Share { author, bucket, buckets, layout: self.setup.buckets };
        lists::recipients(&*self.db.view()?, share, after, limit)
    }

    async fn all_recipients(&self, author: UserNo, limit: usize) -> Result<Vec<Recipient>> {
        lists::all_recipients(&*self.db.view()?, author, limit)
    }

    async fn followers_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<UserNo>> {
        let readers = readers.to_vec();
        self.db.read(move |view| people::followers_among(view, author, &readers)).await
    }

    async fn pull_head(&self) -> Result<PullSeq> {
        news::pull_head(&*self.db.view()?)
    }

    async fn pull_heads(&self, after: PullSeq, limit: usize) -> Result<Vec<PullHead>> {
        news::pull_heads(&*self.db.view()?, after, limit)
    }
}

#[async_trait]
impl Graph for EmbeddedArchive {
    async fn following(&self, reader: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>> {
        people::follows::<tables::FollowingList>(&*self.db.view()?, &self.users, reader, cursor, limit)
    }

    async fn followers(&self, author: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>> {
        people::follows::<tables::FollowerList>(&*self.db.view()?, &self.users, author, cursor, limit)
    }

    async fn mutual(&self, user: UserNo, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>> {
        let users = self.users.clone();
        self.db.read(move |view| people::mutual(view, &users, user, cursor, limit)).await
    }

    async fn shielded(&self, user: UserNo, shield: Shield, cursor: Option<u64>, limit: usize) -> Result<Vec<Follow>> {
        people::shielded(&*self.db.view()?, &self.users, (user, shield), cursor, limit)
    }

    async fn followees_among(&self, reader: UserNo, authors: &[UserNo]) -> Result<Vec<UserNo>> {
        people::followees_among(&*self.db.view()?, reader, authors)
    }
}

#[async_trait]
impl Content for EmbeddedArchive {
    async fn followees(&self, reader: UserNo) -> Result<Vec<UserNo>> {
        let edges = people::edges(&*self.db.view()?, reader)?;
        Ok(edges.into_iter().map(|(author, _)| author).collect())
    }

    async fn edge_states(
        &self,
        reader: UserNo,
        edges: &[(UserNo, Progress)],
        pulled: &[(FeedId, PullSeq)],
        backfill: usize,
    ) -> Result<EdgeStates> {
        let (doors, edges, pulled) = (self.doors.clone(), edges.to_vec(), pulled.to_vec());
        self.db.read(move |view| doors.edge_states(view, reader, &edges, &pulled, backfill)).await
    }

    async fn news(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News> {
        let (view, stretches) = (self.db.view()?, self.stretches.clone());
        let ends = Ends::of(&view, key.reader)?;
        if ends.are_near(after) {
            return news::news(&view, &stretches, key, after, limit, &ends);
        }
        let far = move |view: &View| news::news(view, &stretches, key, after, limit, &Ends::of(view, key.reader)?);
        self.db.read(far).await
    }

    async fn build(
        &self,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState> {
        let (doors, progress) = (self.doors.clone(), progress.to_vec());
        self.db.read(move |view| doors.build(view, key, &progress, backfill, limit)).await
    }

    async fn feed_below(
        &self,
        key: InboxKey,
        before: Option<DisplayKey>,
        least_rank: Option<i64>,
        backfill: usize,
        limit: usize,
    ) -> Result<Vec<FeedAdd>> {
        let doors = self.doors.clone();
        self.db.read(move |view| doors.feed_below(view, key, Stretch { before, least_rank }, backfill, limit)).await
    }
}

#[async_trait]
impl Events for EmbeddedArchive {
    async fn outstanding(
        &self,
        after: Option<Outstanding>,
        not_after: Millis,
        limit: usize,
    ) -> Result<Vec<Outstanding>> {
        self.db.read(move |view| events::outstanding(view, after, not_after, limit)).await
    }

    async fn edges_due(&self, reader: UserNo, limit: usize) -> Result<Vec<UserNo>> {
        events::edges_due(&*self.db.view()?, reader, limit)
    }

    /// A finish survives a crash of the process, not of the machine: a lost one only repeats work that then finds
    /// nothing to do.
    async fn finish(&self, finished: &[Event]) -> Result<Vec<Event>> {
        let finished = finished.to_vec();
        self.db.write(Durability::Buffered, move |tx| events::finish(tx, &finished)).await
    }

    async fn reopen(&self, authors: &[UserNo]) -> Result<()> {
        let authors = authors.to_vec();
        self.db.write(Durability::Synced, move |tx| events::reopen(tx, &authors)).await
    }
}

#[async_trait]
impl archive::Epochs for EmbeddedArchive {
    async fn next_epoch(&self) -> Result<Epoch> {
        self.epochs.next(&self.db).await
    }
}

#[async_trait]
impl Transfer for EmbeddedArchive {
    async fn users(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, UserId)>> {
        export::users(&*self.db.view()?, &self.users, after, limit)
    }

    async fn held(&self, reader: UserNo, after: Option<UserNo>, limit: usize) -> Result<Vec<Held>> {
        export::held(&*self.db.view()?, reader, after, limit)
    }

    async fn direct_items(&self, after: Option<ItemId>, limit: usize) -> Result<Vec<(ItemId, Vec<UserNo>)>> {
        export::direct_items(&*self.db.view()?, after, limit)
    }
}

#[async_trait]
impl Status for EmbeddedArchive {
    async fn ping(&self) -> Result<()> {
        self.db.ping()
    }

    async fn counts(&self) -> Result<ArchiveCounts> {
        let row = self.db.view()?.get::<Counters>(&())?.unwrap_or_default();
        Ok(ArchiveCounts { users: row.users.into(), items: row.living_items, edges: row.edges_on, events: row.events })
    }
}

#[cfg(test)]
mod tests;
