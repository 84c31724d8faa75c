//! The doorbell on a real nats-server against the promises of its trait.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::PullHead;
use feedgate_common::change::Route;
use feedgate_common::doorbell::{Closing, Growth, Heard, OnHeard, Stir, Talked, Touch};
use feedgate_common::inboxes::Grown;
use feedgate_common::sessions::Claim;
use feedgate_common::{DisplayKey, Doorbell, Epoch, FeedId, InboxKey, ItemId, Op, Position, Record, Sessions, UserNo};
use feedgate_embedded::{Database, EmbeddedSessions};
use feedgate_engines::Nats;
use feedgate_nats::NatsDoorbell;
use futures_util::StreamExt;
use support::{SOON, bus, eventually};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

/// A pool in which each node holds its users.
async fn sessions(dir: &Path, held: &[(&str, std::ops::RangeInclusive<u32>)]) -> Arc<dyn Sessions> {
    let sessions = EmbeddedSessions::open(Database::open(dir).expect("the directory is ours"), Epoch(1));
    for (node, users) in held {
        sessions.renew(node).await.expect("a lease");
        for user in users.clone() {
            let device = node.parse().expect("a device may be called so");
            let claim =
                Claim { user: UserNo(user), device, durable: false, node: (*node).to_owned(), connection: 1, since: 0 };
            sessions.claim(claim).await.expect("a claim");
        }
    }
    Arc::new(sessions)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_nats_doorbell_keeps_the_promises_of_doorbell() {
    let server = Nats::start();
    let node = feedgate_conformance::doorbell::NODE;
    let dir = tempfile::tempdir().unwrap();
    let nodes = sessions(dir.path(), &[(node, 1..=10)]).await;
    feedgate_conformance::doorbell::doorbell(async || {
        Arc::new(NatsDoorbell::open(bus(&server).await, node, nodes.clone())) as Arc<dyn Doorbell>
    })
    .await;
}

/// What a listener was told, in order.
fn ear() -> (OnHeard, mpsc::Receiver<Word>) {
    let (tell, heard) = mpsc::channel(10_000);
    let on_heard = move |heard: Heard<'_>| {
        let word = match heard {
            Heard::Growth(growth) => Word::Growth(growth.clone()),
            Heard::Hot(head) => Word::Hot(head),
            Heard::Missed => Word::Missed,
            Heard::Close { connection, .. } => Word::Close(connection),
            Heard::Seen(by) => Word::Seen(by.key, by.node.to_owned(), by.connection),
            Heard::Confirm(users) => Word::Confirm(users.to_vec()),
            Heard::Message { message, .. } => Word::Message(message.to_vec()),
            Heard::Stirred(stir) => Word::Stirred(stir.clone()),
        };
        _ = tell.try_send(word);
    };
    (Arc::new(on_heard), heard)
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Growth(Growth),
    Hot(PullHead),
    Missed,
    Close(u64),
    Confirm(Vec<UserNo>),
    Stirred(Stir),
    Message(Vec<u8>),
    Seen(InboxKey, String, u64),
}

/// Everything up to `wanted`.
async fn hear(heard: &mut mpsc::Receiver<Word>, wanted: &Word) {
    let wait = async { while heard.recv().await.as_ref() != Some(wanted) {} };
    timeout(SOON, wait).await.unwrap_or_else(|_| panic!("{wanted:?} is heard"));
}

/// The next thing that is told, but for that something may have been missed: a machine that stands still for half a
/// second is taken for a gap in the connection.
async fn next(heard: &mut mpsc::Receiver<Word>) -> Word {
    loop {
        match timeout(SOON, heard.recv()).await {
            Ok(Some(Word::Missed)) => {}
            Ok(Some(word)) => return word,
            nothing => panic!("nothing is told: {nothing:?}"),
        }
    }
}

/// Tells until it is heard: on a machine that stands still for half a second, a wake takes too long and is lost.
async fn again_until_heard(heard: &mut mpsc::Receiver<Word>, wanted: &Word, tell: impl AsyncFn()) {
    let telling = async {
        loop {
            tell().await;
            sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::select! {
        () = hear(heard, wanted) => {}
        () = telling => {}
    }
}

fn growth(readers: &[u32]) -> Growth {
    let key = DisplayKey { rank: 1, item: ItemId(2) };
    let head = Position { epoch: Epoch(1), offset: 5 };
    let grown = |reader: &u32| Grown { key: InboxKey::main(UserNo(*reader)), head, appended: 1, generation: 3 };
    Growth {
        author: UserNo(9),
        records: vec![Record { seq: 4, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key }],
        inboxes: readers.iter().map(grown).collect(),
        traced: vec![],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_goes_to_the_nodes_that_hold_the_reader_and_to_no_other() {
    let server = Nats::start();
    let dir = tempfile::tempdir().unwrap();
    let nodes = sessions(dir.path(), &[("a.1", 1..=3), ("b.1", 3..=5), ("c.1", 7..=9)]).await;
    let worker = NatsDoorbell::open(bus(&server).await, "worker.1", nodes.clone());
    let outside = async_nats::connect(server.url()).await.unwrap();
    let mut all = outside.subscribe("feed.node.>").await.unwrap();
    // A flush only sends; once this is answered, that nobody is there, the subscription stands.
    assert!(outside.request("nobody", "".into()).await.is_err());
    let gateway = NatsDoorbell::open(bus(&server).await, "b.1", nodes);
    let (on_heard, mut heard) = ear();
    let _listening = gateway.listen(on_heard);
    hear(&mut heard, &Word::Missed).await;

    worker.ring(&growth(&[1, 3, 5, 6])).await;
    assert_eq!(next(&mut heard).await, Word::Growth(growth(&[3, 5])), "only its own readers, records and all");
    worker.ring(&growth(&[6])).await;
    worker.close("b.1", UserNo(3), 7, Closing::Kicked).await;
    assert_eq!(next(&mut heard).await, Word::Close(7));
    let mut subjects = vec![];
    while subjects.len() < 3 {
        subjects.push(timeout(SOON, all.next()).await.unwrap().unwrap().subject.to_string());
    }
    assert_eq!(subjects, ["feed.node.a%2E1", "feed.node.b%2E1", "feed.node.b%2E1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_is_told_that_it_may_have_missed_wakes_while_the_server_was_away() {
    let mut server = Nats::start();
    let dir = tempfile::tempdir().unwrap();
    let doorbell = NatsDoorbell::open(bus(&server).await, "a.1", sessions(dir.path(), &[("a.1", 1..=1)]).await);
    let (on_heard, mut heard) = ear();
    let _listening = doorbell.listen(on_heard);
    hear(&mut heard, &Word::Missed).await;
    eventually("it is reached", async || doorbell.ping().await.is_ok()).await;
    server.kill();
    eventually("it knows that nobody can reach it", async || doorbell.ping().await.is_err()).await;
    eventually("nobody is held up", async || {
        let since = Instant::now();
        doorbell.ring(&growth(&[1])).await;
        doorbell.close("a.1", UserNo(1), 1, Closing::Kicked).await;
        doorbell.hot(PullHead { pull_seq: 1, author: UserNo(9) }).await;
        since.elapsed() < Duration::from_secs(2)
    })
    .await;
    server.restart();
    hear(&mut heard, &Word::Missed).await;
    // The subscriptions stand when it says so.
    again_until_heard(&mut heard, &Word::Growth(growth(&[1])), async || doorbell.ring(&growth(&[1])).await).await;
    let head = PullHead { pull_seq: 2, author: UserNo(9) };
    again_until_heard(&mut heard, &Word::Hot(head), async || doorbell.hot(head).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_holds_nobody_up() {
    let mut server = Nats::start();
    let dir = tempfile::tempdir().unwrap();
    let doorbell = NatsDoorbell::open(bus(&server).await, "a.1", sessions(dir.path(), &[("a.1", 1..=1)]).await);
    let (on_heard, mut heard) = ear();
    let _listening = doorbell.listen(on_heard);
    hear(&mut heard, &Word::Missed).await;
    server.pause();
    eventually("ping and ring are bounded", async || {
        let since = Instant::now();
        assert!(doorbell.ping().await.is_err());
        doorbell.ring(&growth(&[1])).await;
        since.elapsed() < Duration::from_secs(2)
    })
    .await;
    server.resume();
    eventually("it is reached again", async || doorbell.ping().await.is_ok()).await;
    again_until_heard(&mut heard, &Word::Growth(growth(&[1])), async || doorbell.ring(&growth(&[1])).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wake_of_an_unknown_version_may_mean_anything() {
    let server = Nats::start();
    let dir = tempfile::tempdir().unwrap();
    let doorbell = NatsDoorbell::open(bus(&server).await, "a.1", sessions(dir.path(), &[("a.1", 1..=1)]).await);
    let (on_heard, mut heard) = ear();
    let _listening = doorbell.listen(on_heard);
    hear(&mut heard, &Word::Missed).await;
    let other = async_nats::connect(server.url()).await.unwrap();
    for (subject, message) in
        [("feed.node.a%2E1", &[2, 1, 0][..]), ("feed.all.hot.9", &[1, 3]), ("feed.all.hot.9", b"")]
    {
        other.publish(subject, message.to_vec().into()).await.unwrap();
        assert_eq!(timeout(SOON, heard.recv()).await.unwrap(), Some(Word::Missed), "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_node_hears_of_a_hot_author_and_of_items_the_one_that_tells_it_too_and_whoever_its_readers_are() {
    let server = Nats::start();
    let dir = tempfile::tempdir().unwrap();
    let nodes = sessions(dir.path(), &[("a.1", 1..=1)]).await;
    let mut ears = vec![];
    for node in ["a.1", "b.1"] {
        let doorbell = NatsDoorbell::open(bus(&server).await, node, nodes.clone());
        let (on_heard, mut heard) = ear();
        let listening = doorbell.listen(on_heard);
        hear(&mut heard, &Word::Missed).await;
        ears.push((doorbell, heard, listening));
    }
    let outside = async_nats::connect(server.url()).await.unwrap();
    let mut all = outside.subscribe("feed.>").await.unwrap();
    // A flush only sends; once this is answered, that nobody is there, the subscription stands.
    assert!(outside.request("nobody", "".into()).await.is_err());
    let head = PullHead { pull_seq: 41, author: UserNo(9) };
    ears[0].0.hot(head).await;
    for (_, heard, _) in &mut ears {
        // A connection that came late says once more that something may have been missed.
        hear(heard, &Word::Hot(head)).await;
    }
    let told = timeout(SOON, all.next()).await.unwrap().unwrap();
    assert_eq!(told.subject.as_str(), "feed.all.hot.9", "one message for all");
    let touches = vec![Touch { item: ItemId(7), comment: Some((ItemId(8), Talked::Made)) }];
    let stir = Stir { touches, readers: vec![] };
    ears[1].0.stirred(&stir).await;
    for (_, heard, _) in &mut ears {
        hear(heard, &Word::Stirred(stir.clone())).await;
    }
    let told = timeout(SOON, all.next()).await.unwrap().unwrap();
    assert_eq!(told.subject.as_str(), "feed.items", "where no gateway of the version before listens");
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_a_listener_that_is_too_slow_loses_wakes_and_is_told_so() {
    let server = Nats::start();
    let dir = tempfile::tempdir().unwrap();
    let doorbell = NatsDoorbell::open(bus(&server).await, "a.1", sessions(dir.path(), &[("a.1", 1..=1)]).await);
    let (on_heard, mut heard) = ear();
    let (go_on, held_up) = std::sync::mpsc::channel::<()>();
    let held_up = std::sync::Mutex::new(held_up);
    let slow: OnHeard = Arc::new(move |heard: Heard<'_>| {
        on_heard(heard);
        if matches!(heard, Heard::Growth(_)) {
            // Blocks until the test lets go of the other end. Without `block_in_place`, the task of the connection
            // could wait on the worker thread that this blocks, and the ping below would not be answered.
            _ = tokio::task::block_in_place(|| held_up.lock().unwrap().recv());
        }
    });
    let _listening = doorbell.listen(slow);
    hear(&mut heard, &Word::Missed).await;
    const RUNG: usize = 3000;
    for _ in 0..RUNG {
        doorbell.ring(&growth(&[1])).await;
    }
    // The server keeps the order of messages. So when it answers this, it has sent all rings to the listener.
    eventually("the rings are sent", async || doorbell.ping().await.is_ok()).await;
    drop(go_on);
    let mut wakes = 0;
    loop {
        match timeout(SOON, heard.recv()).await.unwrap().unwrap() {
            Word::Missed => break,
            Word::Growth(_)
            | Word::Hot(_)
            | Word::Close(_)
            | Word::Confirm(_)
            | Word::Message(_)
            | Word::Seen(..)
            | Word::Stirred(_) => wakes += 1,
        }
    }
    assert!(wakes < RUNG, "{wakes} of {RUNG} waited in memory");
}
