//! The whole feed in one process: embedded stores, a worker at work, and readers who come and go.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use feedgate_common::archive::{Publish, Write};
use feedgate_common::feed::{Changes, Feeds, Pages, Publisher};
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Body, InboxKey, ItemId, Millis, UserId};
use feedgate_embedded::Embedded;
use feedgate_timeline::{FanOut, Settings, Worker};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long the worker may take for what was written.
const PATIENCE: Duration = Duration::from_secs(300);

/// Embedded stores, the rules over them, and a worker that works off what is written.
pub struct Town {
    /// The embedded stores, which lie in one directory.
    pub stores: Embedded,
    /// The stores, and what is set for the feeds.
    pub feeds: Arc<Feeds>,
    /// The logs, as devices read them.
    pub changes: Arc<Changes>,
    /// Puts pages together, and keeps their windows.
    pub pages: Pages,
    publisher: Publisher,
    shutdown: CancellationToken,
    worker: JoinHandle<()>,
}

impl Town {
    /// A new one in `dir`. A follow brings `backfill` items from before it.
    ///
    /// # Errors
    /// If the stores do not open.
    pub fn open(dir: &Path, buckets: u16, backfill: usize) -> anyhow::Result<Self> {
        Self::open_with(dir, buckets, backfill, NamedFeeds::default())
    }

    /// As [`open`](Self::open), with these named feeds configured.
    ///
    /// # Errors
    /// If the stores do not open.
    pub fn open_with(dir: &Path, buckets: u16, backfill: usize, named: NamedFeeds) -> anyhow::Result<Self> {
        let stores = Embedded::open(dir, buckets)?;
        let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), backfill);
        let feeds = feeds.with_named(named).with_retention(Duration::from_secs(7 * 24 * 3600), Arc::new(now));
        let feeds = Arc::new(feeds);
        let publisher = Publisher::new(stores.archive.clone(), stores.jobs.clone());
        // It sweeps, since a rebuild may reopen what was finished while it read.
        let settings = Settings { sweep_every: Duration::from_millis(200), ..Settings::default() };
        let worker = Worker::new(FanOut::new(feeds.clone()), stores.jobs.clone(), stores.doorbell.clone(), settings);
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let worker = tokio::spawn(async move { worker.run(stop).await });
        let changes = Arc::new(Changes::new(feeds.clone()));
        let pages = Pages::new(changes.clone());
        Ok(Self { stores, feeds, changes, pages, publisher, shutdown, worker })
    }

    /// Accepts all of it, in one transaction, and tells the worker.
    ///
    /// # Errors
    /// If one is refused.
    pub async fn write(&self, writes: Vec<Write>) -> anyhow::Result<()> {
        for written in self.publisher.write(writes, now()).await? {
            written?;
        }
        Ok(())
    }

    /// The inbox of a user, who may be new.
    ///
    /// # Errors
    /// The errors of the store.
    pub async fn key(&self, user: &UserId) -> anyhow::Result<InboxKey> {
        let numbers = self.stores.archive.intern(std::slice::from_ref(user)).await?;
        Ok(InboxKey::main(*numbers.first().context("a number for each name")?))
    }

    /// Waits until the worker has finished everything accepted so far, and tells the node how far there is to pull.
    ///
    /// # Errors
    /// If it takes longer than it should ever take.
    pub async fn settle(&self) -> anyhow::Result<()> {
        let finished = async {
            while !self.stores.archive.outstanding(None, Millis::MAX, 1).await?.is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, finished).await.context("the worker does not come to an end")??;
        self.changes.heard_pull(self.stores.archive.pull_head().await?);
        Ok(())
    }

    /// Stops the worker, then the stores.
    ///
    /// # Errors
    /// If one of them failed.
    pub async fn close(self) -> anyhow::Result<()> {
        self.shutdown.cancel();
        self.worker.await?;
        drop(self.pages);
        ensure!(Arc::strong_count(&self.changes) == 1, "somebody still reads");
        Ok(self.stores.close().await?)
    }
}

/// An item with this id and rank, and nothing that matters in it.
///
/// # Panics
/// If the body is too long for one.
pub fn item(author: &UserId, id: Option<u64>, rank: i64, body: &str) -> Write {
    Write::Publish(Publish {
        id: id.map(ItemId),
        published_at: Some(rank),
        ..Publish::new(author.clone(), Body::parse(format!("\"{body}\"")).expect("a JSON string"))
    })
}

/// The Unix time now, in ms.
pub fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis)
}
