//! Devices watch an item: they are told where it stands, then what happens around it, and no more once they may not see
//! it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use feedgate_gateway::clock;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};

use super::clock::Clock;
use super::lines::Lines;
use super::phone::{Next, Phone};
use super::pulling::in_time;
use super::rig::{Rig, http_at};

/// A request of a backend that must succeed; its answer.
async fn call(rig: &Rig, method_and_path: &str, body: Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = http_at(rig.addr, method_and_path, &body).await;
    assert!((200..300).contains(&status), "{method_and_path}: {status} {answer}");
    serde_json::from_str(&answer).unwrap_or_default()
}

/// The id of a new post.
async fn post(rig: &Rig, author: &str) -> String {
    let answer = call(rig, "POST /v1/items", json!({"author": author, "body": {"text": "post"}})).await;
    answer["id"].as_str().unwrap().to_owned()
}

async fn say(rig: &Rig, item: &str, author: &str, text: &str, more: Value) -> String {
    let mut comment = json!({"author": author, "body": {"text": text}});
    comment.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(rig, &format!("POST /v1/items/{item}/comments"), comment).await["id"].as_str().unwrap().to_owned()
}

async fn like(rig: &Rig, item: &str, user: &str) {
    call(rig, &format!("PUT /v1/items/{item}/reactions/like/{user}"), Value::Null).await;
}

/// Subscribes to the item; what the reply says of it.
async fn watch(phone: &mut Phone, item: &str) -> Value {
    let mut reply = phone.ask("subscribe", json!({"channel": format!("item:{item}"), "flag": 1})).await;
    assert!(reply["subscribe"]["id"].is_null() && reply["subscribe"]["recoverable"] == false, "{reply}");
    reply["subscribe"]["data"].take()
}

/// The data of the next push, which is of the item.
async fn news(phone: &mut Phone, item: &str) -> Value {
    let (channel, offset, data) = phone.pushed().await;
    assert_eq!((&*channel, offset), (&*format!("item:{item}"), 0), "{data}");
    data
}

/// The counts that the device is told of, until they are these; how many pushes that took.
async fn until_counts(phone: &mut Phone, item: &str, counts: Value) -> usize {
    let mut pushes = 0;
    loop {
        pushes += 1;
        let data = news(phone, item).await;
        assert_eq!(data["op"], "counts", "{data}");
        if data["counts"] == counts {
            return pushes;
        }
    }
}

#[tokio::test]
async fn s4_a_device_is_told_where_an_item_stands_and_then_its_counts_at_most_once_a_second() {
    let mut rig = Rig::start().await;
    let other = rig.join("other", |_, _| ()).await;
    let item = post(&rig, "bob").await;
    for reader in ["ann", "eve"] {
        rig.follow(reader, "bob").await;
    }
    like(&rig, &item, "ann").await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut desk = rig.connected_at(other, "eve", "desk").await;
    let begins = json!({"id": item, "version": 1, "counts": {"like": 1}, "own": ["like"]});
    assert_eq!(watch(&mut phone, &item).await, begins);
    assert_eq!(watch(&mut desk, &item).await, json!({"id": item, "version": 1, "counts": {"like": 1}, "own": []}));
    let begun = tokio::time::Instant::now();
    for nth in 0..50 {
        like(&rig, &item, &format!("fan-{nth}")).await;
    }
    for device in [&mut phone, &mut desk] {
        let pushes = until_counts(device, &item, json!({"like": 51})).await as u64;
        assert!(pushes <= begun.elapsed().as_secs() + 1, "{pushes} in {:?}", begun.elapsed());
    }
    // A version of its own, with the counts.
    call(&rig, &format!("PATCH /v1/items/{item}"), json!({"body": {"text": "edited"}})).await;
    assert_eq!(news(&mut desk, &item).await, json!({"op": "counts", "counts": {"like": 51}, "version": 2}));
    // Who has left is told nothing more: the next push that comes is of the other item.
    assert_eq!(desk.ask("unsubscribe", json!({"channel": format!("item:{item}")})).await["unsubscribe"], json!({}));
    let next = post(&rig, "bob").await;
    watch(&mut desk, &next).await;
    like(&rig, &item, "zoe").await;
    like(&rig, &next, "zoe").await;
    assert_eq!(until_counts(&mut desk, &next, json!({"like": 1})).await, 1);
    rig.stop().await;
}

#[tokio::test]
async fn s4_comments_are_told_as_they_come_are_edited_and_go_and_not_across_a_block() {
    let rig = Rig::start().await;
    let item = post(&rig, "bob").await;
    for reader in ["ann", "eve"] {
        rig.follow(reader, "bob").await;
    }
    call(&rig, "PUT /v1/users/cid", json!({"name": "Cid"})).await;
    call(&rig, "PUT /v1/users/eve/blocked/cid", Value::Null).await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut blocked = rig.connected("eve", "phone").await;
    for device in [&mut phone, &mut blocked] {
        watch(device, &item).await;
    }
    let first = say(&rig, &item, "cid", "first", json!({})).await;
    let told = news(&mut phone, &item).await;
    let comment = &told["comment"];
    assert_eq!((&told["op"], &comment["id"], &comment["author"]), (&json!("comment"), &json!(first), &json!("cid")));
    assert_eq!((&comment["body"], &comment["version"]), (&json!({"text": "first"}), &json!(1)));
    assert_eq!(told["people"], json!({"cid": {"name": "Cid"}}));
    assert_eq!(until_counts(&mut phone, &item, json!({"comments": 1})).await, 1);
    assert_eq!(until_counts(&mut blocked, &item, json!({"comments": 1})).await, 1, "it counts, and is not shown");

    call(&rig, &format!("PATCH /v1/items/{item}/comments/{first}"), json!({"body": {"text": "better"}})).await;
    let told = news(&mut phone, &item).await;
    assert_eq!((&told["comment"]["body"]["text"], &told["comment"]["version"]), (&json!("better"), &json!(2)));

    let reply = say(&rig, &item, "ann", "reply", json!({"reply_to": first})).await;
    for device in [&mut phone, &mut blocked] {
        let told = news(device, &item).await;
        assert_eq!((&told["comment"]["id"], &told["comment"]["reply_to"]), (&json!(reply), &json!(first)));
        until_counts(device, &item, json!({"comments": 2})).await;
    }
    call(&rig, &format!("DELETE /v1/items/{item}/comments/{first}"), Value::Null).await;
    for device in [&mut phone, &mut blocked] {
        let told = news(device, &item).await;
        assert_eq!((&told["comment"]["deleted"], &told["comment"]["author"]), (&json!(true), &json!(null)));
        until_counts(device, &item, json!({"comments": 1})).await;
    }
    call(&rig, &format!("DELETE /v1/items/{item}/comments/{reply}"), Value::Null).await;
    for device in [&mut phone, &mut blocked] {
        assert_eq!(news(device, &item).await, json!({"op": "uncomment", "id": reply}));
    }
    rig.stop().await;
}

/// The next line, which must end the subscription to the item.
async fn unsubscribed(phone: &mut Phone, item: &str) {
    let line = phone.line().await;
    assert_eq!(
        (&line["push"]["channel"], &line["push"]["unsubscribe"]["code"]),
        (&json!(format!("item:{item}")), &json!(2001)),
        "{line}"
    );
}

#[tokio::test]
async fn s4_who_may_see_an_item_no_more_is_told_and_dropped() {
    let mut rig = Rig::start().await;
    let other = rig.join("other", |_, _| ()).await;
    for reader in ["ann", "eve", "joe", "dan"] {
        rig.follow(reader, "bob").await;
    }
    let item = post(&rig, "bob").await;
    let mut phones = vec![];
    for reader in ["ann", "eve", "joe", "dan"] {
        let mut phone = rig.connected_at(other, reader, "phone").await;
        watch(&mut phone, &item).await;
        phones.push(phone);
    }
    let [ann, eve, joe, dan] = &mut phones[..] else { unreachable!() };
    call(&rig, "DELETE /v1/users/ann/following/bob", Value::Null).await;
    unsubscribed(ann, &item).await;
    call(&rig, "PUT /v1/users/bob/blocked/eve", Value::Null).await;
    unsubscribed(eve, &item).await;
    call(&rig, "PUT /v1/users/joe/muted/bob", Value::Null).await;
    unsubscribed(joe, &item).await;
    for phone in [&mut *ann, eve, joe] {
        assert_eq!(phone.refused("subscribe", json!({"channel": format!("item:{item}")})).await, 102);
    }
    like(&rig, &item, "zoe").await;
    assert_eq!(until_counts(dan, &item, json!({"like": 1})).await, 1, "who sees it stays");
    call(&rig, &format!("DELETE /v1/items/{item}"), Value::Null).await;
    unsubscribed(dan, &item).await;
    assert_eq!(dan.refused("subscribe", json!({"channel": format!("item:{item}")})).await, 102);
    // The connection stands, and so does what else it watches.
    let next = post(&rig, "bob").await;
    watch(dan, &next).await;
    rig.stop().await;
}

#[tokio::test]
async fn s11_a_ranking_opens_an_item_to_watch_until_it_has_left() {
    let mut rig = Rig::start().await;
    let other = rig.join("other", |_, _| ()).await;
    let [item, next] = [post(&rig, "bob").await, post(&rig, "bob").await];
    rig.follow("eve", "bob").await;
    let rank = async |reader: &str, items: &[&str]| {
        let places: Vec<_> = items.iter().map(|id| json!({"id": id, "rank": 1})).collect();
        call(&rig, &format!("PUT /v1/users/{reader}/feeds/picks/ranking"), json!(places)).await;
    };
    let mut phone = rig.connected_at(other, "ann", "phone").await;
    let channel = |item: &str| json!({"channel": format!("item:{item}")});
    assert_eq!(phone.refused("subscribe", channel(&item)).await, 102);
    rank("eve", &[&item]).await;
    assert_eq!(phone.refused("subscribe", channel(&item)).await, 102, "it stands in another reader's ranking");
    rank("ann", &[&item, &next]).await;
    let mut follower = rig.connected_at(other, "eve", "phone").await;
    assert_eq!(watch(&mut phone, &item).await["id"], json!(item));
    watch(&mut phone, &next).await;
    watch(&mut follower, &item).await;
    like(&rig, &item, "zoe").await;
    for device in [&mut phone, &mut follower] {
        assert_eq!(until_counts(device, &item, json!({"like": 1})).await, 1);
    }
    rank("ann", &[&next]).await;
    rank("eve", &[]).await;
    unsubscribed(&mut phone, &item).await;
    assert_eq!(phone.refused("subscribe", channel(&item)).await, 102);
    like(&rig, &item, "joe").await;
    assert_eq!(until_counts(&mut follower, &item, json!({"like": 2})).await, 1, "who follows stays");
    call(&rig, "PUT /v1/users/bob/hidden/ann", Value::Null).await;
    unsubscribed(&mut phone, &next).await;
    rig.stop().await;
}

#[tokio::test]
async fn i18_a_connection_watches_a_bounded_number_of_items_that_its_user_sees_each_once() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut items = vec![];
    for _ in 0..33 {
        items.push(format!("item:{}", post(&rig, "bob").await));
    }
    for channel in &items[..32] {
        let reply = phone.ask("subscribe", json!({ "channel": channel })).await;
        assert!(reply["subscribe"].is_object(), "{reply}");
    }
    let subscribe = |channel: &str| json!({ "channel": channel });
    assert_eq!(phone.refused("subscribe", subscribe(&items[0])).await, 105);
    let refused = phone.ask("subscribe", subscribe(&items[32])).await["error"].take();
    assert_eq!(refused["code"], 106);
    assert!(refused["message"].as_str().unwrap().contains("at most 32 items"), "{refused}");
    phone.ask("unsubscribe", subscribe(&items[7])).await;
    assert!(phone.ask("subscribe", subscribe(&items[32])).await["subscribe"].is_object());
    phone.ask("unsubscribe", subscribe(&items[32])).await;
    let of_others = format!("item:{}", post(&rig, "eve").await);
    for channel in ["item:", "item:x", "item:12", "items:12", &of_others] {
        assert_eq!(phone.refused("subscribe", subscribe(channel)).await, 102, "{channel}");
    }
    assert_eq!(phone.refused("history", subscribe(&items[0])).await, 102, "there is no log of it");
    rig.stop().await;
}

/// A token of this user with 1,500 bytes of claims for others.
fn long_token(user: &str) -> String {
    let claims = json!({"sub": user, "exp": clock::now() / 1000 + 600, "groups": "x".repeat(1500)});
    let key = EncodingKey::from_secret(b"0123456789abcdef0123456789abcdef");
    jsonwebtoken::encode(&Header::default(), &claims, &key).unwrap()
}

#[tokio::test]
async fn a_device_that_comes_back_with_a_long_token_subscribes_to_all_it_may_in_one_frame() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    let token = long_token("ann");
    let mut lines = vec![json!({"id": 1, "connect": {"token": token, "data": {"device_id": "phone"}}}).to_string()];
    let feed = json!({"channel": "feed", "data": {"deliver": "items"}, "recover": true, "epoch": "1", "offset": 1});
    lines.push(json!({"id": 2, "subscribe": feed}).to_string());
    for id in 3..35 {
        let channel = format!("item:{}", post(&rig, "bob").await);
        lines.push(json!({"id": id, "subscribe": {"channel": channel, "flag": 1}}).to_string());
    }
    let frame = lines.join("\n");
    assert!(token.len() > 2000 && frame.len() > 4096, "{} of {}", token.len(), frame.len());
    let mut phone = rig.socket().await;
    phone.send(frame).await;
    let mut answered = vec![];
    while answered.len() < 34 {
        let line = phone.line().await;
        assert!(line["error"].is_null(), "{line}");
        answered.extend(line["id"].as_u64());
    }
    assert_eq!(answered, (1..35).collect::<Vec<_>>());
    let mut greedy = rig.socket().await;
    greedy.send(json!({"id": 1, "connect": {"token": "x".repeat(16 * 1024)}}).to_string()).await;
    assert_eq!(greedy.closed().await, Next::Closed(1009), "the first message has a limit of its own");
    rig.stop().await;
}

#[tokio::test]
async fn s4_what_nobody_could_tell_is_found_by_a_look_and_so_is_who_may_see_it_no_more() {
    let mut lines = None;
    let rig = Rig::of(|parts, stores| {
        let between: &Arc<Lines> = lines.get_or_insert_with(|| Lines::over(stores.doorbell.clone()));
        parts.doorbell = between.of("node");
        (parts.settings.ping_interval_secs, parts.settings.pong_within_secs) = (3600, 3600);
    });
    let (rig, lines) = (rig.await, lines.unwrap());
    rig.follow("ann", "bob").await;
    rig.follow("eve", "bob").await;
    let item = post(&rig, "bob").await;
    let (mut phone, mut other) = (rig.connected("ann", "phone").await, rig.connected("eve", "phone").await);
    for device in [&mut phone, &mut other] {
        watch(device, &item).await;
    }
    lines.cut.store(true, Ordering::Release);
    like(&rig, &item, "zoe").await;
    say(&rig, &item, "zoe", "unheard", json!({})).await;
    let clock = Clock::stop();
    clock.advance(16).await;
    for device in [&mut phone, &mut other] {
        let told = in_time(until_counts(device, &item, json!({"like": 1, "comments": 1}))).await;
        assert_eq!(told, 1);
    }
    clock.advance(7).await;
    for device in [&mut phone, &mut other] {
        assert_eq!(in_time(news(device, &item)).await, json!({"op": "missed"}));
    }
    in_time(call(&rig, "DELETE /v1/users/ann/following/bob", Value::Null)).await;
    clock.advance(61).await;
    in_time(unsubscribed(&mut phone, &item)).await;
    drop(clock);
    lines.cut.store(false, Ordering::Release);
    like(&rig, &item, "joe").await;
    until_counts(&mut other, &item, json!({"like": 2, "comments": 1})).await;
    rig.stop().await;
}
