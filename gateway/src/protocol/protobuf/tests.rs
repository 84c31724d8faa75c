//! Both formats say the same: commands and replies as Protobuf, written and read by the schema, beside those of JSON.

use std::collections::BTreeMap;

use feedgate_common::feed::Sight;
use feedgate_common::{Epoch, FeedId, Position};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::reply::{Connected, Large, Opened, Presence, PresenceInfo, Refreshed, Standing};
use super::super::{Close, ErrorCode, Format, Unsubscribed, json as as_json, number};
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

fn at(offset: u64) -> Position {
    Position { epoch: Epoch(3), offset }
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
        Reply::Subscribe(opened, None, None),
        Reply::Subscribe(opened, None, Some(number(FeedId(300)))),
        Reply::Subscribe(Opened { was_recovering: false, recovered: false, ..opened }, None, None),
        Reply::Subscribe(opened, Some(Sight { seen: Some(position), unread: 0, head: at(9) }), None),
        Reply::Seen(Sight { seen: None, unread: 7, head: position }),
        Reply::Watch(Standing { data: br#"{"id":"9","counts":{"like":2},"own":[]}"#.to_vec() }),
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

/// A channel by its name, and by numbers that take one byte and more.
fn labels() -> [Label<'static>; 3] {
    [(3, false), (3, true), (u16::MAX, true)].map(|(feed, numbered)| Label::of(FeedId(feed), "notifications", numbered))
}

#[test]
fn every_push_says_the_same_in_both_formats() {
    let long = format!(r#"{{"op":"add","text":"{}"}}"#, "x".repeat(70_000));
    for change in [r#"{"op":"forget","author":"bob"}"#, &long] {
        for offset in [1, 127, 128, 1 << 35, u64::MAX] {
            for label in labels() {
                says_the_same(|format, out| format.push(out, label, at(offset), change.as_bytes()));
            }
        }
    }
    for label in labels() {
        says_the_same(|format, out| format.behind(out, label, at(16), None));
        says_the_same(|format, out| format.behind(out, label, at(16), Some(3)));
        for seen in [None, Some(at(9))] {
            says_the_same(|format, out| format.seen(out, label, Sight { seen, unread: 999, head: at(1 << 40) }));
        }
    }
}

#[test]
fn news_of_an_item_and_the_end_of_its_subscription_say_the_same_in_both_formats() {
    let long = format!(r#"{{"op":"comment","text":"{}"}}"#, "x".repeat(70_000));
    for data in [r#"{"op":"missed"}"#, &long] {
        says_the_same(|format, out| format.news(out, "item:18446744073709551615", data.as_bytes()));
    }
    for why in Unsubscribed::ALL {
        says_the_same(|format, out| format.unsubscribed(out, "item:9", *why));
    }
}

#[test]
fn the_last_word_to_a_device_without_close_frames_says_the_same_in_both_formats() {
    for close in Close::ALL {
        says_the_same(|format, out| format.disconnect(out, *close, &close.reason("token's signature does not match")));
    }
}

#[test]
fn pushes_of_one_frame_are_read_one_after_another() {
    let mut frame = vec![];
    for offset in 1..=3 {
        Format::Protobuf.push(&mut frame, labels()[1], at(offset), b"{}");
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

/// A field of this tag that holds these bytes.
fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2, bytes.len() as u8], bytes].concat()
}

#[test]
fn data_with_spaces_around_it_or_null_means_the_same_in_both_formats() {
    let feeds = NamedFeeds::default();
    let object = r#"{"device_id":"ios-1","deliver":"items","offset":7,"epoch":"1"}"#;
    for (data, plain) in [(format!("\r\n\t {object} \n"), object), ("null".into(), ""), (" null\n".into(), "")] {
        let named = field(1, b"feed");
        let of = |data: &[u8]| {
            [
                ("connect", field(4, &field(2, data))),
                ("subscribe", field(5, &[named.clone(), field(8, data)].concat())),
                ("ack", field(13, &[field(1, data), field(2, b"ack")].concat())),
                ("page", field(13, &[field(1, data), field(2, b"page")].concat())),
            ]
            .map(|(verb, request)| (verb, decode(&[&[8, 1][..], &request].concat(), &feeds)))
        };
        assert_eq!(of(data.as_bytes()), of(plain.as_bytes()), "{data:?} over Protobuf");
        let lines = of(plain.as_bytes()).map(|(verb, _)| {
            let request = match verb {
                "connect" => format!(r#""connect":{{"data":{data}}}"#),
                "subscribe" => format!(r#""subscribe":{{"channel":"feed","data":{data}}}"#),
                method => format!(r#""rpc":{{"method":"{method}","data":{data}}}"#),
            };
            (verb, as_json::decode(&format!(r#"{{"id":1,{request}}}"#), &feeds))
        });
        assert_eq!(lines, of(plain.as_bytes()), "{data:?} over JSON");
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

/// A command with the fields that its verb has, of the types that they have, and with any contents.
fn commands() -> impl Strategy<Value = Value> {
    let epoch = || "[0-9]{0,21}|_|x";
    let channel = || prop_oneof![Just("feed".to_owned()), "[a-z_]{0,70}"];
    let data = || {
        (channel(), any::<u64>(), epoch(), any::<[bool; 4]>())
            .prop_map(|(channel, number, epoch, has)| data_of(&channel, number, &epoch, has))
    };
    let subscribe = (channel(), any::<u64>(), epoch(), 0..8i64, any::<bool>(), data()).prop_map(|(channel, offset, epoch, flag, recover, data)| {
        json!({"subscribe": {"channel": channel, "offset": offset, "epoch": epoch, "flag": flag, "recover": recover, "data": data}})
    });
    let history = (channel(), any::<u64>(), epoch(), any::<i32>(), any::<bool>()).prop_map(|(channel, offset, epoch, limit, reverse)| {
        json!({"history": {"channel": channel, "since": {"offset": offset, "epoch": epoch}, "limit": limit, "reverse": reverse}})
    });
    let rpc =
        ("ack|page|[a-z]{0,9}", data()).prop_map(|(method, data)| json!({"rpc": {"method": method, "data": data}}));
    let connect = (".{0,20}", "js|rust|[a-z]{0,9}", data())
        .prop_map(|(token, name, data)| json!({"connect": {"token": token, "name": name, "data": data}}));
    let on_channel = ("unsubscribe|presence|presence_stats|publish|sub_refresh", channel())
        .prop_map(|(verb, channel)| json!({verb: {"channel": channel}}));
    let refresh = ".{0,20}".prop_map(|token| json!({"refresh": {"token": token}}));
    let verb =
        prop_oneof![subscribe, history, rpc, connect, on_channel, refresh, Just(json!({"ping": {}})), Just(json!({}))];
    (any::<u32>(), verb).prop_map(|(id, mut command)| {
        command["id"] = id.into();
        command
    })
}

fn data_of(channel: &str, number: u64, epoch: &str, [delivers, resumes, places, names]: [bool; 4]) -> Value {
    let mut data = json!({"limit": number});
    let fields = [
        (delivers, json!({"deliver": if number.is_multiple_of(2) { "items" } else { "everything" }})),
        (resumes, json!({"resume": "stored", "device_id": epoch})),
        (places, json!({"offset": number, "epoch": epoch})),
        (names, json!({"channel": channel, "cursor": channel})),
    ];
    let wanted = fields.into_iter().filter(|(wanted, _)| *wanted);
    wanted.for_each(|(_, more)| data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone()));
    data
}

/// The bytes with this damage: at a place, some are taken out, flipped, repeated or put in.
fn damaged(mut bytes: Vec<u8>, at: prop::sample::Index, how: u8, with: Vec<u8>) -> Vec<u8> {
    let at = at.index(bytes.len() + 1);
    let end = (at + with.len()).min(bytes.len());
    match how % 4 {
        0 => drop(bytes.drain(at..end)),
        1 => bytes[at..end].iter_mut().zip(&with).for_each(|(byte, bits)| *byte ^= bits),
        2 => bytes.extend_from_within(at..end),
        _ => drop(bytes.splice(at..at, with)),
    }
    bytes
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(frame: Vec<u8>) {
        let feeds = NamedFeeds::default();
        for message in messages(&frame) {
            let _ = message.and_then(|message| decode(message, &feeds));
        }
        let _ = decode(&frame, &feeds);
    }

    #[test]
    fn whatever_a_command_says_it_means_the_same_in_both_formats(command in commands()) {
        let feeds = NamedFeeds::default();
        let message = schema::write("Command", &command);
        prop_assert_eq!(decode(&message, &feeds), as_json::decode(&command.to_string(), &feeds));
    }

    #[test]
    fn a_command_that_was_damaged_is_understood_or_refused(
        command in commands(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), any::<Vec<u8>>()), 1..4),
    ) {
        let feeds = NamedFeeds::default();
        let whole = schema::write("Command", &command);
        let bytes = damages.into_iter().fold(whole, |bytes, (at, how, with)| damaged(bytes, at, how, with));
        let frame = [vec![1, 0], bytes.clone()].concat();
        let read = messages(&frame).collect::<Vec<_>>();
        prop_assert!(read.iter().rev().skip(1).all(Result::is_ok), "nothing is read behind what is malformed");
        for message in [Ok(&bytes[..])].into_iter().chain(read) {
            match message.and_then(|message| decode(message, &feeds)) {
                Ok(Message::Command(understood)) => prop_assert!(understood.id > 0, "it could not be answered"),
                Ok(Message::Pong | Message::Send) | Err(Malformed) => {}
            }
        }
    }
}
