//! Inboxes in which no step can be taken for a while.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::feed::Feeds;
use feedgate_common::inboxes::{
    Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, InboxCounts, Log, Read, Stand, Take, Taken,
};
use feedgate_common::{Bucket, Epoch, InboxKey, Inboxes, Millis, Position, Progress, UserNo};
use feedgate_timeline::FanOut;

use crate::town::{BACKFILL, Town};

/// What a step fails with. It may panic instead.
type Why = fn() -> StoreError;

pub(crate) struct Troubled {
    inner: Arc<dyn Inboxes>,
    why: Mutex<Option<Why>>,
    failed: AtomicU32,
}

impl Troubled {
    pub(crate) fn of(town: &Town) -> Arc<Self> {
        Arc::new(Self { inner: town.stores.inboxes.clone(), why: Mutex::default(), failed: AtomicU32::new(0) })
    }

    /// The steps of a worker, taken in these inboxes.
    pub(crate) fn fan_out(self: &Arc<Self>, town: &Town) -> FanOut {
        FanOut::new(Arc::new(Feeds::new(town.stores.archive.clone(), self.clone(), BACKFILL)))
    }

    /// From now on, each step fails like this; `None` for no more trouble.
    pub(crate) fn fails(&self, why: Option<Why>) {
        self.failed.store(0, Ordering::SeqCst);
        *self.why.lock().expect("no test panics with it") = why;
    }

    /// How many steps have failed since they fail like this.
    pub(crate) fn failed(&self) -> u32 {
        self.failed.load(Ordering::SeqCst)
    }

    fn trouble(&self) -> Result<()> {
        let why = *self.why.lock().expect("no test panics with it");
        let Some(why) = why else { return Ok(()) };
        self.failed.fetch_add(1, Ordering::SeqCst);
        Err(why())
    }
}

#[async_trait]
impl Inboxes for Troubled {
    fn buckets(&self) -> u16 {
        self.inner.buckets()
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }

    async fn progress(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>> {
        self.inner.progress(of).await
    }

    async fn advance(&self, step: Advance) -> Result<Advanced> {
        self.trouble()?;
        self.inner.advance(step).await
    }

    async fn step_edges(&self, steps: Vec<EdgeStep>) -> Result<Vec<EdgeStepped>> {
        self.inner.step_edges(steps).await
    }

    async fn take(&self, step: Take) -> Result<Taken> {
        self.inner.take(step).await
    }

    async fn stands(&self, keys: &[InboxKey]) -> Result<Vec<Option<Stand>>> {
        self.inner.stands(keys).await
    }

    async fn present(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        self.inner.present(keys).await
    }

    async fn begin_build(&self, key: InboxKey, placeholder: Epoch) -> Result<Option<Begun>> {
        self.inner.begin_build(key, placeholder).await
    }

    async fn finish_build(&self, build: Build) -> Result<bool> {
        self.inner.finish_build(build).await
    }

    async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read> {
        self.inner.read(key, after, limit).await
    }

    async fn log(&self, key: InboxKey) -> Result<Option<Log>> {
        self.inner.log(key).await
    }

    async fn discard(&self, key: InboxKey) -> Result<()> {
        self.inner.discard(key).await
    }

    async fn touch(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        self.inner.touch(keys, until).await
    }

    async fn discard_expired(&self, now: Millis, limit: usize) -> Result<usize> {
        self.inner.discard_expired(now, limit).await
    }

    async fn counts(&self) -> Result<InboxCounts> {
        self.inner.counts().await
    }
}
