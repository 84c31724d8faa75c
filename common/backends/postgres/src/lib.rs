//! The Archive on PostgreSQL: [`feedgate_common::Archive`] for any number of processes over one database.
//!
//! ```text
//!   write ─▶ what waits together: one transaction, lock, load, plan, store      write/
//!   read  ─▶ one snapshot: a walk along indexes; of items and news what waits   read/
//!            together
//!            groups   calls that wait together are carried out together
//!            pool     connections and the bounds in time of all of it
//!            fault    what went wrong, sorted by what can be done about it
//! ```
//!
//! Invariants, besides those of the trait:
//! - Nothing that another process could change is used from memory alone. Names, numbers, and where a backfill begins
//!   never change. Followers are kept with the number of their state, which is compared at each use. Items are read
//!   from the server each time.
//! - Edge generations are counted for each reader, in a row that every snapshot holds together with the reader's edges.
//! - Records of route pull are numbered by one counter of the store, in the order of commits (see `write`).
//! - No call takes longer than some seconds, whatever the server or the network does.
//!
//! A standby that takes over must have everything that was accepted (`synchronous_standby_names`). Otherwise accepted
//! writes would be lost, and numbers would be given twice.
//!
//! # Where to begin
//!
//! The tour of all crates is in [`feedgate_common`]. Here, begin with [`PostgresArchive`] and the module `write`: it
//! locks and loads the rows of a write, asks [`feedgate_common::accept`] for the decision, and stores the result. In a
//! cluster the inboxes lie elsewhere: see [`feedgate_redis`](../feedgate_redis/index.html).

mod announcements;
mod audiences;
mod comments;
mod connect;
pub mod doctor;
mod epochs;
mod erasures;
mod events;
mod fault;
mod feeds;
mod finishing;
mod groups;
mod own_posts;
mod people;
mod pins;
mod pool;
mod push;
mod rankings;
mod reacting;
mod reactions;
mod read;
mod reposts;
mod revocations;
mod rows;
mod search;
mod sights;
mod users;
mod versions;
mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::announce::Numbered;
use feedgate_common::archive::{
    self, Ahead, Announcements, ArchiveCounts, Audiences, Author, Below, Comments, Content, DeadNotice, EdgeStates,
    Erasures, Event, Events, FeedAdd, FeedState, Follow, Graph, Held, Items, Known, ListCursor, Names, News, Note,
    Notice, Notifications, Outbox, Outboxes, Outstanding, OwnPosts, People, Pins, PullHead, PushDevice, PushDevices,
    PushNotices, Rankings, Reactions, Recipient, Refused, Remains, Revocation, Revocations, Search, Settled, Sights,
    Status, Transfer, Write, Writes, Written, may_be_foreign_id,
};
use feedgate_common::around::{
    Around, Comment, CommentOrder, CommentPage, CommentPlace, CommentWrite, Commented, Onlooker, Place, Reacted,
    Reaction, ReactionKind, Terms, Uncommented, Unreacted, Viewer,
};
use feedgate_common::audience::{ListChange, ListRefused, Listed};
use feedgate_common::erase::{Erasure, Mark, Removed, Stage, State, Traces};
use feedgate_common::error::Result;
use feedgate_common::feed::{Mentioned, mentioned_by};
use feedgate_common::graph::Shield;
use feedgate_common::ids::ListName;
use feedgate_common::metrics::Registry;
use feedgate_common::notify::lines::{Line, Member};
use feedgate_common::notify::{Notified, Rules};
use feedgate_common::people::{Card, Person};
use feedgate_common::pins::{NotPinned, Pin};
use feedgate_common::ranking::{NoSuchItem, Ranked, Renewed};
use feedgate_common::search::{Hits, Look, TextFields};
use feedgate_common::{
    Bucket, DeviceId, DirectSeq, DisplayKey, Epoch, FeedId, InboxKey, Item, ItemId, Millis, OutboxSeq, Progress,
    PullSeq, Record, Replaced, Seen, UserId, UserNo, Watermarks,
};

use feedgate_tls::StoreTls;
use futures_util::stream::BoxStream;
use parking_lot::RwLock;

pub use connect::Options;
use epochs::Epochs;
use finishing::Finishing;
use pool::{Pool, work};
use push::{devices, notices};
use reacting::{Reacting, Telling};
use read::lists::List;
use read::{
    Lows, SharedAhead, SharedItems, SharedNews, content, counts, export, graph, items, lists, push as recipients,
};
use users::Users;
use write::{Queue, Settings};

/// The Archive of one PostgreSQL database. Share one handle, since each handle has connections of its own.
pub struct PostgresArchive {
    pool: Arc<Pool>,
    users: Arc<Users>,
    queue: Queue,
    reacting: Reacting,
    settings: Settings,
    /// The rules by which users are notified.
    rules: Arc<RwLock<Arc<Rules>>>,
    items: SharedItems,
    news: SharedNews,
    ahead: SharedAhead,
    finishing: Finishing,
    lows: Lows,
    epochs: Epochs,
}

impl PostgresArchive {
    /// Connects to `postgres://user:password@host:port/database` and brings its tables to this version. Any number of
    /// processes may do so at once. To be called in a tokio runtime: tasks that write and read items run there until
    /// the Archive is dropped.
    ///
    /// # Errors
    /// `Misconfigured`, with what is wrong and what would be right: the URL, the version, the password, the database,
    /// or settings under which what is accepted could be lost. `Unavailable` if the server does not answer.
    pub async fn connect(url: &str, options: Options) -> Result<Self> {
        Self::connect_with(url, &StoreTls::default(), options).await
    }

    /// As [`connect`](Self::connect), with files for TLS. If there are any, the server must have TLS, a certificate by
    /// one of the authorities, and the host of the URL in it; `sslmode=verify-ca` in the URL takes any host, and
    /// `sslmode=disable` is a connection without TLS.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and `Misconfigured` if there is no TLS with the server.
    pub async fn connect_with(url: &str, tls: &StoreTls, options: Options) -> Result<Self> {
        let (pool, buckets) = connect::open(url, tls, options).await?;
        let pool = Arc::new(pool);
        let users = Arc::new(Users::start(pool.clone()));
        let settings = Settings { buckets, policy: options.policy };
        let rules = Arc::<RwLock<Arc<Rules>>>::default();
        let queue = Queue::start(pool.clone(), users.clone(), settings, rules.clone());
        let reacting = Reacting::start(&pool, settings);
        let (items, news) = (SharedItems::start(pool.clone()), SharedNews::start(pool.clone()));
        let (ahead, finishing) = (SharedAhead::start(pool.clone()), Finishing::start(pool.clone()));
        let (lows, epochs) = (Lows::default(), Epochs::start(pool.clone()));
        Ok(Self { pool, users, queue, reacting, settings, rules, items, news, ahead, finishing, lows, epochs })
    }

    /// Registers what is counted of calls to the server, as `postgresql_calls` and `postgresql_call_seconds`.
    pub fn register(&self, registry: &mut Registry) {
        self.pool.register(registry);
    }

    async fn list(&self, list: List, user: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.pool.read(work!(|connection| lists::list(connection, list, user, cursor, limit))).await
    }

    /// The names of these users.
    async fn names_of(&self, users: impl Iterator<Item = UserNo>) -> Result<HashMap<UserNo, UserId>> {
        let users: Vec<UserNo> = users.collect();
        Ok(users.iter().copied().zip(self.users.names(&self.pool, &users).await?).collect())
    }

    /// The number of buckets into which this store divides readers, fixed when it was made.
    pub fn buckets(&self) -> u16 {
        self.settings.buckets
    }
}

#[async_trait]
impl Writes for PostgresArchive {
    async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        self.queue.write(writes, now).await
    }
}

#[async_trait]
impl Names for PostgresArchive {
    async fn intern(&self, names: &[UserId]) -> Result<Vec<UserNo>> {
        self.users.intern(&self.pool, names).await
    }

    async fn user_nos(&self, names: &[UserId]) -> Result<Vec<Option<UserNo>>> {
        self.users.numbers(&self.pool, names).await
    }

    async fn user_ids(&self, users: &[UserNo]) -> Result<Vec<UserId>> {
        self.users.names(&self.pool, users).await
    }

    async fn intern_feeds(&self, names: &[CompactString]) -> Result<Vec<FeedId>> {
        feeds::intern(&self.pool, names).await
    }

    async fn feeds(&self) -> Result<Vec<FeedId>> {
        self.pool.read(work!(|connection| feeds::all(connection))).await
    }
}

#[async_trait]
impl Items for PostgresArchive {
    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        self.items.get(ids).await
    }

    async fn originals(&self, ids: &[ItemId], viewer: Viewer) -> Result<Vec<Option<Arc<Item>>>> {
        match viewer {
            Viewer::Backend => self.items.get(ids).await,
            Viewer::User(user) => self.pool.read(work!(|connection| items::originals(connection, ids, user))).await,
        }
    }

    async fn reposts(&self, original: ItemId, before: Option<ItemId>, limit: usize) -> Result<Vec<ItemId>> {
        self.pool.read(work!(|connection| reposts::listed(connection, original, before, limit))).await
    }

    async fn versions(&self, item: ItemId) -> Result<Vec<Replaced>> {
        self.pool.read(work!(|connection| versions::listed(connection, item))).await
    }

    async fn published(&self, ids: &[ItemId]) -> Result<Vec<Option<(UserNo, Millis)>>> {
        self.pool.read(work!(|connection| sights::published(connection, ids))).await
    }

    async fn item_by_foreign_id(&self, foreign_id: &str) -> Result<Option<ItemId>> {
        if !may_be_foreign_id(foreign_id) {
            return Ok(None);
        }
        self.pool.read(work!(|connection| items::by_foreign_id(connection, foreign_id))).await
    }

    async fn profile(
        &self,
        author: UserNo,
        feed: FeedId,
        before: Option<DisplayKey>,
        limit: usize,
    ) -> Result<Vec<DisplayKey>> {
        self.pool.snapshot(work!(|connection| content::profile(connection, author, feed, before, limit))).await
    }

    async fn sent(&self, user: UserNo, before: Option<DisplayKey>, limit: usize) -> Result<Vec<DisplayKey>> {
        self.pool.read(work!(|connection| own_posts::sent(connection, user, before, limit))).await
    }

    async fn addressed(&self, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>> {
        self.pool.read(work!(|connection| graph::addressed(connection, reader, items))).await
    }
}

#[async_trait]
impl Outboxes for PostgresArchive {
    async fn outbox(&self, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox> {
        self.pool.read(work!(|connection| recipients::outbox(connection, author, after, limit))).await
    }

    async fn ahead(&self, author: UserNo, records: usize, recipients: usize) -> Result<Option<Ahead>> {
        self.ahead.get(author, records, recipients).await
    }

    async fn author(&self, author: UserNo) -> Result<Author> {
        self.pool.read(work!(|connection| graph::author(connection, author))).await
    }

    async fn recipients(
        &self,
        author: UserNo,
        bucket: Bucket,
        buckets: u16,
        after: Option<UserNo>,
        limit: usize,
    ) -> Result<Vec<Recipient>> {
        let share = recipients::Share { author, bucket, buckets, layout: self.settings.buckets };
        self.pool.read(work!(|connection| recipients::recipients(connection, share, after, limit))).await
    }

    async fn all_recipients(&self, author: UserNo, limit: usize) -> Result<Vec<Recipient>> {
        // A caller asks for all recipients if those in memory are too old, or if none are in memory.
        self.ahead.forget(author);
        self.pool.read(work!(|connection| recipients::all_recipients(connection, author, limit))).await
    }

    async fn recipients_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<Recipient>> {
        self.pool.read(work!(|connection| recipients::recipients_among(connection, author, readers))).await
    }

    async fn followers_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<UserNo>> {
        self.pool.read(work!(|connection| graph::followers_among(connection, author, readers))).await
    }

    async fn pull_head(&self) -> Result<PullSeq> {
        self.pool.read(work!(|connection| recipients::pull_head(connection))).await
    }

    async fn pull_heads(&self, after: PullSeq, limit: usize) -> Result<Vec<PullHead>> {
        self.pool.read(work!(|connection| recipients::pull_heads(connection, after, limit))).await
    }
}

#[async_trait]
impl Graph for PostgresArchive {
    async fn following(&self, reader: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.list(List::Following, reader, cursor, limit).await
    }

    async fn followers(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.list(List::Followers, author, cursor, limit).await
    }

    async fn mutual(&self, user: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.list(List::Mutual, user, cursor, limit).await
    }

    async fn requests(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.list(List::Requests, author, cursor, limit).await
    }

    async fn shielded(
        &self,
        user: UserNo,
        shield: Shield,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>> {
        self.list(List::Shielded(shield), user, cursor, limit).await
    }

    async fn blocked_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>> {
        self.pool.read(work!(|connection| graph::blocked_with(connection, users, limit))).await
    }

    async fn mutual_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>> {
        self.pool.read(work!(|connection| graph::mutual_with(connection, users, limit))).await
    }

    async fn followed_among(&self, user: UserNo, others: &[UserNo]) -> Result<Vec<UserNo>> {
        self.pool.read(work!(|connection| graph::followed_among(connection, user, others))).await
    }

    async fn followees_among(&self, reader: UserNo, authors: &[UserNo]) -> Result<Vec<UserNo>> {
        self.pool.read(work!(|connection| graph::followees_among(connection, reader, authors))).await
    }
}

#[async_trait]
impl Content for PostgresArchive {
    async fn followees(&self, reader: UserNo) -> Result<Vec<UserNo>> {
        self.pool.read(work!(|connection| graph::followees(connection, reader))).await
    }

    async fn edge_states(
        &self,
        reader: UserNo,
        edges: &[(UserNo, Progress)],
        pulled: &[(FeedId, PullSeq)],
        backfill: usize,
    ) -> Result<EdgeStates> {
        let (lows, of) = (&self.lows, (reader, edges));
        if pulled.is_empty() {
            return self
                .pool
                .read(work!(|connection| content::edge_states(connection, lows, of, pulled, backfill)))
                .await;
        }
        self.pool.snapshot(work!(|connection| content::edge_states(connection, lows, of, pulled, backfill))).await
    }

    async fn news(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News> {
        self.news.get(key, after, limit).await
    }

    async fn build(
        &self,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState> {
        let lows = &self.lows;
        self.pool.snapshot(work!(|connection| content::build(connection, lows, key, progress, backfill, limit))).await
    }

    async fn feed_below(&self, key: InboxKey, below: Below, backfill: usize) -> Result<Vec<FeedAdd>> {
        let lows = &self.lows;
        self.pool.snapshot(work!(|connection| content::feed_below(connection, lows, key, below, backfill))).await
    }
}

#[async_trait]
impl Events for PostgresArchive {
    async fn outstanding(
        &self,
        after: Option<Outstanding>,
        not_after: Millis,
        limit: usize,
    ) -> Result<Vec<Outstanding>> {
        self.pool.read(work!(|connection| events::outstanding(connection, after, not_after, limit))).await
    }

    async fn edges_due(&self, reader: UserNo, limit: usize) -> Result<Vec<UserNo>> {
        self.pool.read(work!(|connection| events::edges_due(connection, reader, limit))).await
    }

    async fn finish(&self, finished: &[Event]) -> Result<Vec<Event>> {
        self.finishing.finish(finished).await
    }

    async fn reopen(&self, authors: &[UserNo]) -> Result<()> {
        self.pool.write(work!(|connection| events::reopen(connection, authors))).await
    }
}

#[async_trait]
impl archive::Epochs for PostgresArchive {
    async fn next_epoch(&self) -> Result<Epoch> {
        self.epochs.next().await
    }
}

#[async_trait]
impl Revocations for PostgresArchive {
    async fn revoke(&self, user: UserNo, before: Millis) -> Result<()> {
        self.pool.write(work!(|connection| revocations::revoke(connection, user, before))).await
    }

    async fn revoked(&self, user: UserNo) -> Result<Option<Millis>> {
        self.pool.read(work!(|connection| revocations::revoked(connection, user))).await
    }

    async fn last_revocation(&self) -> Result<u64> {
        self.pool.read(work!(|connection| revocations::last(connection))).await
    }

    async fn revocations(&self, after: u64, limit: usize) -> Result<Vec<Revocation>> {
        self.pool.read(work!(|connection| revocations::beyond(connection, after, limit))).await
    }
}

#[async_trait]
impl Sights for PostgresArchive {
    async fn seen(&self, key: InboxKey) -> Result<Option<Seen>> {
        self.pool.read(work!(|connection| sights::seen(connection, key))).await
    }

    async fn see(&self, key: InboxKey, seen: Seen) -> Result<bool> {
        self.pool.write(work!(|connection| sights::see(connection, key, seen))).await
    }
}

#[async_trait]
impl Rankings for PostgresArchive {
    async fn rank(
        &self,
        key: InboxKey,
        ranking: &[DisplayKey],
        now: Millis,
    ) -> Result<std::result::Result<Ranked, NoSuchItem>> {
        self.pool.write(work!(|connection| rankings::rank(connection, key, ranking, now))).await
    }

    async fn ranking(&self, key: InboxKey) -> Result<Vec<DisplayKey>> {
        self.pool.read(work!(|connection| rankings::ranking(connection, key))).await
    }

    async fn ranked(&self, asked: &[(UserNo, ItemId)]) -> Result<Vec<((UserNo, ItemId), Terms)>> {
        self.pool.read(work!(|connection| rankings::ranked(connection, asked))).await
    }

    async fn renew_rankings(&self, now: Millis, limit: usize) -> Result<Renewed> {
        self.pool.write(work!(|connection| rankings::renew(connection, now, limit))).await
    }
}

#[async_trait]
impl Pins for PostgresArchive {
    async fn pin(&self, user: UserNo, item: ItemId) -> Result<std::result::Result<bool, NotPinned>> {
        self.pool.write(work!(|connection| pins::pin(connection, user, item))).await
    }

    async fn unpin(&self, user: UserNo, item: ItemId) -> Result<bool> {
        self.pool.write(work!(|connection| pins::unpin(connection, user, item))).await
    }

    async fn pins(&self, user: UserNo) -> Result<Vec<Pin>> {
        self.pool.read(work!(|connection| pins::pins(connection, user))).await
    }
}

#[async_trait]
impl People for PostgresArchive {
    async fn put_people(&self, people: Vec<(UserNo, Person)>, known: Known) -> Result<Vec<bool>> {
        let people = &people[..];
        self.pool.write(work!(|connection| people::put(connection, people, known))).await
    }

    async fn remove_person(&self, user: UserNo) -> Result<bool> {
        self.pool.write(work!(|connection| people::remove(connection, user))).await
    }

    async fn person(&self, user: UserNo) -> Result<Option<Person>> {
        self.pool.read(work!(|connection| people::person(connection, user))).await
    }

    async fn cards(&self, users: &[UserNo]) -> Result<Vec<Option<Card>>> {
        self.pool.read(work!(|connection| people::cards(connection, users))).await
    }

    async fn people(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, Person)>> {
        self.pool.read(work!(|connection| people::people(connection, after, limit))).await
    }
}

#[async_trait]
impl Reactions for PostgresArchive {
    async fn react(&self, asked: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
        self.pool.write(work!(|connection| reactions::change(connection, asked, true))).await
    }

    async fn unreact(&self, asked: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
        self.pool.write(work!(|connection| reactions::change(connection, asked, false))).await
    }

    async fn around(&self, items: &[ItemId], onlooker: Onlooker) -> Result<Vec<Around>> {
        self.pool.read(work!(|connection| reactions::around(connection, items, onlooker))).await
    }

    async fn reactions(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        kind: Option<&ReactionKind>,
        before: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Reacted>> {
        self.pool.read(work!(|connection| reactions::listed(connection, item, onlooker, kind, before, limit))).await
    }

    async fn reacted_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>> {
        self.pool.read(work!(|connection| reactions::reacted_item(connection, after))).await
    }
}

#[async_trait]
impl Comments for PostgresArchive {
    async fn comment(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Vec<std::result::Result<Commented, Uncommented>>> {
        let writes = &writes[..];
        self.pool.write(work!(|connection| comments::change(connection, writes, now))).await
    }

    async fn comments(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        order: CommentOrder,
        from: Option<CommentPlace>,
        limit: usize,
    ) -> Result<CommentPage> {
        self.pool.read(work!(|connection| comments::page(connection, item, onlooker, order, from, limit))).await
    }

    async fn comment_of(&self, item: ItemId, id: ItemId, onlooker: Onlooker) -> Result<Option<Comment>> {
        self.pool.read(work!(|connection| comments::one(connection, item, id, onlooker))).await
    }

    async fn comments_of(&self, of: &[(ItemId, ItemId)]) -> Result<Vec<Option<Comment>>> {
        self.pool.read(work!(|connection| comments::several(connection, of))).await
    }

    async fn commented_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>> {
        self.pool.read(work!(|connection| comments::commented_item(connection, after))).await
    }
}

#[async_trait]
impl Notifications for PostgresArchive {
    fn notify_by(&self, rules: Rules) {
        *self.rules.write() = Arc::new(rules);
    }

    async fn react_and_notify(
        &self,
        asked: &[Reaction],
        on: bool,
    ) -> Result<Notified<std::result::Result<bool, Unreacted>>> {
        let rules = self.rules.read().clone();
        let mut telling = None;
        if rules.reaction.is_some() {
            let users: Vec<UserNo> = asked.iter().map(|reaction| reaction.user).collect();
            telling = Some(Telling { rules, names: self.users.names(&self.pool, &users).await? });
        }
        self.reacting.react(asked.to_vec(), on, telling).await
    }

    async fn comment_and_notify(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Notified<std::result::Result<Commented, Uncommented>>> {
        let rules = self.rules.read().clone();
        let Mentioned { numbers, authors } = match rules.mention {
            Some(_) => mentioned_by(self, &writes).await?,
            None => Mentioned::default(),
        };
        let names = match [&rules.comment, &rules.reply, &rules.mention].into_iter().all(Option::is_none) {
            true => None,
            false => {
                let mut names = self.names_of(writes.iter().filter_map(CommentWrite::author)).await?;
                names.extend(authors);
                Some(names)
            }
        };
        let telling = names.as_ref().map(|names| (self.settings, &*rules, names, &numbers));
        let writes = &writes[..];
        self.pool.write(work!(|connection| comments::change_and_notify(connection, writes, now, telling))).await
    }

    async fn leave_lines(&self, keys: Vec<CompactString>, now: Millis) -> Result<Vec<UserNo>> {
        let (keys, settings) = (&keys[..], self.settings);
        self.pool.write(work!(|connection| write::leave(connection, keys, now, settings))).await
    }

    async fn line_members(&self, after: Option<(ItemId, u64)>, limit: usize) -> Result<Vec<(ItemId, Line, Member)>> {
        self.pool.read(work!(|connection| write::members(connection, after, limit))).await
    }
}

#[async_trait]
impl Audiences for PostgresArchive {
    async fn change_lists(&self, changes: Vec<ListChange>) -> Result<Vec<std::result::Result<bool, ListRefused>>> {
        let changes = &changes[..];
        self.pool.write(work!(|connection| audiences::change(connection, changes))).await
    }

    async fn lists(&self, owner: UserNo) -> Result<Vec<(ListName, u64)>> {
        self.pool.read(work!(|connection| audiences::lists(connection, owner))).await
    }

    async fn members(
        &self,
        owner: UserNo,
        list: &ListName,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>> {
        let found =
            self.pool.read(work!(|connection| audiences::members(connection, owner, list, cursor, limit))).await?;
        let names = self.names_of(found.iter().map(|(member, _)| *member)).await?;
        let line = |(member, since): (UserNo, Millis)| Follow {
            user: names[&member].clone(),
            since,
            cursor: ListCursor::at(member.0.into()),
        };
        Ok(found.into_iter().map(line).collect())
    }

    async fn member_nos(&self, owner: UserNo, lists: &[ListName]) -> Result<Vec<Vec<UserNo>>> {
        self.pool.read(work!(|connection| audiences::member_nos(connection, owner, lists))).await
    }

    async fn listed(&self, after: Option<(UserNo, ListName, UserNo)>, limit: usize) -> Result<Vec<Listed>> {
        let after = after.as_ref();
        self.pool.read(work!(|connection| audiences::listed(connection, after, limit))).await
    }

    async fn listing(&self, member: UserNo, after: Option<(UserNo, ListName)>, limit: usize) -> Result<Vec<Listed>> {
        let after = after.as_ref();
        self.pool.read(work!(|connection| audiences::listing(connection, member, after, limit))).await
    }

    async fn audience(&self, item: ItemId) -> Result<Vec<UserNo>> {
        self.pool.read(work!(|connection| audiences::audience(connection, item))).await
    }
}

#[async_trait]
impl Erasures for PostgresArchive {
    async fn begin_erasure(&self, user: UserNo, now: Millis) -> Result<Erasure> {
        self.pool.write(work!(|connection| erasures::begin(connection, user, now))).await
    }

    async fn erasure(&self, id: u64) -> Result<Option<Erasure>> {
        self.pool.read(work!(|connection| erasures::one(connection, id))).await
    }

    async fn open_erasures(&self, after: u64, limit: usize) -> Result<Vec<Erasure>> {
        self.pool.read(work!(|connection| erasures::open(connection, after, limit))).await
    }

    async fn move_erasure(&self, id: u64, before: &State, now: &State) -> Result<bool> {
        self.pool.write(work!(|connection| erasures::go_on(connection, id, before, now))).await
    }

    async fn traces(&self, user: UserNo, of: Stage, after: Option<&Mark>) -> Result<Traces> {
        self.pool.read(work!(|connection| erasures::traces(connection, user, of, after))).await
    }

    async fn scrub(&self, user: UserNo, remains: &Remains) -> Result<()> {
        self.pool.write(work!(|connection| erasures::scrub(connection, user, remains))).await
    }

    async fn rest(&self, user: UserNo, after: u64, limit: usize) -> Result<(Removed, Option<u64>)> {
        self.pool.read(work!(|connection| erasures::rest(connection, user, after, limit))).await
    }

    async fn forget_addressed(&self, user: UserNo, upto: u64) -> Result<()> {
        self.pool.write(work!(|connection| erasures::forget_addressed(connection, user, upto))).await
    }

    async fn forget_rest(&self, user: UserNo, limit: usize) -> Result<bool> {
        self.pool.write(work!(|connection| erasures::forget(connection, user, limit))).await
    }
}

#[async_trait]
impl OwnPosts for PostgresArchive {
    async fn set_own_posts(&self, on: bool) -> Result<()> {
        self.pool.write(work!(|connection| own_posts::set(connection, on))).await
    }

    async fn own_posts_due(&self, on: bool, limit: usize) -> Result<Option<Vec<(UserNo, UserId)>>> {
        self.pool.read(work!(|connection| own_posts::due(connection, on, limit))).await
    }

    async fn own_posts_done(&self, on: bool, upto: Option<UserNo>) -> Result<()> {
        self.pool.write(work!(|connection| own_posts::done(connection, on, upto))).await
    }
}

#[async_trait]
impl Search for PostgresArchive {
    async fn index_of(&self, fields: Option<&TextFields>) -> Result<()> {
        let recipe = fields.map(TextFields::recipe);
        let recipe = recipe.as_deref();
        self.pool.write(work!(|connection| search::index_of(connection, recipe))).await
    }

    async fn index(&self, fields: Option<&TextFields>) -> Result<bool> {
        let Some(fields) = fields else { return Ok(false) };
        self.pool.write(work!(|connection| search::index(connection, fields))).await
    }

    async fn find(&self, fields: &TextFields, look: &Look) -> Result<Hits> {
        let recipe = fields.recipe();
        let recipe = &recipe[..];
        self.pool.snapshot(work!(|connection| search::find(connection, recipe, look))).await
    }
}

#[async_trait]
impl PushDevices for PostgresArchive {
    async fn register(&self, user: UserNo, device: PushDevice) -> Result<bool> {
        let device = &device;
        self.pool.write(work!(|connection| devices::register(connection, user, device))).await
    }

    async fn unregister(&self, user: UserNo, device: &DeviceId, token: Option<&str>) -> Result<bool> {
        self.pool.write(work!(|connection| devices::unregister(connection, user, device, token))).await
    }

    async fn push_devices(&self, users: &[UserNo]) -> Result<Vec<Vec<PushDevice>>> {
        self.pool.read(work!(|connection| devices::devices(connection, users))).await
    }
}

#[async_trait]
impl PushNotices for PostgresArchive {
    async fn note(&self, notes: &[Note], due: Millis, noted: Option<(UserNo, DirectSeq)>) -> Result<()> {
        self.pool.write(work!(|connection| notices::note(connection, notes, due, noted))).await
    }

    async fn take_due(&self, now: Millis, lease_until: Millis, limit: usize) -> Result<Vec<Notice>> {
        self.pool.write(work!(|connection| notices::take_due(connection, now, lease_until, limit))).await
    }

    async fn settle(&self, settled: &[Settled], now: Millis) -> Result<()> {
        self.pool.write(work!(|connection| notices::settle(connection, settled, now))).await
    }

    async fn dead(&self, after: Option<InboxKey>, limit: usize) -> Result<Vec<DeadNotice>> {
        self.pool.read(work!(|connection| notices::dead(connection, after, limit))).await
    }

    async fn retry_dead(&self, reader: Option<UserNo>, now: Millis, limit: usize) -> Result<usize> {
        self.pool.write(work!(|connection| notices::retry_dead(connection, reader, now, limit))).await
    }

    async fn forget_dead(&self, reader: Option<UserNo>, limit: usize) -> Result<usize> {
        self.pool.write(work!(|connection| notices::forget_dead(connection, reader, limit))).await
    }
}

#[async_trait]
impl Announcements for PostgresArchive {
    async fn announced(&self, after: u64, limit: usize) -> Result<Vec<Numbered>> {
        self.pool.read(work!(|connection| announcements::beyond(connection, after, limit))).await
    }

    async fn forget_announced(&self, numbers: &[u64]) -> Result<()> {
        self.pool.write(work!(|connection| announcements::forget(connection, numbers))).await
    }

    async fn may_publish(&self, relay: &str, lease: Duration) -> Result<bool> {
        self.pool.write(work!(|connection| announcements::lease(connection, relay, lease))).await
    }

    fn growth(&self) -> Option<BoxStream<'static, u64>> {
        None
    }
}

#[async_trait]
impl Transfer for PostgresArchive {
    async fn users(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, UserId)>> {
        self.pool.read(work!(|connection| export::users(connection, after, limit))).await
    }

    async fn held(&self, reader: UserNo, after: Option<UserNo>, limit: usize) -> Result<Vec<Held>> {
        self.pool.read(work!(|connection| export::held(connection, reader, after, limit))).await
    }

    async fn direct_items(&self, after: Option<ItemId>, limit: usize) -> Result<Vec<(ItemId, Vec<UserNo>)>> {
        self.pool.read(work!(|connection| export::direct_items(connection, after, limit))).await
    }

    async fn moves(&self, author: UserNo, records: &[Record]) -> Result<Vec<Option<OutboxSeq>>> {
        self.pool.read(work!(|connection| export::moves(connection, author, records))).await
    }

    /// Gives `None`, since PostgreSQL has its own tools for copies.
    fn copy(&self) -> Option<BoxStream<'static, Result<Vec<u8>>>> {
        None
    }
}

#[async_trait]
impl Status for PostgresArchive {
    async fn ping(&self) -> Result<()> {
        self.pool.read(work!(|connection| sqlx::query("SELECT 1").execute(connection))).await?;
        self.pool.has_room().await
    }

    async fn counts(&self) -> Result<ArchiveCounts> {
        self.pool.snapshot(work!(|connection| counts::counts(connection))).await
    }
}
