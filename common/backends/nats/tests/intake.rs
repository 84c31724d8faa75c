//! Calls that are answered, on a real nats-server.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_nats::{Client, Subscriber};
use feedgate_common::doorbell::{Heard, OnHeard};
use feedgate_common::{Doorbell, Epoch, UserNo};
use feedgate_embedded::{Database, EmbeddedSessions};
use feedgate_engines::Nats;
use feedgate_nats::{Bus, IntakeSettings, NatsDoorbell, NatsIntake};
use futures_util::StreamExt;
use support::{Hanging, SOON, bus, eventually};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// An intake that carries out two calls at a time. It stops when the guard is dropped.
async fn intake(bus: &Bus, backend: Hanging) -> DropGuard {
    let settings = IntakeSettings { in_flight: 2, ..IntakeSettings::default() };
    let intake = NatsIntake::open(bus, settings, "web-1", Arc::new(backend)).await.expect("the streams are set up");
    let stop = CancellationToken::new();
    tokio::spawn(intake.run(stop.clone()));
    stop.drop_guard()
}

/// Who sends many calls and listens to all answers.
struct Caller {
    client: Client,
    inbox: String,
    answers: Subscriber,
}

impl Caller {
    async fn of(server: &Nats) -> Self {
        let client = async_nats::connect(server.url()).await.expect("it answers");
        let inbox = client.new_inbox();
        let answers = client.subscribe(inbox.clone()).await.expect("a subscription");
        Self { client, inbox, answers }
    }

    /// Waits until a gateway listens for calls.
    async fn until_heard(&self) {
        eventually("a gateway listens", async || self.client.request("feed.call.no", "".into()).await.is_ok()).await;
    }

    async fn call(&self, times: usize) {
        for _ in 0..times {
            let sent = self.client.publish_with_reply("feed.call.pin.ann.7", self.inbox.clone(), "".into()).await;
            sent.expect("it is sent");
        }
        self.client.flush().await.expect("the server is there");
    }

    /// The statuses of the next answers, in order and each once, and whether each answer with 503 has a time to retry.
    async fn hear(&mut self, answers: usize) -> Vec<String> {
        let mut statuses = vec![];
        for _ in 0..answers {
            let answer = timeout(SOON, self.answers.next()).await.expect("every call is answered").expect("it listens");
            let headers = answer.headers.expect("an answer has headers");
            let status = headers.get("Feed-Status").expect("a status").to_string();
            assert_eq!(headers.get("Retry-After").is_some(), status == "503");
            statuses.push(status);
        }
        statuses.sort();
        statuses.dedup();
        statuses
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_answered_while_the_backend_hangs_or_when_it_comes_back() {
    let server = Nats::start();
    let comes_back = CancellationToken::new();
    let _intake = intake(&bus(&server).await, Hanging(comes_back.clone())).await;
    let mut caller = Caller::of(&server).await;
    caller.until_heard().await;
    // Two are under way and 512 wait. No more are sent at a time than one subscription has room for.
    caller.call(514).await;
    for more in [400, 900, 900] {
        caller.call(more).await;
        assert_eq!(caller.hear(more).await, ["503"], "there is no room, and that is said at once");
    }
    comes_back.cancel();
    assert_eq!(caller.hear(514).await, ["204"], "those that had room are carried out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_calls_costs_no_listener_a_wake() {
    let server = Nats::start();
    let bus = bus(&server).await;
    let _intake = intake(&bus, Hanging::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let sessions = EmbeddedSessions::open(Database::open(dir.path()).unwrap(), Epoch(1));
    let doorbell = NatsDoorbell::open(bus, "web-1", Arc::new(sessions));
    let (missed, confirmed) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
    let (misses, confirms) = (missed.clone(), confirmed.clone());
    let on_heard: OnHeard = Arc::new(move |heard: Heard<'_>| match heard {
        Heard::Missed => misses.store(true, Ordering::SeqCst),
        Heard::Confirm(_) => confirms.notify_one(),
        _ => {}
    });
    let _listening = doorbell.listen(on_heard);
    eventually("it listens", async || missed.load(Ordering::SeqCst)).await;
    let caller = Caller::of(&server).await;
    caller.until_heard().await;
    // Again if a wake is missed: a machine that stands still for long is taken for a gap in the connection.
    eventually("a flood and no missed wake", async || {
        missed.store(false, Ordering::SeqCst);
        caller.call(50_000).await;
        // The doorbell is answered on a connection that has taken all that the server has sent before.
        doorbell.ping().await.is_ok() && {
            doorbell.confirm(&[UserNo(1)]).await;
            timeout(SOON, confirmed.notified()).await.expect("it is heard");
            !missed.load(Ordering::SeqCst)
        }
    })
    .await;
}
