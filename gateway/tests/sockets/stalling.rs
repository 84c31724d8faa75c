//! A device that stops reading its socket costs a bounded amount and nobody else anything.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use feedgate_gateway::Settings;

use super::clock::Clock;
use super::faults::Weather;
use super::leasing::{Two, two};
use super::phone::Next;
use super::rig::{Rig, within};

/// This process's resident memory, in bytes.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// A node that does not mind how long a device is silent, however slow this machine is today.
async fn patient() -> Rig {
    Rig::with(|settings| (settings.ping_interval_secs, settings.pong_within_secs) = (3600, 3600)).await
}

/// A body of this many KiB.
fn body(kib: usize) -> String {
    format!("\"{}\"", "x".repeat(kib * 1024))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i18_stalled_readers_leave_memory_bounded_and_others_unaffected_and_miss_nothing() {
    const STALLED: usize = 20;
    const POSTS: u64 = 800;
    const KIB: usize = 40;
    let rig = patient().await;
    rig.follow("ann", "bob").await;
    let mut stalled = vec![];
    for n in 0..STALLED {
        let mut phone = rig.connected("ann", &format!("stalled-{n}")).await;
        phone.subscribe(json!({})).await;
        stalled.push(phone);
    }
    let mut reading = rig.connected("ann", "reading").await;
    let start = reading.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();

    // Other tests of this process take their share meanwhile.
    let before = resident();
    for hundred in 0..POSTS / 100 {
        rig.post_bodies("bob", (0..100).map(|_| body(KIB))).await;
        for offset in start + hundred * 100 + 1..=start + hundred * 100 + 100 {
            assert_eq!(reading.publication().await.0, offset, "the other reader gets everything, in order");
        }
    }
    let grown_mib = (resident().saturating_sub(before) >> 20) as usize;
    let unbounded_mib = STALLED * POSTS as usize * KIB / 1024;
    assert!(grown_mib < unbounded_mib / 2, "{grown_mib} MiB; queues without bound would be {unbounded_mib} MiB");

    for phone in &mut stalled[..2] {
        for offset in start + 1..=start + POSTS {
            assert_eq!(phone.publication().await.0, offset, "reading again, it finds everything");
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn commands_that_wait_for_room_go_on_once_there_is_room_and_nothing_else_happens() {
    const COMMANDS: u64 = 60;
    let rig = patient().await;
    rig.follow("ann", "bob").await;
    rig.post_bodies("bob", (0..10).map(|_| body(60))).await;
    let epoch = rig.grown("ann", 10).await.epoch.to_string();
    let mut phone = rig.connected("ann", "phone").await;
    for id in 1..=COMMANDS {
        let asked = json!({"channel": "feed", "limit": 100, "since": {"offset": 0, "epoch": epoch}});
        phone.send(json!({"id": id, "history": asked}).to_string()).await;
    }
    for id in 1..=COMMANDS {
        assert_eq!(phone.line().await["id"], id);
    }
    rig.stop().await;
}

#[tokio::test]
async fn i9_a_reader_stalled_beyond_the_cap_is_closed_with_3010_and_resets() {
    let rig = patient().await;
    rig.follow("ann", "bob").await;
    let mut stalled = rig.connected("ann", "stalled").await;
    let epoch = stalled.subscribe(json!({})).await["subscribe"]["epoch"].clone();
    for hundred in 1..=25 {
        rig.post_bodies("bob", (0..100).map(|_| body(8))).await;
        rig.grown("ann", hundred * 100).await;
    }
    let mut last = 0;
    let end = loop {
        match stalled.next().await {
            Next::Line(line) => {
                let offset = line["push"]["pub"]["offset"].as_u64().unwrap();
                assert!(last == 0 || offset == last + 1, "no gap before the end");
                last = offset;
            }
            end => break end,
        }
    };
    assert_eq!(end, Next::Closed(3010));
    let mut again = rig.connected("ann", "stalled").await;
    let reply = again.subscribe(json!({"recover": true, "offset": last, "epoch": epoch})).await;
    assert_eq!(reply["subscribe"]["recovered"], false);
    rig.stop().await;
}

#[tokio::test]
async fn i18_a_reader_that_stays_stalled_is_closed_for_want_of_a_pong() {
    let rig = Rig::with(|settings| (settings.ping_interval_secs, settings.pong_within_secs) = (300, 300)).await;
    rig.follow("ann", "bob").await;
    let mut stalled = rig.connected("ann", "stalled").await;
    stalled.subscribe(json!({})).await;
    rig.post_bodies("bob", (0..300).map(|_| body(60))).await;
    rig.grown("ann", 300).await;
    let clock = Clock::stop();
    clock.advance(601).await;
    drop(clock);
    rig.gone("ann").await;
    rig.stop().await;
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_and_so_is_a_socket_that_never_connects() {
    use tokio::io::AsyncReadExt;
    let rig = Rig::with(|settings| settings.connect_within_secs = 1).await;
    let clock = Clock::stop();
    let mut slow = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
    slow.write_all(b"GET /connection/websocket HTTP/1.1\r\nhost: x\r\n").await.unwrap();
    let mut silent = rig.socket().await;
    clock.advance(1).await;
    drop(clock);
    assert_eq!(silent.closed().await, Next::Closed(3502));
    let mut rest = Vec::new();
    // Whether by a 408 or by an end: it does not hold its socket.
    let _ = within(slow.read_to_end(&mut rest)).await;
    rig.stop().await;
}

#[tokio::test]
async fn what_came_in_time_counts_also_if_the_process_stood_still_and_reads_it_late() {
    let short = |settings: &mut Settings| {
        (settings.connect_within_secs, settings.ping_interval_secs, settings.pong_within_secs) = (5, 2, 5);
    };
    let rig = Rig::with(short).await;
    let mut phone = rig.socket().await;
    let clock = Clock::stop();
    phone.send(rig.connect("ann", Some("phone")).to_string()).await;
    // Nothing runs before this clock has moved by the whole time.
    tokio::time::advance(Duration::from_secs(6)).await;
    drop(clock);
    assert!(phone.line().await["connect"]["client"].is_string());

    phone.polite = false;
    assert_eq!(phone.line().await, json!({}), "a ping");
    let clock = Clock::stop();
    phone.send("{}").await;
    tokio::time::advance(Duration::from_secs(6)).await;
    drop(clock);
    assert_eq!(phone.line().await, json!({}), "the next ping");
    rig.stop().await;
}

#[tokio::test]
async fn a_connect_that_came_in_time_is_answered_however_long_the_stores_take() {
    let Two { rig, sessions, .. } = two(|settings| settings.connect_within_secs = 1).await;
    rig.connected("ann", "tablet").await;
    let clock = Clock::stop();
    sessions.rest.set(Weather::Hanging);
    let mut phone = rig.socket().await;
    phone.send(rig.connect("ann", Some("phone")).to_string()).await;
    clock.advance(2).await;
    sessions.rest.set(Weather::Fair);
    assert!(phone.line().await["connect"]["client"].is_string());
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i18_an_upgrade_that_promises_a_body_is_refused_and_holds_no_place() {
    use tokio::io::AsyncReadExt;
    let rig = Rig::with(|settings| settings.connections = 1).await;
    for promise in ["content-length: 1000", "transfer-encoding: chunked"] {
        let mut slow = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
        let request = format!(
            "GET /connection/websocket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{promise}\r\n\r\n"
        );
        slow.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            assert_ne!(within(slow.read_buf(&mut answer)).await.unwrap(), 0);
        }
        assert!(answer.starts_with(b"HTTP/1.1 400 "), "{promise}: {}", String::from_utf8_lossy(&answer));
        rig.connected("ann", "phone").await.ws.close(None).await.unwrap();
        within(async {
            while rig.stats().await["sessions"]["connections"] != 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    rig.stop().await;
}

#[tokio::test]
async fn i18_a_peer_that_asks_for_a_large_page_and_does_not_read_it_is_cut() {
    use tokio::io::AsyncReadExt;
    let rig = Rig::with(|settings| settings.connect_within_secs = 1).await;
    rig.follow("ann", "bob").await;
    rig.post_bodies("bob", (0..100).map(|_| body(60))).await;
    rig.grown("ann", 100).await;
    let mut stalled = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
    let request = "GET /v1/users/ann/feed?limit=100 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer api-key\r\n\r\n";
    stalled.write_all(request.as_bytes()).await.unwrap();
    // The answer is on its way; from here on nothing is read until the server has given up.
    within(stalled.readable()).await.unwrap();
    // Ready for this, and not just for reading, is a connection that the peer has ended or reset.
    within(stalled.ready(tokio::io::Interest::PRIORITY)).await.unwrap();
    let mut answer = Vec::new();
    let end = within(stalled.read_to_end(&mut answer)).await;
    assert!(end.is_err() || answer.len() < 100 * 60 * 1024, "all of it arrived: {} bytes", answer.len());
    rig.stop().await;
}

#[tokio::test]
async fn a_websocket_asked_for_while_the_server_stops_is_refused_and_does_not_hold_up_the_end() {
    use tokio::io::AsyncReadExt;
    let rig = Rig::with(|settings| settings.drain_ms = 1).await;
    let mut late = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
    late.write_all(b"GET /connection/websocket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n")
        .await
        .unwrap();
    let mut seen = rig.connected("ann", "seen").await;
    rig.begin_stop();
    assert_eq!(seen.closed().await, Next::Closed(3001));
    let rest = b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    late.write_all(rest).await.unwrap();
    let mut answer = Vec::new();
    let _ = within(late.read_to_end(&mut answer)).await;
    assert!(answer.starts_with(b"HTTP/1.1 503 "), "{}", String::from_utf8_lossy(&answer));
    rig.stop().await;
}
