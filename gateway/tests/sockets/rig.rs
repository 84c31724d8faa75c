//! A node under test: gateway, worker and stores in this process, on a port of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Publish, Write};
use feedgate_common::change::Class;
use feedgate_common::feed::{Changes, DEFAULT_BACKFILL, Feeds, Publisher};
use feedgate_common::graph::Shield;
use feedgate_common::named::{NamedFeed, NamedFeeds};
use feedgate_common::{Body, FeedId, InboxKey, Inboxes, Position, Sessions, UserNo};
use feedgate_embedded::Embedded;
use feedgate_gateway::{Gateway, Keys, Parts, Settings, Surface, clock, serve};
use feedgate_timeline::{FanOut, Worker};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::phone::Phone;

/// What has not happened by then, on the slowest machine, does not happen.
const FOR_EVER: Duration = Duration::from_secs(300);

/// The feed of "like"s, which clients call "notifications".
pub(crate) const LIKES: FeedId = FeedId(1);

/// The feed that holds rankings.
const PICKS: FeedId = FeedId(2);

/// The main feed, [`LIKES`] and "picks", which holds rankings. Their inboxes are these.
pub(crate) fn feeds(stores: &Embedded, inboxes: Arc<dyn Inboxes>) -> Feeds {
    let named = |id, name: &str, kinds: &[&str]| NamedFeed {
        id,
        name: name.into(),
        kinds: kinds.iter().map(|&kind| kind.into()).collect(),
        ranked: kinds.is_empty(),
        cap: 1000,
        ttl: None,
    };
    let named = vec![named(LIKES, "notifications", &["like"]), named(PICKS, "picks", &[])];
    Feeds::new(stores.archive.clone(), inboxes, DEFAULT_BACKFILL).with_named(NamedFeeds::new(named).unwrap())
}

pub(crate) struct Rig {
    pub(crate) addr: SocketAddr,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) sessions: Arc<dyn Sessions>,
    pub(crate) keys: Keys,
    publisher: Arc<Publisher>,
    rung: Arc<Notify>,
    stop: CancellationToken,
    served: Vec<JoinHandle<std::io::Result<()>>>,
    worked: JoinHandle<()>,
    _listening: feedgate_common::doorbell::Listening,
    stores: Embedded,
    _dir: TempDir,
}

impl Rig {
    pub(crate) async fn start() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(set: impl FnOnce(&mut Settings)) -> Self {
        Self::of(|parts, _| set(&mut parts.settings)).await
    }

    /// A node whose parts may be exchanged before it starts.
    pub(crate) async fn of(change: impl FnOnce(&mut Parts, &Embedded)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let Embedded { archive, inboxes, sessions, jobs, doorbell, .. } = &stores;
        let (sessions, jobs, doorbell) = (sessions.clone(), jobs.clone(), doorbell.clone());
        assert_eq!(archive.intern_feeds(&["notifications".into()]).await.unwrap(), [LIKES]);
        let feeds = Arc::new(feeds(&stores, inboxes.clone()));
        let publisher = Arc::new(Publisher::new(archive.clone(), jobs.clone()));
        let keys = Keys::new("api-key", b"0123456789abcdef0123456789abcdef");

        let rung = Arc::new(Notify::new());
        let ring = rung.clone();
        let listening = doorbell.listen(Arc::new(move |_| ring.notify_waiters()));
        let worker = Worker::new(FanOut::new(feeds.clone()), jobs, doorbell, feedgate_timeline::Settings::default());
        let stop = CancellationToken::new();
        let stop_working = stop.clone();
        let worked = tokio::spawn(async move { worker.run(stop_working).await });
        let mut rig = Self {
            addr: ([127, 0, 0, 1], 0).into(),
            feeds,
            sessions,
            keys,
            publisher,
            rung,
            stop,
            served: vec![],
            worked,
            _listening: listening,
            stores,
            _dir: dir,
        };
        rig.addr = rig.join("node", change).await;
        rig
    }

    /// Another node over the same stores, and where it is.
    pub(crate) async fn join(&mut self, node: &str, change: impl FnOnce(&mut Parts, &Embedded)) -> SocketAddr {
        let mut parts = Parts {
            feeds: self.feeds.clone(),
            publisher: self.publisher.clone(),
            sessions: self.sessions.clone(),
            doorbell: self.stores.doorbell.clone(),
            jobs: self.stores.jobs.clone(),
            keys: self.keys.clone(),
            settings: Settings { commands_per_sec: 10_000, drain_ms: 50, ..Settings::default() },
            node: node.to_owned(),
            registry: feedgate_common::metrics::registry(),
            shown: Arc::new(Vec::new),
        };
        change(&mut parts, &self.stores);
        let stop = self.stop.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let serving = serve(Gateway::new(parts), listener, Surface::All, None, async move { stop.cancelled().await });
        self.served.push(tokio::spawn(serving));
        addr
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        for served in self.served {
            served.await.unwrap().unwrap();
        }
        self.worked.await.unwrap();
    }

    pub(crate) fn begin_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn token(&self, user: &str, device: Option<&str>, ttl_secs: i64) -> String {
        let device = device.map(|device| device.parse().unwrap());
        let expires_at = clock::now() / 1000 + ttl_secs;
        self.keys.mint(&user.parse().unwrap(), device.as_ref(), clock::now(), expires_at.unsigned_abs())
    }

    /// A WebSocket that has said nothing yet.
    pub(crate) async fn socket(&self) -> Phone {
        Phone::open(self.addr).await
    }

    /// A WebSocket that has agreed on Protobuf and has said nothing yet.
    pub(crate) async fn protobuf_socket(&self) -> Phone {
        Phone::of_protobuf(self.addr).await
    }

    /// A device that has connected.
    pub(crate) async fn connected(&self, user: &str, device: &str) -> Phone {
        self.connected_at(self.addr, user, device).await
    }

    /// A device that has connected to the node there.
    pub(crate) async fn connected_at(&self, addr: SocketAddr, user: &str, device: &str) -> Phone {
        let mut phone = Phone::open(addr).await;
        phone.connect(&self.token(user, Some(device), 600)).await;
        phone
    }

    /// What a device says to connect; `None`: it has no id of its own.
    pub(crate) fn connect(&self, user: &str, device: Option<&str>) -> serde_json::Value {
        serde_json::json!({"id": 1, "connect": {"token": self.token(user, device, 600)}})
    }

    /// A device without an id of its own that has connected.
    pub(crate) async fn nameless(&self, user: &str) -> Phone {
        let mut phone = Phone::open(self.addr).await;
        phone.connect(&self.token(user, None, 600)).await;
        phone
    }

    async fn write(&self, writes: Vec<Write>) {
        for written in self.publisher.write(writes, clock::now()).await.unwrap() {
            written.unwrap();
        }
    }

    pub(crate) async fn classify(&self, author: &str, class: Class) {
        self.write(vec![Write::Classify { author: author.parse().unwrap(), class }]).await;
    }

    pub(crate) async fn mute(&self, user: &str, other: &str) {
        let (user, other) = (user.parse().unwrap(), other.parse().unwrap());
        self.write(vec![Write::Shield { user, other, shield: Shield::Mute, up: true }]).await;
    }

    pub(crate) async fn post(&self, author: &str, count: usize) {
        self.post_bodies(author, (0..count).map(|n| n.to_string())).await;
    }

    pub(crate) async fn post_bodies(&self, author: &str, bodies: impl Iterator<Item = String>) {
        self.publish(FeedId::MAIN, author, bodies).await;
    }

    /// Publishes `count` likes of `author`.
    pub(crate) async fn like(&self, author: &str, count: usize) {
        self.publish(LIKES, author, (0..count).map(|n| n.to_string())).await;
    }

    pub(crate) async fn publish(&self, feed: FeedId, author: &str, bodies: impl Iterator<Item = String>) {
        let publish = |body: String| {
            let plain = Publish::new(author.parse().unwrap(), Body::parse(body).unwrap());
            Write::Publish(Publish { feed, ..plain })
        };
        self.write(bodies.map(publish).collect()).await;
    }

    /// The reader has an inbox and follows the author, and both are in the log.
    pub(crate) async fn follow(&self, reader: &str, author: &str) {
        let (reader, author) = (reader.parse().unwrap(), author.parse().unwrap());
        self.write(vec![Write::Follow { reader, author }]).await;
    }

    /// Revokes the user's tokens, as a node does that ends before it has told the others.
    pub(crate) async fn revoke_in_silence(&self, user: &str) {
        self.stores.archive.revoke(self.number(user).await, clock::now() + 1).await.unwrap();
    }

    pub(crate) async fn number(&self, user: &str) -> UserNo {
        self.feeds.archive().intern(&[user.parse().unwrap()]).await.unwrap()[0]
    }

    pub(crate) async fn head(&self, user: &str) -> Position {
        self.head_in(FeedId::MAIN, user).await
    }

    pub(crate) async fn head_in(&self, feed: FeedId, user: &str) -> Position {
        let key = InboxKey { reader: self.number(user).await, feed };
        Changes::new(self.feeds.clone()).head(key).await.unwrap()
    }

    /// Waits until the user's log has come to `offset`, and nobody is left to be told so.
    pub(crate) async fn grown(&self, user: &str, offset: u64) -> Position {
        self.grown_in(FeedId::MAIN, user, offset).await
    }

    /// Waits until the user's log of this feed has come to `offset`, and nobody is left to be told so.
    pub(crate) async fn grown_in(&self, feed: FeedId, user: &str, offset: u64) -> Position {
        within(async {
            let head = loop {
                let rung = self.rung.notified();
                tokio::pin!(rung);
                rung.as_mut().enable();
                let head = self.head_in(feed, user).await;
                if head.offset >= offset {
                    break head;
                }
                rung.await;
            };
            // A job is acknowledged after its doorbell has rung.
            while self.stores.jobs.pending().await.unwrap() > 0 {
                tokio::task::yield_now().await;
            }
            head
        })
        .await
    }

    /// What is stored for the device.
    pub(crate) async fn stored(&self, user: &str, device: &str) -> Option<Position> {
        self.stored_in(FeedId::MAIN, user, device).await
    }

    /// What is stored for the device in this feed.
    pub(crate) async fn stored_in(&self, feed: FeedId, user: &str, device: &str) -> Option<Position> {
        let (user, device) = (self.number(user).await, device.parse().unwrap());
        self.sessions.position(user, &device, feed, clock::now()).await.unwrap()
    }

    /// Hangs up, and waits until the gateway has said its farewell.
    pub(crate) async fn hang_up(&self, mut phone: Phone, user: &str) {
        phone.ws.close(None).await.unwrap();
        phone.closed().await;
        self.gone(user).await;
    }

    /// Waits until the user has no session.
    pub(crate) async fn gone(&self, user: &str) {
        let user = self.number(user).await;
        within(async {
            while !self.sessions.list(user).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Counts from `/v1/stats`, by HTTP as anyone would.
    pub(crate) async fn stats(&self) -> serde_json::Value {
        let (_, body) = self.http("GET /v1/stats").await;
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    /// A request of a backend: the status and the body of its answer.
    pub(crate) async fn http(&self, method_and_path: &str) -> (u16, String) {
        http_at(self.addr, method_and_path, "").await
    }
}

/// A request of a backend to the node at `addr`: the status and the body of its answer.
pub(crate) async fn http_at(addr: SocketAddr, method_and_path: &str, body: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut http = tokio::net::TcpStream::connect(addr).await.unwrap();
    let headers = format!(
        "host: x\r\nauthorization: Bearer api-key\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}",
        body.len()
    );
    http.write_all(format!("{method_and_path} HTTP/1.1\r\n{headers}\r\n\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    http.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Lets the others work until it holds, also while the clock stands still.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "tests stop the other clock, and this one limits the wait")]
pub(crate) fn until(holds: impl Fn() -> bool) -> impl Future<Output = ()> {
    let (caller, begun) = (std::panic::Location::caller(), std::time::Instant::now());
    async move {
        while !holds() {
            assert!(begun.elapsed() < FOR_EVER, "{caller}: did not happen");
            tokio::task::yield_now().await;
        }
    }
}

/// Says where a test hangs.
#[track_caller]
pub(crate) fn within<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(FOR_EVER, work).await {
            Ok(done) => done,
            Err(_) => panic!("{caller}: did not happen"),
        }
    }
}
