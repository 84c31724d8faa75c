//! What a worker does when something around it fails.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::town::{NOW, Town, eventually, settings};
use crate::trouble::Troubled;
use async_trait::async_trait;
use feedgate_common::archive::{Publish, PullHead, Write};
use feedgate_common::doorbell::{Closing, Growth, Listening, OnHeard, Onlooker, Stir};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::jobs::{Delivery, Job, Lane};
use feedgate_common::{Archive, Doorbell, Jobs, UserNo};
use feedgate_timeline::Settings;
use tokio_util::sync::CancellationToken;

/// A doorbell that breaks the first times it is rung.
pub(crate) struct Broken {
    rung: AtomicU32,
    how: How,
}

pub(crate) enum How {
    Panics,
    NeverReturns,
    /// Until the token is cancelled.
    Waits(CancellationToken),
}

impl Broken {
    pub(crate) fn new(how: How) -> Arc<Self> {
        Arc::new(Self { rung: AtomicU32::new(0), how })
    }
}

#[async_trait]
impl Doorbell for Broken {
    async fn ring(&self, _growth: &Growth) {
        let before = self.rung.fetch_add(1, Ordering::SeqCst);
        match &self.how {
            How::Panics if before < 2 => panic!("the doorbell is broken"),
            How::Panics => {}
            How::NeverReturns => std::future::pending().await,
            How::Waits(goes_on) => goes_on.cancelled().await,
        }
    }

    async fn hot(&self, _head: PullHead) {}

    async fn close(&self, _node: &str, _user: UserNo, _connection: u64, _why: Closing) -> bool {
        true
    }

    async fn pass(&self, _node: &str, _session: u128, _message: &[u8]) {}

    async fn seen(&self, _by: Onlooker<'_>) {}

    async fn stirred(&self, _stir: &Stir) {}

    async fn confirm(&self, _users: &[UserNo]) {}

    fn listen(&self, _on_heard: OnHeard) -> Listening {
        Listening::until(|| {})
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}

/// A queue whose every second answer is lost.
struct Flaky {
    inner: Arc<dyn Jobs>,
    calls: AtomicU32,
}

impl Flaky {
    fn fails(&self) -> Result<()> {
        let odd = self.calls.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        if odd { Err(StoreError::unavailable("the queue does not answer")) } else { Ok(()) }
    }
}

#[async_trait]
impl Jobs for Flaky {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        self.fails()?;
        self.inner.put(jobs).await
    }

    async fn take(&self, lane: Lane) -> Result<Delivery> {
        self.fails()?;
        self.inner.take(lane).await
    }

    async fn ack(&self, id: u64) -> Result<()> {
        self.fails()?;
        self.inner.ack(id).await
    }

    async fn nack(&self, id: u64) -> Result<()> {
        self.fails()?;
        self.inner.nack(id).await
    }

    async fn pending(&self) -> Result<u64> {
        self.inner.pending().await
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }
}

/// A queue that merges what is put while an equal job is in flight: here the job of the sweep, and one for a post that
/// is accepted just before the job in flight is acknowledged. It gives no job before the sweep has put its own: so the
/// sweep still finds the first post outstanding, and never finds the second one.
struct Merging {
    inner: Arc<dyn Jobs>,
    archive: Arc<dyn Archive>,
    meanwhile: Mutex<Option<Publish>>,
    swept: CancellationToken,
}

#[async_trait]
impl Jobs for Merging {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        if self.meanwhile.lock().expect("no test panics with it").is_some() {
            self.swept.cancel();
            return Ok(());
        }
        self.inner.put(jobs).await
    }

    async fn take(&self, lane: Lane) -> Result<Delivery> {
        self.swept.cancelled().await;
        self.inner.take(lane).await
    }

    async fn ack(&self, id: u64) -> Result<()> {
        let meanwhile = self.meanwhile.lock().expect("no test panics with it").take();
        if let Some(post) = meanwhile {
            self.archive.write(vec![Write::Publish(post)], NOW).await?;
        }
        self.inner.ack(id).await
    }

    async fn nack(&self, id: u64) -> Result<()> {
        self.inner.nack(id).await
    }

    async fn pending(&self) -> Result<u64> {
        self.inner.pending().await
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }
}

/// A town in which user 1 follows user 0, who has just published item 100.
pub(crate) async fn news(dir: &std::path::Path) -> Town {
    let town = Town::open(dir, 2).await;
    town.visit(1).await;
    town.follow(1, 0).await;
    town.deliver().await;
    town.publish(0, 100).await;
    town
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_panics_costs_its_job_a_retry_and_the_worker_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let doorbell = Broken::new(How::Panics);
    let worker = town.worker_on(town.stores.jobs.clone(), doorbell.clone(), settings());
    // The first ring panics behind an append that has committed: nothing is left to ring for.
    town.drained().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100]));
    town.publish(0, 101).await;
    town.publish(0, 102).await;
    town.drained().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101, 102]));
    assert!(doorbell.rung.load(Ordering::SeqCst) >= 2, "it did panic");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_loses_every_second_answer_slows_the_worker_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let flaky = Arc::new(Flaky { inner: town.stores.jobs.clone(), calls: AtomicU32::new(0) });
    let worker = town.worker_on(flaky, town.stores.doorbell.clone(), settings());
    for id in 101..110 {
        town.publish(0, id).await;
    }
    town.drained().await;
    assert_eq!(town.shown(1).await, BTreeSet::from_iter(100..110));
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_what_is_merged_with_a_job_in_flight_is_done_when_that_job_has_looked_again() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let (inner, archive) = (town.stores.jobs.clone(), town.stores.archive.clone());
    let meanwhile = Mutex::new(Some(town.item(0, 101)));
    let jobs = Arc::new(Merging { inner, archive, meanwhile, swept: CancellationToken::new() });
    let worker = town.worker_on(jobs, town.stores.doorbell.clone(), settings());
    eventually("the other post is there too", async || town.shown(1).await == BTreeSet::from([100, 101])).await;
    town.drained().await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_gives_back_what_it_cannot_wait_for_and_another_worker_finishes_it() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let stuck = Broken::new(How::NeverReturns);
    let hasty = Settings { drain: Duration::from_millis(20), ..settings() };
    let worker = town.worker_on(town.stores.jobs.clone(), stuck.clone(), hasty);
    eventually("the job is stuck", async || stuck.rung.load(Ordering::SeqCst) > 0).await;
    worker.stop().await;
    assert_eq!(town.pending().await, 1, "given back, not lost");
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100]));
}

#[tokio::test(flavor = "multi_thread")]
async fn i6_an_event_is_outstanding_until_its_fan_out_is_finished_and_not_only_until_it_is_relayed() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let stuck = Broken::new(How::NeverReturns);
    let hasty = Settings { drain: Duration::from_millis(20), ..settings() };
    let worker = town.worker_on(town.stores.jobs.clone(), stuck.clone(), hasty);
    eventually("the job is stuck", async || stuck.rung.load(Ordering::SeqCst) > 0).await;
    let events = town.stores.archive.counts().await.unwrap().events;
    assert_eq!((events, town.pending().await), (1, 1), "relayed, taken, begun, and not finished");
    worker.stop().await;
    town.deliver().await;
    assert_eq!(town.stores.archive.counts().await.unwrap().events, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_has_work_and_gets_nowhere_stands_still_and_one_without_work_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let stuck = Broken::new(How::NeverReturns);
    let hasty = Settings { drain: Duration::from_millis(20), ..settings() };
    let worker = town.worker_on(town.stores.jobs.clone(), stuck.clone(), hasty);
    eventually("the job is stuck", async || stuck.rung.load(Ordering::SeqCst) > 0).await;
    let longer = Duration::from_millis(50);
    eventually("it stands still ever longer", async || worker.pulse.standstill() > longer).await;
    worker.stop().await;

    let worker = town.worker();
    town.drained().await;
    eventually("it has no work", async || worker.pulse.standstill() == Duration::ZERO).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_every_job_fails_stands_still_until_one_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 2).await;
    town.visit(1).await;
    town.follow(1, 0).await;
    town.deliver().await;
    // Never relayed: once it is finished, the sweep at the start is over and puts nothing in again.
    town.stores.archive.write(vec![Write::Publish(town.item(1, 200))], NOW).await.unwrap();
    let inboxes = Troubled::of(&town);
    let (jobs, doorbell) = (town.stores.jobs.clone(), town.stores.doorbell.clone());
    let worker = town.worker_of(inboxes.fan_out(&town), jobs, doorbell, settings());
    town.drained().await;
    inboxes.fails(Some(|| StoreError::unavailable("the inboxes do not answer")));
    town.publish(0, 100).await;
    let longer = Duration::from_millis(40);
    let stands_still = async || inboxes.failed() > 2 && worker.pulse.standstill() > longer;
    eventually("its job fails again and again", stands_still).await;
    inboxes.fails(None);
    town.drained().await;
    eventually("it has no work", async || worker.pulse.standstill() == Duration::ZERO).await;
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_nothing_but_a_job_that_fails_by_itself_does_not_stand_still() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let inboxes = Troubled::of(&town);
    inboxes.fails(Some(|| StoreError::corrupt("an inbox is damaged")));
    let (jobs, doorbell) = (town.stores.jobs.clone(), town.stores.doorbell.clone());
    let worker = town.worker_of(inboxes.fan_out(&town), jobs, doorbell, settings());
    let rests = async || inboxes.failed() > 2 && worker.pulse.standstill() == Duration::ZERO;
    eventually("it rests between two tries at what is damaged", rests).await;
    inboxes.fails(Some(|| panic!("a bug in one step")));
    eventually("it rests between two tries at what panics", rests).await;
    assert_eq!(town.stores.archive.counts().await.unwrap().events, 1, "the job is not done");
    inboxes.fails(None);
    town.drained().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100]));
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_waits_for_what_is_in_flight_and_takes_nothing_more() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 2).await;
    // Never relayed: the sweep at the start is what puts its job in, and then puts nothing in again.
    town.stores.archive.write(vec![Write::Publish(town.item(0, 100))], NOW).await.unwrap();
    let goes_on = CancellationToken::new();
    let slow = Broken::new(How::Waits(goes_on.clone()));
    let worker = town.worker_on(town.stores.jobs.clone(), slow.clone(), settings());
    eventually("the job is in flight", async || slow.rung.load(Ordering::SeqCst) > 0).await;
    worker.tell_to_stop();
    town.publish(0, 101).await;
    goes_on.cancel();
    worker.stop().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100]), "what came later waits for the next worker");
    assert_eq!(town.pending().await, 1, "what was in flight is acknowledged");
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101]));
}
