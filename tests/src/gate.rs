//! Stores that stop before every call, so that a simulation chooses who calls next.
//!
//! ```text
//!   actor ── call ──▶ gate: "I am here", Pending ── polled again ──▶ the real store, to its answer
//! ```
//!
//! Wrapped around the real stores, this makes the interleaving of any number of workers at store-call
//! granularity a function of a seed: the actor that is polled next makes exactly one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::announce::Numbered;
use feedgate_common::archive::{
    Ahead, Announcements, Archive, ArchiveCounts, Audiences, Author, Below, Comments, Content, DeadNotice, EdgeStates,
    Epochs, Erasures, Event, Events, FeedAdd, FeedState, Follow, Graph, Held, Items, Known, ListCursor, Names, News,
    Note, Notice, Notifications, Outbox, Outboxes, Outstanding, OwnPosts, People, Pins, PullHead, PushDevice,
    PushDevices, PushNotices, Rankings, Reactions, Recipient, Refused, Remains, Revocation, Revocations, Search,
    Settled, Sights, Status, Transfer, Write, Writes, Written,
};
use feedgate_common::around::{
    Around, Comment, CommentOrder, CommentPage, CommentPlace, CommentWrite, Commented, Onlooker, Place, Reacted,
    Reaction, ReactionKind, Terms, Uncommented, Unreacted, Viewer,
};
use feedgate_common::audience::{ListChange, ListRefused, Listed};
use feedgate_common::erase::{self, Erasure, Mark, Removed, Stage, Traces};
use feedgate_common::error::Result;
use feedgate_common::graph::Shield;
use feedgate_common::ids::ListName;
use feedgate_common::inboxes::{
    Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, InboxCounts, Log, Read, Stand, Take, Taken,
};
use feedgate_common::notify::lines::{Line, Member};
use feedgate_common::notify::{Notified, Rules};
use feedgate_common::people::{Card, Person};
use feedgate_common::pins::{NotPinned, Pin};
use feedgate_common::ranking::{NoSuchItem, Ranked, Renewed};
use feedgate_common::search::{Hits, Look, TextFields};
use feedgate_common::{
    Bucket, DeviceId, DirectSeq, DisplayKey, Epoch, FeedId, InboxKey, Inboxes, Item, ItemId, Millis, OutboxSeq,
    Position, Progress, PullSeq, Record, Replaced, Seen, UserId, UserNo, Watermarks,
};
use futures_util::stream::BoxStream;

/// Stops every actor before each of its calls, and tells whether the one that was polled last has stopped.
#[derive(Clone, Default)]
pub struct Gate(Arc<State>);

#[derive(Default)]
struct State {
    reached: AtomicBool,
    open: AtomicBool,
}

impl Gate {
    /// Whether the actor polled last stands before a call. Asking clears it.
    pub fn reached(&self) -> bool {
        self.0.reached.swap(false, Ordering::SeqCst)
    }

    /// Opens the gate: no actor stops here any more.
    pub fn open(&self) {
        self.0.open.store(true, Ordering::SeqCst);
    }

    async fn wait(&self) {
        let mut passed = self.0.open.load(Ordering::SeqCst);
        std::future::poll_fn(|_| {
            if std::mem::replace(&mut passed, true) {
                return Poll::Ready(());
            }
            self.0.reached.store(true, Ordering::SeqCst);
            Poll::Pending
        })
        .await;
    }
}

/// An [`Archive`] or [`Inboxes`] behind a [`Gate`].
pub struct Gated<S: ?Sized> {
    /// The gate at which every call stops.
    pub gate: Gate,
    /// The store that answers a call once the gate lets it pass.
    pub store: Arc<S>,
}

#[async_trait]
impl Writes for Gated<dyn Archive> {
    async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        self.gate.wait().await;
        self.store.write(writes, now).await
    }
}

#[async_trait]
impl Names for Gated<dyn Archive> {
    async fn intern(&self, names: &[UserId]) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.intern(names).await
    }
    async fn user_nos(&self, names: &[UserId]) -> Result<Vec<Option<UserNo>>> {
        self.gate.wait().await;
        self.store.user_nos(names).await
    }
    async fn user_ids(&self, users: &[UserNo]) -> Result<Vec<UserId>> {
        self.gate.wait().await;
        self.store.user_ids(users).await
    }
    async fn intern_feeds(&self, names: &[CompactString]) -> Result<Vec<FeedId>> {
        self.gate.wait().await;
        self.store.intern_feeds(names).await
    }
    async fn feeds(&self) -> Result<Vec<FeedId>> {
        self.gate.wait().await;
        self.store.feeds().await
    }
}

#[async_trait]
impl Items for Gated<dyn Archive> {
    async fn items(&self, ids: &[ItemId]) -> Result<Vec<Option<Arc<Item>>>> {
        self.gate.wait().await;
        self.store.items(ids).await
    }
    async fn originals(&self, ids: &[ItemId], viewer: Viewer) -> Result<Vec<Option<Arc<Item>>>> {
        self.gate.wait().await;
        self.store.originals(ids, viewer).await
    }
    async fn reposts(&self, original: ItemId, before: Option<ItemId>, limit: usize) -> Result<Vec<ItemId>> {
        self.gate.wait().await;
        self.store.reposts(original, before, limit).await
    }
    async fn versions(&self, item: ItemId) -> Result<Vec<Replaced>> {
        self.gate.wait().await;
        self.store.versions(item).await
    }
    async fn published(&self, ids: &[ItemId]) -> Result<Vec<Option<(UserNo, Millis)>>> {
        self.gate.wait().await;
        self.store.published(ids).await
    }
    async fn item_by_foreign_id(&self, foreign_id: &str) -> Result<Option<ItemId>> {
        self.gate.wait().await;
        self.store.item_by_foreign_id(foreign_id).await
    }
    async fn profile(
        &self,
        author: UserNo,
        feed: FeedId,
        before: Option<DisplayKey>,
        limit: usize,
    ) -> Result<Vec<DisplayKey>> {
        self.gate.wait().await;
        self.store.profile(author, feed, before, limit).await
    }
    async fn sent(&self, user: UserNo, before: Option<DisplayKey>, limit: usize) -> Result<Vec<DisplayKey>> {
        self.gate.wait().await;
        self.store.sent(user, before, limit).await
    }

    async fn addressed(&self, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>> {
        self.gate.wait().await;
        self.store.addressed(reader, items).await
    }
}

#[async_trait]
impl Outboxes for Gated<dyn Archive> {
    async fn outbox(&self, author: UserNo, after: OutboxSeq, limit: usize) -> Result<Outbox> {
        self.gate.wait().await;
        self.store.outbox(author, after, limit).await
    }
    async fn ahead(&self, author: UserNo, records: usize, recipients: usize) -> Result<Option<Ahead>> {
        self.gate.wait().await;
        self.store.ahead(author, records, recipients).await
    }
    async fn author(&self, author: UserNo) -> Result<Author> {
        self.gate.wait().await;
        self.store.author(author).await
    }
    async fn recipients(
        &self,
        author: UserNo,
        bucket: Bucket,
        buckets: u16,
        after: Option<UserNo>,
        limit: usize,
    ) -> Result<Vec<Recipient>> {
        self.gate.wait().await;
        self.store.recipients(author, bucket, buckets, after, limit).await
    }
    async fn all_recipients(&self, author: UserNo, limit: usize) -> Result<Vec<Recipient>> {
        self.gate.wait().await;
        self.store.all_recipients(author, limit).await
    }
    async fn recipients_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<Recipient>> {
        self.gate.wait().await;
        self.store.recipients_among(author, readers).await
    }
    async fn followers_among(&self, author: UserNo, readers: &[UserNo]) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.followers_among(author, readers).await
    }
    async fn pull_head(&self) -> Result<PullSeq> {
        self.gate.wait().await;
        self.store.pull_head().await
    }
    async fn pull_heads(&self, after: PullSeq, limit: usize) -> Result<Vec<PullHead>> {
        self.gate.wait().await;
        self.store.pull_heads(after, limit).await
    }
}

#[async_trait]
impl Audiences for Gated<dyn Archive> {
    async fn change_lists(&self, changes: Vec<ListChange>) -> Result<Vec<std::result::Result<bool, ListRefused>>> {
        self.gate.wait().await;
        self.store.change_lists(changes).await
    }
    async fn lists(&self, owner: UserNo) -> Result<Vec<(ListName, u64)>> {
        self.gate.wait().await;
        self.store.lists(owner).await
    }
    async fn members(
        &self,
        owner: UserNo,
        list: &ListName,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>> {
        self.gate.wait().await;
        self.store.members(owner, list, cursor, limit).await
    }
    async fn member_nos(&self, owner: UserNo, lists: &[ListName]) -> Result<Vec<Vec<UserNo>>> {
        self.gate.wait().await;
        self.store.member_nos(owner, lists).await
    }
    async fn listed(&self, after: Option<(UserNo, ListName, UserNo)>, limit: usize) -> Result<Vec<Listed>> {
        self.gate.wait().await;
        self.store.listed(after, limit).await
    }
    async fn listing(&self, member: UserNo, after: Option<(UserNo, ListName)>, limit: usize) -> Result<Vec<Listed>> {
        self.gate.wait().await;
        self.store.listing(member, after, limit).await
    }
    async fn audience(&self, item: ItemId) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.audience(item).await
    }
}

#[async_trait]
impl OwnPosts for Gated<dyn Archive> {
    async fn set_own_posts(&self, on: bool) -> Result<()> {
        self.gate.wait().await;
        self.store.set_own_posts(on).await
    }

    async fn own_posts_due(&self, on: bool, limit: usize) -> Result<Option<Vec<(UserNo, UserId)>>> {
        self.gate.wait().await;
        self.store.own_posts_due(on, limit).await
    }

    async fn own_posts_done(&self, on: bool, upto: Option<UserNo>) -> Result<()> {
        self.gate.wait().await;
        self.store.own_posts_done(on, upto).await
    }
}

#[async_trait]
impl Rankings for Gated<dyn Archive> {
    async fn rank(
        &self,
        key: InboxKey,
        ranking: &[DisplayKey],
        now: Millis,
    ) -> Result<std::result::Result<Ranked, NoSuchItem>> {
        self.gate.wait().await;
        self.store.rank(key, ranking, now).await
    }
    async fn ranking(&self, key: InboxKey) -> Result<Vec<DisplayKey>> {
        self.gate.wait().await;
        self.store.ranking(key).await
    }
    async fn ranked(&self, asked: &[(UserNo, ItemId)]) -> Result<Vec<((UserNo, ItemId), Terms)>> {
        self.gate.wait().await;
        self.store.ranked(asked).await
    }
    async fn renew_rankings(&self, now: Millis, limit: usize) -> Result<Renewed> {
        self.gate.wait().await;
        self.store.renew_rankings(now, limit).await
    }
}

#[async_trait]
impl Pins for Gated<dyn Archive> {
    async fn pin(&self, user: UserNo, item: ItemId) -> Result<std::result::Result<bool, NotPinned>> {
        self.gate.wait().await;
        self.store.pin(user, item).await
    }
    async fn unpin(&self, user: UserNo, item: ItemId) -> Result<bool> {
        self.gate.wait().await;
        self.store.unpin(user, item).await
    }
    async fn pins(&self, user: UserNo) -> Result<Vec<Pin>> {
        self.gate.wait().await;
        self.store.pins(user).await
    }
}

#[async_trait]
impl Graph for Gated<dyn Archive> {
    async fn following(&self, reader: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.gate.wait().await;
        self.store.following(reader, cursor, limit).await
    }
    async fn followers(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.gate.wait().await;
        self.store.followers(author, cursor, limit).await
    }
    async fn mutual(&self, user: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.gate.wait().await;
        self.store.mutual(user, cursor, limit).await
    }
    async fn requests(&self, author: UserNo, cursor: Option<ListCursor>, limit: usize) -> Result<Vec<Follow>> {
        self.gate.wait().await;
        self.store.requests(author, cursor, limit).await
    }
    async fn shielded(
        &self,
        user: UserNo,
        shield: Shield,
        cursor: Option<ListCursor>,
        limit: usize,
    ) -> Result<Vec<Follow>> {
        self.gate.wait().await;
        self.store.shielded(user, shield, cursor, limit).await
    }
    async fn blocked_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>> {
        self.gate.wait().await;
        self.store.blocked_with(users, limit).await
    }
    async fn mutual_with(&self, users: &[UserNo], limit: usize) -> Result<Vec<Vec<UserNo>>> {
        self.gate.wait().await;
        self.store.mutual_with(users, limit).await
    }
    async fn followed_among(&self, user: UserNo, others: &[UserNo]) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.followed_among(user, others).await
    }
    async fn followees_among(&self, reader: UserNo, authors: &[UserNo]) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.followees_among(reader, authors).await
    }
}

#[async_trait]
impl Content for Gated<dyn Archive> {
    async fn followees(&self, reader: UserNo) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.followees(reader).await
    }
    async fn edge_states(
        &self,
        reader: UserNo,
        edges: &[(UserNo, Progress)],
        pulled: &[(FeedId, PullSeq)],
        backfill: usize,
    ) -> Result<EdgeStates> {
        self.gate.wait().await;
        self.store.edge_states(reader, edges, pulled, backfill).await
    }
    async fn news(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News> {
        self.gate.wait().await;
        self.store.news(key, after, limit).await
    }
    async fn build(
        &self,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState> {
        self.gate.wait().await;
        self.store.build(key, progress, backfill, limit).await
    }
    async fn feed_below(&self, key: InboxKey, below: Below, backfill: usize) -> Result<Vec<FeedAdd>> {
        self.gate.wait().await;
        self.store.feed_below(key, below, backfill).await
    }
}

#[async_trait]
impl Events for Gated<dyn Archive> {
    async fn outstanding(
        &self,
        after: Option<Outstanding>,
        not_after: Millis,
        limit: usize,
    ) -> Result<Vec<Outstanding>> {
        self.gate.wait().await;
        self.store.outstanding(after, not_after, limit).await
    }
    async fn edges_due(&self, reader: UserNo, limit: usize) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.edges_due(reader, limit).await
    }
    async fn finish(&self, events: &[Event]) -> Result<Vec<Event>> {
        self.gate.wait().await;
        self.store.finish(events).await
    }
    async fn reopen(&self, authors: &[UserNo]) -> Result<()> {
        self.gate.wait().await;
        self.store.reopen(authors).await
    }
}

#[async_trait]
impl Epochs for Gated<dyn Archive> {
    async fn next_epoch(&self) -> Result<Epoch> {
        self.gate.wait().await;
        self.store.next_epoch().await
    }
}

#[async_trait]
impl Revocations for Gated<dyn Archive> {
    async fn revoke(&self, user: UserNo, before: Millis) -> Result<()> {
        self.gate.wait().await;
        self.store.revoke(user, before).await
    }
    async fn revoked(&self, user: UserNo) -> Result<Option<Millis>> {
        self.gate.wait().await;
        self.store.revoked(user).await
    }
    async fn last_revocation(&self) -> Result<u64> {
        self.gate.wait().await;
        self.store.last_revocation().await
    }
    async fn revocations(&self, after: u64, limit: usize) -> Result<Vec<Revocation>> {
        self.gate.wait().await;
        self.store.revocations(after, limit).await
    }
}

#[async_trait]
impl Sights for Gated<dyn Archive> {
    async fn seen(&self, key: InboxKey) -> Result<Option<Seen>> {
        self.gate.wait().await;
        self.store.seen(key).await
    }
    async fn see(&self, key: InboxKey, seen: Seen) -> Result<bool> {
        self.gate.wait().await;
        self.store.see(key, seen).await
    }
}

#[async_trait]
impl People for Gated<dyn Archive> {
    async fn put_people(&self, people: Vec<(UserNo, Person)>, known: Known) -> Result<Vec<bool>> {
        self.gate.wait().await;
        self.store.put_people(people, known).await
    }
    async fn remove_person(&self, user: UserNo) -> Result<bool> {
        self.gate.wait().await;
        self.store.remove_person(user).await
    }
    async fn person(&self, user: UserNo) -> Result<Option<Person>> {
        self.gate.wait().await;
        self.store.person(user).await
    }
    async fn cards(&self, users: &[UserNo]) -> Result<Vec<Option<Card>>> {
        self.gate.wait().await;
        self.store.cards(users).await
    }
    async fn people(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, Person)>> {
        self.gate.wait().await;
        self.store.people(after, limit).await
    }
}

#[async_trait]
impl Reactions for Gated<dyn Archive> {
    async fn react(&self, reactions: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
        self.gate.wait().await;
        self.store.react(reactions).await
    }
    async fn unreact(&self, reactions: &[Reaction]) -> Result<Vec<std::result::Result<bool, Unreacted>>> {
        self.gate.wait().await;
        self.store.unreact(reactions).await
    }
    async fn around(&self, items: &[ItemId], onlooker: Onlooker) -> Result<Vec<Around>> {
        self.gate.wait().await;
        self.store.around(items, onlooker).await
    }
    async fn reactions(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        kind: Option<&ReactionKind>,
        before: Option<&Place>,
        limit: usize,
    ) -> Result<Vec<Reacted>> {
        self.gate.wait().await;
        self.store.reactions(item, onlooker, kind, before, limit).await
    }
    async fn reacted_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>> {
        self.gate.wait().await;
        self.store.reacted_item(after).await
    }
}

#[async_trait]
impl Comments for Gated<dyn Archive> {
    async fn comment(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Vec<std::result::Result<Commented, Uncommented>>> {
        self.gate.wait().await;
        self.store.comment(writes, now).await
    }
    async fn comments(
        &self,
        item: ItemId,
        onlooker: Onlooker,
        order: CommentOrder,
        from: Option<CommentPlace>,
        limit: usize,
    ) -> Result<CommentPage> {
        self.gate.wait().await;
        self.store.comments(item, onlooker, order, from, limit).await
    }
    async fn comment_of(&self, item: ItemId, id: ItemId, onlooker: Onlooker) -> Result<Option<Comment>> {
        self.gate.wait().await;
        self.store.comment_of(item, id, onlooker).await
    }
    async fn comments_of(&self, of: &[(ItemId, ItemId)]) -> Result<Vec<Option<Comment>>> {
        self.gate.wait().await;
        self.store.comments_of(of).await
    }
    async fn commented_item(&self, after: Option<ItemId>) -> Result<Option<ItemId>> {
        self.gate.wait().await;
        self.store.commented_item(after).await
    }
}

#[async_trait]
impl Notifications for Gated<dyn Archive> {
    fn notify_by(&self, rules: Rules) {
        self.store.notify_by(rules);
    }
    async fn react_and_notify(
        &self,
        reactions: &[Reaction],
        on: bool,
    ) -> Result<Notified<std::result::Result<bool, Unreacted>>> {
        self.gate.wait().await;
        self.store.react_and_notify(reactions, on).await
    }
    async fn comment_and_notify(
        &self,
        writes: Vec<CommentWrite>,
        now: Millis,
    ) -> Result<Notified<std::result::Result<Commented, Uncommented>>> {
        self.gate.wait().await;
        self.store.comment_and_notify(writes, now).await
    }
    async fn leave_lines(&self, keys: Vec<CompactString>, now: Millis) -> Result<Vec<UserNo>> {
        self.gate.wait().await;
        self.store.leave_lines(keys, now).await
    }
    async fn line_members(&self, after: Option<(ItemId, u64)>, limit: usize) -> Result<Vec<(ItemId, Line, Member)>> {
        self.gate.wait().await;
        self.store.line_members(after, limit).await
    }
}

#[async_trait]
impl Erasures for Gated<dyn Archive> {
    async fn begin_erasure(&self, user: UserNo, now: Millis) -> Result<Erasure> {
        self.gate.wait().await;
        self.store.begin_erasure(user, now).await
    }
    async fn erasure(&self, id: u64) -> Result<Option<Erasure>> {
        self.gate.wait().await;
        self.store.erasure(id).await
    }
    async fn open_erasures(&self, after: u64, limit: usize) -> Result<Vec<Erasure>> {
        self.gate.wait().await;
        self.store.open_erasures(after, limit).await
    }
    async fn move_erasure(&self, id: u64, before: &erase::State, now: &erase::State) -> Result<bool> {
        self.gate.wait().await;
        self.store.move_erasure(id, before, now).await
    }
    async fn traces(&self, user: UserNo, of: Stage, after: Option<&Mark>) -> Result<Traces> {
        self.gate.wait().await;
        self.store.traces(user, of, after).await
    }
    async fn scrub(&self, user: UserNo, remains: &Remains) -> Result<()> {
        self.gate.wait().await;
        self.store.scrub(user, remains).await
    }
    async fn rest(&self, user: UserNo, after: u64, limit: usize) -> Result<(Removed, Option<u64>)> {
        self.gate.wait().await;
        self.store.rest(user, after, limit).await
    }
    async fn forget_addressed(&self, user: UserNo, upto: u64) -> Result<()> {
        self.gate.wait().await;
        self.store.forget_addressed(user, upto).await
    }
    async fn forget_rest(&self, user: UserNo, limit: usize) -> Result<bool> {
        self.gate.wait().await;
        self.store.forget_rest(user, limit).await
    }
}

#[async_trait]
impl Search for Gated<dyn Archive> {
    async fn index_of(&self, fields: Option<&TextFields>) -> Result<()> {
        self.gate.wait().await;
        self.store.index_of(fields).await
    }
    async fn index(&self, fields: Option<&TextFields>) -> Result<bool> {
        self.gate.wait().await;
        self.store.index(fields).await
    }
    async fn find(&self, fields: &TextFields, look: &Look) -> Result<Hits> {
        self.gate.wait().await;
        self.store.find(fields, look).await
    }
}

#[async_trait]
impl PushDevices for Gated<dyn Archive> {
    async fn register(&self, user: UserNo, device: PushDevice) -> Result<bool> {
        self.gate.wait().await;
        self.store.register(user, device).await
    }

    async fn unregister(&self, user: UserNo, device: &DeviceId, token: Option<&str>) -> Result<bool> {
        self.gate.wait().await;
        self.store.unregister(user, device, token).await
    }

    async fn push_devices(&self, users: &[UserNo]) -> Result<Vec<Vec<PushDevice>>> {
        self.gate.wait().await;
        self.store.push_devices(users).await
    }
}

#[async_trait]
impl PushNotices for Gated<dyn Archive> {
    async fn note(&self, notes: &[Note], due: Millis, noted: Option<(UserNo, DirectSeq)>) -> Result<()> {
        self.gate.wait().await;
        self.store.note(notes, due, noted).await
    }

    async fn take_due(&self, now: Millis, lease_until: Millis, limit: usize) -> Result<Vec<Notice>> {
        self.gate.wait().await;
        self.store.take_due(now, lease_until, limit).await
    }

    async fn settle(&self, settled: &[Settled], now: Millis) -> Result<()> {
        self.gate.wait().await;
        self.store.settle(settled, now).await
    }

    async fn dead(&self, after: Option<InboxKey>, limit: usize) -> Result<Vec<DeadNotice>> {
        self.gate.wait().await;
        self.store.dead(after, limit).await
    }

    async fn retry_dead(&self, reader: Option<UserNo>, now: Millis, limit: usize) -> Result<usize> {
        self.gate.wait().await;
        self.store.retry_dead(reader, now, limit).await
    }

    async fn forget_dead(&self, reader: Option<UserNo>, limit: usize) -> Result<usize> {
        self.gate.wait().await;
        self.store.forget_dead(reader, limit).await
    }
}

#[async_trait]
impl Announcements for Gated<dyn Archive> {
    async fn announced(&self, after: u64, limit: usize) -> Result<Vec<Numbered>> {
        self.gate.wait().await;
        self.store.announced(after, limit).await
    }
    async fn forget_announced(&self, numbers: &[u64]) -> Result<()> {
        self.gate.wait().await;
        self.store.forget_announced(numbers).await
    }
    async fn may_publish(&self, relay: &str, lease: Duration) -> Result<bool> {
        self.gate.wait().await;
        self.store.may_publish(relay, lease).await
    }
    fn growth(&self) -> Option<BoxStream<'static, u64>> {
        self.store.growth()
    }
}

#[async_trait]
impl Transfer for Gated<dyn Archive> {
    async fn users(&self, after: Option<UserNo>, limit: usize) -> Result<Vec<(UserNo, UserId)>> {
        self.gate.wait().await;
        self.store.users(after, limit).await
    }
    async fn held(&self, reader: UserNo, after: Option<UserNo>, limit: usize) -> Result<Vec<Held>> {
        self.gate.wait().await;
        self.store.held(reader, after, limit).await
    }
    async fn direct_items(&self, after: Option<ItemId>, limit: usize) -> Result<Vec<(ItemId, Vec<UserNo>)>> {
        self.gate.wait().await;
        self.store.direct_items(after, limit).await
    }
    async fn moves(&self, author: UserNo, records: &[Record]) -> Result<Vec<Option<OutboxSeq>>> {
        self.gate.wait().await;
        self.store.moves(author, records).await
    }

    fn copy(&self) -> Option<BoxStream<'static, Result<Vec<u8>>>> {
        self.store.copy()
    }
}

#[async_trait]
impl Status for Gated<dyn Archive> {
    async fn ping(&self) -> Result<()> {
        self.gate.wait().await;
        self.store.ping().await
    }
    async fn counts(&self) -> Result<ArchiveCounts> {
        self.gate.wait().await;
        self.store.counts().await
    }
}

#[async_trait]
impl Inboxes for Gated<dyn Inboxes> {
    fn buckets(&self) -> u16 {
        self.store.buckets()
    }
    async fn ping(&self) -> Result<()> {
        self.gate.wait().await;
        self.store.ping().await
    }
    async fn progress(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>> {
        self.gate.wait().await;
        self.store.progress(of).await
    }

    async fn advance(&self, step: Advance) -> Result<Advanced> {
        self.gate.wait().await;
        self.store.advance(step).await
    }
    async fn advance_all(&self, steps: Vec<Advance>) -> Vec<Result<Advanced>> {
        self.gate.wait().await;
        self.store.advance_all(steps).await
    }
    async fn step_edges(&self, steps: Vec<EdgeStep>) -> Result<Vec<EdgeStepped>> {
        self.gate.wait().await;
        self.store.step_edges(steps).await
    }
    async fn take(&self, step: Take) -> Result<Taken> {
        self.gate.wait().await;
        self.store.take(step).await
    }
    async fn stands(&self, keys: &[InboxKey]) -> Result<Vec<Option<Stand>>> {
        self.gate.wait().await;
        self.store.stands(keys).await
    }
    async fn present(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        self.gate.wait().await;
        self.store.present(keys).await
    }
    async fn begin_build(&self, key: InboxKey, token: Epoch) -> Result<Option<Begun>> {
        self.gate.wait().await;
        self.store.begin_build(key, token).await
    }
    async fn finish_build(&self, build: Build) -> Result<bool> {
        self.gate.wait().await;
        self.store.finish_build(build).await
    }
    async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read> {
        self.gate.wait().await;
        self.store.read(key, after, limit).await
    }
    async fn log(&self, key: InboxKey) -> Result<Option<Log>> {
        self.gate.wait().await;
        self.store.log(key).await
    }
    async fn discard(&self, key: InboxKey) -> Result<()> {
        self.gate.wait().await;
        self.store.discard(key).await
    }
    async fn touch(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        self.gate.wait().await;
        self.store.touch(keys, until).await
    }
    async fn discard_expired(&self, now: Millis, limit: usize) -> Result<usize> {
        self.gate.wait().await;
        self.store.discard_expired(now, limit).await
    }
    async fn counts(&self) -> Result<InboxCounts> {
        self.gate.wait().await;
        self.store.counts().await
    }
}
