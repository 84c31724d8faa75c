//! A small town on real embedded stores: some users who publish and follow, and workers who deliver.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Audience, Publish, Refused, Write, Written};
use feedgate_common::change::Class;
use feedgate_common::doorbell::{Heard, Listening};
use feedgate_common::feed::{Changes, Feeds, Pages, Publisher, living};
use feedgate_common::inboxes::Log;
use feedgate_common::{Body, Doorbell, Entry, InboxKey, ItemId, Jobs, Millis, UserId, UserNo};
use feedgate_embedded::Embedded;
use feedgate_timeline::{FanOut, Pulse, Settings, Worker};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What a follow brings from before it: few, so that the rule shows.
pub(crate) const BACKFILL: usize = 3;

pub(crate) const BUCKETS: u16 = 4;

/// Few appends in a step, so that a fan-out takes many.
pub(crate) const STEP_MAX: usize = 2;

/// What has not happened by then, on the slowest machine, does not happen.
const FOR_EVER: Duration = Duration::from_secs(300);

/// Every write happens at this moment, long ago, so that whatever is outstanding is overdue.
pub(crate) const NOW: Millis = 1_000;

pub(crate) struct Town {
    pub(crate) stores: Embedded,
    feeds: Arc<Feeds>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) pages: Pages,
    publisher: Publisher,
    names: Vec<UserId>,
    nos: Vec<UserNo>,
    _hears: Listening,
}

impl Town {
    /// The town in `dir`, with `users` users called 0, 1, …; all of it as it was left.
    pub(crate) async fn open(dir: &Path, users: usize) -> Self {
        let stores = Embedded::open(dir, BUCKETS).unwrap();
        let names: Vec<UserId> = (0..users).map(|n| format!("user-{n}").parse().unwrap()).collect();
        let nos = stores.archive.intern(&names).await.unwrap();
        let feeds = Arc::new(Feeds::new(stores.archive.clone(), stores.inboxes.clone(), BACKFILL));
        let changes = Arc::new(Changes::new(feeds.clone()).with_take_max(STEP_MAX));
        let publisher = Publisher::new(stores.archive.clone(), stores.jobs.clone());
        // As a gateway does: reads then take the news in.
        changes.heard_pull(stores.archive.pull_head().await.unwrap());
        let hearing = changes.clone();
        let hears = stores.doorbell.listen(Arc::new(move |heard| {
            if let Heard::Hot(head) = heard {
                hearing.heard_pull(head.pull_seq);
            }
        }));
        let pages = Pages::new(changes.clone());
        Self { feeds, changes, pages, publisher, names, nos, stores, _hears: hears }
    }

    /// A town in which users `1..users` follow user 0, and each of them has an inbox.
    pub(crate) async fn with_followers(dir: &Path, users: usize) -> Self {
        let town = Self::open(dir, users).await;
        for reader in 1..users {
            town.visit(reader).await;
            town.follow(reader, 0).await;
        }
        town.deliver().await;
        town
    }

    pub(crate) fn name(&self, user: usize) -> UserId {
        self.names[user].clone()
    }

    pub(crate) fn no(&self, user: usize) -> UserNo {
        self.nos[user]
    }

    pub(crate) fn key(&self, user: usize) -> InboxKey {
        InboxKey::main(self.nos[user])
    }

    /// What a backend would send to publish item `id`.
    pub(crate) fn item(&self, author: usize, id: u64) -> Publish {
        Publish {
            id: Some(ItemId(id)),
            ..Publish::new(self.names[author].clone(), Body::parse(format!("{{\"n\":{id}}}")).unwrap())
        }
    }

    pub(crate) async fn write(&self, write: Write) -> Written {
        self.try_write(write).await.unwrap()
    }

    pub(crate) async fn try_write(&self, write: Write) -> Result<Written, Refused> {
        self.publisher.write(vec![write], NOW).await.unwrap().remove(0)
    }

    pub(crate) async fn publish(&self, author: usize, id: u64) {
        self.write(Write::Publish(self.item(author, id))).await;
    }

    /// To these readers and nobody else.
    pub(crate) async fn publish_to(&self, author: usize, id: u64, readers: &[usize]) {
        let audience = Audience::Users(readers.iter().map(|reader| self.name(*reader)).collect());
        self.write(Write::Publish(Publish { audience, ..self.item(author, id) })).await;
    }

    pub(crate) async fn classify(&self, author: usize, class: Class) {
        self.write(Write::Classify { author: self.name(author), class }).await;
    }

    pub(crate) async fn edit(&self, id: u64) {
        self.try_edit(id).await.unwrap();
    }

    pub(crate) async fn try_edit(&self, id: u64) -> Result<Written, Refused> {
        let body = Body::parse("\"edited\"".to_owned()).unwrap();
        self.try_write(Write::Edit { item: ItemId(id), body: Some(body), rank: None, mentions: None, if_version: None })
            .await
    }

    pub(crate) async fn delete(&self, id: u64) {
        self.try_delete(id).await.unwrap();
    }

    pub(crate) async fn try_delete(&self, id: u64) -> Result<Written, Refused> {
        self.try_write(Write::Delete { item: ItemId(id), if_version: None }).await
    }

    pub(crate) async fn follow(&self, reader: usize, author: usize) {
        let (reader, author) = (self.names[reader].clone(), self.names[author].clone());
        self.write(Write::Follow { reader, author }).await;
    }

    pub(crate) async fn unfollow(&self, reader: usize, author: usize) {
        let (reader, author) = (self.names[reader].clone(), self.names[author].clone());
        self.write(Write::Unfollow { reader, author }).await;
    }

    /// The reader opens the app: from now on there is an inbox.
    pub(crate) async fn visit(&self, reader: usize) {
        self.changes.head(self.key(reader)).await.unwrap();
    }

    pub(crate) async fn log(&self, reader: usize) -> Log {
        self.changes.log(self.key(reader)).await.unwrap()
    }

    pub(crate) async fn entries(&self, reader: usize) -> Vec<Entry> {
        self.log(reader).await.entries.iter().map(|numbered| numbered.entry).collect()
    }

    /// The items that a device shows which has taken in the whole log.
    pub(crate) async fn shown(&self, reader: usize) -> BTreeSet<u64> {
        living(&self.log(reader).await.entries).iter().map(|key| key.item.0).collect()
    }

    pub(crate) fn feeds(&self) -> Arc<Feeds> {
        self.feeds.clone()
    }

    pub(crate) fn fan_out(&self) -> FanOut {
        FanOut::new(self.feeds.clone()).with_step_max(STEP_MAX)
    }

    /// A worker on the town's own queue.
    pub(crate) fn worker(&self) -> Running {
        self.worker_on(self.stores.jobs.clone(), self.stores.doorbell.clone(), settings())
    }

    pub(crate) fn worker_on(&self, jobs: Arc<dyn Jobs>, doorbell: Arc<dyn Doorbell>, settings: Settings) -> Running {
        self.worker_of(self.fan_out(), jobs, doorbell, settings)
    }

    /// A worker that takes these steps.
    pub(crate) fn worker_of(
        &self,
        fan_out: FanOut,
        jobs: Arc<dyn Jobs>,
        doorbell: Arc<dyn Doorbell>,
        settings: Settings,
    ) -> Running {
        let worker = Worker::new(fan_out, jobs, doorbell, settings);
        let shutdown = CancellationToken::new();
        let (stop, pulse) = (shutdown.clone(), worker.pulse());
        Running { shutdown, pulse, task: tokio::spawn(async move { worker.run(stop).await }) }
    }

    /// Jobs that wait or are in flight.
    pub(crate) async fn pending(&self) -> u64 {
        self.stores.jobs.pending().await.unwrap()
    }

    /// Waits until the fan-out of everything that was accepted is finished.
    pub(crate) async fn finished(&self) {
        eventually("everything accepted is finished", async || {
            self.stores.archive.outstanding(None, Millis::MAX, 1).await.unwrap().is_empty()
        })
        .await;
    }

    /// Waits until also no job is left.
    pub(crate) async fn drained(&self) {
        self.finished().await;
        eventually("every job is acknowledged", async || self.pending().await == 0).await;
    }

    /// Works until everything is delivered, then stops.
    pub(crate) async fn deliver(&self) {
        let worker = self.worker();
        self.drained().await;
        worker.stop().await;
    }
}

/// Quick to try again; sweeps once, at the start.
pub(crate) fn settings() -> Settings {
    Settings {
        in_flight: 4,
        sweep_every: Duration::from_secs(3600),
        retry_first: Duration::from_millis(5),
        retry_max: Duration::from_millis(50),
        drain: Duration::from_secs(5),
        ..Settings::default()
    }
}

/// Settings that are quick to try again, and that sweep all the time.
pub(crate) fn sweeping() -> Settings {
    Settings { sweep_every: Duration::from_millis(20), ..settings() }
}

/// A worker at work.
pub(crate) struct Running {
    shutdown: CancellationToken,
    pub(crate) pulse: Arc<Pulse>,
    task: JoinHandle<()>,
}

impl Running {
    /// From now on the worker takes no job. It ends by itself; [`Running::stop`] waits for that.
    pub(crate) fn tell_to_stop(&self) {
        self.shutdown.cancel();
    }

    pub(crate) async fn stop(self) {
        self.tell_to_stop();
        tokio::time::timeout(FOR_EVER, self.task).await.expect("a worker stops").unwrap();
    }
}

/// Looks again and again until `holds`.
pub(crate) async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(FOR_EVER, wait).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
