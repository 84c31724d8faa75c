//! The job queue while its server dies, loses or rolls back its store, and while a worker is stopped.

mod support;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use async_nats::jetstream;
use feedgate_common::jobs::Delivery;
use feedgate_common::{Jobs, StoreError};
use feedgate_engines::Nats;
use feedgate_nats::{Bus, NatsJobs, Settings};
use futures_util::StreamExt;
use support::{ack_again, copy, eventually, fan_out, jobs, put_again, store, take};
use tokio::time::Instant;

#[tokio::test]
async fn the_same_handle_works_on_after_the_server_was_killed_and_started_again() {
    let mut server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    jobs.put(&[fan_out(1), fan_out(2)]).await.unwrap();
    let held = take(&jobs).await;
    server.kill();
    eventually("an outage is known, not waited for", async || {
        let since = Instant::now();
        assert!(matches!(jobs.put(&[fan_out(3)]).await, Err(StoreError::Unavailable(_))));
        assert!(matches!(jobs.ack(held.id).await, Err(StoreError::Unavailable(_))));
        assert!(jobs.ping().await.is_err() && jobs.pending().await.is_err());
        since.elapsed() < Duration::from_secs(4)
    })
    .await;
    server.restart();
    assert_eq!(take(&jobs).await.job, fan_out(2), "what waited comes to who was waiting");
    ack_again(&jobs, held).await;
    put_again(&jobs, fan_out(1)).await;
    eventually("the queue is there", async || jobs.ping().await.is_ok()).await;
}

#[tokio::test]
async fn a_server_that_hangs_delays_and_blocks_nobody() {
    let mut server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    server.pause();
    // Once at least: the machine may be slow.
    eventually("each call is bounded", async || {
        let since = Instant::now();
        assert!(matches!(jobs.put(&[fan_out(1)]).await, Err(StoreError::Unavailable(_))));
        assert!(jobs.ping().await.is_err());
        since.elapsed() < Duration::from_secs(5)
    })
    .await;
    server.resume();
    put_again(&jobs, fan_out(1)).await;
    assert_eq!(take(&jobs).await.job, fan_out(1));
}

#[tokio::test]
async fn a_take_that_waits_survives_a_restart_of_the_server() {
    let mut server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    let (taken, ()) = tokio::join!(take(&jobs), async {
        server.kill();
        server.restart();
        put_again(&jobs, fan_out(1)).await;
    });
    assert_eq!(taken.job, fan_out(1));
}

#[tokio::test]
async fn a_queue_whose_store_was_lost_is_set_up_again_by_whoever_uses_it() {
    let mut server = Nats::start();
    let [one, two] = [jobs(&server, &Settings::default()).await, jobs(&server, &Settings::default()).await];
    one.put(&[fan_out(1)]).await.unwrap();
    let held = take(&one).await;
    let (taken, ()) = tokio::join!(take(&two), async {
        server.kill();
        std::fs::remove_dir_all(store(&server)).unwrap();
        server.restart();
        put_again(&one, fan_out(1)).await;
    });
    assert_eq!(taken.job, fan_out(1), "relayed again, it has the sequence of the one that was lost");
    ack_again(&one, held).await;
    assert_eq!(two.pending().await.unwrap(), 1, "an ack of what was lost removes nobody else's job");
    ack_again(&two, taken).await;
    assert_eq!(two.pending().await.unwrap(), 0);
}

#[tokio::test]
async fn an_ack_from_before_a_rollback_of_the_store_removes_no_later_job() {
    let mut server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    jobs.put(&[fan_out(1)]).await.unwrap();
    server.kill();
    let copied = server.directory().join("copy");
    copy(&store(&server), &copied);
    server.restart();
    put_again(&jobs, fan_out(2)).await;
    let [first, second] = [take(&jobs).await, take(&jobs).await];
    server.kill();
    std::fs::remove_dir_all(store(&server)).unwrap();
    std::fs::rename(&copied, store(&server)).unwrap();
    server.restart();
    put_again(&jobs, fan_out(3)).await;
    ack_again(&jobs, second).await;
    assert_eq!(jobs.pending().await.unwrap(), 2, "the sequence of the second job is now the third's");
    ack_again(&jobs, first).await;
    assert_eq!(jobs.pending().await.unwrap(), 1, "the first was there before and is worked off");
    assert_eq!(take(&jobs).await.job, fan_out(3));
}

/// A server whose disk was full forgets that it has removed a message, and its consumer knows that it was acknowledged.
#[tokio::test]
async fn a_job_that_came_back_and_is_delivered_to_nobody_is_put_anew() {
    let mut server = Nats::start();
    let settings = Settings { stranded_every: Duration::from_millis(100), ..Settings::default() };
    let jobs = jobs(&server, &settings).await;
    jobs.put(&[fan_out(1), fan_out(2), fan_out(3)]).await.unwrap();
    let messages = store(&server).join("$G/streams/FEED_WORK/msgs");
    let copied = server.directory().join("copy");
    server.kill();
    copy(&messages, &copied);
    server.restart();
    for _ in 1..=3 {
        let taken = take(&jobs).await;
        ack_again(&jobs, taken).await;
    }
    server.stop();
    std::fs::remove_dir_all(&messages).unwrap();
    std::fs::rename(&copied, &messages).unwrap();
    server.restart();
    // The messages are there again, and the put is merged with one of them.
    put_again(&jobs, fan_out(2)).await;
    let mut again = vec![];
    for _ in 1..=3 {
        let taken = take(&jobs).await;
        again.push(taken.job);
        ack_again(&jobs, taken).await;
    }
    assert_eq!(again, [fan_out(1), fan_out(2), fan_out(3)]);
    assert_eq!(jobs.pending().await.unwrap(), 0);
}

#[tokio::test]
async fn a_stream_that_somebody_deleted_is_set_up_again() {
    let server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let (taken, ()) = tokio::join!(take(&jobs), async {
        jetstream.delete_stream("FEED_WORK").await.unwrap();
        put_again(&jobs, fan_out(1)).await;
    });
    ack_again(&jobs, taken).await;
    jetstream.delete_consumer_from_stream("workers", "FEED_WORK").await.unwrap();
    let (taken, ()) = tokio::join!(take(&jobs), put_again(&jobs, fan_out(2)));
    assert_eq!(taken.job, fan_out(2));
}

/// Generous for a machine that is busy with much else, and far from the 30 s that it once took.
const WITHIN: Duration = Duration::from_secs(15);

#[tokio::test]
async fn the_jobs_of_a_killed_worker_go_to_another_within_two_seconds_or_so_at_default_settings() {
    let server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    jobs.put(&[fan_out(1)]).await.unwrap();
    let url = server.url();
    // Its runtime ends with everything on it: nothing is given back, and the connection is closed.
    let killed = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let jobs = NatsJobs::open(Bus::connect(&url).await.unwrap(), Settings::default()).await.unwrap();
            let taken = take(&jobs).await;
            // The queue is not dropped, because a drop would give all of its jobs back.
            std::mem::forget(jobs);
            taken.job
        })
    });
    let held = tokio::task::spawn_blocking(|| killed.join().unwrap()).await.unwrap();
    let since = Instant::now();
    assert_eq!(take(&jobs).await.job, held);
    assert!(since.elapsed() < WITHIN, "it came after {:?}", since.elapsed());
}

#[tokio::test]
async fn a_job_delivered_to_a_connection_that_died_comes_soon_after_a_restart_and_the_queue_says_that_it_is_back() {
    let mut server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    let mut returns = jobs.returns();
    let outside = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    jobs.put(&[fan_out(1)]).await.unwrap();
    // Somebody gets it who dies together with the server.
    let consumer: jetstream::consumer::PullConsumer =
        outside.get_consumer_from_stream("workers", "FEED_WORK").await.unwrap();
    let mut fetched = consumer.fetch().max_messages(1).messages().await.unwrap();
    fetched.next().await.unwrap().unwrap();
    server.kill();
    drop((fetched, outside));
    server.restart();
    let since = Instant::now();
    returns.next().await.unwrap();
    put_again(&jobs, fan_out(1)).await;
    assert_eq!(take(&jobs).await.job, fan_out(1), "merged with the one that nobody works on");
    assert!(since.elapsed() < WITHIN, "it came after {:?}", since.elapsed());
}

/// A worker on a thread of its own, which stands still whenever it is not told to do something.
struct Stopped {
    ack: mpsc::Sender<()>,
    acked: mpsc::Receiver<feedgate_common::error::Result<()>>,
}

impl Stopped {
    /// Takes a job, and stops.
    fn holding(url: String, settings: Settings) -> (Self, Delivery) {
        let (tell, taken) = mpsc::channel();
        let (ack, told) = mpsc::channel();
        let (answer, acked) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let jobs = runtime.block_on(async {
                let bus = Bus::connect(&url).await.expect("the server answers");
                NatsJobs::open(bus, settings).await.expect("the queue is there")
            });
            let delivery = runtime.block_on(take(&jobs));
            _ = tell.send(delivery);
            // Nothing of it runs until it is told to go on.
            while told.recv().is_ok() {
                _ = answer.send(runtime.block_on(jobs.ack(delivery.id)));
            }
        });
        let delivery = taken.recv().expect("the worker takes a job");
        (Self { ack, acked }, delivery)
    }

    fn go_on_and_ack(&self) {
        self.ack.send(()).expect("the worker is there");
        self.acked.recv().expect("the worker answers").expect("the ack is heard");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i3_a_job_of_a_stopped_worker_goes_to_another_and_its_late_ack_removes_only_what_it_did() {
    let server = Nats::start();
    let settings = Settings { ack_wait: Duration::from_millis(300), ..Settings::default() };
    let jobs = jobs(&server, &settings).await;
    // The late ack comes while the other still works on it.
    jobs.put(&[fan_out(1)]).await.unwrap();
    let (stopped, held) = Stopped::holding(server.url(), settings.clone());
    let again = take(&jobs).await;
    assert_eq!(again.job, held.job);
    stopped.go_on_and_ack();
    assert_eq!(jobs.pending().await.unwrap(), 0, "done is done");
    jobs.put(&[fan_out(1)]).await.unwrap();
    ack_again(&jobs, again).await;
    assert_eq!(jobs.pending().await.unwrap(), 1, "what was put since is a job of its own");
    // And after the other is done, when an equal job waits.
    let (stopped, _) = Stopped::holding(server.url(), settings);
    let again = take(&jobs).await;
    ack_again(&jobs, again).await;
    jobs.put(&[fan_out(1)]).await.unwrap();
    stopped.go_on_and_ack();
    assert_eq!(jobs.pending().await.unwrap(), 1);
    assert_eq!(take(&jobs).await.job, fan_out(1));
}
