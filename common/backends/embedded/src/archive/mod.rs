//! The Archive of one machine: [`feedgate_common::Archive`] over the embedded store.
//!
//! ```text
//!   write ─▶ accept ─┬ feedgate_common::accept   what becomes of each operation
//!                    ├ load      the rows that a decision needs
//!                    ├ store     the changes it makes, as rows
//!                    └ ledger    what they share: counters, new users, events ─▶ one transaction ─▶ answer
//!   read  ─▶ view ───┬ lists     outbox, recipients
//!                    ├ people    edges, follows, shields
//!                    ├ reposts   the living reposts of items
//!                    ├ versions  the bodies that items had
//!                    ├ own_posts edges of authors to themselves, what users have sent
//!                    ├ persons   what backends say of users
//!                    ├ audiences lists of users, and to whom an item is narrowed
//!                    ├ news      what is pulled, what is addressed to the reader
//!                    ├ content   which adds a feed shows: follow, rebuild, deep pages, profile
//!                    └ hot       items in memory
//! ```
//!
//! Invariants, besides those of the trait:
//! - All operations of a call are one transaction on the only writer, so they need no lock.
//! - Edge generations come from one counter of the store. Each snapshot holds it together with the edges.
//! - What is kept in memory either never changes (names), or is dropped when a change becomes visible and before that
//!   is answered (items).

mod accept;
mod announcements;
mod any;
mod around_items;
mod audiences;
mod circle;
mod comments;
mod content;
mod epochs;
mod erasures;
mod events;
mod export;
mod feeds;
#[cfg(test)]
mod fixture;
mod hot;
mod ledger;
mod lines;
mod lists;
mod load;
mod news;
mod notifications;
mod own_posts;
mod people;
mod persons;
mod pins;
mod push;
mod rankings;
mod reactions;
mod reposts;
mod revocations;
pub(crate) mod search;
mod sights;
mod store;
mod sweep;
pub(crate) mod tables;
mod users;
mod versions;

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::accept::Ask;
use feedgate_common::accept::Policy;
use feedgate_common::archive::{
    self, ArchiveCounts, Author, Below, Content, DeadNotice, EdgeStates, Event, Events, FeedAdd, FeedState, Follow,
    Graph, Held, Items, ListCursor, Names, News, Note, Notice, Outbox, Outboxes, Outstanding, PullHead, PushDevice,
    PushDevices, PushNotices, Recipient, Refused, Revocation, Revocations, Settled, Sights, Status, Transfer, Write,
    Writes, Written, may_be_foreign_id,
};
use feedgate_common::around::Viewer;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::graph::Shield;
use feedgate_common::notify::Rules;
use feedgate_common::{
    Bucket, DeviceId, DirectSeq, DisplayKey, Epoch, FeedId, InboxKey, Item, ItemId, Millis, OutboxSeq, Progress,
    PullSeq, Record, Replaced, Seen, UserId, UserNo, Watermarks,
};
use futures_util::stream::BoxStream;

use crate::database::Database;
use crate::request::{Durability, Request};
use crate::table::{Space, Table as _};
use crate::view::{Read, Tx, View};
use accept::{Done, Shared};
pub use announcements::Kept;
use announcements::Log;
use any::Any;
use around_items::AroundItems;
use content::Contents;
use epochs::Epochs;
use hot::HotItems;
use ledger::Setup;
use news::{Ends, Runs};
use notifications::Waiting;
use push::{DueFrom, Listeners};
use search::Prepared;
use sweep::Sweep;
use tables::{Counters, CountersRow, FORMAT, Incarnation, Layout, LayoutRow};
use users::KnownUsers;

use crate::{manifest, rows};

/// More epochs than are given out between two writes of the manifest.
const EPOCHS_LOST: u64 = 1 << 32;

/// The Archive of one machine. Reads do not wait for writes. A clone is the same Archive.
#[derive(Clone)]
pub struct EmbeddedArchive {
    db: Arc<Database>,
    setup: Setup,
    users: Arc<KnownUsers>,
    hot: Arc<HotItems>,
    contents: Arc<Contents>,
    runs: Arc<Runs>,
    epochs: Arc<Epochs>,
    sweep: Arc<Sweep>,
    listeners: Arc<Listeners>,
    log: Arc<Log>,
    due_from: Arc<DueFrom>,
    /// Whether anything may be said of a user.
    any_people: Arc<Any>,
    reactions: Arc<AroundItems>,
    comments: Arc<AroundItems>,
    /// Whether there may be a repost.
    any_reposts: Arc<Any>,
    /// The rules by which users are notified.
    rules: Arc<ArcSwap<Rules>>,
    /// Reactions that wait to be carried out together.
    waiting: Arc<Waiting>,
    /// Whether the store was ever told what to index for search.
    any_search: Arc<Any>,
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
            Some(row) => row.known()?,
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
        let (due_from, sweep): (Arc<DueFrom>, Arc<Sweep>) = Default::default();
        let log = Arc::new(Log::open(&*db.view()?, Kept::default())?);
        let (cached, from, swept, cut) = (hot.clone(), due_from.clone(), sweep.clone(), log.clone());
        db.when_reopened(move || {
            cached.forget_all();
            from.reset();
            swept.reset();
            cut.reset();
        });
        let listeners = Arc::new(Listeners::load(&*db.view()?)?);
        let any_people = Arc::new(Any::of::<tables::People>(&*db.view()?)?);
        let reactions = Arc::new(reactions::known(&*db.view()?)?);
        let comments = Arc::new(comments::known(&*db.view()?)?);
        let any_reposts = Arc::new(reposts::known(&db).await?);
        let any_search = Arc::new(Any::of::<tables::SearchState>(&*db.view()?)?);
        Ok(Self {
            db,
            setup: Setup { buckets, policy: Policy::default() },
            users: Arc::default(),
            hot,
            contents: Arc::default(),
            runs: Arc::default(),
            epochs: Arc::default(),
            sweep,
            listeners,
            log,
            due_from,
            any_people,
            reactions,
            comments,
            any_reposts,
            rules: Arc::default(),
            waiting: Arc::default(),
            any_search,
        })
    }

    /// This Archive, with other decisions about writes.
    #[must_use]
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { setup: Setup { policy, ..self.setup }, ..self }
    }

    /// This Archive, with another number of followers above which an author of class `auto` is pulled.
    #[must_use]
    pub fn with_pull_above(self, pull_above: u64) -> Self {
        let policy = Policy { pull_above, ..self.setup.policy };
        self.with_policy(policy)
    }

    /// This Archive, with another time for which it keeps what other programs are told.
    #[must_use]
    pub fn with_kept(self, kept: Kept) -> Self {
        Self { log: Arc::new(self.log.keeping(kept)), ..self }
    }

    /// The counters that never shrink, by name.
    pub(crate) fn counters(&self) -> Result<manifest::Counters> {
        counters(&*self.db.view()?)
    }

    /// Goes on with what is left after a loss, for an Archive that had given out epochs up to at least `epoch`. No
    /// epoch is given twice, and the Archive forgets its inbox store, so that this starts empty. Atomic and durable.
    pub(crate) async fn accept_loss(&self, epoch: u64) -> Result<()> {
        self.db.write(Durability::Synced, move |tx| go_on(tx, epoch)).await
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

/// Lets an Archive go on that may have given out more epochs than it knows, up to at least `epoch`. No epoch and no
/// number of a notice is given twice, and the Archive forgets its inbox store, so that this starts empty.
pub(crate) fn go_on(tx: &mut Tx<'_>, epoch: u64) -> Result<()> {
    let row = tx.get::<Counters>(&())?.unwrap_or_default();
    tx.put::<Counters>(&(), &CountersRow { epoch: row.epoch.max(epoch) + EPOCHS_LOST, ..row });
    tx.remove::<Incarnation>(&());
    // A receiver leaves out notifications with the ids of those that it has told.
    let number = tx.get::<tables::PushNumber>(&())?.unwrap_or_default();
    tx.put::<tables::PushNumber>(&(), &(number.max(epoch) + EPOCHS_LOST));
    // No number is given twice, so a program whose position is from before the loss is told that it is gone.
    let announced = tx.get::<tables::LastAnnounced>(&())?.unwrap_or(0);
    tx.put::<tables::LastAnnounced>(&(), &(announced + EPOCHS_LOST));
    Ok(())
}

/// Whether the row at `key` of a tree is an announcement for other programs.
pub(crate) fn is_announcement(space: Space, key: &[u8]) -> bool {
    space == tables::Announcements::SPACE && key.first() == Some(&tables::Announcements::TAG)
}

/// `Corrupt` if the rows are of a format that this version does not read.
pub(crate) fn check_format(from: &impl Read) -> Result<()> {
    match from.get::<Layout>(&())? {
        Some(row) => row.known().map(drop),
        None => Err(StoreError::corrupt("the rows are not those of an Archive")),
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
        let indexed = Prepared::of(&*self.db.view()?, &self.any_search, &asks)?;
        let bytes = asks.iter().map(Ask::bytes).sum();
        if asks.iter().filter_map(Ask::published).any(|publish| publish.repost_of.is_some()) {
            self.any_reposts.set();
        }
        let changed: Vec<ItemId> = asks.iter().filter_map(accept::changed_item).collect();
        let (users, hot, sweep, setup) = (self.users.clone(), self.hot.clone(), self.sweep.clone(), self.setup);
        let (log, told) = (self.log.clone(), self.log.clone());
        let (rules, search) = (self.rules.load_full(), self.any_search.clone());
        let (reactions, comments, ends) = (self.reactions.clone(), self.comments.clone(), !changed.is_empty());
        let withdrawn = self.withdrawn();
        let request = Request::new(Durability::Synced, move |tx| {
            sweep.run(tx, now)?;
            reactions.sweep(tx, ends)?;
            comments.sweep(tx, ends)?;
            accept::all(
                tx,
                Shared { users: &users, log: &log, setup, rules: &rules, search: &search },
                &asks,
                indexed,
                now,
            )
        });
        let then = move |done: &Done<_>| {
            hot.forget(&changed);
            withdrawn(&done.withdrawn);
            told.tell();
        };
        Ok(self.db.submit(request.bytes(bytes).then(then)).await?.answers)
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

    async fn originals(&self, ids: &[ItemId], viewer: Viewer) -> Result<Vec<Option<Arc<Item>>>> {
        let found = self.hot.items(&self.db, &self.users, ids)?;
        people::originals(&*self.db.view()?, viewer, found)
    }

    async fn reposts(&self, original: ItemId, before: Option<ItemId>, limit: usize) -> Result<Vec<ItemId>> {
        reposts::listed(&*self.db.view()?, original, before, limit)
    }

    async fn versions(&self, item: ItemId) -> Result<Vec<Replaced>> {
        versions::listed(&*self.db.view()?, item)
    }

    async fn published(&self, ids: &[ItemId]) -> Result<Vec<Option<(UserNo, Millis)>>> {
        let ids = ids.to_vec();
        self.db.read(move |view| sights::published(view, &ids)).await
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
        content::profile(&*self.db.view()?, author, feed, before, limit)
    }

    async fn sent(&self, user: UserNo, before: Option<DisplayKey>, limit: usize) -> Result<Vec<DisplayKey>> {
        own_posts::sent(&*self.db.view()?, user, before, limit)
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
        lists::recipients(&*self.db.view()?, &self.listeners, share, after, limit)
    }

    async fn all_recipients(&self, author: UserNo, limit: usize) -> Result<Vec<Recipient>> {
        lists::all_recipients(&*self.db.view()?, &self.listeners, author, limit)
    }

    async fn recipients_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<Recipient>> {
        lists::recipients_among(&*self.db.view()?, &self.listeners, (author, self.setup.buckets), readers)
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
    async fn following(&self, reader: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        people::follows::<tables::FollowingList>(&*self.db.view()?, &self.users, reader, cursor, limit)
    }

    async fn followers(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        people::follows::<tables::FollowerList>(&*self.db.view()?, &self.users, author, cursor, limit)
    }

    async fn mutual(&self, user: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        let users = self.users.clone();
        self.db.read(move |view| people::mutual(view, &users, user, cursor, limit)).await
    }

    async fn requests(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        people::follows::<tables::RequestList>(&*self.db.view()?, &self.users, author, cursor, limit)
    }

    async fn shielded(
        &self,
        user: UserNo,
        shield: Shield,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>> {
        people::shielded(&*self.db.view()?, &self.users, (user, shield), cursor, limit)
    }

    async fn blocked_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>> {
        let users = users.to_vec();
        self.db.read(move |view| users.iter().map(|user| people::blocked_with(view, *user, limit)).collect()).await
    }

    async fn mutual_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>> {
        let users = users.to_vec();
        self.db.read(move |view| users.iter().map(|user| people::mutual_with(view, *user, limit)).collect()).await
    }

    async fn followed_among(&self, user: UserNo, others: &[UserNo]) -> Result<Vec<UserNo>> {
        people::followed_among(&*self.db.view()?, user, others)
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
        let (contents, edges, pulled) = (self.contents.clone(), edges.to_vec(), pulled.to_vec());
        self.db.read(move |view| contents.edge_states(view, reader, &edges, &pulled, backfill)).await
    }

    async fn news(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News> {
        let (view, runs) = (self.db.view()?, self.runs.clone());
        let ends = Ends::of(&view, key.reader)?;
        let mut news = if ends.are_near(after) {
            news::news(&view, &runs, key, after, limit, &ends)?
        } else {
            let far = move |view: &View| news::news(view, &runs, key, after, limit, &Ends::of(view, key.reader)?);
            self.db.read(far).await?
        };
        if self.listeners.has(key.reader) {
            news.noted = view.get::<tables::PushReaders>(&key.reader)?;
        }
        Ok(news)
    }

    async fn build(
        &self,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState> {
        let (contents, progress) = (self.contents.clone(), progress.to_vec());
        self.db.read(move |view| contents.build(view, key, &progress, backfill, limit)).await
    }

    async fn feed_below(&self, key: InboxKey, below: Below, backfill: usize) -> Result<Vec<FeedAdd>> {
        let contents = self.contents.clone();
        self.db.read(move |view| contents.feed_below(view, key, below, backfill)).await
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
impl Revocations for EmbeddedArchive {
    async fn revoke(&self, user: UserNo, before: Millis) -> Result<()> {
        self.db.write(Durability::Synced, move |tx| revocations::revoke(tx, user, before)).await
    }

    async fn revoked(&self, user: UserNo) -> Result<Option<Millis>> {
        Ok(self.db.view()?.get::<tables::Revoked>(&user)?.map(|row| row.before))
    }

    async fn last_revocation(&self) -> Result<u64> {
        revocations::last(&*self.db.view()?)
    }

    async fn revocations(&self, after: u64, limit: usize) -> Result<Vec<Revocation>> {
        revocations::beyond(&*self.db.view()?, after, limit)
    }
}

#[async_trait]
impl Sights for EmbeddedArchive {
    async fn seen(&self, key: InboxKey) -> Result<Option<Seen>> {
        sights::seen(&*self.db.view()?, key)
    }

    async fn see(&self, key: InboxKey, seen: Seen) -> Result<bool> {
        if seen.or_later(self.seen(key).await?).is_none() {
            return Ok(false);
        }
        self.db.write(Durability::Synced, move |tx| sights::see(tx, key, seen)).await
    }
}

#[async_trait]
impl PushDevices for EmbeddedArchive {
    async fn register(&self, user: UserNo, device: PushDevice) -> Result<bool> {
        let listeners = self.listeners.clone();
        let register = Request::new(Durability::Synced, move |tx| push::register(tx, user, &device));
        self.db
            .submit(register.then(move |done| {
                if *done {
                    listeners.set(user, true)
                }
            }))
            .await
    }

    async fn unregister(&self, user: UserNo, device: &DeviceId, token: Option<&str>) -> Result<bool> {
        let (listeners, device, token) = (self.listeners.clone(), device.clone(), token.map(str::to_owned));
        let unregister =
            Request::new(Durability::Synced, move |tx| push::unregister(tx, user, &device, token.as_deref()));
        let (taken, _) = self.db.submit(unregister.then(move |(_, listens)| listeners.set(user, *listens))).await?;
        Ok(taken)
    }

    async fn push_devices(&self, users: &[UserNo]) -> Result<Vec<Vec<PushDevice>>> {
        let view = self.db.view()?;
        users.iter().map(|user| push::devices(&view, *user)).collect()
    }
}

#[async_trait]
impl PushNotices for EmbeddedArchive {
    async fn note(&self, notes: &[Note], due: Millis, noted: Option<(UserNo, DirectSeq)>) -> Result<()> {
        let (notes, from) = (notes.to_vec(), self.due_from.clone());
        self.db.write(Durability::Synced, move |tx| push::note(tx, &from, &notes, due, noted)).await
    }

    async fn take_due(&self, now: Millis, lease_until: Millis, limit: usize) -> Result<Vec<Notice>> {
        if !push::may_be_due(&self.db, &self.due_from, now)? {
            return Ok(vec![]);
        }
        let mut taken = vec![];
        loop {
            let (from, limits) = (self.due_from.clone(), (limit - taken.len(), limit.saturating_mul(4)));
            let take = move |tx: &mut Tx<'_>| push::take_due(tx, &from, now, lease_until, limits);
            let (some, is_all) = self.db.write(Durability::Buffered, take).await?;
            self.due_from.raise();
            taken.extend(some);
            if is_all || taken.len() >= limit {
                return Ok(taken);
            }
        }
    }

    async fn settle(&self, settled: &[Settled], now: Millis) -> Result<()> {
        let (settled, from) = (settled.to_vec(), self.due_from.clone());
        self.db.write(Durability::Synced, move |tx| push::settle(tx, &from, &settled, now)).await
    }

    async fn dead(&self, after: Option<InboxKey>, limit: usize) -> Result<Vec<DeadNotice>> {
        push::dead(&*self.db.view()?, after, limit)
    }

    async fn retry_dead(&self, reader: Option<UserNo>, now: Millis, limit: usize) -> Result<usize> {
        let from = self.due_from.clone();
        self.db.write(Durability::Synced, move |tx| push::retry_dead(tx, &from, reader, now, limit)).await
    }

    async fn forget_dead(&self, reader: Option<UserNo>, limit: usize) -> Result<usize> {
        self.db.write(Durability::Synced, move |tx| push::forget_dead(tx, reader, limit)).await
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

    async fn moves(&self, author: UserNo, records: &[Record]) -> Result<Vec<Option<OutboxSeq>>> {
        export::moves(&*self.db.view()?, author, records)
    }

    fn copy(&self) -> Option<BoxStream<'static, Result<Vec<u8>>>> {
        Some(rows::copy(self.db.clone()))
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
