//! Items of authors who are pulled reach every follower who is online, once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use feedgate_common::change::Class;
use feedgate_common::doorbell::Heard;
use serde_json::{Value, json};

use super::clock::Clock;
use super::lines::Lines;
use super::phone::Phone;
use super::rig::{Rig, feeds, http_at, until};

/// A node that knows of pull records only what it hears on lines of its own, or asks for.
pub(crate) async fn over_lines() -> (Rig, Arc<Lines>) {
    let mut lines = None;
    let rig = Rig::of(|parts, stores| {
        let between: &Arc<Lines> = lines.get_or_insert_with(|| Lines::over(stores.doorbell.clone()));
        parts.doorbell = between.of("node");
        parts.feeds = Arc::new(feeds(stores, stores.inboxes.clone()));
    });
    (rig.await, lines.unwrap())
}

/// The bodies of the next `count` publications, which are adds without a gap between their offsets.
async fn bodies(phone: &mut Phone, after: &mut u64, count: usize) -> Vec<Value> {
    let mut bodies = vec![];
    for _ in 0..count {
        let (offset, change) = phone.publication().await;
        assert_eq!((offset, &change["op"]), (*after + 1, &json!("add")), "{change}");
        *after = offset;
        bodies.push(change["item"]["body"].clone());
    }
    bodies
}

/// Asks for what came after `after` until it holds `count` changes; their bodies. Nobody may be told of more.
async fn fetched(phone: &mut Phone, position: &mut (String, u64), count: usize) -> Vec<Value> {
    let mut bodies = vec![];
    while bodies.len() < count {
        let (at, data) = phone.publication().await;
        assert_eq!(data, json!({"op": "behind"}));
        let since = json!({"epoch": position.0, "offset": position.1});
        let reply = phone.ask("history", json!({"channel": "feed", "limit": 100, "since": since})).await;
        for publication in reply["history"]["publications"].as_array().unwrap() {
            position.1 += 1;
            assert_eq!(publication["offset"], json!(position.1));
            bodies.push(publication["data"]["item"]["body"].clone());
        }
        assert!(position.1 >= at, "what it was told of is there");
    }
    bodies
}

/// What must come while the clock stands.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        () = until(|| false) => unreachable!(),
    }
}

fn sorted(mut bodies: Vec<Value>) -> Vec<String> {
    let mut texts: Vec<String> = bodies.drain(..).map(|body| body.to_string()).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn i3_pulled_and_pushed_items_reach_every_device_live_and_once_in_both_ways_to_be_told() {
    let rig = Rig::with(|settings| settings.pull_repair_interval_secs = 3600).await;
    rig.classify("star", Class::Pull).await;
    for (reader, author) in [("ann", "star"), ("ann", "bob"), ("joe", "star"), ("joe", "bob")] {
        rig.follow(reader, author).await;
    }
    rig.post("bob", 1).await;
    let mut head = rig.grown("ann", 1).await.offset;
    rig.grown("joe", 1).await;
    // A reader each: neither takes in for the other.
    let (mut phone, mut tablet) = (rig.connected("ann", "phone").await, rig.connected("joe", "tablet").await);
    phone.subscribe(json!({})).await;
    let opened = tablet.ask("subscribe", json!({"channel": "feed"})).await["subscribe"].take();
    let mut fetched_to = (opened["epoch"].as_str().unwrap().to_owned(), opened["offset"].as_u64().unwrap());
    for round in 0..20 {
        let words = |author: &str, n: usize| json!(format!("{author} {round} {n}"));
        let star: Vec<Value> = (0..3).map(|n| words("star", n)).collect();
        let bob: Vec<Value> = (0..2).map(|n| words("bob", n)).collect();
        let texts = |bodies: &[Value]| bodies.iter().map(Value::to_string).collect::<Vec<_>>().into_iter();
        tokio::join!(rig.post_bodies("star", texts(&star)), rig.post_bodies("bob", texts(&bob)));
        let all = sorted([star.clone(), bob].concat());
        let live = bodies(&mut phone, &mut head, 5).await;
        let of_star: Vec<Value> =
            live.iter().filter(|body| body.as_str().unwrap().starts_with("star")).cloned().collect();
        assert_eq!(of_star, star, "in the author's order");
        assert_eq!(sorted(live), all);
        assert_eq!(sorted(fetched(&mut tablet, &mut fetched_to, 5).await), all);
    }
    assert_eq!(rig.head("ann").await.offset, head, "nothing came twice");
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_device_that_was_away_finds_what_its_reader_pulls_and_its_edits_and_deletes_follow_live() {
    let rig = Rig::start().await;
    rig.classify("star", Class::Pull).await;
    rig.follow("ann", "star").await;
    rig.post("star", 1).await;
    let mut phone = rig.connected("ann", "phone").await;
    let opened = phone.subscribe(json!({})).await["subscribe"].take();
    drop(phone);
    rig.post("star", 250).await;
    let mut phone = rig.connected("ann", "phone").await;
    let back = json!({"recover": true, "offset": opened["offset"], "epoch": opened["epoch"]});
    assert_eq!(phone.subscribe(back).await["subscribe"]["recovered"], true);
    let mut head = opened["offset"].as_u64().unwrap();
    let missed = bodies(&mut phone, &mut head, 250).await;
    assert_eq!(missed, (0..250).map(|n| json!(n)).collect::<Vec<_>>());

    let (_, accepted) = http_at(rig.addr, "POST /v1/items", r#"{"author":"star","body":"now"}"#).await;
    let id = serde_json::from_str::<Value>(&accepted).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(bodies(&mut phone, &mut head, 1).await, ["now"]);
    assert_eq!(http_at(rig.addr, &format!("PATCH /v1/items/{id}"), r#"{"body":"then"}"#).await.0, 200);
    let (offset, change) = phone.publication().await;
    assert_eq!((offset, &change["op"], &change["item"]["body"]), (head + 1, &json!("update"), &json!("then")));
    assert_eq!(http_at(rig.addr, &format!("DELETE /v1/items/{id}"), "").await.0, 204);
    assert_eq!(phone.publication().await, (head + 2, json!({"op": "delete", "item_id": id})));
    rig.stop().await;
}

#[tokio::test]
async fn everyone_who_is_online_gets_the_items_of_an_author_whom_everyone_follows_unless_they_say_otherwise() {
    let rig = Rig::start().await;
    rig.classify("news", Class::Everyone).await;
    rig.follow("joe", "bob").await;
    rig.mute("joe", "news").await;
    rig.grown("joe", 0).await;
    let (mut ann, mut joe) = (rig.connected("ann", "phone").await, rig.connected("joe", "phone").await);
    let mut anns = ann.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
    joe.subscribe(json!({})).await;
    rig.post("news", 3).await;
    assert_eq!(bodies(&mut ann, &mut anns, 3).await, [0, 1, 2].map(|n| json!(n)));
    rig.post_bodies("bob", [r#""for joe""#.to_owned()].into_iter()).await;
    loop {
        let (_, change) = joe.publication().await;
        if change["op"] == "add" {
            assert_eq!(change["item"]["body"], "for joe");
            break;
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn i4_when_every_broadcast_is_lost_the_next_question_brings_the_items() {
    // It stands from the start, so that questions are due as it is put forward and not while it is.
    let clock = Clock::stop();
    let (rig, lines) = over_lines().await;
    rig.classify("star", Class::Pull).await;
    rig.follow("ann", "star").await;
    rig.follow("joe", "star").await;
    let (mut phone, mut tablet) = (rig.connected("ann", "phone").await, rig.connected("joe", "tablet").await);
    let opened = phone.subscribe(json!({})).await["subscribe"].take();
    let mut head = opened["offset"].as_u64().unwrap();
    let tablets = tablet.ask("subscribe", json!({"channel": "feed"})).await["subscribe"].take();
    let mut fetched_to = (tablets["epoch"].as_str().unwrap().to_owned(), tablets["offset"].as_u64().unwrap());
    lines.cold.store(true, Ordering::Release);
    for round in 0..3 {
        rig.post_bodies("star", (0..4).map(|n| (10 * round + n).to_string())).await;
        let lost = rig.head("ann").await.offset;
        assert_eq!(lost, head, "nobody reads for a broadcast that is lost");
        clock.advance(5).await;
        let expected: Vec<Value> = (0..4).map(|n| json!(10 * round + n)).collect();
        assert_eq!(in_time(bodies(&mut phone, &mut head, 4)).await, expected);
        assert_eq!(in_time(fetched(&mut tablet, &mut fetched_to, 4)).await, expected);
    }
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_node_that_may_have_missed_broadcasts_asks_at_once() {
    let (rig, lines) = over_lines().await;
    rig.classify("star", Class::Pull).await;
    rig.follow("ann", "star").await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut head = phone.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
    lines.cold.store(true, Ordering::Release);
    let clock = Clock::stop();
    rig.post("star", 2).await;
    lines.tell("node", Heard::Missed);
    assert_eq!(in_time(bodies(&mut phone, &mut head, 2)).await, [json!(0), json!(1)]);
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_node_that_begins_knows_how_far_pull_records_go_before_it_serves() {
    let mut rig = Rig::start().await;
    rig.classify("star", Class::Pull).await;
    rig.follow("ann", "star").await;
    let mut phone = rig.connected("ann", "phone").await;
    let opened = phone.subscribe(json!({})).await["subscribe"].take();
    drop(phone);
    rig.post("star", 2).await;
    let later = rig.join("later", |parts, stores| {
        parts.feeds = Arc::new(feeds(stores, stores.inboxes.clone()));
    });
    let later = later.await;
    let mut phone = rig.connected_at(later, "ann", "phone").await;
    let back = json!({"recover": true, "offset": opened["offset"], "epoch": opened["epoch"]});
    assert_eq!(phone.subscribe(back).await["subscribe"]["recovered"], true);
    let mut head = opened["offset"].as_u64().unwrap();
    assert_eq!(bodies(&mut phone, &mut head, 2).await, [json!(0), json!(1)]);
    rig.stop().await;
}
