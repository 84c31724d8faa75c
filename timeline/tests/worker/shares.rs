//! What takes a worker's hands, and what waits for them: nobody takes more than a share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::faults::{Broken, How, news};
use crate::town::{NOW, Town, eventually, settings};
use async_trait::async_trait;
use feedgate_common::Jobs;
use feedgate_common::archive::{EDGES_MAX, Write};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::feed::jobs_of;
use feedgate_common::jobs::{Delivery, Job, Lane};
use feedgate_timeline::Settings;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::watch;

/// A queue that remembers who was given what, and that may be away for who adds to it.
struct Watched {
    inner: Arc<dyn Jobs>,
    taken: Mutex<Vec<Job>>,
    away: AtomicBool,
    back: watch::Sender<()>,
}

impl Watched {
    fn over(inner: Arc<dyn Jobs>) -> Arc<Self> {
        Arc::new(Self { inner, taken: Mutex::default(), away: AtomicBool::new(false), back: watch::Sender::new(()) })
    }

    fn taken(&self) -> Vec<Job> {
        self.taken.lock().expect("no test panics with it").clone()
    }
}

#[async_trait]
impl Jobs for Watched {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        // Away for once more: it is back before it takes jobs.
        if self.away.swap(false, Ordering::SeqCst) {
            return Err(StoreError::unavailable("the queue is not ready"));
        }
        self.inner.put(jobs).await
    }

    async fn take(&self, lane: Lane) -> Result<Delivery> {
        let delivery = self.inner.take(lane).await?;
        self.taken.lock().expect("no test panics with it").push(delivery.job);
        Ok(delivery)
    }

    async fn ack(&self, id: u64) -> Result<()> {
        self.inner.ack(id).await
    }

    async fn nack(&self, id: u64) -> Result<()> {
        self.inner.nack(id).await
    }

    fn returns(&self) -> BoxStream<'static, ()> {
        let next = async |mut back: watch::Receiver<()>| Some((back.changed().await.ok()?, back));
        stream::unfold(self.back.subscribe(), next).boxed()
    }

    async fn pending(&self) -> Result<u64> {
        self.inner.pending().await
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_waits_after_a_failure_is_not_in_the_queue_and_holds_up_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 2).await;
    town.visit(1).await;
    town.follow(1, 0).await;
    town.deliver().await;
    let hour = Duration::from_secs(3600);
    let patient = Settings { in_flight: 1, retry_first: hour, retry_max: hour, ..settings() };
    // Never relayed: once it is finished, the sweep at the start is over. Nobody follows this author, so nothing rings.
    town.stores.archive.write(vec![Write::Publish(town.item(1, 200))], NOW).await.unwrap();
    let worker = town.worker_on(town.stores.jobs.clone(), Broken::new(How::Panics), patient);
    town.drained().await;
    town.publish(0, 100).await;
    town.publish(1, 201).await;
    eventually("no job is in the queue", async || town.pending().await == 0).await;
    assert_eq!(town.stores.archive.counts().await.unwrap().events, 1, "the one that failed is outstanding");
    worker.stop().await;
    assert_eq!(town.pending().await, 1, "a worker that stops gives back what it held");
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_author_who_posts_all_the_time_goes_to_the_end_of_the_queue_after_a_bounded_turn() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 5).await;
    for reader in 2..5 {
        town.visit(reader).await;
        town.follow(reader, 0).await;
    }
    town.deliver().await;
    for id in 100..200 {
        town.publish(0, id).await;
    }
    town.publish(1, 200).await;
    let jobs = Watched::over(town.stores.jobs.clone());
    let alone = Settings { in_flight: 1, ..settings() };
    let worker = town.worker_on(jobs.clone(), town.stores.doorbell.clone(), alone);
    town.drained().await;
    worker.stop().await;
    let [busy, other] = [0, 1].map(|user| Job::FanOut { author: town.no(user) });
    let taken = jobs.taken();
    assert_eq!(taken[..3], [busy, other, busy], "the other waits for one turn and not for a hundred posts");
    let turns = taken.iter().filter(|job| **job == busy).count();
    assert!(turns > 5, "a hundred posts are more than {turns} turns");
    assert_eq!(town.shown(2).await, BTreeSet::from_iter(100..200));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_of_more_followers_than_a_step_takes_goes_on_inside_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 12).await;
    for id in 100..103 {
        town.publish(0, id).await;
    }
    let fan_out = town.fan_out().with_round_max(12);
    let worker = town.worker_of(fan_out, town.stores.jobs.clone(), town.stores.doorbell.clone(), settings());
    town.drained().await;
    worker.stop().await;
    for reader in 1..12 {
        let items: Vec<u64> = town.entries(reader).await.iter().map(|entry| entry.key.item.0).skip(1).collect();
        assert_eq!(items, [100, 101, 102], "reader {reader}: each once, in order");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_follows_do_not_make_a_post_wait() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 2).await;
    let name = |n: u32| format!("reader-{n}").parse().unwrap();
    let follows = (0..1000).map(|n| Write::Follow { reader: name(n), author: town.name(0) }).collect();
    let jobs = jobs_of(&town.stores.archive.write(follows, NOW).await.unwrap());
    town.stores.jobs.put(&jobs).await.unwrap();
    town.publish(1, 200).await;
    let jobs = Watched::over(town.stores.jobs.clone());
    let worker = town.worker_on(jobs.clone(), town.stores.doorbell.clone(), Settings { in_flight: 1, ..settings() });
    town.drained().await;
    worker.stop().await;
    let post = jobs.taken().iter().position(|job| *job == Job::FanOut { author: town.no(1) });
    assert!(post.is_some_and(|before| before < 10), "{post:?} of 1000 follows were before it");
}

/// Six hundred edges, some of which change again: three turns of one job, and a step for each that has anything to
/// bring.
#[tokio::test(flavor = "multi_thread")]
async fn i15_the_edges_of_a_reader_are_one_job_and_come_together() {
    const AUTHORS: usize = 600;
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), AUTHORS + 1).await;
    let reader = AUTHORS;
    for author in (0..AUTHORS).step_by(3) {
        town.publish(author, 1_000 + author as u64).await;
    }
    town.deliver().await;
    town.visit(reader).await;
    let before = town.log(reader).await.head;
    let follow = |author| Write::Follow { reader: town.name(reader), author: town.name(author) };
    let unfollow = |author| Write::Unfollow { reader: town.name(reader), author: town.name(author) };
    let mut writes: Vec<Write> = (0..AUTHORS).map(follow).collect();
    writes.extend((0..AUTHORS).step_by(2).map(unfollow));
    writes.extend((0..AUTHORS).step_by(4).map(follow));
    let left = jobs_of(&town.stores.archive.write(writes, NOW).await.unwrap());
    town.stores.jobs.put(&left).await.unwrap();
    assert_eq!(town.stores.jobs.pending().await.unwrap(), 1);

    let jobs = Watched::over(town.stores.jobs.clone());
    let worker = town.worker_on(jobs.clone(), town.stores.doorbell.clone(), settings());
    town.drained().await;
    worker.stop().await;
    let turns = jobs.taken().iter().filter(|job| job.lane() == Lane::Edges).count();
    // The sweep of the start may put it once more.
    assert!((AUTHORS.div_ceil(EDGES_MAX)..=AUTHORS.div_ceil(EDGES_MAX) + 1).contains(&turns), "{turns} turns");
    let followed = |author: &usize| author % 2 == 1 || author.is_multiple_of(4);
    let wants: BTreeSet<u64> = (0..AUTHORS).step_by(3).filter(followed).map(|author| 1_000 + author as u64).collect();
    assert_eq!(town.shown(reader).await, wants);
    let head = town.log(reader).await.head;
    assert_eq!((head.epoch, head.offset - before.offset), (before.epoch, (AUTHORS + wants.len()) as u64));
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_what_was_accepted_while_the_queue_was_away_is_relayed_when_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let town = news(dir.path()).await;
    let jobs = Watched::over(town.stores.jobs.clone());
    // It sweeps once, at the start.
    let worker = town.worker_on(jobs.clone(), town.stores.doorbell.clone(), settings());
    town.drained().await;
    town.stores.archive.write(vec![Write::Publish(town.item(0, 101))], NOW).await.unwrap();
    jobs.away.store(true, Ordering::SeqCst);
    jobs.back.send_replace(());
    town.drained().await;
    assert!(!jobs.away.load(Ordering::SeqCst), "the first try was refused");
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101]));
    worker.stop().await;
}
