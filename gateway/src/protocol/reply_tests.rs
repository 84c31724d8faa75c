//! Tests of replies and pushes, byte for byte as they are sent.

use std::collections::BTreeMap;

use feedgate_common::feed::Sight;
use feedgate_common::{Epoch, FeedId, Position};

use super::reply::{Connected, History, Large, Opened, Presence, PresenceInfo, Refreshed, Reply};
use super::{Close, ErrorCode, Format, Label, number};

use Format::Json;

fn wire(reply: Reply) -> String {
    let mut out = Vec::new();
    Json.result(&mut out, 7, &reply);
    String::from_utf8(out).unwrap()
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

fn at(offset: u64) -> Position {
    Position { epoch: Epoch(3), offset }
}

/// The main channel, by its name.
const NAMED: Label<'_> = Label { name: "feed", number: None };

fn large(bytes: Vec<u8>) -> Large {
    Large { bytes, held: None }
}

#[test]
fn every_reply_as_it_goes_over_the_wire() {
    let position = Position { epoch: Epoch(3), offset: 6 };
    let opened = Opened { position, was_recovering: true, recovered: true };
    let presence = Presence {
        client: "n-2".into(),
        user: "ann".into(),
        conn_info: PresenceInfo { device: "ipad".into(), node: "n".into(), since: 5 }.json(),
    };
    let mut publications = Vec::new();
    Json.publication(&mut publications, 2, br#"{"op":"delete","item_id":"9"}"#);
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
        Reply::Subscribe(opened, None, Some(number(FeedId(3)))),
        Reply::Subscribe(Opened { was_recovering: false, recovered: false, ..opened }, None, None),
        Reply::Subscribe(opened, Some(Sight { seen: None, unread: 999, head: at(9) }), None),
        Reply::Seen(Sight { seen: Some(position), unread: 2, head: at(9) }),
        Reply::Unsubscribe,
        Reply::Acked,
        Reply::History(History { epoch: Epoch(3), offset: 9, publications: large(publications) }),
        Reply::History(History { epoch: Epoch(3), offset: 0, publications: large(vec![]) }),
        Reply::Presence(BTreeMap::from([("n-2".into(), presence)])),
        Reply::Presence(BTreeMap::new()),
        Reply::PresenceStats(1),
        Reply::Refresh(Refreshed { client: "n-1".into(), version: "feedgate 0".into(), expires: true, ttl: 1 }),
        Reply::Pong,
    ];
    insta::assert_snapshot!(replies.map(wire).join("\n"));
}

#[test]
fn every_error_as_it_goes_over_the_wire() {
    let line = |code: &ErrorCode| text(|out| Json.error(out, 7, &(*code).into()));
    insta::assert_snapshot!(ErrorCode::ALL.iter().map(line).collect::<Vec<_>>().join("\n"));
}

#[test]
fn pushes_as_they_go_over_the_wire() {
    insta::assert_snapshot!(text(|out| Json.push(out, NAMED, at(7), br#"{"op":"forget","author":"bob"}"#)), @r#"{"push":{"channel":"feed","pub":{"offset":7,"data":{"op":"forget","author":"bob"}}}}"#);
    insta::assert_snapshot!(text(|out| Json.disconnect(out, Close::Expired, &Close::Expired.reason(""))), @r#"{"push":{"disconnect":{"code":3005,"reason":"expired"}}}"#);
    let numbered = Label::of(FeedId(3), "notifications", true);
    insta::assert_snapshot!(text(|out| Json.behind(out, numbered, at(16), None)), @r#"{"push":{"id":4,"pub":{"offset":16,"data":{"op":"behind"}}}}"#);
    insta::assert_snapshot!(text(|out| Json.behind(out, NAMED, at(16), Some(3))), @r#"{"push":{"channel":"feed","pub":{"offset":16,"data":{"op":"behind","unread":3}}}}"#);
    let sight = Sight { seen: Some(at(9)), unread: 3, head: at(16) };
    insta::assert_snapshot!(text(|out| Json.seen(out, NAMED, sight)), @r#"{"push":{"channel":"feed","pub":{"offset":0,"data":{"op":"seen","seen":{"epoch":"3","offset":9},"unread":3,"head":16}}}}"#);
    // A client that only listens would take an id for its position.
    insta::assert_snapshot!(text(|out| Format::OneWay.seen(out, NAMED, sight)).trim_end(), @r#"data: {"channel":"feed","pub":{"offset":0,"data":{"op":"seen","seen":{"epoch":"3","offset":9},"unread":3,"head":16}}}"#);
}

#[test]
fn every_message_is_one_line_of_json() {
    for line in [text(|out| Json.behind(out, NAMED, at(1), None)), wire(Reply::Acked), wire(Reply::Pong)] {
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok_and(|value| value.is_object()), "{line}");
        assert!(!line.contains('\n'));
    }
}
