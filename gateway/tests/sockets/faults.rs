//! Stores that fail or hang when told to, and otherwise are the real ones.

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::inboxes::{
    Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, InboxCounts, Log, Read, Stand, Take, Taken,
};
use feedgate_common::jobs::{Delivery, Job, Lane};
use feedgate_common::sessions::{Claim, Claimed, Confirmed, Held, Holders, Renewed, SavePosition, SessionInfo, Token};
use feedgate_common::{
    Bucket, DeviceId, Epoch, FeedId, InboxKey, Inboxes, Jobs, Millis, Position, Progress, Sessions, StoreError, UserNo,
};
use parking_lot::Mutex;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Weather {
    Fair,
    Failing,
    Hanging,
    Damaged,
}

/// What a call passes on its way to the store.
#[derive(Clone)]
pub(crate) struct Gate(watch::Sender<Weather>);

impl Gate {
    pub(crate) fn open() -> Self {
        Self(watch::Sender::new(Weather::Fair))
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.0.send_replace(weather);
    }

    pub(crate) async fn pass(&self) -> Result<()> {
        let now = *self.0.subscribe().wait_for(|now| *now != Weather::Hanging).await.unwrap();
        match now {
            Weather::Failing => Err(StoreError::unavailable("the test wants it")),
            Weather::Damaged => Err(StoreError::corrupt("the test wants it")),
            Weather::Fair | Weather::Hanging => Ok(()),
        }
    }
}

/// A session pool of which renewals, confirmations and everything can be cut off apart.
pub(crate) struct FaultySessions {
    pub(crate) inner: Arc<dyn Sessions>,
    pub(crate) renewals: Gate,
    pub(crate) confirmations: Gate,
    pub(crate) rest: Gate,
    /// What claims, releases and revocations that were carried out pass on their way back.
    pub(crate) answers: Gate,
    /// What it was asked, but for small reads and renewals.
    pub(crate) asked: Mutex<Vec<&'static str>>,
}

impl FaultySessions {
    pub(crate) fn over(inner: Arc<dyn Sessions>) -> Arc<Self> {
        let (renewals, confirmations, rest, answers) = (Gate::open(), Gate::open(), Gate::open(), Gate::open());
        Arc::new(Self { inner, renewals, confirmations, rest, answers, asked: Mutex::default() })
    }

    async fn pass(&self, what: &'static str) -> Result<()> {
        self.asked.lock().push(what);
        self.rest.pass().await
    }
}

#[async_trait]
impl Sessions for FaultySessions {
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        self.pass("claim").await?;
        let claimed = self.inner.claim(claim).await?;
        self.answers.pass().await.map(|()| claimed)
    }

    async fn release(&self, user: UserNo, device: &DeviceId, token: Token) -> Result<()> {
        self.pass("release").await?;
        self.inner.release(user, device, token).await?;
        self.answers.pass().await
    }

    async fn revoke(&self, user: UserNo, device: &DeviceId) -> Result<Option<(String, u64)>> {
        self.pass("revoke").await?;
        let revoked = self.inner.revoke(user, device).await?;
        self.answers.pass().await.map(|()| revoked)
    }

    async fn renew(&self, node: &str) -> Result<Renewed> {
        self.renewals.pass().await?;
        self.inner.renew(node).await
    }

    async fn retire(&self, node: &str) -> Result<()> {
        self.pass("retire").await?;
        self.inner.retire(node).await
    }

    async fn confirm(&self, held: Vec<Held>) -> Result<Vec<Confirmed>> {
        self.pass("confirm").await?;
        self.confirmations.pass().await?;
        self.inner.confirm(held).await
    }

    async fn nodes(&self, users: &[UserNo]) -> Result<Vec<Holders>> {
        self.pass("nodes").await?;
        self.inner.nodes(users).await
    }

    async fn list(&self, user: UserNo) -> Result<Vec<SessionInfo>> {
        self.pass("list").await?;
        self.inner.list(user).await
    }

    async fn save(&self, positions: Vec<SavePosition>, now: Millis) -> Result<Vec<bool>> {
        self.pass("save").await?;
        self.inner.save(positions, now).await
    }

    async fn position(&self, user: UserNo, device: &DeviceId, feed: FeedId, now: Millis) -> Result<Option<Position>> {
        self.pass("position").await?;
        self.inner.position(user, device, feed, now).await
    }

    async fn ping(&self) -> Result<()> {
        self.rest.pass().await?;
        self.inner.ping().await
    }
}

/// Inboxes that can be cut off from who reads them.
pub(crate) struct FaultyInboxes {
    pub(crate) inner: Arc<dyn Inboxes>,
    pub(crate) gate: Gate,
    /// Of which inboxes the log or its head was read so far.
    pub(crate) reads: Mutex<Vec<InboxKey>>,
}

impl FaultyInboxes {
    pub(crate) fn over(inner: Arc<dyn Inboxes>) -> Arc<Self> {
        Arc::new(Self { inner, gate: Gate::open(), reads: Mutex::default() })
    }
}

#[async_trait]
impl Inboxes for FaultyInboxes {
    fn buckets(&self) -> u16 {
        self.inner.buckets()
    }

    async fn ping(&self) -> Result<()> {
        self.gate.pass().await?;
        self.inner.ping().await
    }

    async fn progress(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>> {
        self.inner.progress(of).await
    }

    async fn advance(&self, step: Advance) -> Result<Advanced> {
        self.inner.advance(step).await
    }

    async fn step_edges(&self, steps: Vec<EdgeStep>) -> Result<Vec<EdgeStepped>> {
        self.inner.step_edges(steps).await
    }

    async fn take(&self, step: Take) -> Result<Taken> {
        self.inner.take(step).await
    }

    async fn stands(&self, keys: &[InboxKey]) -> Result<Vec<Option<Stand>>> {
        self.reads.lock().extend(keys);
        self.gate.pass().await?;
        self.inner.stands(keys).await
    }

    async fn present(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        self.inner.present(keys).await
    }

    async fn begin_build(&self, key: InboxKey, token: Epoch) -> Result<Option<Begun>> {
        self.inner.begin_build(key, token).await
    }

    async fn finish_build(&self, build: Build) -> Result<bool> {
        self.inner.finish_build(build).await
    }

    async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read> {
        self.reads.lock().push(key);
        self.gate.pass().await?;
        self.inner.read(key, after, limit).await
    }

    async fn log(&self, key: InboxKey) -> Result<Option<Log>> {
        self.gate.pass().await?;
        self.inner.log(key).await
    }

    async fn discard(&self, key: InboxKey) -> Result<()> {
        self.inner.discard(key).await
    }

    async fn touch(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        self.gate.pass().await?;
        self.inner.touch(keys, until).await
    }

    async fn discard_expired(&self, now: Millis, limit: usize) -> Result<usize> {
        self.inner.discard_expired(now, limit).await
    }

    async fn counts(&self) -> Result<InboxCounts> {
        self.inner.counts().await
    }
}

/// A queue that can be cut off from who adds to it.
pub(crate) struct FaultyJobs {
    pub(crate) inner: Arc<dyn Jobs>,
    pub(crate) gate: Gate,
    /// How often it was to add something so far.
    pub(crate) puts: Mutex<usize>,
}

impl FaultyJobs {
    pub(crate) fn over(inner: Arc<dyn Jobs>) -> Arc<Self> {
        Arc::new(Self { inner, gate: Gate::open(), puts: Mutex::default() })
    }
}

#[async_trait]
impl Jobs for FaultyJobs {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        *self.puts.lock() += 1;
        self.gate.pass().await?;
        self.inner.put(jobs).await
    }

    async fn take(&self, lane: Lane) -> Result<Delivery> {
        self.inner.take(lane).await
    }

    async fn ack(&self, id: u64) -> Result<()> {
        self.inner.ack(id).await
    }

    async fn nack(&self, id: u64) -> Result<()> {
        self.inner.nack(id).await
    }

    async fn pending(&self) -> Result<u64> {
        self.gate.pass().await?;
        self.inner.pending().await
    }

    async fn ping(&self) -> Result<()> {
        self.gate.pass().await
    }
}
