//! The job queue on a real nats-server against the promises of its trait, and what is its own: several workers,
//! what other programs get, two versions side by side.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use feedgate_common::announce::{Act, Announcement, Outlet, PublicEvent};
use feedgate_common::jobs::Lane;
use feedgate_common::{ItemId, Jobs, UserNo};
use feedgate_engines::Nats;
use feedgate_nats::{NatsJobs, Settings};
use futures_util::future::join_all;
use futures_util::{FutureExt, StreamExt};
use support::{SOON, eventually, fan_out, jobs, take};
use tokio::sync::Mutex;
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn nats_jobs_keep_the_promises_of_jobs() {
    let servers: Mutex<BTreeMap<String, Nats>> = Mutex::default();
    feedgate_conformance::jobs::jobs(async |name| {
        let mut servers = servers.lock().await;
        if !servers.contains_key(name) {
            servers.insert(name.to_owned(), Nats::start());
        }
        Arc::new(jobs(&servers[name], &Settings::default()).await) as Arc<dyn Jobs>
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_jobs_outlive_the_processes_that_use_them() {
    let server = Nats::start();
    let open = async || Arc::new(jobs(&server, &Settings::default()).await) as Arc<dyn Jobs>;
    feedgate_conformance::jobs::lasting_jobs(open).await;
}

async fn gets_nothing_for(jobs: &NatsJobs, time: Duration) -> bool {
    timeout(time, jobs.take(Lane::Posts)).await.is_err()
}

#[tokio::test]
async fn processes_that_start_at_once_set_up_one_queue_and_the_last_settings_hold() {
    let server = Nats::start();
    let first = Settings::default();
    for jobs in join_all((0..8).map(|_| jobs(&server, &first))).await {
        jobs.put(&[fan_out(1)]).await.unwrap();
    }
    let second = Settings { ack_wait: Duration::from_secs(7), events_bytes: 1 << 20, ..first };
    let jobs = jobs(&server, &second).await;
    assert_eq!(jobs.pending().await.unwrap(), 1, "what was put stays");
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    assert_eq!(jetstream.get_stream("FEED").await.unwrap().cached_info().config.max_bytes, 1 << 20);
    for name in ["FEED_WORK", "FEED_EDGES"] {
        let work = jetstream.get_stream(name).await.unwrap();
        assert_eq!(work.consumer_info("workers").await.unwrap().config.ack_wait, Duration::from_secs(7));
    }
}

#[tokio::test]
async fn a_put_that_its_caller_soon_gives_up_says_nothing_about_the_server() {
    let server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    // Again if the machine stands still for long in the middle of it.
    eventually("the queue is there after a put that ended in its first moment", async || {
        assert!(jobs.put(&[fan_out(1)]).now_or_never().is_none(), "it waits for the answer of the server");
        jobs.ping().await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn two_workers_share_the_jobs_and_each_gets_its_own() {
    let server = Nats::start();
    // So long, because a job comes again if this process stands still.
    let settings = Settings { ack_wait: 10 * SOON, ..Settings::default() };
    let workers = [jobs(&server, &settings).await, jobs(&server, &settings).await];
    workers[0].put(&(1..=100).map(fan_out).collect::<Vec<_>>()).await.unwrap();
    let mut got = vec![];
    for _ in 0..50 {
        let (one, two) = tokio::join!(take(&workers[0]), take(&workers[1]));
        got.extend([one.job, two.job]);
        tokio::try_join!(workers[0].ack(one.id), workers[1].ack(two.id)).unwrap();
    }
    got.sort_unstable();
    assert_eq!(got, (1..=100).map(fan_out).collect::<Vec<_>>());
    assert_eq!(workers[1].pending().await.unwrap(), 0);
}

#[tokio::test]
async fn i18_all_workers_together_have_no_more_in_flight_than_allowed() {
    let server = Nats::start();
    let settings = Settings { in_flight_max: 3, ..Settings::default() };
    let [one, two] = [jobs(&server, &settings).await, jobs(&server, &settings).await];
    one.put(&(1..=5).map(fan_out).collect::<Vec<_>>()).await.unwrap();
    let held = [take(&one).await, take(&one).await, take(&two).await];
    assert_eq!(one.pending().await.unwrap(), 5);
    let short = Duration::from_millis(200);
    assert!(gets_nothing_for(&one, short).await && gets_nothing_for(&two, short).await, "three are in flight");
    two.ack(held[2].id).await.unwrap();
    assert_eq!(take(&two).await.job, fan_out(4));
}

#[tokio::test]
async fn a_job_that_came_too_late_for_its_worker_goes_to_another() {
    let server = Nats::start();
    let settings = Settings { ack_wait: 10 * SOON, ..Settings::default() };
    let [busy, idle] = [jobs(&server, &settings).await, jobs(&server, &settings).await];
    assert!(gets_nothing_for(&busy, Duration::from_millis(100)).await);
    busy.put(&[fan_out(1)]).await.unwrap();
    assert_eq!(take(&idle).await.job, fan_out(1), "without waiting for the server to take it back");
}

#[tokio::test]
async fn a_job_is_kept_by_who_works_on_it_however_long_that_takes() {
    let server = Nats::start();
    let settings = Settings { ack_wait: Duration::from_millis(500), ..Settings::default() };
    let outside = async_nats::connect(server.url()).await.unwrap();
    let mut acks = outside.subscribe("$JS.ACK.>").await.unwrap();
    // A flush only sends; once this is answered, that nobody is there, the subscription stands.
    assert!(outside.request("nobody", "".into()).await.is_err());
    let jobs = jobs(&server, &settings).await;
    jobs.put(&[fan_out(1)]).await.unwrap();
    let held = take(&jobs).await;
    // Three within an AckWait: the server waits anew from each.
    for _ in 0..9 {
        let sign = timeout(SOON, acks.next()).await.unwrap().unwrap();
        assert_eq!(sign.payload, "+WPI", "its holder says that it is at work");
    }
    jobs.ack(held.id).await.unwrap();
    assert_eq!(jobs.pending().await.unwrap(), 0);
}

#[tokio::test]
async fn a_job_of_a_newer_version_waits_for_a_newer_worker_and_garbage_does_not() {
    let server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    for (subject, payload) in [("feed.work.news.1", r#"{"v":2,"kind":"news"}"#), ("feed.work.garbage", "?")] {
        jetstream.publish(subject, payload.into()).await.unwrap().await.unwrap();
    }
    jobs.put(&[fan_out(1)]).await.unwrap();
    let readable = take(&jobs).await;
    assert_eq!(readable.job, fan_out(1), "they hold nobody up");
    jobs.ack(readable.id).await.unwrap();
    eventually("the garbage is dropped", async || jobs.pending().await.unwrap() == 1).await;
    let work = jetstream.get_stream("FEED_WORK").await.unwrap();
    assert!(work.get_last_raw_message_by_subject("feed.work.news.1").await.is_ok(), "the newer one is there");
}

fn event(number: u64, act: Act, (user, other): (&str, Option<&str>)) -> PublicEvent {
    let item = other.is_none().then_some(ItemId(7));
    let told = Announcement { act, user: UserNo(1), other: None, item, version: None, at: 5, detail: None };
    PublicEvent::new((number, told), user.parse().expect("a name"), other.map(|name| name.parse().expect("a name")))
}

#[tokio::test]
async fn other_programs_get_every_event_once_as_documented() {
    let server = Nats::start();
    let jobs = jobs(&server, &Settings::default()).await;
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let events = [event(1, Act::Publish, ("ann.smith", None)), event(2, Act::Follow, ("bob", Some("ann.smith")))];
    jobs.publish(&events).await.unwrap();
    jobs.publish(&events).await.unwrap();
    jetstream.delete_stream("FEED").await.unwrap();
    jobs.publish(&events).await.expect("a stream that was lost is made anew");
    jobs.publish(&events).await.unwrap();

    let stream = jetstream.get_stream("FEED").await.unwrap();
    assert_eq!(stream.cached_info().state.messages, 2, "what is published again is kept once");
    let published = (
        "feed.event.publish.ann%2Esmith",
        r#"{"v":1,"id":"5-1","kind":"publish","author":"ann.smith","item":"7","at":5}"#,
    );
    let followed =
        ("feed.event.follow.bob", r#"{"v":1,"id":"5-2","kind":"follow","author":"ann.smith","reader":"bob","at":5}"#);
    for (sequence, wanted) in (1..).zip([published, followed]) {
        let message = stream.get_raw_message(sequence).await.unwrap();
        assert_eq!((&*message.subject, std::str::from_utf8(&message.payload).unwrap()), wanted);
    }
}
