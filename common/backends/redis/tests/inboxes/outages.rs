//! The link when Redis is away, hangs, or will not write.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::inboxes::Read;
use feedgate_common::{Inboxes, Progress, StoreError};
use feedgate_conformance::inboxes::InboxesExt as _;
use feedgate_redis::{Link, RedisInboxes, Timeouts};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio::time::timeout;

use crate::world::{
    BUCKETS, EPOCHS, KEY, READER, connect, filled, open, progress, push, server, step, take, taken, until, words,
};

/// What a call may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Over a link that does not wait long.
async fn open_hasty(url: &str) -> Arc<dyn Inboxes> {
    let opened = Mutex::new(None);
    until("it is opened, which a busy machine may need several tries for", async || {
        let timeouts = Timeouts { call: PATIENCE, ..Timeouts::default() };
        let Ok(link) = Link::connect(url, timeouts).await else { return false };
        let store = RedisInboxes::open(link, EPOCHS.clone(), BUCKETS).await.ok();
        let is_open = store.is_some();
        *opened.lock() = store;
        is_open
    })
    .await;
    Arc::new(opened.into_inner().unwrap())
}

async fn is_back(store: &dyn Inboxes) {
    until("Redis is reached again", async || store.heads(&[KEY]).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_costs_a_call_its_timeout_at_most_and_ends_without_a_new_link() {
    let mut redis = server();
    let store = open_hasty(&redis.url()).await;
    for _ in 0..2 {
        redis.kill();
        for _ in 0..20 {
            // Once at least: the machine may be slow.
            until("a call costs its timeout at most", async || {
                let begun = Instant::now();
                words(store.heads(&[KEY]).await);
                begun.elapsed() < 2 * PATIENCE
            })
            .await;
        }
        redis.restart();
        is_back(&*store).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_costs_a_few_calls_their_timeout_and_the_others_nothing() {
    let mut redis = server();
    let store = open_hasty(&redis.url()).await;
    redis.pause();
    let breaker_opens = async || words(store.heads(&[KEY]).await).contains("tried again in");
    until("the breaker opens", breaker_opens).await;
    // Now and then one of them is let through to see.
    until("the others cost nothing", async || {
        let begun = Instant::now();
        let refused = words(store.progress(&[]).await.and(store.ping().await));
        refused.contains("tried again in") && begun.elapsed() < PATIENCE / 2
    })
    .await;
    redis.resume();
    is_back(&*store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_gives_up_before_its_timeout_has_found_the_server_away_too() {
    let mut redis = server();
    let store = open_hasty(&redis.url()).await;
    redis.pause();
    until("the breaker opens", async || {
        // Late enough that the link takes it for an answer that did not come.
        let answer = timeout(PATIENCE * 3 / 4, store.heads(&[KEY])).await;
        answer.is_ok_and(|answer| words(answer).contains("tried again in"))
    })
    .await;
    redis.resume();
    is_back(&*store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let redis = server();
    let store = open(&redis.url()).await;
    filled(&*store, 1).await;
    for _ in 0..2 {
        redis.cli(&["script", "flush"]);
        push(&*store, &[READER]).await;
    }
    assert_eq!(store.heads(&[KEY]).await.unwrap()[0].unwrap().offset, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_memory_refuses_steps_whole_and_goes_on_reading_and_discarding() {
    let redis = server();
    let store = open(&redis.url()).await;
    let head = filled(&*store, 2).await;
    redis.cli(&["config", "set", "maxmemory", "1"]);
    assert!(words(store.advance(step(Progress::at(2), &[READER])).await).contains("OOM"));
    assert!(words(store.take(take(head.epoch, 0)).await).contains("OOM"));
    let bucket = READER.bucket(BUCKETS);
    assert_eq!(progress(&*store, bucket).await, Progress::at(2));
    assert_eq!(store.read(KEY, head, 9).await.unwrap(), Read::Entries { entries: vec![], head: 2, taken: taken(0) });
    store.touch(&[KEY], 1).await.unwrap();
    store.discard(KEY).await.unwrap();
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [None]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_was_demoted_answers_nothing_and_the_link_says_why() {
    let redis = server();
    let store = open(&redis.url()).await;
    filled(&*store, 1).await;
    let other = server();
    redis.cli(&["replicaof", "127.0.0.1", &other.port().to_string()]);
    let refused = words(store.advance(step(Progress::at(1), &[READER])).await);
    assert!(refused.contains("ReadOnly"), "{refused}");
    assert!(words(store.log(KEY).await).contains("replica"));
    let refused = Link::connect(&redis.url(), Timeouts::default()).await.err().unwrap().to_string();
    assert!(refused.contains(&format!("127.0.0.1:{}", other.port())), "{refused}");
    redis.cli(&["replicaof", "no", "one"]);
    is_back(&*store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_one_clear_error() {
    let mut redis = server();
    let url = redis.url();
    redis.kill();
    assert!(words(Link::connect(&url, Timeouts::default()).await.map(drop)).contains("refused"));
    redis.restart();
    connect(&url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_has_to_change_is_told_from_a_server_that_is_away() {
    let redis = server();
    redis.cli(&["config", "set", "requirepass", "right"]);
    let wrong = redis.url().replace("//", "//:wrong@");
    for (url, said) in [(&*redis.url(), "NOAUTH"), (&*wrong, "uthentication"), ("postgres://x", "inbox_url")] {
        let refused = Link::connect(url, Timeouts::default()).await.err().unwrap();
        assert!(matches!(&refused, StoreError::Misconfigured(why) if why.contains(said)), "{url}: {refused:?}");
    }
    connect(&redis.url().replace("//", "//:right@")).await;
}
