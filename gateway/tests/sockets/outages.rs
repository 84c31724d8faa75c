//! Stores that are away: sockets stay, answers come in time, and what was late arrives.

use std::sync::Arc;

use feedgate_common::Body;
use feedgate_common::archive::{Publish, Write};
use feedgate_common::feed::Publisher;
use feedgate_common::graph::Shield;
use feedgate_gateway::clock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::clock::Clock;
use super::faults::{FaultyInboxes, FaultyJobs, FaultySessions, Weather};
use super::phone::{Next, Phone};
use super::rig::{Rig, feeds, http_at, until, within};

/// A node whose every store but the Archive may fail.
struct Shaky {
    rig: Rig,
    inboxes: Arc<FaultyInboxes>,
    sessions: Arc<FaultySessions>,
    jobs: Arc<FaultyJobs>,
}

async fn shaky(drain_ms: u32) -> Shaky {
    let mut faulty = None;
    let rig = Rig::of(|parts, stores| {
        parts.settings.drain_ms = drain_ms;
        let inboxes = FaultyInboxes::over(stores.inboxes.clone());
        let sessions = FaultySessions::over(stores.sessions.clone());
        let jobs = FaultyJobs::over(stores.jobs.clone());
        parts.feeds = Arc::new(feeds(stores, inboxes.clone()));
        parts.publisher = Arc::new(Publisher::new(stores.archive.clone(), jobs.clone()));
        (parts.sessions, parts.jobs) = (sessions.clone(), jobs.clone());
        faulty = Some((inboxes, sessions, jobs));
    })
    .await;
    let (inboxes, sessions, jobs) = faulty.unwrap();
    // It serves, so nothing of its beginning meets what a test breaks next.
    assert_eq!(rig.http("GET /healthz").await.0, 200);
    Shaky { rig, inboxes, sessions, jobs }
}

/// The status of `/readyz`, and what it says.
async fn ready(rig: &Rig) -> (u16, String) {
    let (status, body) = rig.http("GET /readyz").await;
    let body: Value = serde_json::from_str(&body).unwrap();
    (status, body["detail"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_scrape_tells_the_rest_when_a_store_is_away_and_says_which() {
    let Shaky { rig, jobs, .. } = shaky(50).await;
    for (weather, up) in [(Weather::Fair, 1), (Weather::Failing, 0), (Weather::Hanging, 0), (Weather::Fair, 1)] {
        jobs.gate.set(weather);
        let (status, text) = rig.http("GET /metrics").await;
        let says = |line: &str| text.contains(line);
        assert!(status == 200 && says(&format!("feedgate_store_up{{store=\"jobs\"}} {up}\n")), "{weather:?} {text}");
        assert_eq!(says("\nfeedgate_jobs_pending "), up == 1, "what is not known is not told");
        assert!(says("feedgate_store_up{store=\"archive\"} 1\n") && says("\nfeedgate_archive_items 0"), "{text}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn readiness_fails_within_two_seconds_and_names_the_store_while_liveness_does_not() {
    let Shaky { rig, inboxes, sessions, jobs } = shaky(50).await;
    assert_eq!(ready(&rig).await.0, 200);
    let clock = Clock::stop();
    let gates = [("inboxes", &inboxes.gate), ("sessions", &sessions.rest), ("jobs", &jobs.gate)];
    for (name, gate) in gates {
        for weather in [Weather::Hanging, Weather::Failing] {
            gate.set(weather);
            clock.advance(2).await;
            assert_eq!(ready(&rig).await, (503, format!("no answer from: {name}")));
            assert_eq!(rig.http("GET /healthz").await.0, 200);
            gate.set(Weather::Fair);
            clock.advance(2).await;
            assert_eq!(ready(&rig).await.0, 200);
        }
    }
    sessions.renewals.set(Weather::Hanging);
    clock.advance(60).await;
    let (status, why) = ready(&rig).await;
    assert!(status == 503 && why.contains("lease"), "{why}");
    assert_eq!(rig.http("GET /healthz").await.0, 200, "whoever tries is not stuck");
    sessions.renewals.set(Weather::Fair);
    clock.advance(1).await;
    assert_eq!(ready(&rig).await.0, 200);
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_drain_shows_in_readiness_before_the_last_are_closed_and_lets_nobody_in() {
    let Shaky { rig, .. } = shaky(10_000).await;
    let mut phones = vec![];
    for n in 0..17 {
        phones.push(rig.connected("ann", &format!("phone-{n}")).await);
    }
    let clock = Clock::stop();
    rig.begin_stop();
    while ready(&rig).await != (503, "this node is going away".to_owned()) {}
    let upgrade = "GET /connection/websocket";
    let headers = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==";
    assert_eq!(http_at(rig.addr, &format!("{upgrade} HTTP/1.1\r\n{headers}\r\nx:"), "").await.0, 503);
    let mut pinged = 0;
    for phone in &mut phones {
        phone.send(r#"{"id":1,"ping":{}}"#).await;
        pinged += usize::from(matches!(phone.next().await, Next::Line(_)));
    }
    assert_eq!(pinged, 1, "sixteen are closed at once");
    clock.advance(10).await;
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i4_an_outage_of_the_inboxes_delays_and_drops_no_socket() {
    let Shaky { rig, inboxes, .. } = shaky(50).await;
    rig.follow("ann", "bob").await;
    let mut phone = rig.connected("ann", "phone").await;
    let start = phone.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
    inboxes.gate.set(Weather::Failing);
    rig.post("bob", 2).await;
    rig.grown("ann", start + 2).await;
    let mut late = rig.connected("ann", "late").await;
    let refused = late.subscribe(json!({})).await;
    assert_eq!((&refused["error"]["code"], &refused["error"]["temporary"]), (&json!(100), &json!(true)));
    assert_eq!(phone.ask("ping", json!({})).await["ping"], json!({}));
    inboxes.gate.set(Weather::Fair);
    for offset in [start + 1, start + 2] {
        assert_eq!(phone.publication().await.0, offset);
    }
    assert_eq!(late.subscribe(json!({})).await["subscribe"]["offset"], json!(start + 2));
    rig.stop().await;
}

/// Asks for the events of `ann`'s feed, with nothing but a request.
async fn listen(rig: &Rig) -> TcpStream {
    let mut stream = TcpStream::connect(rig.addr).await.unwrap();
    let token = rig.token("ann", Some("listener"), 600);
    let head = format!("GET /connection/uni_sse HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// What comes until it ends with `what`, or until the answer ends.
async fn heard(stream: &mut TcpStream, what: &str) -> String {
    let mut heard = vec![];
    // The pings of an answer that goes on come within less time than a test waits.
    within(async {
        while !String::from_utf8_lossy(&heard).contains(what) && stream.read_buf(&mut heard).await.unwrap() > 0 {}
    })
    .await;
    String::from_utf8(heard).unwrap()
}

#[tokio::test]
async fn i4_a_client_that_only_listens_is_sent_away_by_a_passing_failure_and_hears_all_once_it_is_back() {
    let Shaky { rig, inboxes, sessions, .. } = shaky(50).await;
    rig.follow("ann", "bob").await;
    for (weather, gate) in [(Weather::Failing, &inboxes.gate), (Weather::Failing, &sessions.rest)] {
        gate.set(weather);
        let told = heard(&mut listen(&rig).await, "3004,").await;
        let codes: Vec<_> = told.split("\"code\":").skip(1).map(|rest| &rest[..rest.find(',').unwrap()]).collect();
        assert_eq!(codes, ["100", "3004"], "an error, and then the end: {told}");
        gate.set(Weather::Fair);
    }
    let mut stream = listen(&rig).await;
    heard(&mut stream, "data: {\"subscribe\"").await;
    rig.post("bob", 1).await;
    let told = heard(&mut stream, "\"op\":\"add\"").await;
    assert!(told.contains("\"op\":\"add\""), "{told}");
    drop(stream);
    rig.stop().await;
}

#[tokio::test]
async fn damage_that_a_session_finds_is_counted_whether_it_reads_or_asks() {
    let Shaky { rig, inboxes, .. } = shaky(50).await;
    let mut phone = rig.connected("ann", "phone").await;
    let counted = async || {
        let (_, text) = rig.http("GET /metrics").await;
        let count = text.lines().find_map(|line| line.strip_prefix("feedgate_session_damage_total ")).unwrap();
        count.parse::<u64>().unwrap()
    };
    inboxes.gate.set(Weather::Failing);
    let history = json!({"channel": "feed", "limit": 1});
    for (weather, count) in [(Weather::Failing, [0, 0]), (Weather::Damaged, [1, 2])] {
        inboxes.gate.set(weather);
        assert_eq!(phone.subscribe(json!({})).await["error"]["code"], 100);
        assert_eq!(counted().await, count[0], "after a read, {weather:?}");
        assert_eq!(phone.ask("history", history.clone()).await["error"]["code"], 100);
        assert_eq!(counted().await, count[1], "after a command, {weather:?}");
    }
    inboxes.gate.set(Weather::Fair);
    assert!(phone.subscribe(json!({})).await["subscribe"].is_object());
    rig.stop().await;
}

#[tokio::test]
async fn i4_inboxes_that_hang_refuse_a_subscribe_in_time_and_lose_nothing() {
    let Shaky { rig, inboxes, .. } = shaky(50).await;
    rig.follow("ann", "bob").await;
    let mut phone = rig.connected("ann", "phone").await;
    let start = phone.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
    let mut late = rig.connected("ann", "late").await;
    let clock = Clock::stop();
    inboxes.gate.set(Weather::Hanging);
    rig.post("bob", 1).await;
    rig.grown("ann", start + 1).await;
    late.send(r#"{"id":7,"subscribe":{"channel":"feed"}}"#).await;
    let (refused, ()) = tokio::join!(late.line(), clock.advance(12));
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(100)), "{refused}");
    inboxes.gate.set(Weather::Fair);
    clock.advance(2).await;
    assert_eq!(phone.publication().await.0, start + 1);
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn who_connects_while_the_session_pool_is_away_is_told_to_try_again() {
    let Shaky { rig, sessions, .. } = shaky(50).await;
    rig.number("ann").await;
    let connect = json!({"id": 1, "connect": {"token": rig.token("ann", Some("phone"), 600)}}).to_string();
    let clock = Clock::stop();
    for weather in [Weather::Failing, Weather::Hanging] {
        sessions.rest.set(weather);
        let mut phone = Phone::open(rig.addr).await;
        phone.send(connect.clone()).await;
        if weather == Weather::Hanging {
            until(|| sessions.asked.lock().iter().filter(|asked| **asked == "claim").count() >= 3).await;
            clock.advance(3).await;
        }
        let refused = phone.line().await;
        assert_eq!((&refused["error"]["code"], &refused["error"]["temporary"]), (&json!(100), &json!(true)));
        sessions.rest.set(Weather::Fair);
        phone.send(connect.clone()).await;
        assert!(phone.line().await["connect"]["client"].is_string(), "the same connection may try again");
    }
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn what_came_along_with_a_connect_that_is_refused_is_refused_too_and_is_no_mistake_of_the_device() {
    let Shaky { rig, sessions, .. } = shaky(50).await;
    rig.number("ann").await;
    let bad_requests = async || {
        let (_, text) = rig.http("GET /metrics").await;
        text.lines().filter(|line| line.contains("session_ends") && line.contains("bad_request")).collect::<String>()
    };
    let before = bad_requests().await;
    assert!(before.contains("bad_request"), "{before}");
    let subscribe = json!({"id": 2, "subscribe": {"channel": "feed"}});
    let both = |token: &str| format!("{}\n{subscribe}", json!({"id": 1, "connect": {"token": token}}));
    let good = rig.token("ann", Some("phone"), 600);
    let mut phone = Phone::open(rig.addr).await;
    let passed = rig.token("ann", Some("phone"), -600);
    for (weather, token, code) in [(Weather::Failing, &good, 100), (Weather::Fair, &passed, 109)] {
        sessions.rest.set(weather);
        phone.send(both(token)).await;
        for id in [1, 2] {
            let refused = phone.line().await;
            assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(code)), "{refused}");
        }
    }
    phone.send(both(&good)).await;
    assert!(phone.line().await["connect"].is_object(), "another try over the same connection");
    assert!(phone.line().await["subscribe"].is_object());
    assert_eq!(bad_requests().await, before);
    // Without a connect the command is a mistake, as before.
    let mut early = Phone::open(rig.addr).await;
    early.send(subscribe.to_string()).await;
    assert_eq!(early.closed().await, Next::Closed(3501));
    rig.stop().await;
}

/// A device that hangs up while its `rpc` waits for the inboxes, which hang from now on.
async fn hung_up_within(shaky: &Shaky, rpc: Value) {
    let mut phone = shaky.rig.connected("ann", "phone").await;
    shaky.inboxes.gate.set(Weather::Hanging);
    shaky.sessions.asked.lock().clear();
    phone.send(json!({"id": 7, "rpc": rpc}).to_string()).await;
    // The gateway begins a command before it reads what comes behind it.
    phone.ws.close(None).await.unwrap();
    phone.closed().await;
}

#[tokio::test]
async fn a_session_that_ends_is_released_at_once_though_its_last_command_waits_for_a_store() {
    let shaky = shaky(50).await;
    let Shaky { rig, inboxes, sessions, .. } = &shaky;
    rig.follow("ann", "bob").await;
    rig.post("bob", 2).await;
    let head = rig.grown("ann", 2).await;
    let released = || sessions.asked.lock().contains(&"release");
    let unseated = async || {
        for _ in 0..1000 {
            if rig.stats().await["sessions"]["sessions"] == 0 {
                return;
            }
        }
        panic!("the session keeps its seat");
    };
    let ack = |offset: u64| json!({"method": "ack", "data": {"offset": offset, "epoch": head.epoch.to_string()}});
    let clock = Clock::stop();

    hung_up_within(&shaky, json!({"method": "page"})).await;
    until(released).await;
    unseated().await;
    inboxes.gate.set(Weather::Fair);

    // The position of an ack is saved first, while there is a claim to save it by; but the seat is left at once.
    hung_up_within(&shaky, ack(1)).await;
    unseated().await;
    assert!(!released(), "the ack may still be answered");
    inboxes.gate.set(Weather::Fair);
    until(released).await;
    assert_eq!(rig.stored("ann", "phone").await.map(|at| at.offset), Some(1));

    // For a second. Then the device repeats what was not saved.
    hung_up_within(&shaky, ack(2)).await;
    clock.advance(2).await;
    until(released).await;
    assert_eq!(rig.stored("ann", "phone").await.map(|at| at.offset), Some(1));
    inboxes.gate.set(Weather::Fair);
    drop(clock);
    shaky.rig.stop().await;
}

#[tokio::test]
async fn i6_what_was_accepted_is_answered_so_even_if_nobody_can_be_told() {
    let Shaky { rig, jobs, .. } = shaky(50).await;
    let clock = Clock::stop();
    for (put, weather) in [(1, Weather::Failing), (2, Weather::Hanging)] {
        jobs.gate.set(weather);
        let asking = tokio::spawn(http_at(rig.addr, "POST /v1/items", r#"{"author":"bob","body":1}"#));
        until(|| *jobs.puts.lock() >= put).await;
        // By then every request has its answer; this one not a 503.
        clock.advance(10).await;
        let (status, answer) = asking.await.unwrap();
        assert_eq!(status, 201, "{weather:?}: {answer}");
    }
    jobs.gate.set(Weather::Fair);
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i4_what_was_accepted_while_the_job_queue_was_away_is_relayed_when_it_is_back() {
    let Shaky { rig, jobs, .. } = shaky(50).await;
    rig.follow("ann", "bob").await;
    let mut phone = rig.connected("ann", "phone").await;
    let start = phone.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
    jobs.gate.set(Weather::Failing);
    for body in 1..=3 {
        let (status, answer) =
            http_at(rig.addr, "POST /v1/items", &json!({"author": "bob", "body": body}).to_string()).await;
        assert_eq!(status, 201, "{answer}");
    }
    jobs.gate.set(Weather::Fair);
    // The rig's worker swept at its start, and what is outstanding is not overdue.
    for offset in start + 1..=start + 3 {
        assert_eq!(phone.publication().await.0, offset);
    }
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_write_whose_caller_has_gone_is_relayed_all_the_same() {
    let Shaky { rig, jobs, .. } = shaky(50).await;
    rig.follow("ann", "bob").await;
    let mut phone = rig.connected("ann", "phone").await;
    let start = phone.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
    jobs.gate.set(Weather::Hanging);
    let asking = tokio::spawn(http_at(rig.addr, "POST /v1/items", r#"{"author":"bob","body":1}"#));
    until(|| *jobs.puts.lock() >= 1).await;
    // Its connection is closed.
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    jobs.gate.set(Weather::Fair);
    assert_eq!(phone.publication().await.0, start + 1);
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_retry_relays_what_was_accepted_and_never_relayed() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    let mut phone = rig.connected("ann", "phone").await;
    let start = phone.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
    // As if another node had died between commit and relay.
    let accepted = Publish {
        foreign_id: Some("theirs".into()),
        ..Publish::new("bob".parse().unwrap(), Body::parse("1".to_owned()).unwrap())
    };
    rig.feeds.archive().write(vec![Write::Publish(accepted)], clock::now()).await.unwrap();
    let again = r#"{"author":"bob","body":1,"foreign_id":"theirs"}"#;
    let (status, answer) = http_at(rig.addr, "POST /v1/items", again).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(phone.publication().await.0, start + 1);
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_repeated_shield_is_relayed_as_the_first_was_to_be() {
    for (shield, path) in [
        (Shield::Mute, "users/ann/muted/bob"),
        (Shield::Hide, "users/bob/hidden/ann"),
        (Shield::Block, "users/ann/blocked/bob"),
        (Shield::Block, "users/bob/blocked/ann"),
    ] {
        let rig = Rig::start().await;
        rig.follow("ann", "bob").await;
        rig.post_bodies("bob", ["1".to_owned()].into_iter()).await;
        let mut phone = rig.connected("ann", "phone").await;
        phone.subscribe(json!({})).await;
        for (up, ask, op) in [(true, "PUT", "forget"), (false, "DELETE", "add")] {
            // As if another node had died between commit and relay.
            let (user, other) = if path.starts_with("users/ann") { ("ann", "bob") } else { ("bob", "ann") };
            let accepted = Write::Shield { user: user.parse().unwrap(), other: other.parse().unwrap(), shield, up };
            rig.feeds.archive().write(vec![accepted], clock::now()).await.unwrap();
            let (status, answer) = http_at(rig.addr, &format!("{ask} /v1/{path}"), "").await;
            assert_eq!(status, 204, "{answer}");
            // What comes back is forgotten before.
            while phone.publication().await.1["op"] != op {}
        }
        rig.stop().await;
    }
}

#[tokio::test]
async fn every_request_is_answered_within_ten_seconds_whatever_hangs() {
    let Shaky { rig, sessions, .. } = shaky(50).await;
    rig.number("ann").await;
    let clock = Clock::stop();
    sessions.rest.set(Weather::Hanging);
    let asking = tokio::spawn(http_at_owned(rig.addr));
    until(|| sessions.asked.lock().contains(&"list")).await;
    clock.advance(9).await;
    assert!(!asking.is_finished());
    clock.advance(1).await;
    let (status, body) = asking.await.unwrap();
    assert!(status == 503 && body.contains("within 10 s"), "{body}");
    sessions.rest.set(Weather::Fair);
    drop(clock);
    rig.stop().await;
}

async fn http_at_owned(addr: std::net::SocketAddr) -> (u16, String) {
    http_at(addr, "GET /v1/users/ann/sessions", "").await
}
