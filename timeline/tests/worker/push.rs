//! Readers who are away are told of posts through a courier: once, soon, and again until it has taken them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::archive::{
    DeadNotice, Note, Notice, Publish, PushDevice, PushDevices, PushNotices, Settled, Write,
};
use feedgate_common::around::Reaction;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::feed::Feeds;
use feedgate_common::named::{NamedFeed, NamedFeeds};
use feedgate_common::notify::{Rules, Way};
use feedgate_common::sessions::{
    Claim, Claimed, Confirmed, Held, Holders, Renewed, SavePosition, SessionInfo, Sessions, Token,
};
use feedgate_common::{DeviceId, DirectSeq, DisplayKey, FeedId, InboxKey, ItemId, Millis, Position, Seen, UserNo};
use feedgate_timeline::push::{Answer, Call, Courier};
use feedgate_timeline::{Noter, PushSettings, Sender};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::town::{BACKFILL, NOW, STEP_MAX, Town, eventually, settings};

const NODE: &str = "n1";

/// Takes every call, or answers as it was told to.
#[derive(Default)]
struct Receiver {
    calls: Mutex<Vec<Call>>,
    answers: Mutex<VecDeque<Answer>>,
}

#[async_trait]
impl Courier for Receiver {
    async fn call(&self, call: &Call) -> Answer {
        self.calls.lock().push(call.clone());
        self.answers.lock().pop_front().unwrap_or(Answer::Took { gone: vec![] })
    }
}

impl Receiver {
    fn will_answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().extend(answers);
    }

    fn ids(&self) -> Vec<String> {
        self.calls.lock().iter().map(|call| call.id.clone()).collect()
    }

    /// All notifications of all calls as (user, unread, newest item), by call.
    fn told(&self) -> Vec<Vec<(String, u64, String)>> {
        let one = |n: &Value| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&n["user"]), n["unread"].as_u64().unwrap(), text(&n["newest"]["id"]))
        };
        let of = |call: &Call| {
            let body: Value = serde_json::from_str(&call.body).unwrap();
            let mut all: Vec<_> = body["notifications"].as_array().unwrap().iter().map(one).collect();
            all.sort();
            all
        };
        self.calls.lock().iter().map(of).collect()
    }
}

/// The stores' sessions, with a count of the questions about readers. The positions of one reader may be out of reach,
/// and so may be the sessions of one.
struct Asked {
    inner: Arc<dyn Sessions>,
    questions: AtomicUsize,
    out_of_reach: Mutex<Option<(UserNo, StoreError)>>,
    unknown: Mutex<Option<UserNo>>,
}

#[async_trait]
impl Sessions for Asked {
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.inner.claim(claim).await
    }
    async fn release(&self, user: UserNo, device: &DeviceId, token: Token) -> Result<()> {
        self.inner.release(user, device, token).await
    }
    async fn revoke(&self, user: UserNo, device: &DeviceId) -> Result<Option<(String, u64)>> {
        self.inner.revoke(user, device).await
    }
    async fn renew(&self, node: &str) -> Result<Renewed> {
        self.inner.renew(node).await
    }
    async fn retire(&self, node: &str) -> Result<()> {
        self.inner.retire(node).await
    }
    async fn confirm(&self, held: Vec<Held>) -> Result<Vec<Confirmed>> {
        self.inner.confirm(held).await
    }
    async fn nodes(&self, users: &[UserNo]) -> Result<Vec<Holders>> {
        self.questions.fetch_add(1, Ordering::Relaxed);
        let mut holders = self.inner.nodes(users).await?;
        for (user, holders) in users.iter().zip(&mut holders) {
            if *self.unknown.lock() == Some(*user) {
                *holders = Holders { nodes: vec!["away".to_owned()], partial: true };
            }
        }
        Ok(holders)
    }
    async fn list(&self, user: UserNo) -> Result<Vec<SessionInfo>> {
        self.inner.list(user).await
    }
    async fn save(&self, positions: Vec<SavePosition>, now: Millis) -> Result<Vec<bool>> {
        self.inner.save(positions, now).await
    }
    async fn position(&self, user: UserNo, device: &DeviceId, feed: FeedId, now: Millis) -> Result<Option<Position>> {
        if let Some((of, error)) = &*self.out_of_reach.lock()
            && *of == user
        {
            return Err(error.clone());
        }
        self.inner.position(user, device, feed, now).await
    }
    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }
}

/// The stores' notices, of which the first notes fail.
struct Failing {
    inner: Arc<dyn PushNotices>,
    left: AtomicUsize,
}

#[async_trait]
impl PushNotices for Failing {
    async fn note(&self, notes: &[Note], due: Millis, noted: Option<(UserNo, DirectSeq)>) -> Result<()> {
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(StoreError::unavailable("it is broken"));
        }
        self.inner.note(notes, due, noted).await
    }
    async fn take_due(&self, now: Millis, lease_until: Millis, limit: usize) -> Result<Vec<Notice>> {
        self.inner.take_due(now, lease_until, limit).await
    }
    async fn settle(&self, settled: &[Settled], now: Millis) -> Result<()> {
        self.inner.settle(settled, now).await
    }
    async fn dead(&self, after: Option<InboxKey>, limit: usize) -> Result<Vec<DeadNotice>> {
        self.inner.dead(after, limit).await
    }
    async fn retry_dead(&self, reader: Option<UserNo>, now: Millis, limit: usize) -> Result<usize> {
        self.inner.retry_dead(reader, now, limit).await
    }
    async fn forget_dead(&self, reader: Option<UserNo>, limit: usize) -> Result<usize> {
        self.inner.forget_dead(reader, limit).await
    }
}

/// A receiver during whose calls the phone of a user has another token.
struct Renewing {
    devices: Arc<dyn PushDevices>,
    user: UserNo,
    inner: Arc<Receiver>,
}

#[async_trait]
impl Courier for Renewing {
    async fn call(&self, call: &Call) -> Answer {
        self.devices.register(self.user, device("phone", "t2")).await.unwrap();
        self.inner.call(call).await
    }
}

/// A town with a receiver of its notices.
struct Away {
    town: Town,
    sessions: Arc<Asked>,
    receiver: Arc<Receiver>,
    settings: PushSettings,
    _dir: tempfile::TempDir,
}

impl Away {
    async fn open(users: usize, settings: PushSettings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let town = Town::open(dir.path(), users).await;
        let inner = town.stores.sessions.clone();
        let sessions =
            Asked { inner, questions: AtomicUsize::new(0), out_of_reach: Mutex::default(), unknown: Mutex::default() };
        let sessions = Arc::new(sessions);
        Self { town, sessions, receiver: Arc::default(), settings, _dir: dir }
    }

    /// Opens a town with so many readers who follow user 0, and have a phone and an inbox.
    async fn with_readers(readers: usize, settings: PushSettings) -> Self {
        let away = Self::open(readers + 1, settings).await;
        for reader in 1..=readers {
            away.town.follow(reader, 0).await;
            away.register(reader, "phone").await;
            away.town.visit(reader).await;
        }
        away
    }

    async fn register(&self, user: usize, name: &str) {
        assert!(self.town.stores.archive.register(self.town.no(user), device(name, "t")).await.unwrap());
    }

    /// Works until everything that was accepted is delivered, and noted.
    async fn deliver(&self) {
        self.deliver_with(self.town.stores.archive.clone()).await;
    }

    async fn deliver_with(&self, notices: Arc<dyn PushNotices>) {
        let noter = Noter::new(notices, self.sessions.clone(), self.settings.debounce);
        let fan_out = self.town.fan_out().with_noter(noter);
        let (jobs, doorbell) = (self.town.stores.jobs.clone(), self.town.stores.doorbell.clone());
        let worker = self.town.worker_of(fan_out, jobs, doorbell, settings());
        self.town.drained().await;
        worker.stop().await;
    }

    /// A sender that runs until it is stopped.
    fn sender(&self) -> Sending {
        self.sender_of(self.town.feeds(), self.receiver.clone())
    }

    fn sender_of(&self, feeds: Arc<Feeds>, courier: Arc<dyn Courier>) -> Sending {
        let sender = Sender::new(feeds, self.sessions.clone(), courier, self.settings.clone());
        let stop = CancellationToken::new();
        let until = stop.clone();
        Sending { stop, task: tokio::spawn(async move { sender.run(until).await }) }
    }

    /// Sends until nothing is left to be sent.
    async fn send(&self) {
        self.send_by(self.sender()).await;
    }

    async fn send_by(&self, sending: Sending) {
        eventually("no notice is left", async || self.left().await == 0).await;
        sending.stop().await;
    }

    /// Sends until the first reader is told, and one notice is left.
    async fn send_all_but_one(&self) {
        let sending = self.sender();
        eventually("the other is told", async || self.receiver.told() == [[one(1, 1, 1)]]).await;
        eventually("the other is settled", async || self.left().await == 1).await;
        sending.stop().await;
    }

    /// Notices that are still to be sent, however late. They are taken, and given back at once.
    async fn left(&self) -> usize {
        let archive = &self.town.stores.archive;
        let left = archive.take_due(Millis::MAX - 1, 0, 100).await.unwrap();
        left.len()
    }

    async fn told(&self) -> Vec<Vec<(String, u64, String)>> {
        self.send().await;
        self.receiver.told()
    }

    async fn dead(&self) -> Vec<DeadNotice> {
        self.town.stores.archive.dead(None, 10).await.unwrap()
    }

    /// The reader connects by this device.
    async fn connect(&self, user: usize, device: &str) -> Token {
        let (user, device) = (self.town.no(user), device.parse().unwrap());
        self.sessions.renew(NODE).await.unwrap();
        let claim = Claim { user, device, durable: true, node: NODE.to_owned(), connection: 1, since: 1 };
        self.sessions.claim(claim).await.unwrap().token
    }
}

struct Sending {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Sending {
    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// Due at once, and tried again at once.
fn at_once() -> PushSettings {
    PushSettings {
        debounce: Duration::ZERO,
        min_interval: Duration::ZERO,
        retry_first: Duration::from_millis(1),
        retry_max: Duration::from_millis(1),
        calls_per_sec: 1000,
        ..PushSettings::default()
    }
}

fn device(name: &str, token: &str) -> PushDevice {
    let (device, feeds) = (name.parse().unwrap(), vec![FeedId::MAIN]);
    PushDevice { device, platform: "fcm".into(), token: token.into(), feeds, since: 1 }
}

fn one(user: usize, unread: u64, newest: u64) -> (String, u64, String) {
    (format!("user-{user}"), unread, newest.to_string())
}

#[tokio::test]
async fn a_hundred_posts_become_one_notice_with_the_newest() {
    let away = Away::open(3, at_once()).await;
    for reader in [1, 2] {
        away.town.follow(reader, 0).await;
    }
    away.register(1, "phone").await;
    away.deliver().await;
    away.town.visit(1).await;
    for id in 1..=100 {
        away.town.publish(0, id).await;
    }
    away.deliver().await;
    assert_eq!(away.told().await, [vec![one(1, 100, 100)]]);
}

#[tokio::test]
async fn a_reader_without_an_inbox_is_told_of_what_was_noted() {
    let away = Away::open(2, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.deliver().await;
    for id in 1..=3 {
        away.town.publish(0, id).await;
    }
    away.deliver().await;
    assert_eq!(away.told().await, [vec![one(1, 3, 3)]]);
}

#[tokio::test]
async fn a_reader_without_an_inbox_is_told_of_what_was_noted_before_an_item_that_is_gone() {
    let away = Away::open(3, at_once()).await;
    for author in [0, 2] {
        away.town.follow(1, author).await;
    }
    away.register(1, "phone").await;
    away.deliver().await;
    for id in 1..=3 {
        away.town.publish(0, id).await;
    }
    away.deliver().await;
    away.town.delete(3).await;
    away.deliver().await;
    assert_eq!(away.told().await, [vec![one(1, 2, 2)]]);
    away.town.publish(2, 4).await;
    away.deliver().await;
    away.town.delete(4).await;
    away.deliver().await;
    assert_eq!(away.told().await.len(), 1, "nothing was noted before it");
    away.town.publish(2, 5).await;
    away.deliver().await;
    away.town.publish(0, 6).await;
    away.deliver().await;
    away.town.unfollow(1, 0).await;
    away.deliver().await;
    assert_eq!(away.told().await[1..], [vec![one(1, 1, 5)]], "an author who is not followed any more");
}

#[tokio::test]
async fn a_notice_that_is_due_before_its_step_tells_the_item_that_is_to_come_and_no_older_one() {
    let away = Away::with_readers(1, at_once()).await;
    away.town.publish(0, 1).await;
    away.town.deliver().await;
    away.town.publish(0, 2).await;
    let note = Note { key: away.town.key(1), item: ItemId(2), count: 1 };
    away.town.stores.archive.note(&[note], NOW, None).await.unwrap();
    assert_eq!(away.told().await, [vec![one(1, 2, 2)]]);
}

#[tokio::test]
async fn of_all_that_was_addressed_to_a_reader_the_newest_is_told() {
    let away = Away::open(2, at_once()).await;
    away.register(1, "phone").await;
    let many = 2 * STEP_MAX as u64 + 1;
    for id in 1..=many {
        away.town.publish_to(0, id, &[1]).await;
    }
    away.deliver().await;
    assert_eq!(away.told().await, [vec![one(1, many, many)]]);
}

#[tokio::test]
async fn readers_without_a_device_cost_no_question_and_no_row() {
    let away = Away::open(30, at_once()).await;
    for reader in 1..30 {
        away.town.follow(reader, 0).await;
    }
    away.register(0, "phone").await;
    away.town.publish(0, 1).await;
    away.town.publish_to(0, 2, &[3]).await;
    away.deliver().await;
    assert_eq!((away.sessions.questions.load(Ordering::Relaxed), away.left().await), (0, 0));
    away.register(7, "phone").await;
    away.town.publish(0, 3).await;
    away.deliver().await;
    assert_eq!((away.sessions.questions.load(Ordering::Relaxed), away.left().await), (1, 1), "one question for a step");
}

#[tokio::test]
async fn a_step_is_not_taken_when_its_notes_cannot_be_stored() {
    let away = Away::open(3, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.register(2, "phone").await;
    away.town.publish(0, 1).await;
    away.town.publish_to(0, 2, &[2]).await;
    let failing = Failing { inner: away.town.stores.archive.clone(), left: AtomicUsize::new(5) };
    away.deliver_with(Arc::new(failing)).await;
    assert_eq!(away.left().await, 2);
}

#[tokio::test]
async fn a_reader_who_is_connected_is_not_told() {
    let away = Away::open(2, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.connect(1, "web").await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    assert_eq!(away.left().await, 0);
}

#[tokio::test]
async fn a_notice_that_cannot_be_prepared_holds_up_no_other_and_is_dead_after_so_many_tries() {
    let away = Away::with_readers(3, PushSettings { tries: 2, ..at_once() }).await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    *away.sessions.out_of_reach.lock() = Some((away.town.no(2), StoreError::corrupt("it is broken")));
    assert_eq!(away.told().await, [vec![one(1, 1, 1), one(3, 1, 1)]]);
    let dead = away.dead().await;
    assert_eq!((dead.len(), dead[0].notice.key, dead[0].notice.tries), (1, away.town.key(2), 1));
    assert!(dead[0].why.contains("it is broken"), "{}", dead[0].why);
}

#[tokio::test]
async fn a_notice_that_waits_for_a_store_holds_up_no_other_and_has_had_no_try() {
    let away = Away::with_readers(2, PushSettings { tries: 1, ..at_once() }).await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    *away.sessions.out_of_reach.lock() = Some((away.town.no(2), StoreError::unavailable("it is away")));
    away.send_all_but_one().await;
    assert!(away.dead().await.is_empty());
    let left = away.town.stores.archive.take_due(Millis::MAX - 1, 0, 100).await.unwrap();
    assert_eq!(left.iter().map(|notice| (notice.key, notice.tries)).collect::<Vec<_>>(), [(away.town.key(2), 0)]);
}

#[tokio::test]
async fn a_reader_of_whom_the_session_pool_can_say_nothing_gets_the_post_and_is_told_when_it_can() {
    let away = Away::with_readers(2, at_once()).await;
    *away.sessions.unknown.lock() = Some(away.town.no(2));
    away.town.publish(0, 1).await;
    away.deliver().await;
    away.send_all_but_one().await;
    *away.sessions.unknown.lock() = None;
    assert_eq!(away.told().await, [[one(1, 1, 1)], [one(2, 1, 1)]]);
}

#[tokio::test]
async fn a_reader_who_comes_before_the_call_is_not_told() {
    let away = Away::open(2, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    assert_eq!(away.left().await, 1);
    away.connect(1, "web").await;
    assert!(away.told().await.is_empty());
}

#[tokio::test]
async fn what_a_device_has_acknowledged_is_not_told_and_the_rest_is_counted() {
    let away = Away::open(2, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.deliver().await;
    away.town.visit(1).await;
    for (id, acked, wanted) in [(1, 1, vec![]), (2, 1, vec![vec![one(1, 1, 2)]]), (3, 1, vec![vec![one(1, 2, 3)]])] {
        away.town.publish(0, id).await;
        away.deliver().await;
        let token = away.connect(1, "phone").await;
        let (user, device) = (away.town.no(1), "phone".parse().unwrap());
        let position = Position { offset: acked, ..away.town.log(1).await.head };
        let saved = SavePosition { user, device, token, feed: FeedId::MAIN, position };
        away.sessions.save(vec![saved], feedgate_now()).await.unwrap();
        away.sessions.release(user, &"phone".parse().unwrap(), token).await.unwrap();
        assert_eq!(away.told().await, wanted, "item {id}");
        away.receiver.calls.lock().clear();
    }
}

#[tokio::test]
async fn what_the_reader_has_seen_on_another_device_is_not_told() {
    let away = Away::open(2, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.deliver().await;
    away.town.visit(1).await;
    let key = InboxKey::main(away.town.no(1));
    for (id, seen, wanted) in [(1, 1, vec![]), (2, 1, vec![vec![one(1, 1, 2)]]), (3, 1, vec![vec![one(1, 2, 3)]])] {
        away.town.publish(0, id).await;
        away.deliver().await;
        let nothing = Seen::of_log(None, away.town.log(1).await.head);
        away.town.stores.archive.see(key, nothing.advanced(seen, None)).await.unwrap();
        assert_eq!(away.told().await, wanted, "item {id}");
        away.receiver.calls.lock().clear();
    }
}

#[tokio::test]
async fn what_the_reader_has_seen_in_a_log_of_before_is_not_told_and_what_was_published_later_is() {
    let away = Away::with_readers(1, at_once()).await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    let (key, before) = (away.town.key(1), away.town.log(1).await.head);
    away.town.stores.inboxes.discard(key).await.unwrap();
    away.town.visit(1).await;
    let seen = Seen::of_log(None, before).advanced(before.offset, Some(NOW));
    away.town.stores.archive.see(key, seen).await.unwrap();
    assert!(away.told().await.is_empty());
    let later = Publish { published_at: Some(NOW + 1), ..away.town.item(0, 2) };
    away.town.write(Write::Publish(later)).await;
    away.deliver().await;
    assert_eq!(away.told().await, [vec![one(1, 1, 2)]]);
}

#[tokio::test]
async fn what_is_too_old_for_its_feed_is_neither_told_nor_counted() {
    let away = Away::with_readers(1, at_once()).await;
    let stores = &away.town.stores;
    let feed = stores.archive.intern_feeds(&["news".into()]).await.unwrap()[0];
    let phone = PushDevice { feeds: vec![feed], ..device("phone", "t") };
    assert!(stores.archive.register(away.town.no(1), phone).await.unwrap());
    away.town.changes.head(InboxKey { feed, ..away.town.key(1) }).await.unwrap();
    for (id, published_at) in [(1, NOW), (2, NOW + 150)] {
        let kind = Some("news".into());
        let item = Publish { kind, feed, published_at: Some(published_at), ..away.town.item(0, id) };
        away.town.write(Write::Publish(item)).await;
    }
    away.deliver().await;
    let (name, kinds, ttl) = ("news".into(), vec!["news".into()], Some(100));
    let named = NamedFeeds::new(vec![NamedFeed { id: feed, name, kinds, ranked: false, cap: 10, ttl }]).unwrap();
    let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), BACKFILL);
    let feeds = feeds.with_retention(Duration::from_secs(3600), Arc::new(|| NOW + 200)).with_named(named);
    away.send_by(away.sender_of(Arc::new(feeds), away.receiver.clone())).await;
    assert_eq!(away.receiver.told(), [vec![one(1, 1, 2)]]);
}

#[expect(clippy::disallowed_methods, reason = "positions are dated by the clock of the machine")]
fn feedgate_now() -> Millis {
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    Millis::try_from(now.as_millis()).unwrap()
}

#[tokio::test]
async fn what_was_deleted_or_is_not_followed_any_more_is_not_told() {
    let away = Away::open(4, at_once()).await;
    for reader in [1, 2, 3] {
        away.town.follow(reader, 0).await;
        away.register(reader, "phone").await;
    }
    away.deliver().await;
    away.town.visit(3).await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    away.town.unfollow(2, 0).await;
    // A ranking opens the item to its reader, and is no reason to tell of it.
    let archive = &away.town.stores.archive;
    let feed = archive.intern_feeds(&["picks".into()]).await.unwrap()[0];
    let place = DisplayKey { rank: 1, item: ItemId(1) };
    archive.rank(InboxKey { reader: away.town.no(2), feed }, &[place], NOW).await.unwrap().unwrap();
    away.deliver().await;
    let mut told = away.told().await.concat();
    told.sort();
    assert_eq!(told, [one(1, 1, 1), one(3, 1, 1)]);
    away.receiver.calls.lock().clear();
    away.town.publish(0, 2).await;
    away.deliver().await;
    away.town.delete(2).await;
    away.deliver().await;
    assert_eq!(away.told().await.concat(), [one(3, 1, 1)], "with an inbox, an older item is unread still");
}

#[tokio::test]
async fn a_direct_item_is_told_with_and_without_an_inbox_and_once() {
    let away = Away::open(3, at_once()).await;
    for reader in [1, 2] {
        away.register(reader, "phone").await;
    }
    away.town.visit(1).await;
    away.town.publish_to(0, 5, &[1, 2]).await;
    away.deliver().await;
    let mut told = away.told().await.concat();
    told.sort();
    assert_eq!(told, [one(1, 1, 5), one(2, 1, 5)]);
    away.town.edit(5).await;
    away.deliver().await;
    assert_eq!(away.left().await, 0, "a new version is no news");
}

/// A town in which user 0 is told of likes of its item 1 by lines.
async fn with_lines() -> Away {
    let away = Away::open(3, at_once()).await;
    let way = Way { kind: "liked".into(), feed: FeedId::MAIN, grouped: true };
    away.town.stores.archive.notify_by(Rules { reaction: Some(way), ..Rules::default() });
    away.register(0, "phone").await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    away
}

impl Away {
    /// These users like item 1 in one transaction, or take that back; then everything is delivered.
    async fn like(&self, users: &[usize], on: bool, at: Millis) {
        let of = |user: &usize| {
            let (item, kind, user) = (ItemId(1), "like".parse().unwrap(), self.town.no(*user));
            Reaction { item, kind, user, at }
        };
        let reactions: Vec<Reaction> = users.iter().map(of).collect();
        let answers = self.town.stores.archive.react_and_notify(&reactions, on).await.unwrap().answers;
        assert!(answers.into_iter().all(|answer| answer.unwrap()));
        self.deliver().await;
    }

    /// Whose like the newest item of the last call tells of; `None` if that item is gone.
    async fn told_by(&self) -> Option<UserNo> {
        let newest = self.receiver.told().pop()?.pop()?.2.parse().unwrap();
        let item = self.town.stores.archive.items(&[newest]).await.unwrap().remove(0);
        item.map(|item| item.author_no)
    }
}

#[tokio::test]
async fn s6_a_line_that_somebody_leaves_is_not_told_again() {
    let away = with_lines().await;
    away.town.visit(0).await;
    away.like(&[1], true, NOW + 1).await;
    assert_eq!(away.told().await.len(), 1);
    away.like(&[2], true, NOW + 2).await;
    assert_eq!((away.told().await.len(), away.told_by().await), (2, Some(away.town.no(2))));
    away.like(&[2], false, NOW + 3).await;
    assert_eq!(away.left().await, 0);
    // An item of a backend that takes the place of another one is news.
    for id in [7, 8] {
        away.town.publish_to(2, id, &[0]).await;
        away.deliver().await;
        assert_eq!(away.told().await.last().unwrap()[0].2, id.to_string());
        away.town.delete(id).await;
    }
}

#[tokio::test]
async fn s6_a_line_that_was_made_anew_before_its_reader_was_told_is_told_without_an_inbox_too() {
    for visits in [true, false] {
        let away = with_lines().await;
        if visits {
            away.town.visit(0).await;
        }
        away.like(&[1, 2], true, NOW + 1).await;
        away.like(&[2], false, NOW + 2).await;
        assert_eq!((away.told().await.len(), away.told_by().await), (1, Some(away.town.no(1))), "{visits}");
    }
}

#[tokio::test]
async fn s11_an_item_that_moves_to_another_rank_is_not_told_again_also_if_it_is_narrowed() {
    let away = Away::open(2, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.deliver().await;
    away.town.visit(1).await;
    for id in [1, 2] {
        away.town.publish_narrowed(0, id, &[1]).await;
        away.town.publish(0, 10 + id).await;
    }
    away.deliver().await;
    assert_eq!(away.told().await, [vec![one(1, 4, 12)]]);
    for item in [1, 11].map(ItemId) {
        let edit = Write::Edit { item, body: None, rank: Some(7), mentions: None, if_version: None };
        away.town.write(edit).await;
    }
    away.deliver().await;
    assert_eq!(away.left().await, 0);
}

#[tokio::test]
async fn a_call_in_vain_is_repeated_under_its_id_until_it_is_taken() {
    let away = Away::open(2, at_once()).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    let failed = || Answer::Failed { why: "it is down".to_owned(), after: None };
    away.receiver.will_answer([failed(), failed()]);
    assert_eq!(away.told().await.len(), 3);
    let ids = away.receiver.ids();
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert!(away.dead().await.is_empty());
}

#[tokio::test]
async fn after_so_many_calls_in_vain_a_notice_is_dead() {
    let away = Away::open(2, PushSettings { tries: 3, ..at_once() }).await;
    away.town.follow(1, 0).await;
    away.register(1, "phone").await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    away.receiver.will_answer((0..3).map(|n| Answer::Failed { why: format!("no {n}"), after: None }));
    assert_eq!(away.told().await.len(), 3);
    let dead = away.dead().await;
    assert_eq!((dead.len(), &*dead[0].why), (1, "no 2"));
}

#[tokio::test]
async fn many_readers_are_told_by_one_call_and_what_is_refused_is_told_one_by_one() {
    let away = Away::open(5, PushSettings { tries: 1, ..at_once() }).await;
    for reader in 1..5 {
        away.town.follow(reader, 0).await;
        away.register(reader, "phone").await;
    }
    away.deliver().await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    assert_eq!(away.told().await, [(1..5).map(|reader| one(reader, 1, 1)).collect::<Vec<_>>()]);
    away.receiver.calls.lock().clear();
    let refused = || Answer::Refused("the answer is 422".to_owned());
    away.receiver.will_answer([refused(), Answer::Took { gone: vec![] }, refused()]);
    away.town.publish(0, 2).await;
    away.deliver().await;
    let calls: Vec<usize> = away.told().await.iter().map(Vec::len).collect();
    assert_eq!(calls, [4, 1, 1, 1, 1]);
    assert_eq!(away.dead().await.len(), 1, "only the one that is refused by itself");
}

#[tokio::test]
async fn a_device_that_is_gone_is_taken_away_unless_it_has_another_token_by_now() {
    let away = Away::open(3, at_once()).await;
    for reader in [1, 2] {
        away.town.follow(reader, 0).await;
        away.register(reader, "phone").await;
    }
    away.register(1, "tablet").await;
    let gone = [(away.town.name(1), "phone"), (away.town.name(2), "nothing"), (away.town.name(0), "phone")];
    let gone = gone.map(|(user, device)| (user, device.parse().unwrap())).to_vec();
    away.receiver.will_answer([Answer::Took { gone }]);
    away.town.publish(0, 1).await;
    away.deliver().await;
    away.send().await;
    let of = async |user: usize| {
        let all = away.town.stores.archive.push_devices(&[away.town.no(user)]).await.unwrap().remove(0);
        all.into_iter().map(|device| device.device.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((of(1).await, of(2).await), (vec!["tablet".to_owned()], vec!["phone".to_owned()]));
    away.town.unfollow(1, 0).await;
    away.receiver.will_answer([Answer::Gone]);
    away.town.publish(0, 2).await;
    away.deliver().await;
    away.send().await;
    assert_eq!(of(2).await, Vec::<String>::new(), "410 of a call for one device");
}

#[tokio::test]
async fn a_device_that_gets_another_token_during_the_call_is_told_by_it() {
    let away = Away::with_readers(1, at_once()).await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    let (devices, user, inner) = (away.town.stores.archive.clone(), away.town.no(1), away.receiver.clone());
    away.receiver.will_answer([Answer::Gone]);
    away.send_by(away.sender_of(away.town.feeds(), Arc::new(Renewing { devices, user, inner }))).await;
    assert_eq!(away.receiver.told(), [[one(1, 1, 1)], [one(1, 1, 1)]]);
    let tokens = |call: &Call| (call.body.contains(r#""push_token":"t""#), call.body.contains(r#""push_token":"t2""#));
    let tokens: Vec<_> = away.receiver.calls.lock().iter().map(tokens).collect();
    assert_eq!(tokens, [(true, false), (false, true)]);
}

#[tokio::test]
async fn two_senders_tell_each_reader_once() {
    let away = Away::open(40, PushSettings { batch: 1, ..at_once() }).await;
    for reader in 1..40 {
        away.town.follow(reader, 0).await;
        away.register(reader, "phone").await;
    }
    away.deliver().await;
    away.town.publish(0, 1).await;
    away.deliver().await;
    let both = [away.sender(), away.sender()];
    eventually("all are told", async || away.receiver.calls.lock().len() >= 39).await;
    for sender in both {
        sender.stop().await;
    }
    let mut ids = away.receiver.ids();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), away.receiver.ids().len()), (39, 39));
}
