//! Tests of commands as devices write them: which are understood, and which are refused with which words.

use feedgate_common::Epoch;
use feedgate_common::named::{NamedFeed, NamedFeeds};

use super::super::codes::ErrorCode;
use super::super::json;
use super::*;

/// Reads a line where there are two channels, "feed" and "notifications".
fn decode(line: &str) -> Result<Message, Malformed> {
    let kinds = vec!["like".into()];
    let named = NamedFeed { id: FeedId(3), name: "notifications".into(), kinds, ranked: false, cap: 10, ttl: None };
    json::decode(line, &NamedFeeds::new(vec![named]).unwrap())
}

fn verb(line: &str) -> Verb {
    match decode(line) {
        Ok(Message::Command(command)) => command.verb,
        other => panic!("{line}: {other:?}"),
    }
}

fn refusal(line: &str) -> (u16, String) {
    match verb(line) {
        Verb::Refused(refusal) => (refusal.code.code(), refusal.message.into_owned()),
        other => panic!("{line}: {other:?}"),
    }
}

fn subscribed(line: &str) -> Subscribe {
    match verb(line) {
        Verb::Subscribe(asked) => *asked,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn an_empty_object_is_a_pong_and_an_object_without_an_id_is_nothing_of_ours() {
    assert_eq!(decode("{}"), Ok(Message::Pong));
    for line in
        ["", "x", "[]", "1", "\"\"", "null", r#"{"connect":{}}"#, r#"{"id":0,"rpc":{}}"#, r#"{"id":-1,"ping":{}}"#]
    {
        assert_eq!(decode(line), Err(Malformed), "{line}");
    }
    assert_eq!(decode(r#"{"id":4294967296,"ping":{}}"#), Err(Malformed), "an id fits 32 bits");
    assert_eq!(decode(r#"{"id":1,"ping":{},"rpc":{}}"#), Err(Malformed), "one verb per command");
}

#[test]
fn a_send_is_never_answered_even_with_an_id() {
    assert_eq!(decode(r#"{"send":{"data":1}}"#), Ok(Message::Send));
    assert_eq!(decode(r#"{"id":7,"send":{"data":1}}"#), Ok(Message::Send));
}

#[test]
fn unknown_fields_are_ignored_and_an_unknown_verb_is_refused() {
    assert_eq!(verb(r#"{"id":1,"ping":{},"later":true}"#), Verb::Ping);
    assert_eq!(refusal(r#"{"id":1,"teleport":{}}"#).0, 104);
}

#[test]
fn connect_takes_the_device_from_its_data_whatever_else_stands_there() {
    let connect = |line: &str| match verb(line) {
        Verb::Connect(Ok(asked)) => (asked.token, asked.device.map(|device| device.to_string())),
        other => panic!("{other:?}"),
    };
    let (token, device) =
        connect(r#"{"id":1,"connect":{"token":"J","data":{"device_id":"ios-1","x":[1]},"name":"js"}}"#);
    assert_eq!((token.as_str(), device.as_deref()), ("J", Some("ios-1")));
    for data in ["1", "\"text\"", "[]", "null", "{}", r#"{"device_id":null}"#] {
        assert_eq!(connect(&format!(r#"{{"id":1,"connect":{{"data":{data}}}}}"#)), (String::new(), None));
    }
    for (params, word) in
        [(r#"{"data":{"device_id":"a b"}}"#, "device id"), (r#"{"token":5}"#, "a string"), ("5", "connect")]
    {
        let Verb::Connect(Err(refusal)) = verb(&format!(r#"{{"id":1,"connect":{params}}}"#)) else {
            panic!("{params}")
        };
        assert!(refusal.code == ErrorCode::BadRequest && refusal.message.contains(word), "{params}: {refusal:?}");
    }
}

#[test]
fn subscribe_starts_where_it_was_asked_to() {
    let own = Position { epoch: Epoch(9), offset: 6 };
    let asked = subscribed(
        r#"{"id":2,"subscribe":{"channel":"feed","recover":true,"offset":6,"epoch":"9","flag":3,"data":{"deliver":"items"}}}"#,
    );
    let (feed, from) = (FeedId::MAIN, StartFrom::Own(Some(own)));
    let (unread, reject_unrecovered, numbered) = (false, true, true);
    assert_eq!(asked, Subscribe { feed, from, deliver: Deliver::Items, unread, reject_unrecovered, numbered });
    let from = |rest: &str| subscribed(&format!(r#"{{"id":2,"subscribe":{{"channel":"feed"{rest}}}}}"#)).from;
    assert_eq!(from(""), StartFrom::Head);
    assert_eq!(from(r#","flag":1,"offset":5,"epoch":"9""#), StartFrom::Head);
    assert_eq!(from(r#","recover":true"#), StartFrom::Own(None));
    assert_eq!(from(r#","recover":true,"offset":3,"epoch":"xyz""#), StartFrom::Own(None));
    assert_eq!(from(r#","data":{"resume":"stored"}"#), StartFrom::Stored);
    assert_eq!(from(r#","recover":true,"offset":6,"epoch":"9","data":{"resume":"stored"}"#), StartFrom::Own(Some(own)));
    let plain = subscribed(r#"{"id":2,"subscribe":{"channel":"feed","flag":1,"data":"anything"}}"#);
    assert_eq!((plain.deliver, plain.reject_unrecovered, plain.unread), (Deliver::Notify, false, false));
    assert!(subscribed(r#"{"id":2,"subscribe":{"channel":"feed","data":{"unread":true}}}"#).unread);
    let flagged = |flag: i64| subscribed(&format!(r#"{{"id":2,"subscribe":{{"channel":"feed","flag":{flag}}}}}"#));
    let bits = [0, 1, 2, 3, 4].map(flagged).map(|asked| (asked.numbered, asked.reject_unrecovered));
    assert_eq!(bits, [(false, false), (true, false), (false, true), (true, true), (false, false)]);
}

#[test]
fn each_wrong_command_is_refused_with_what_was_wrong() {
    insta::assert_debug_snapshot!(
        [
            r#"{"id":1,"subscribe":{"channel":"news"}}"#,
            r#"{"id":1,"subscribe":{}}"#,
            r#"{"id":1,"subscribe":{"channel":"feed","recover":true,"offset":18446744073709551616,"epoch":"1"}}"#,
            r#"{"id":1,"subscribe":{"channel":"feed","data":{"deliver":"everything"}}}"#,
            r#"{"id":1,"subscribe":{"channel":"feed","data":{"resume":"yesterday"}}}"#,
            r#"{"id":1,"publish":{"channel":"feed","data":{}}}"#,
            r#"{"id":1,"sub_refresh":{"channel":"feed"}}"#,
            r#"{"id":1,"rpc":{"method":"ack"}}"#,
            r#"{"id":1,"rpc":{"method":"ack","data":{"offset":18446744073709551616,"epoch":"1"}}}"#,
            r#"{"id":1,"rpc":{"method":"ack","data":{"offset":-1,"epoch":"1"}}}"#,
            r#"{"id":1,"rpc":{"method":"ack","data":{"offset":1}}}"#,
            r#"{"id":1,"rpc":{"method":"page","data":{"limit":"all"}}}"#,
            r#"{"id":1,"rpc":{"method":"drop tables"}}"#,
            r#"{"id":1,"history":{"channel":"feed","since":{"offset":1,"epoch":"_"}}}"#,
            r#"{"id":1,"presence":{"channel":"other"}}"#,
            r#"{"id":1,"rpc":{"method":"ack","data":{"channel":"news","offset":1,"epoch":"1"}}}"#,
            r#"{"id":1,"rpc":{"method":"page","data":{"channel":""}}}"#,
            r#"{"id":1,"rpc":{"method":"seen","data":{"offset":1}}}"#,
            r#"{"id":1,"rpc":{"method":"seen","data":{"epoch":"1"}}}"#,
            r#"{"id":1,"rpc":{"method":"seen","data":{"offset":1,"epoch":"01"}}}"#,
            r#"{"id":1,"rpc":{"method":"seen","data":{"channel":"news"}}}"#,
            r#"{"id":1,"subscribe":{"channel":"feed","data":{"unread":1}}}"#,
            r#"{"id":1,"history":{"channel":"feed","limit":"all"}}"#,
            r#"{"id":1,"rpc":{"method":"ack","data":"all"}}"#,
            r#"{"id":1,"subscribes":{"channel":"feed"}}"#,
        ]
        .map(refusal)
    );
}

#[test]
fn i18_a_command_that_waits_holds_little_of_a_large_message() {
    let large = "x".repeat(60_000);
    for (command, why) in [
        (format!(r#"{{"id":1,"connect":{{"token":"{large}"}}}}"#), "connect: a token has at most 4096 bytes"),
        (format!(r#"{{"id":1,"refresh":{{"token":"{large}"}}}}"#), "refresh: a token has at most 4096 bytes"),
        (format!(r#"{{"id":1,"rpc":{{"method":"page","data":{{"cursor":"{large}"}}}}}}"#), "a cursor is the `next`"),
        (
            format!(r#"{{"id":1,"rpc":{{"method":"page","data":{{"limit":"{large}"}}}}}}"#),
            "expected a number from 0 at line 1",
        ),
        (
            format!(r#"{{"id":1,"subscribe":{{"channel":"feed","data":{{"deliver":"{large}"}}}}}}"#),
            "or `items` at line 1",
        ),
        (format!(r#"{{"id":1,"subscribe":{{"channel":"{large}"}}}}"#), "unknown channel"),
        (format!(r#"{{"id":1,"rpc":{{"method":"{large}"}}}}"#), "there is no rpc"),
        (format!(r#"{{"id":1,"ping":{{}},"unsubscribe":"{large}"}}"#), ""),
    ] {
        match decode(&command) {
            Err(Malformed) => {}
            Ok(Message::Command(Command { verb: Verb::Refused(refusal) | Verb::Connect(Err(refusal)), .. })) => {
                assert!(refusal.message.len() < 400 && refusal.message.contains(why), "{refusal:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(verb(r#"{"id":1,"refresh":{"token":"J"}}"#), Verb::Refresh("J".into()));
}

#[test]
fn each_verb_means_the_feed_that_its_channel_names_and_an_rpc_without_one_the_main_one() {
    let named = |verb: &str| {
        let of = |channel: &str| match self::verb(&verb.replace("CHANNEL", channel)) {
            Verb::Subscribe(asked) => asked.feed,
            Verb::Unsubscribe(feed) | Verb::Ack(feed, _) => feed,
            Verb::Page(asked) => asked.feed,
            Verb::History(asked) => asked.feed,
            other => panic!("{other:?}"),
        };
        assert_eq!((of("feed"), of("notifications")), (FeedId::MAIN, FeedId(3)), "{verb}");
    };
    named(r#"{"id":1,"subscribe":{"channel":"CHANNEL"}}"#);
    named(r#"{"id":1,"unsubscribe":{"channel":"CHANNEL"}}"#);
    named(r#"{"id":1,"history":{"channel":"CHANNEL"}}"#);
    named(r#"{"id":1,"rpc":{"method":"page","data":{"channel":"CHANNEL"}}}"#);
    named(r#"{"id":1,"rpc":{"method":"ack","data":{"channel":"CHANNEL","offset":1,"epoch":"1"}}}"#);
    for verb in ["presence", "presence_stats"] {
        let asked = self::verb(&format!(r#"{{"id":1,"{verb}":{{"channel":"notifications"}}}}"#));
        assert!(matches!(asked, Verb::Presence | Verb::PresenceStats), "{asked:?}");
    }
    let at = Position { epoch: Epoch(1), offset: 2 };
    let ack = r#"{"id":1,"rpc":{"method":"ack","data":{"offset":2,"epoch":"1"}}}"#;
    assert_eq!(verb(ack), Verb::Ack(FeedId::MAIN, at));
    for data in ["", r#","data":{}"#, r#","data":null"#] {
        let page = Verb::Page(Box::new(PageAsk { feed: FeedId::MAIN, limit: None, before: None }));
        assert_eq!(verb(&format!(r#"{{"id":1,"rpc":{{"method":"page"{data}}}}}"#)), page);
    }
}

#[test]
fn history_reads_its_limits() {
    let history = |rest: &str| match verb(&format!(r#"{{"id":5,"history":{{"channel":"feed"{rest}}}}}"#)) {
        Verb::History(asked) => *asked,
        other => panic!("{other:?}"),
    };
    let since = Some(Position { epoch: Epoch(1), offset: 4 });
    assert_eq!(
        history(r#","since":{"offset":4,"epoch":"1"},"limit":50,"reverse":true"#),
        History { feed: FeedId::MAIN, since, limit: 50, reverse: true }
    );
    assert_eq!(history(""), History { feed: FeedId::MAIN, since: None, limit: 0, reverse: false });
    assert_eq!(history(r#","limit":-1"#).limit, usize::MAX);
    for zero in ["", r#","offset":null"#, r#","offset":0"#] {
        let since = history(&format!(r#","since":{{"epoch":"1"{zero}}}"#)).since;
        assert_eq!(since, Some(Position { epoch: Epoch(1), offset: 0 }), "{zero}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_decoder_panic(line in "\\PC{0,80}") {
        let _ = decode(&line);
    }

    #[test]
    fn no_json_makes_the_decoder_panic(
        verb in "connect|subscribe|rpc|history|refresh|presence|unsubscribe",
        field in "channel|data|offset|epoch|since|limit|method|token|recover|flag",
        value in "\\{\\}|\\[\\]|null|-1|1e400|18446744073709551616|true|\"\"|\\{\"offset\":-3\\}",
    ) {
        let line = format!(r#"{{"id":3,"{verb}":{{"channel":"feed","method":"ack","{field}":{value}}}}}"#);
        let _ = decode(&line);
    }
}
