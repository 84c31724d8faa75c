//! What one device has seen, all devices of the reader know at once: those that want to know it, and nobody else.

use std::sync::atomic::Ordering;

use feedgate_common::Position;
use feedgate_common::doorbell::Heard;
use serde_json::{Value, json};

use super::clock::Clock;
use super::phone::Phone;
use super::pulling::{in_time, over_lines};
use super::rig::{LIKES, Rig, http_at};

fn see(at: Position) -> Value {
    json!({"method": "seen", "data": {"offset": at.offset, "epoch": at.epoch.to_string()}})
}

/// The data of a subscribe that wants to know what is unread.
fn counting(deliver: &str) -> Value {
    json!({"data": {"deliver": deliver, "unread": true}})
}

/// A position as JSON.
fn json_of(at: Position) -> Value {
    serde_json::to_value(at).unwrap()
}

/// What a device is told when so much was seen.
fn told(seen: Position, unread: usize, head: Position) -> Value {
    json!({"op": "seen", "seen": json_of(seen), "unread": unread, "head": head.offset})
}

/// A node where ann follows bob and has nine posts.
async fn nine_posts() -> (Rig, Position) {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    let head = rig.grown("ann", 9).await;
    (rig, head)
}

/// The result of a subscribe.
async fn opened(phone: &mut Phone, how: Value) -> Value {
    phone.subscribe(how).await["subscribe"]["data"].take()
}

#[tokio::test]
async fn what_one_device_has_seen_the_others_are_told_at_once_and_that_one_is_answered() {
    let (mut rig, head) = nine_posts().await;
    let other = rig.join("other", |_, _| ()).await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut tablet = rig.connected("ann", "tablet").await;
    let mut desk = rig.connected_at(other, "ann", "desk").await;
    for device in [&mut phone, &mut tablet, &mut desk] {
        let data = opened(device, counting("items")).await;
        assert_eq!(data, json!({"epoch": head.epoch.to_string(), "offset": 9, "seen": null, "unread": 9, "head": 9}));
    }
    let at = Position { offset: 6, ..head };
    let answer = phone.ask("rpc", see(at)).await["rpc"]["data"].take();
    assert_eq!(answer, json!({"seen": json_of(at), "unread": 3, "position": json_of(head)}));
    for device in [&mut tablet, &mut desk] {
        assert_eq!(device.pushed().await, ("feed".to_owned(), 0, told(at, 3, head)));
    }
    // What was seen before is answered, and nobody is told again: the next thing that each gets is the post.
    for offset in [6, 2, 0] {
        let answer = tablet.ask("rpc", see(Position { offset, ..head })).await["rpc"]["data"].take();
        assert_eq!((&answer["seen"], &answer["unread"]), (&json_of(at), &json!(3)));
    }
    rig.post("bob", 1).await;
    for device in [&mut phone, &mut tablet, &mut desk] {
        assert_eq!(device.publication().await.0, 10);
    }
    // By HTTP, all are told.
    let body = json!({"position": {"epoch": head.epoch.to_string(), "offset": 10}}).to_string();
    let (status, answer) = http_at(other, "PUT /v1/users/ann/seen", &body).await;
    assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()["unread"].as_u64()), (200, Some(0)));
    let all = Position { offset: 10, ..head };
    for device in [&mut phone, &mut tablet, &mut desk] {
        assert_eq!(device.publication().await, (0, told(all, 0, all)));
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_device_that_comes_again_gets_what_is_seen_now_and_goes_on_from_its_own_position() {
    let (rig, head) = nine_posts().await;
    let mut phone = rig.connected("ann", "phone").await;
    opened(&mut phone, counting("items")).await;
    rig.hang_up(phone, "ann").await;
    let mut tablet = rig.connected("ann", "tablet").await;
    tablet.ask("rpc", see(Position { offset: 7, ..head })).await;
    let mut phone = rig.connected("ann", "phone").await;
    let own = json!({
        "recover": true, "offset": 4, "epoch": head.epoch.to_string(), "data": {"deliver": "items", "unread": true}
    });
    let reply = phone.subscribe(own).await["subscribe"].take();
    assert_eq!((&reply["recovered"], &reply["offset"]), (&json!(true), &json!(4)));
    let seen = json_of(Position { offset: 7, ..head });
    assert_eq!(
        reply["data"],
        json!({"epoch": head.epoch.to_string(), "offset": 4, "seen": seen, "unread": 2, "head": 9})
    );
    // Being told in the middle of the catch-up disturbs it not at all.
    tablet.ask("rpc", see(head)).await;
    let (mut offsets, mut unread) = (vec![], None);
    while offsets.len() < 5 || unread.is_none() {
        match phone.publication().await {
            (0, data) => unread = data["unread"].as_u64(),
            (offset, _) => offsets.push(offset),
        }
    }
    assert_eq!((offsets, unread), (vec![5, 6, 7, 8, 9], Some(0)));
    rig.stop().await;
}

#[tokio::test]
async fn in_notify_mode_a_push_says_how_much_is_unread_to_a_device_that_wants_to_know() {
    let (rig, head) = nine_posts().await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut plain = rig.connected("ann", "plain").await;
    assert_eq!(opened(&mut phone, counting("notify")).await["unread"], 9);
    let data = opened(&mut plain, json!({"data": {"deliver": "notify"}})).await;
    assert_eq!(data, json_of(head), "who does not ask gets what it always got");
    plain.ask("rpc", see(Position { offset: 8, ..head })).await;
    assert_eq!(phone.publication().await.1["unread"], 1);
    rig.post("bob", 2).await;
    let (mut last, mut behind) = (json!(null), 0);
    while behind < 11 {
        (behind, last) = phone.publication().await;
    }
    assert_eq!((behind, last), (11, json!({"op": "behind", "unread": 3})));
    // To the other device nobody says what was seen or is unread.
    let mut behind = 0;
    while behind < 11 {
        let (offset, data) = plain.publication().await;
        assert_eq!(data, json!({"op": "behind"}));
        behind = offset;
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_position_that_cannot_be_is_refused_and_changes_nothing() {
    let (rig, head) = nine_posts().await;
    let mut phone = rig.connected("ann", "phone").await;
    phone.ask("rpc", see(Position { offset: 3, ..head })).await;
    let ahead = phone.ask("rpc", see(Position { offset: 10, ..head })).await["error"].take();
    assert_eq!(ahead, json!({"code": 107, "message": "rpc seen: offset 10 is beyond the head, which is 9"}));
    for epoch in [head.epoch.0 - 1, head.epoch.0 + 1] {
        let other = Position { epoch: feedgate_common::Epoch(epoch), offset: 5 };
        assert_eq!(phone.refused("rpc", see(other)).await, 112);
    }
    let asked = phone.ask("rpc", json!({"method": "seen"})).await["rpc"]["data"].take();
    assert_eq!((&asked["seen"]["offset"], &asked["unread"]), (&json!(3), &json!(6)));
    rig.stop().await;
}

#[tokio::test]
async fn each_channel_has_its_own() {
    let (rig, head) = nine_posts().await;
    rig.like("bob", 4).await;
    let likes = rig.grown_in(LIKES, "ann", 4).await;
    let [mut phone, mut tablet] = [rig.connected("ann", "phone").await, rig.connected("ann", "tablet").await];
    assert_eq!(opened(&mut tablet, counting("items")).await["unread"], 9);
    let mut of_likes = counting("items");
    of_likes["channel"] = json!("notifications");
    assert_eq!(opened(&mut tablet, of_likes).await["unread"], 4);
    let data = json!({"channel": "notifications", "offset": likes.offset, "epoch": likes.epoch.to_string()});
    assert_eq!(phone.ask("rpc", json!({"method": "seen", "data": data})).await["rpc"]["data"]["unread"], 0);
    assert_eq!(tablet.pushed().await, ("notifications".to_owned(), 0, told(likes, 0, likes)));
    // Of the other channel there is nothing to tell.
    rig.post("bob", 1).await;
    assert_eq!(tablet.publication().await.0, head.offset + 1);
    rig.stop().await;
}

#[tokio::test]
async fn a_device_that_was_not_told_learns_of_it_when_it_looks() {
    let (rig, lines) = over_lines().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 3).await;
    let head = rig.grown("ann", 3).await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut tablet = rig.connected("ann", "tablet").await;
    opened(&mut tablet, counting("items")).await;
    lines.cut.store(true, Ordering::Release);
    let clock = Clock::stop();
    phone.ask("rpc", see(head)).await;
    lines.tell("node", Heard::Missed);
    assert_eq!(in_time(tablet.publication()).await, (0, told(head, 0, head)));
    drop(clock);
    rig.stop().await;
}
