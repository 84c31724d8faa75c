//! Both formats say the same: commands and replies as Protobuf, written and read by the schema, beside those of JSON.

use std::collections::BTreeMap;

use feedgate_common::{Epoch, Position};
use serde_json::{Value, json};

use super::super::reply::{Connected, Large, Opened, Presence, PresenceInfo, Refreshed};
use super::super::{ErrorCode, Format, json as as_json};
use super::*;

/// One frame of a writer, in either format.
fn frame(write: impl Fn(Format, &mut Vec<u8>)) -> (Value, Value) {
    let [mut lines, mut messages] = [vec![], vec![]];
    write(Format::Json, &mut lines);
    write(Format::Protobuf, &mut messages);
    let message = super::messages(&messages).collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(message.len(), 1, "one message");
    (serde_json::from_slice(&lines).unwrap(), schema::read("Reply", message[0]))
}

/// Leaves out what Protobuf leaves out: `false`, zero, and empty text and lists.
fn sparse(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_default = |value: &Value| {
                *value == json!(false) || *value == json!(0) || *value == json!("") || *value == json!([])
            };
            fields
                .into_iter()
                .map(|(name, value)| (name, sparse(value)))
                .filter(|(_, value)| !is_default(value))
                .collect()
        }
        Value::Array(values) => values.into_iter().map(sparse).collect(),
        other => other,
    }
}

fn says_the_same(write: impl Fn(Format, &mut Vec<u8>)) {
    let (json, protobuf) = frame(write);
    assert_eq!(sparse(json), sparse(protobuf));
}

#[test]
fn every_reply_says_the_same_in_both_formats() {
    let position = Position { epoch: Epoch(3), offset: 300 };
    let opened = Opened { position, was_recovering: true, recovered: true };
    let presence = Presence {
        client: "n-2".into(),
        user: "ann".into(),
        conn_info: PresenceInfo { device: "ipad".into(), node: "n".into(), since: 5 }.json(),
    };
    let large = |bytes: &[u8]| Large { bytes: bytes.to_vec(), held: None };
    let page = br#"{"items":[{"id":"9","body":{"text":"x"}}],"next":null}"#;
    let replies = [
        Reply::Connect(Connected {
            client: "n-1".into(),
            version: "feedgate 0".into(),
            ping: 25,
            pong: true,
            expires: true,
            ttl: 600,
            session: "n-1".into(),
            node: "n".into(),
        }),
        Reply::Subscribe(opened),
        Reply::Subscribe(Opened { was_recovering: false, recovered: false, ..opened }),
        Reply::Unsubscribe,
        Reply::Acked,
        Reply::Page(large(page)),
        Reply::Presence(BTreeMap::from([("n-2".into(), presence)])),
        Reply::PresenceStats(1),
        Reply::Refresh(Refreshed { client: "n-1".into(), version: "feedgate 0".into(), expires: true, ttl: 1 }),
        Reply::Pong,
    ];
    for reply in &replies {
        for id in [1, 300, u32::MAX] {
            says_the_same(|format, out| format.result(out, id, reply));
        }
    }
    for code in ErrorCode::ALL {
        says_the_same(|format, out| format.error(out, 7, &(*code).into()));
    }
}

#[test]
fn a_history_says_the_same_in_both_formats_however_long_it_is() {
    for many in [0, 1, 3, 200] {
        says_the_same(|format, out| {
            let mut bytes = vec![];
            for offset in 1..=many {
                if !bytes.is_empty() {
                    bytes.extend_from_slice(format.between_publications());
                }
                format.publication(&mut bytes, offset, br#"{"op":"delete","item_id":"9"}"#);
            }
            let publications = Large { bytes, held: None };
            format.result(out, 7, &Reply::History(History { epoch: Epoch(3), offset: many, publications }));
        });
    }
}

#[test]
fn every_push_says_the_same_in_both_formats() {
    let long = format!(r#"{{"op":"add","text":"{}"}}"#, "x".repeat(70_000));
    for change in [r#"{"op":"forget","author":"bob"}"#, &long] {
        for offset in [1, 127, 128, 1 << 35, u64::MAX] {
            says_the_same(|format, out| format.push(out, "feed", offset, change.as_bytes()));
        }
    }
    says_the_same(|format, out| format.behind(out, "notifications", 16));
}

#[test]
fn pushes_of_one_frame_are_read_one_after_another() {
    let mut frame = vec![];
    for offset in 1..=3 {
        Format::Protobuf.push(&mut frame, "feed", offset, b"{}");
    }
    let offset =
        |message: Result<&[u8], Malformed>| schema::read("Reply", message.unwrap())["push"]["pub"]["offset"].clone();
    assert_eq!(messages(&frame).map(offset).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn every_command_means_the_same_in_both_formats() {
    let feeds = NamedFeeds::default();
    let commands = [
        json!({}),
        json!({"id": 1, "connect": {"token": "J", "data": {"device_id": "ios-1"}, "name": "java", "version": "0"}}),
        json!({"id": 1, "connect": {"data": {"device_id": "a b"}}}),
        json!({"id": 2, "subscribe": {"channel": "feed", "recover": true, "offset": 6, "epoch": "9", "flag": 3, "data": {"deliver": "items"}}}),
        json!({"id": 2, "subscribe": {"channel": "feed", "data": {"resume": "stored"}, "positioned": true}}),
        json!({"id": 2, "subscribe": {"channel": "news"}}),
        json!({"id": 2, "subscribe": {"channel": "feed", "data": {"deliver": "everything"}}}),
        json!({"id": 3, "unsubscribe": {"channel": "feed"}}),
        json!({"id": 4, "publish": {"channel": "feed", "data": {}}}),
        json!({"id": 5, "presence": {"channel": "feed"}}),
        json!({"id": 6, "presence_stats": {"channel": "feed"}}),
        json!({"id": 7, "history": {"channel": "feed", "since": {"offset": 4, "epoch": "1"}, "limit": 50, "reverse": true}}),
        json!({"id": 7, "history": {"channel": "feed", "limit": -1}}),
        json!({"id": 7, "history": {"channel": "feed", "since": {"epoch": "_"}}}),
        json!({"id": 8, "ping": {}}),
        json!({"id": 9, "send": {"data": 1}}),
        json!({"send": {"data": 1}}),
        json!({"id": 10, "rpc": {"method": "ack", "data": {"offset": 7, "epoch": "1"}}}),
        json!({"id": 10, "rpc": {"method": "ack"}}),
        json!({"id": 10, "rpc": {"method": "page", "data": {"limit": 5, "cursor": "c"}}}),
        json!({"id": 10, "rpc": {"method": "page"}}),
        json!({"id": 10, "rpc": {"method": "drop tables"}}),
        json!({"id": 11, "refresh": {"token": "JWT"}}),
        json!({"id": 12, "sub_refresh": {"channel": "feed"}}),
        json!({"id": 13}),
        json!({"connect": {}}),
        json!({"id": 14, "ping": {}, "refresh": {}}),
    ];
    for command in &commands {
        let message = schema::write("Command", command);
        let protobuf = decode(&message, &feeds);
        assert_eq!(protobuf, as_json::decode(&command.to_string(), &feeds), "{command}");
    }
}

#[test]
fn a_frame_that_is_cut_or_says_too_great_a_length_is_malformed_after_what_was_whole() {
    let one = [1, b'x'];
    let read = |frame: &[u8]| messages(frame).map(|message| message.map(<[u8]>::to_vec)).collect::<Vec<_>>();
    assert_eq!(read(&[]), []);
    assert_eq!(read(&[0, 0]), [Ok(vec![]), Ok(vec![])]);
    for bad in [&[1][..], &[2, b'x'], &[0x80], &[0xFF; 11]] {
        assert_eq!(read(&[&one, bad].concat()), [Ok(vec![b'x']), Err(Malformed)], "{bad:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(frame: Vec<u8>) {
        let feeds = NamedFeeds::default();
        for message in messages(&frame) {
            let _ = message.and_then(|message| decode(message, &feeds));
        }
        let _ = decode(&frame, &feeds);
    }
}
