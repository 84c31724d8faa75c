//! Peers that break the rules get the right close code.

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use super::clock::Clock;
use super::phone::{Next, Phone};
use super::rig::{Rig, within};

/// A masked client frame with a mask of zero, so that the payload goes as it is.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first, 0x80 | payload.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(payload);
    frame
}

async fn raw(mut phone: Phone, bytes: &[u8]) -> Next {
    phone.ws.get_mut().write_all(bytes).await.unwrap();
    phone.closed().await
}

#[tokio::test]
async fn commands_out_of_place_close_with_3501() {
    let rig = Rig::start().await;
    for early in [r#"{"id":1,"subscribe":{"channel":"feed"}}"#, r#"{"id":1,"teleport":{}}"#, "{}", "hello", "[1]"] {
        let mut phone = rig.socket().await;
        phone.send(early).await;
        assert_eq!(phone.closed().await, Next::Closed(3501), "{early}");
    }
    let token = rig.token("ann", None, 600);
    let second = json!({"id": 9, "connect": {"token": token}}).to_string();
    for later in [second.as_str(), "{}", "garbage", r#"{"id":0,"ping":{}}"#] {
        let mut phone = rig.socket().await;
        phone.connect(&token).await;
        phone.send(later).await;
        assert_eq!(phone.closed().await, Next::Closed(3501), "{later}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_connect_or_a_refresh_is_said() {
    let rig = Rig::start().await;
    let token = rig.token("ann", None, 600);
    let mut phone = rig.socket().await;
    let named = phone.ask("connect", json!({"token": token, "data": {"device_id": "my phone"}})).await;
    assert_eq!(named["error"]["code"], 107);
    assert!(named["error"]["message"].as_str().unwrap().contains("a device id may hold only"), "{named}");
    assert_eq!(phone.refused("connect", json!({"token": 5})).await, 107);
    phone.connect(&token).await;
    for refresh in [json!({}), json!({"token": ""}), json!({"token": 5}), json!("x")] {
        let refused = phone.ask("refresh", refresh.clone()).await;
        assert_eq!(refused["error"]["code"], 107, "{refresh}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().starts_with("refresh"), "{refused}");
    }
    for (verb, mut phone) in [("refresh", phone), ("connect", rig.socket().await)] {
        phone.send(json!({"id": 9, verb: {"token": "forged"}}).to_string()).await;
        let goodbye = loop {
            if let Message::Close(goodbye) = within(phone.ws.next()).await.unwrap().unwrap() {
                break goodbye.unwrap();
            }
        };
        let (code, reason) = (u16::from(goodbye.code), goodbye.reason.to_string());
        assert_eq!((code, &*reason), (3500, "invalid token: token is not a signed JWT"), "{verb}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn frames_that_break_the_rfc_close_with_its_codes() {
    let rig = Rig::with(|settings| settings.message_max_bytes = 1000).await;
    let unmasked = [0x81, 2, b'{', b'}'];
    for (what, bytes, code) in [
        ("unmasked", unmasked.to_vec(), 1002),
        ("a reserved bit", frame(0xC1, b"{}"), 1002),
        ("an unknown opcode", frame(0x83, b"{}"), 1002),
        ("a continuation of nothing", frame(0x80, b"{}"), 1002),
        ("a ping in parts", frame(0x09, b""), 1002),
        ("text that is not UTF-8", frame(0x81, &[0xFF, 0xFE]), 1007),
        ("a binary frame", frame(0x82, b"{}"), 1003),
        ("a frame above the limit", vec![0x81, 0xFE, 0x03, 0xE9, 0, 0, 0, 0], 1009),
        ("a frame of 2^63 bytes", [&[0x81, 0xFF, 0x7F][..], &[0xFF; 7], &[0; 4]].concat(), 1009),
    ] {
        assert_eq!(raw(rig.socket().await, &bytes).await, Next::Closed(code), "{what}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn what_is_no_message_of_protobuf_closes_as_what_is_no_line_of_json_does() {
    let rig = Rig::with(|settings| settings.message_max_bytes = 1000).await;
    // Command { id: 1, ping: {} }, which may not come before connect.
    let ping = [4, 0x08, 1, 0x5A, 0];
    for (what, bytes, code) in [
        ("a text frame", frame(0x81, b"{}"), 1003),
        ("a length without its message", frame(0x82, &[5, 0x08]), 3501),
        ("a length that never ends", frame(0x82, &[0xFF; 20]), 3501),
        ("a field that is cut", frame(0x82, &[2, 0x22, 9]), 3501),
        ("a token that is not UTF-8", frame(0x82, &[7, 0x08, 1, 0x22, 3, 0x0A, 1, 0xFF]), 3501),
        ("a pong that nobody asked for", frame(0x82, &[0]), 3501),
        ("another command before connect", frame(0x82, &ping), 3501),
        ("a frame above the limit", vec![0x82, 0xFE, 0x03, 0xE9, 0, 0, 0, 0], 1009),
    ] {
        assert_eq!(raw(rig.protobuf_socket().await, &bytes).await, Next::Closed(code), "{what}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn i18_endless_fragments_end_at_the_message_limit() {
    let rig = Rig::with(|settings| settings.message_max_bytes = 1000).await;
    let mut bytes = frame(0x01, b"x");
    (0..1000).for_each(|_| bytes.extend(frame(0x00, b"x")));
    assert_eq!(raw(rig.socket().await, &bytes).await, Next::Closed(1009));
    rig.stop().await;
}

#[tokio::test]
async fn i18_more_commands_than_allowed_close_with_3013() {
    let rig = Rig::with(|settings| settings.commands_per_sec = 10).await;
    let clock = Clock::stop();
    let mut phone = rig.connected("ann", "phone").await;
    let line = r#"{"id":1,"send":{}}"#;
    phone.send([line; 100].join("\n")).await;
    assert_eq!(phone.closed().await, Next::Closed(3013));
    let mut pinger = rig.connected("ann", "other").await;
    for _ in 0..30 {
        // The close may come while we still send.
        let _ = pinger.ws.send(Message::Ping(vec![1].into())).await;
    }
    assert_eq!(pinger.closed().await, Next::Closed(3013));
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i18_frames_without_a_command_count_from_the_first_byte_and_close_with_3013() {
    let rig = Rig::with(|settings| settings.commands_per_sec = 10).await;
    let clock = Clock::stop();
    let nothing = (vec![], frame(0x81, b""));
    let continuations = (frame(0x01, b"{"), frame(0x00, b""));
    for (what, (mut bytes, again)) in [("blank text", nothing), ("empty continuations", continuations)] {
        // Fewer reads than are allowed, but more frames.
        bytes.extend(again.repeat(2_000));
        let mut phone = rig.socket().await;
        // The close may come while we still send.
        let _ = phone.ws.get_mut().write_all(&bytes).await;
        assert_eq!(phone.closed().await, Next::Closed(3013), "{what}");
    }
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i18_a_user_holds_no_more_connections_than_allowed() {
    let rig = Rig::with(|settings| settings.connections_per_user = 2).await;
    let _phones = (rig.connected("ann", "a").await, rig.connected("ann", "b").await);
    let mut third = rig.socket().await;
    third.send(json!({"id": 1, "connect": {"token": rig.token("ann", Some("c"), 600)}}).to_string()).await;
    assert_eq!(third.closed().await, Next::Closed(3504));
    rig.connected("eve", "c").await;
    rig.stop().await;
}
