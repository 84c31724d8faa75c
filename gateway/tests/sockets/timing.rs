//! Pings, pongs and tokens that run out.

use std::sync::Arc;

use feedgate_gateway::Settings;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::clock::Clock;
use super::faults::{FaultyInboxes, Weather};
use super::phone::{Next, Phone};
use super::rig::{Rig, feeds, within};

/// A node that pings every second and waits so many seconds for a pong, whose clock stands; and a device there.
async fn pinged(pong_within_secs: u32) -> (Rig, Clock, Phone) {
    let set = |settings: &mut Settings| {
        (settings.ping_interval_secs, settings.pong_within_secs) = (1, pong_within_secs);
    };
    let rig = Rig::with(set).await;
    let clock = Clock::stop();
    let mut phone = rig.connected("ann", "phone").await;
    phone.polite = false;
    (rig, clock, phone)
}

/// The device says this, and the node has heard it.
async fn heard(phone: &mut Phone, said: &str) {
    phone.send(said).await;
    assert_eq!(phone.ask("ping", json!({})).await["ping"], json!({}));
}

#[tokio::test]
async fn pings_come_on_time_and_a_device_that_answers_stays() {
    let (rig, clock, mut phone) = pinged(1).await;
    for _ in 0..3 {
        clock.advance(1).await;
        assert_eq!(phone.line().await, json!({}));
        heard(&mut phone, "{}").await;
    }
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_device_that_does_not_answer_a_ping_is_closed_with_3012() {
    let (rig, clock, mut phone) = pinged(1).await;
    clock.advance(2).await;
    assert_eq!(phone.closed().await, Next::Closed(3012));
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_second_pong_for_one_ping_closes_with_3501() {
    let (rig, clock, mut phone) = pinged(8).await;
    clock.advance(1).await;
    assert_eq!(phone.line().await, json!({}));
    phone.send("{}\n{}").await;
    assert_eq!(phone.closed().await, Next::Closed(3501));
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_device_far_away_may_answer_several_pings_at_once() {
    let (rig, clock, mut phone) = pinged(8).await;
    for pings in [2, 1] {
        for _ in 0..pings {
            clock.advance(1).await;
            assert_eq!(phone.line().await, json!({}));
        }
        heard(&mut phone, &vec!["{}"; pings].join("\n")).await;
    }
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_pong_for_the_last_ping_only_does_not_put_off_the_first_ones_deadline_for_ever() {
    let (rig, clock, mut phone) = pinged(3).await;
    for ping in 1..=4 {
        clock.advance(1).await;
        assert_eq!(phone.line().await, json!({}));
        if ping == 2 {
            heard(&mut phone, "{}").await;
        }
    }
    clock.advance(1).await;
    assert_eq!(phone.next().await, Next::Closed(3012), "the second ping's answer was due three seconds after it");
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_pong_that_lies_behind_commands_that_wait_for_a_store_is_not_missed() {
    let mut inboxes = None;
    let rig = Rig::of(|parts, stores| {
        let faulty = FaultyInboxes::over(stores.inboxes.clone());
        parts.feeds = Arc::new(feeds(stores, faulty.clone()));
        (parts.settings.ping_interval_secs, parts.settings.pong_within_secs) = (1, 1);
        inboxes = Some(faulty);
    });
    let (rig, inboxes) = (rig.await, inboxes.unwrap());
    rig.head("ann").await;
    let clock = Clock::stop();
    let mut phone = rig.connected("ann", "phone").await;
    phone.polite = false;
    phone.subscribe(json!({})).await;
    inboxes.gate.set(Weather::Hanging);
    let ask = |id: u32| json!({"id": id, "history": {"channel": "feed", "limit": 1}}).to_string();
    phone.send((101..=140).map(ask).collect::<Vec<_>>().join("\n")).await;
    clock.advance(1).await;
    assert_eq!(phone.line().await, json!({}), "a ping, and no answer");
    phone.send("{}").await;
    clock.advance(2).await;
    inboxes.gate.set(Weather::Fair);
    let mut answered = 0;
    while answered < 40 {
        answered += u32::from(phone.line().await["id"].is_u64());
    }
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn the_time_until_connect_counts_from_the_upgrade_so_a_proxys_old_connection_is_as_good() {
    let rig = Rig::with(|settings| settings.connect_within_secs = 2).await;
    let clock = Clock::stop();
    let mut kept_alive = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
    for _ in 0..3 {
        kept_alive.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}") {
            assert_ne!(within(kept_alive.read_buf(&mut answer)).await.unwrap(), 0);
        }
        clock.advance(1).await;
    }
    let mut phone = Phone::over(kept_alive).await;
    phone.connect(&rig.token("ann", None, 600)).await;
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn what_is_sent_right_behind_the_upgrade_is_heard() {
    let rig = Rig::start().await;
    let connect = json!({"id": 1, "connect": {"token": rig.token("ann", None, 600)}}).to_string();
    let mut bytes = b"GET /connection/websocket HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        .to_vec();
    bytes.extend([0x81, 0xFE]);
    bytes.extend((connect.len() as u16).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(connect.as_bytes());
    let mut hasty = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
    hasty.write_all(&bytes).await.unwrap();
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains(r#""connect":{"client""#) {
        assert_ne!(within(hasty.read_buf(&mut answer)).await.unwrap(), 0, "{}", String::from_utf8_lossy(&answer));
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_client_that_ends_its_side_after_a_request_gets_the_answer() {
    let rig = Rig::start().await;
    let item = r#"{"author":"ann","body":1}"#;
    let head = "POST /v1/items HTTP/1.1\r\nhost: x\r\nauthorization: Bearer api-key\r\ncontent-type: application/json";
    let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{item}", item.len());
    let mut client = tokio::net::TcpStream::connect(rig.addr).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = String::new();
    within(client.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer:?}");
    rig.stop().await;
}

#[tokio::test]
async fn a_token_that_runs_out_closes_with_3005_after_its_grace_and_a_refresh_prevents_it() {
    let set = |settings: &mut Settings| {
        (settings.refresh_grace_secs, settings.ping_interval_secs) = (1, 3600);
    };
    let rig = Rig::with(set).await;
    let clock = Clock::stop();
    let (mut lax, mut careful) = (rig.socket().await, rig.socket().await);
    lax.connect(&rig.token("ann", Some("lax"), 100)).await;
    careful.connect(&rig.token("ann", Some("careful"), 100)).await;
    let reply = careful.ask("refresh", json!({"token": rig.token("ann", Some("careful"), 600)})).await;
    assert!(reply["refresh"]["ttl"].as_u64().unwrap() > 300 && reply["refresh"]["client"].is_string(), "{reply}");
    clock.advance(101).await;
    assert_eq!(lax.closed().await, Next::Closed(3005));
    assert_eq!(careful.ask("ping", json!({})).await["ping"], json!({}));
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_refresh_by_another_user_or_device_or_an_old_token_is_refused() {
    let rig = Rig::start().await;
    let mut phone = rig.connected("ann", "phone").await;
    assert_eq!(phone.refused("refresh", json!({"token": rig.token("eve", None, 600)})).await, 103);
    assert_eq!(phone.refused("refresh", json!({"token": rig.token("ann", Some("tablet"), 600)})).await, 103);
    // An SDK ends for good at an error of `refresh` that is not temporary, and asks its app again at one that is.
    let old = phone.ask("refresh", json!({"token": rig.token("ann", None, -5)})).await;
    assert_eq!((&old["error"]["code"], &old["error"]["temporary"]), (&json!(109), &json!(true)));
    phone.send(json!({"id": 9, "refresh": {"token": "forged"}}).to_string()).await;
    assert_eq!(phone.closed().await, Next::Closed(3500));
    rig.stop().await;
}
