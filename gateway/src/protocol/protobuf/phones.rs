//! What the SDKs of iOS (Swift) and Flutter (Dart) send is understood, and they are sent what they read.
//!
//! Neither SDK runs where the tests do. Their sources were read instead, at the commits that `phones.txt` names, and
//! another implementation of Protobuf has made the frames of that table. To make them again:
//!
//! ```text
//!   target/tools/python/bin/python tests/phones/frames.py > gateway/src/protocol/protobuf/phones.txt
//! ```

use std::collections::BTreeMap;

use feedgate_common::{Epoch, FeedId, Position};

use super::super::command::{Command, Connect, Deliver, StartFrom, Subscribe, Verb};
use super::super::reply::{Connected, Large, Opened, Presence, Refreshed};
use super::super::{ErrorCode, Label, command, label};
use super::*;

const SWIFT: &str = "centrifuge-swift 0.9.0 at a194bd7";
const DART: &str = "centrifuge-dart 0.16.0 at 969c3c9";

/// The frames of this sender, each with what it is.
fn frames(sender: &str) -> Vec<(&'static str, Vec<u8>)> {
    let lines = include_str!("phones.txt").lines().filter_map(|line| line.strip_prefix(sender)?.strip_prefix(" | "));
    let frames = lines.map(|line| line.split_once(" | ").unwrap());
    frames.map(|(what, hexadecimal)| (what, bytes_of(hexadecimal))).collect()
}

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let pairs = hexadecimal.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Fails unless the frames of this sender are those named here, and each is one message that means what is said here.
fn understood(sender: &str, meanings: &[(&str, Message)]) {
    let read = |frame: &[u8]| {
        let message: Vec<_> = messages(frame).map(Result::unwrap).collect();
        assert_eq!(message.len(), 1, "one message");
        decode(message[0], &NamedFeeds::default()).unwrap()
    };
    let understood: Vec<_> = frames(sender).into_iter().map(|(what, frame)| (what, read(&frame))).collect();
    assert_eq!(understood, meanings, "{sender}");
}

fn asked(id: u32, verb: Verb) -> Message {
    Message::Command(Command { id, verb })
}

fn connects(id: u32, reads_numbers: bool) -> Message {
    let device = Some("phone-1".parse().unwrap());
    asked(id, Verb::Connect(Ok(Box::new(Connect { token: "J".into(), device, reads_numbers }))))
}

/// A subscribe with this `flag`.
fn subscribes(id: u32, from: StartFrom, deliver: Deliver, flag: u8) -> Message {
    let [numbered, reject_unrecovered] = [1, 2].map(|bit| flag & bit != 0);
    let (feed, unread) = (FeedId::MAIN, false);
    asked(id, Verb::Subscribe(Box::new(Subscribe { feed, from, deliver, unread, reject_unrecovered, numbered })))
}

fn pages(id: u32) -> Message {
    asked(id, Verb::Page(Box::new(command::PageAsk { feed: FeedId::MAIN, limit: None, before: None })))
}

fn history(id: u32, since: Option<Position>, limit: usize, reverse: bool) -> Message {
    asked(id, Verb::History(Box::new(command::History { feed: FeedId::MAIN, since, limit, reverse })))
}

/// The bytes that `write` appends to an empty buffer.
fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![];
    write(&mut out);
    out
}

/// The position at this offset, in the epoch of the table.
fn at(offset: u64) -> Position {
    Position { epoch: Epoch(12), offset }
}

#[test]
fn what_the_sdk_of_swift_sends_is_understood() {
    use Deliver::{Items, Notify};
    let (main, own) = (FeedId::MAIN, |offset| StartFrom::Own(Some(at(offset))));
    understood(
        SWIFT,
        &[
            ("connect", connects(9, true)),
            ("subscribe", subscribes(10, StartFrom::Head, Notify, 1)),
            ("subscribe since a position", subscribes(11, own(6), Items, 1)),
            ("subscribe with a stateGetter, at offset 0, with every option", subscribes(12, own(0), Notify, 3)),
            ("subscribe after its state was invalidated", subscribes(13, StartFrom::Own(None), Notify, 1)),
            ("unsubscribe", asked(14, Verb::Unsubscribe(main))),
            ("history since offset 0", history(15, Some(at(0)), 50, false)),
            ("history, all of it, newest first", history(16, None, usize::MAX, true)),
            ("presence", asked(17, Verb::Presence)),
            ("presence stats", asked(18, Verb::PresenceStats)),
            ("rpc ack", asked(300, Verb::Ack(main, at(6)))),
            ("rpc page", pages(301)),
            ("refresh", asked(302, Verb::Refresh("J".into()))),
            ("send", Message::Send),
            ("pong", Message::Pong),
        ],
    );
}

#[test]
fn what_the_sdk_of_dart_sends_is_understood_with_the_defaults_that_it_writes() {
    understood(
        DART,
        &[
            ("connect", connects(1, false)),
            ("connect from a web page", connects(1, false)),
            ("subscribe", subscribes(2, StartFrom::Head, Deliver::Notify, 0)),
            ("subscribe since offset 0", subscribes(3, StartFrom::Own(Some(at(0))), Deliver::Items, 0)),
            ("history since offset 0", history(4, Some(at(0)), 0, false)),
            ("rpc page", pages(5)),
        ],
    );
}

#[test]
fn what_they_are_sent_is_what_another_writer_makes_of_the_fields_that_they_read() {
    const NAMED: FeedId = FeedId(3);
    const CHANGE: &[u8] = br#"{"op":"delete","item_id":"9"}"#;
    let [client, version] = ["n-1", "feedgate 0"].map(str::to_owned);
    let (expires, ttl) = (true, 600);
    let connected = Connected {
        client: client.clone(),
        version: version.clone(),
        ping: 25,
        pong: true,
        expires,
        ttl,
        session: client.clone(),
        node: "n".into(),
    };
    let opened = Opened { position: at(6), was_recovering: true, recovered: true };
    let fresh = Opened { was_recovering: false, recovered: false, ..opened };
    let presence = Presence { client: client.clone(), user: "ann".into(), conn_info: b"{}".to_vec() };
    let publications = Large { bytes: written(|out| publication(out, 7, CHANGE)), held: None };
    let history = History { epoch: Epoch(12), offset: 7, publications };
    let reply = |id, reply| written(|out| result(out, id, &reply));
    let pushed = |label| written(|out| push(out, label, 7, CHANGE));
    let sent = [
        ("connected", reply(9, Reply::Connect(connected))),
        ("subscribed", reply(11, Reply::Subscribe(opened, None, None))),
        (
            "subscribed, with a number for the channel",
            reply(10, Reply::Subscribe(fresh, None, Some(label::number(NAMED)))),
        ),
        ("unsubscribed", reply(14, Reply::Unsubscribe)),
        ("pushed", pushed(Label::of(FeedId::MAIN, "feed", false))),
        ("pushed, with a number for the channel", pushed(Label::of(NAMED, "notifications", true))),
        ("history", reply(15, Reply::History(history))),
        ("presence", reply(17, Reply::Presence(BTreeMap::from([(client.clone(), presence)])))),
        ("presence stats", reply(18, Reply::PresenceStats(1))),
        ("acknowledged", reply(300, Reply::Acked)),
        ("refreshed", reply(302, Reply::Refresh(Refreshed { client, version, expires, ttl }))),
        ("refused", written(|out| error(out, 9, &ErrorCode::TokenExpired.into()))),
        ("ping", PING.to_vec()),
    ];
    assert_eq!(frames("gateway"), sent);
}
