//! One connection, several channels: each is a feed of its own, with its own position.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use feedgate_common::change::Class;
use feedgate_common::doorbell::Heard;
use feedgate_common::{FeedId, Position};
use serde_json::{Value, json};

use super::clock::Clock;
use super::faults::{FaultyInboxes, Weather};
use super::phone::Phone;
use super::pulling::{in_time, over_lines};
use super::rig::{LIKES, Rig, feeds, until};

const CHANNELS: [&str; 2] = ["feed", "notifications"];

/// A device that is subscribed to both.
async fn subscribed(rig: &Rig, user: &str) -> Phone {
    let mut phone = rig.connected(user, "phone").await;
    for channel in CHANNELS {
        phone.subscribe(json!({"channel": channel})).await;
    }
    phone
}

/// The offsets of the next `count` pushes, by channel.
async fn offsets(phone: &mut Phone, count: usize) -> [Vec<u64>; 2] {
    let mut offsets: HashMap<String, Vec<u64>> = HashMap::new();
    for _ in 0..count {
        let (channel, offset, _) = phone.pushed().await;
        offsets.entry(channel).or_default().push(offset);
    }
    CHANNELS.map(|channel| offsets.remove(channel).unwrap_or_default())
}

/// A node that reads from the log whatever it is woken for, and of which inboxes it did.
async fn counted() -> (Rig, Arc<FaultyInboxes>) {
    let mut inboxes = None;
    let rig = Rig::of(|parts, stores| {
        let counted = FaultyInboxes::over(stores.inboxes.clone());
        parts.feeds = Arc::new(feeds(stores, counted.clone()));
        parts.settings.inline_changes = false;
        (parts.settings.ping_interval_secs, parts.settings.pong_within_secs) = (3600, 3600);
        inboxes = Some(counted);
    });
    (rig.await, inboxes.unwrap())
}

fn from(channel: &str, own: &Position) -> Value {
    json!({"channel": channel, "recover": true, "offset": own.offset, "epoch": own.epoch.to_string()})
}

#[tokio::test]
async fn a_subscription_that_offers_numbers_gets_the_channels_number_in_pushes_and_any_other_gets_its_name() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 2).await;
    let head = rig.grown("ann", 2).await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut number_of = async |channel: &str, deliver: &str, flag: u8| {
        let asked = json!({"channel": channel, "flag": flag, "data": {"deliver": deliver}});
        phone.subscribe(asked).await["subscribe"]["id"].take()
    };
    let numbers = [number_of("feed", "notify", 1).await, number_of("notifications", "items", 3).await];
    assert!(numbers.iter().all(|number| number.as_u64().is_some_and(|number| number > 0)), "{numbers:?}");
    assert_ne!(numbers[0], numbers[1]);
    rig.post("bob", 1).await;
    assert_eq!(phone.line().await["push"]["id"], numbers[0]);
    rig.like("bob", 1).await;
    let pushed = phone.line().await["push"].take();
    assert!(
        pushed["id"] == numbers[1] && pushed.get("channel").is_none() && pushed["pub"]["data"]["op"] == "add",
        "{pushed}"
    );

    for (channel, flag) in [("feed", 0), ("notifications", 2)] {
        phone.ask("unsubscribe", json!({"channel": channel})).await;
        let reply = phone.subscribe(json!({"channel": channel, "flag": flag})).await;
        assert!(reply["subscribe"].get("id").is_none(), "{reply}");
    }
    rig.post("bob", 1).await;
    assert_eq!(phone.pushed().await.0, "feed");
    phone.ask("unsubscribe", json!({"channel": "feed"})).await;
    let again =
        phone.subscribe(json!({"flag": 1, "recover": true, "offset": 1, "epoch": head.epoch.to_string()})).await;
    assert_eq!(again["subscribe"]["id"], numbers[0], "it is the same after each subscribe");
    for _ in 0..3 {
        assert_eq!(phone.line().await["push"]["id"], numbers[0]);
    }
    rig.stop().await;
}

#[tokio::test]
async fn i9_two_channels_live_side_by_side_and_each_recovers_from_its_own_position() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 3).await;
    rig.like("bob", 1).await;
    let own = [rig.grown("ann", 3).await, rig.grown_in(LIKES, "ann", 1).await];
    let mut phone = subscribed(&rig, "ann").await;
    rig.post("bob", 2).await;
    rig.like("bob", 4).await;
    assert_eq!(offsets(&mut phone, 6).await, [vec![4, 5], vec![2, 3, 4, 5]]);
    drop(phone);
    rig.post("bob", 1).await;
    rig.like("bob", 2).await;
    rig.grown("ann", 6).await;
    rig.grown_in(LIKES, "ann", 7).await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut bodies = vec![];
    for (channel, own) in CHANNELS.iter().zip(&own) {
        let reply = phone.subscribe(from(channel, own)).await["subscribe"].take();
        assert_eq!((&reply["recovered"], &reply["offset"]), (&json!(true), &json!(own.offset)), "{channel}");
    }
    for _ in 0..9 {
        let (channel, offset, change) = phone.pushed().await;
        bodies.push((channel, offset, change["item"]["body"].as_u64().unwrap()));
    }
    bodies.sort();
    let expected = |channel: &str, first: u64, bodies: &[u64]| -> Vec<_> {
        (first..).zip(bodies).map(|(offset, body)| (channel.to_owned(), offset, *body)).collect()
    };
    assert_eq!(bodies, [expected("feed", 4, &[0, 1, 0]), expected("notifications", 2, &[0, 1, 2, 3, 0, 1])].concat());
    rig.stop().await;
}

#[tokio::test]
async fn a_like_wakes_only_the_notifications_and_a_post_only_the_main_feed() {
    let (rig, inboxes) = counted().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 1).await;
    rig.grown("ann", 1).await;
    let mut phone = subscribed(&rig, "ann").await;
    for (feed, channel) in [(LIKES, "notifications"), (FeedId::MAIN, "feed")] {
        inboxes.reads.lock().clear();
        for n in 0..5 {
            rig.publish(feed, "bob", [n.to_string()].into_iter()).await;
            let (pushed, _, change) = phone.pushed().await;
            assert_eq!((pushed.as_str(), &change["item"]["body"]), (channel, &json!(n)));
        }
        let reads = inboxes.reads.lock();
        assert!(reads.len() >= 5 && reads.iter().all(|key| key.feed == feed), "{channel}: {reads:?}");
    }
    phone.ask("unsubscribe", json!({"channel": "notifications"})).await;
    inboxes.reads.lock().clear();
    rig.like("bob", 3).await;
    rig.grown_in(LIKES, "ann", 8).await;
    assert_eq!(phone.ask("ping", json!({})).await["ping"], json!({}));
    assert_eq!(*inboxes.reads.lock(), [], "nobody here listens to likes");
    rig.stop().await;
}

#[tokio::test]
async fn i18_channels_that_both_have_a_backlog_take_turns() {
    let rig = Rig::with(|settings| settings.batch = 10).await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 300).await;
    rig.like("bob", 300).await;
    let epochs = [rig.grown("ann", 300).await.epoch, rig.grown_in(LIKES, "ann", 300).await.epoch];
    let mut phone = rig.connected("ann", "phone").await;
    let subscribe = |n: usize| {
        let mut params = from(CHANNELS[n], &Position { epoch: epochs[n], offset: 0 });
        params["data"] = json!({"deliver": "items"});
        json!({"id": n + 1, "subscribe": params}).to_string()
    };
    phone.send(format!("{}\n{}", subscribe(0), subscribe(1))).await;
    // How many pushes of one channel came before the other's, from when both have begun to when one has all.
    let (mut runs, mut next, mut begun) = (vec![], [1, 1], 0);
    while next != [301, 301] {
        let line = phone.line().await;
        if line.get("id").is_some() {
            assert_eq!(line["subscribe"]["recovered"], true, "{line}");
            begun += 1;
            continue;
        }
        let of = usize::from(line["push"]["channel"] == CHANNELS[1]);
        assert_eq!(line["push"]["pub"]["offset"], next[of], "{line}");
        next[of] += 1;
        match runs.last_mut() {
            Some((last, count)) if *last == of => *count += 1,
            _ if begun == 2 && !next.contains(&301) => runs.push((of, 1)),
            _ => {}
        }
    }
    assert!(runs.len() > 40, "they take turns: {runs:?}");
    assert!(runs[..40].iter().all(|(_, count)| *count <= 10), "a turn is a read: {runs:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i18_a_device_that_takes_nothing_is_read_nothing_for_either_channel_and_later_finds_all() {
    let (rig, inboxes) = counted().await;
    rig.follow("ann", "bob").await;
    rig.follow("joe", "bob").await;
    let (mut slow, mut reading) = (subscribed(&rig, "ann").await, subscribed(&rig, "joe").await);
    let ann = rig.number("ann").await;
    let (mut posted, mut quiet, mut reads) = (0, 0, 0);
    while quiet < 5 {
        assert!(posted < 900, "its socket takes everything");
        for feed in [FeedId::MAIN, LIKES] {
            rig.publish(feed, "bob", (0..10).map(|_| format!("\"{}\"", "x".repeat(60_000)))).await;
        }
        // The device that reads has got the posts, so the other one was woken for them.
        offsets(&mut reading, 20).await;
        posted += 10;
        let before = std::mem::replace(&mut reads, inboxes.reads.lock().iter().filter(|key| key.reader == ann).count());
        quiet = if reads == before { quiet + 1 } else { 0 };
    }
    let all: Vec<u64> = (1..=posted).collect();
    assert_eq!(offsets(&mut slow, 2 * all.len()).await, [all.clone(), all]);
    rig.stop().await;
}

#[tokio::test]
async fn an_unknown_channel_is_refused_with_those_that_there_are_whatever_is_asked_of_it() {
    let rig = Rig::start().await;
    let mut phone = rig.connected("ann", "phone").await;
    let verbs = ["subscribe", "unsubscribe", "history", "presence", "presence_stats"];
    let asked = verbs.map(|verb| (verb, json!({"channel": "news"})));
    let rpcs = ["ack", "page"]
        .map(|method| ("rpc", json!({"method": method, "data": {"channel": "news", "offset": 0, "epoch": "1"}})));
    for (verb, params) in asked.into_iter().chain(rpcs) {
        let error = phone.ask(verb, params.clone()).await["error"].take();
        assert_eq!(error["code"], 102, "{verb} {params}: {error}");
        let said = error["message"].as_str().unwrap();
        assert!(["\"news\"", "\"feed\"", "\"notifications\""].iter().all(|name| said.contains(name)), "{said}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn each_channel_is_subscribed_once_and_unsubscribing_one_leaves_the_other_alone() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    let likes = rig.head_in(LIKES, "ann").await;
    let mut phone = subscribed(&rig, "ann").await;
    for channel in CHANNELS {
        assert_eq!(phone.subscribe(json!({"channel": channel})).await["error"]["code"], 105);
    }
    assert_eq!(phone.ask("unsubscribe", json!({"channel": "notifications"})).await["unsubscribe"], json!({}));
    rig.like("bob", 2).await;
    rig.grown_in(LIKES, "ann", likes.offset + 2).await;
    rig.post("bob", 1).await;
    assert_eq!(phone.pushed().await.0, "feed", "nobody is told of likes");
    assert_eq!(phone.subscribe(json!({"channel": "feed"})).await["error"]["code"], 105);
    assert_eq!(phone.subscribe(from("notifications", &likes)).await["subscribe"]["recovered"], true);
    rig.post("bob", 1).await;
    let [posts, liked] = offsets(&mut phone, 3).await;
    assert_eq!((posts.len(), liked), (1, vec![likes.offset + 1, likes.offset + 2]));
    rig.stop().await;
}

#[tokio::test]
async fn history_pages_and_presence_are_those_of_the_channel() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 3).await;
    rig.like("bob", 2).await;
    let heads = [rig.grown("ann", 3).await, rig.grown_in(LIKES, "ann", 2).await];
    let mut phone = rig.connected("ann", "phone").await;
    let _tablet = rig.connected("ann", "tablet").await;
    for (channel, head) in CHANNELS.iter().zip(heads) {
        let history = phone.ask("history", json!({"channel": channel, "limit": 100})).await["history"].take();
        assert_eq!((&history["offset"], &history["epoch"]), (&json!(head.offset), &json!(head.epoch.to_string())));
        assert_eq!(history["publications"].as_array().unwrap().len() as u64, head.offset);
        let page =
            phone.ask("rpc", json!({"method": "page", "data": {"channel": channel}})).await["rpc"]["data"].take();
        assert_eq!(page["position"], json!({"epoch": head.epoch.to_string(), "offset": head.offset}));
        assert_eq!(page["items"].as_array().unwrap().len() as u64, head.offset, "{channel}");
        let stats = phone.ask("presence_stats", json!({"channel": channel})).await["presence_stats"].take();
        assert_eq!(stats, json!({"num_clients": 1, "num_users": 1}));
    }
    rig.stop().await;
}

#[tokio::test]
async fn i10_what_is_acknowledged_in_each_channel_is_stored_by_itself_and_each_resumes_from_its_own() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    rig.like("bob", 9).await;
    let heads = [rig.grown("ann", 9).await, rig.grown_in(LIKES, "ann", 9).await];
    let ack = |channel: &str, at: Position| json!({"method": "ack", "data": {"channel": channel, "offset": at.offset, "epoch": at.epoch.to_string()}});
    let mut phone = subscribed(&rig, "ann").await;
    let acked = [Position { offset: 7, ..heads[0] }, Position { offset: 3, ..heads[1] }];
    for (channel, at) in CHANNELS.iter().zip(acked) {
        assert_eq!(phone.ask("rpc", ack(channel, at)).await["rpc"]["data"], json!({}));
        assert_eq!(phone.refused("rpc", ack(channel, Position { offset: 10, ..at })).await, 107, "{channel}");
    }
    // What a channel was told stays when it is left.
    phone.ask("unsubscribe", json!({"channel": "notifications"})).await;
    rig.hang_up(phone, "ann").await;
    for (feed, at) in [FeedId::MAIN, LIKES].into_iter().zip(acked) {
        assert_eq!(rig.stored_in(feed, "ann", "phone").await, Some(at));
    }
    let mut again = rig.connected("ann", "phone").await;
    for (channel, at) in CHANNELS.iter().zip(acked) {
        let stored = json!({"channel": channel, "data": {"deliver": "items", "resume": "stored"}});
        let reply = again.subscribe(stored).await["subscribe"].take();
        assert_eq!((&reply["recovered"], &reply["offset"]), (&json!(true), &json!(at.offset)), "{channel}");
    }
    assert_eq!(offsets(&mut again, 8).await, [vec![8, 9], (4..=9).collect()]);
    rig.stop().await;
}

#[tokio::test]
async fn i4_news_that_are_pulled_and_wakes_that_were_lost_are_looked_for_in_every_channel() {
    let (rig, lines) = over_lines().await;
    rig.classify("star", Class::Pull).await;
    rig.follow("ann", "star").await;
    rig.follow("ann", "bob").await;
    let mut phone = subscribed(&rig, "ann").await;
    for feed in [LIKES, FeedId::MAIN] {
        rig.publish(feed, "star", ["1".to_owned()].into_iter()).await;
        assert_eq!(phone.pushed().await.0, CHANNELS[usize::from(feed == LIKES)]);
    }
    lines.cut.store(true, Ordering::Release);
    let clock = Clock::stop();
    rig.post("bob", 1).await;
    rig.like("bob", 1).await;
    rig.grown("ann", 2).await;
    rig.grown_in(LIKES, "ann", 2).await;
    lines.tell("node", Heard::Missed);
    assert_eq!(in_time(offsets(&mut phone, 2)).await, [vec![2], vec![2]]);
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i4_i9_a_channel_left_and_begun_anew_while_its_read_hangs_misses_nothing_and_nor_does_the_other() {
    let (rig, inboxes) = counted().await;
    rig.follow("ann", "bob").await;
    let likes = rig.head_in(LIKES, "ann").await;
    let mut phone = subscribed(&rig, "ann").await;
    for round in 1..=5 {
        inboxes.reads.lock().clear();
        inboxes.gate.set(Weather::Hanging);
        rig.like("bob", 1).await;
        until(|| !inboxes.reads.lock().is_empty()).await;
        rig.post("bob", 1).await;
        let left = json!({"id": 1, "unsubscribe": {"channel": "notifications"}});
        let mut begun = from("notifications", &Position { offset: likes.offset + round - 1, ..likes });
        begun["data"] = json!({"deliver": "items"});
        phone.send(format!("{left}\n{}", json!({"id": 2, "subscribe": begun}))).await;
        assert_eq!(phone.line().await, json!({"id": 1, "unsubscribe": {}}));
        inboxes.gate.set(Weather::Fair);
        let mut lines = [phone.line().await, phone.line().await, phone.line().await];
        let at =
            |lines: &[Value], what: &Value| lines.iter().position(|line| line["push"]["channel"] == *what).unwrap();
        let reply = lines.iter().position(|line| line["id"] == 2).unwrap();
        assert_eq!(lines[reply]["subscribe"]["recovered"], true);
        let liked = at(&lines, &json!("notifications"));
        assert!(reply < liked, "nothing comes before the reply: {lines:?}");
        assert_eq!(lines[liked]["push"]["pub"]["offset"].take(), likes.offset + round);
        let posted = at(&lines, &json!("feed"));
        assert_eq!(lines[posted]["push"]["pub"]["offset"].take(), round);
    }
    rig.stop().await;
}
