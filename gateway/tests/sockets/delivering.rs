//! Live push and catch-up.

use feedgate_common::FeedId;
use serde_json::json;

use super::phone::Next;
use super::rig::Rig;

#[tokio::test]
async fn connect_and_subscribe_in_one_frame_are_answered_in_order() {
    let rig = Rig::start().await;
    let mut phone = rig.socket().await;
    let token = rig.token("ann", None, 600);
    phone
        .send(format!(
            "{}\n{}\n",
            json!({"id": 1, "connect": {"token": token, "name": "js"}}),
            json!({"id": 2, "subscribe": {"channel": "feed", "flag": 1, "unknown": {}}}),
        ))
        .await;
    let connect = phone.line().await;
    assert_eq!(connect["id"], 1);
    let connect = &connect["connect"];
    assert_eq!((connect["ping"].as_u64(), connect["pong"].as_bool()), (Some(25), Some(true)));
    assert!(connect["expires"] == true && (300..=600).contains(&connect["ttl"].as_u64().unwrap()), "{connect}");
    let subscribe = phone.line().await;
    assert_eq!(subscribe["id"], 2);
    let subscribe = &subscribe["subscribe"];
    assert!(subscribe["positioned"] == true && subscribe["recoverable"] == true, "{subscribe}");
    assert_eq!(subscribe["recovered"], false);
    assert!(subscribe["epoch"].as_str().is_some_and(|epoch| !epoch.is_empty() && epoch != "_"));
    rig.stop().await;
}

#[tokio::test]
async fn a_post_reaches_every_device_live_each_in_the_way_it_asked_for() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    let (mut phone, mut tablet) = (rig.connected("ann", "phone").await, rig.connected("ann", "tablet").await);
    phone.subscribe(json!({})).await;
    let start = tablet.ask("subscribe", json!({"channel": "feed"})).await["subscribe"]["offset"].as_u64().unwrap();
    rig.post_bodies("bob", [r#"{"text": "hi"}"#.to_owned()].into_iter()).await;
    let head = rig.grown("ann", start + 1).await.offset;
    loop {
        let (offset, data) = phone.publication().await;
        if data["op"] == "add" {
            assert_eq!((offset, &data["item"]["body"]), (head, &json!({"text": "hi"})));
            assert_eq!(data["item"]["author"], "bob");
            break;
        }
    }
    loop {
        let (offset, data) = tablet.publication().await;
        assert_eq!(data, json!({"op": "behind"}));
        if offset == head {
            break;
        }
    }
    rig.stop().await;
}

#[tokio::test]
async fn i9_a_backlog_of_any_length_follows_the_devices_own_position_without_gap_or_duplicate() {
    let rig = Rig::with(|settings| settings.batch = 50).await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 800).await;
    let head = rig.grown("ann", 800).await;
    let mut phone = rig.connected("ann", "phone").await;
    let own = json!({"recover": true, "offset": 3, "epoch": head.epoch.to_string()});
    let reply = phone.subscribe(own).await["subscribe"].take();
    assert_eq!((reply["offset"].as_u64(), &reply["recovered"]), (Some(3), &json!(true)));
    assert_eq!(reply["was_recovering"], true);
    assert!(reply.get("publications").is_none());
    let before = phone.frames;
    for offset in 4..=head.offset {
        assert_eq!(phone.publication().await.0, offset);
    }
    assert!(phone.frames - before <= 17, "many changes per frame: {}", phone.frames - before);
    rig.post("bob", 1).await;
    assert_eq!(phone.publication().await.0, head.offset + 1, "catch-up runs on into live");
    rig.stop().await;
}

#[tokio::test]
async fn i9_a_position_that_is_not_served_resets_or_is_refused_and_never_brings_publications() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 3).await;
    let head = rig.grown("ann", 3).await;
    let epoch = head.epoch.to_string();
    let lost = [
        json!({"recover": true, "offset": 1, "epoch": "999999"}),
        json!({"recover": true, "offset": 1, "epoch": "not ours"}),
        json!({"recover": true, "offset": head.offset + 1, "epoch": epoch}),
        json!({"recover": true, "offset": u64::MAX, "epoch": epoch}),
        json!({"data": {"deliver": "items", "resume": "stored"}}),
    ];
    for (n, from) in lost.into_iter().enumerate() {
        let mut phone = rig.connected("ann", &format!("phone-{n}")).await;
        let reply = phone.subscribe(from.clone()).await["subscribe"].take();
        assert_eq!(reply["recovered"], false, "{from}: {reply}");
        assert_eq!(reply["was_recovering"], true);
        assert_eq!(reply["offset"].as_u64(), Some(head.offset));
        assert_eq!(reply["epoch"], json!(epoch));
        assert!(reply.get("publications").is_none());
        phone.ask("unsubscribe", json!({"channel": "feed"})).await;
        let mut picky = from;
        picky["flag"] = json!(2);
        assert_eq!(phone.subscribe(picky).await["error"]["code"], 112);
        assert_eq!(phone.subscribe(json!({})).await["subscribe"]["recovered"], false, "a refusal leaves room");
    }
    rig.stop().await;
}

#[tokio::test]
async fn i2_i9_posts_racing_a_resume_leave_no_gap_and_no_duplicate_at_the_seam() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 1).await;
    let mut own = rig.grown("ann", 1).await;
    for _ in 0..60 {
        let mut phone = rig.connected("ann", "phone").await;
        let from = json!({"recover": true, "offset": own.offset, "epoch": own.epoch.to_string()});
        let (reply, ()) = tokio::join!(phone.subscribe(from), rig.post("bob", 2));
        assert_eq!(reply["subscribe"]["offset"], json!(own.offset), "{reply}");
        for offset in own.offset + 1..=own.offset + 2 {
            assert_eq!(phone.publication().await.0, offset);
        }
        own.offset += 2;
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_drain_closes_every_connection_with_3001_and_saves_positions() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 2).await;
    let head = rig.grown("ann", 2).await;
    let mut phone = rig.connected("ann", "phone").await;
    phone.subscribe(json!({})).await;
    let ack = json!({"method": "ack", "data": {"offset": head.offset, "epoch": head.epoch.to_string()}});
    assert_eq!(phone.ask("rpc", ack).await["rpc"]["data"], json!({}));
    let mut silent = rig.socket().await;
    rig.begin_stop();
    assert_eq!(phone.closed().await, Next::Closed(3001));
    assert_eq!(silent.closed().await, Next::Closed(3001));
    let sessions = rig.sessions.clone();
    let ann = rig.number("ann").await;
    rig.stop().await;
    let now = feedgate_gateway::clock::now();
    assert_eq!(sessions.position(ann, &"phone".parse().unwrap(), FeedId::MAIN, now).await.unwrap(), Some(head));
    assert_eq!(sessions.list(ann).await.unwrap(), [], "every claim is released");
}

#[tokio::test]
async fn a_body_written_on_several_lines_stays_one_line_of_a_frame() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    let mut phone = rig.connected("ann", "phone").await;
    let opened = phone.subscribe(json!({})).await["subscribe"].take();
    rig.post_bodies("bob", ["{\n  \"text\":\r\n\t\"a\\nb\"\n}".to_owned()].into_iter()).await;
    let body = json!({"text": "a\nb"});
    let (offset, change) = phone.publication().await;
    assert_eq!((offset, &change["item"]["body"]), (opened["offset"].as_u64().unwrap() + 1, &body));
    let page = phone.ask("rpc", json!({"method": "page"})).await;
    assert_eq!(page["rpc"]["data"]["items"][0]["body"], body);
    let history = phone.ask("history", json!({"channel": "feed", "limit": 1, "reverse": true})).await;
    assert_eq!(history["history"]["publications"][0]["data"]["item"]["body"], body);
    rig.stop().await;
}

#[tokio::test]
async fn a_subscription_begun_anew_in_the_middle_of_catch_up_gets_nothing_of_the_one_before() {
    let rig = Rig::with(|settings| settings.batch = 10).await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 300).await;
    let epoch = rig.grown("ann", 300).await.epoch.to_string();
    let mut phone = rig.connected("ann", "phone").await;
    let subscribe = |id: u64, offset: u64| {
        let from =
            json!({"channel": "feed", "recover": true, "offset": offset, "epoch": epoch, "data": {"deliver": "items"}});
        json!({"id": id, "subscribe": from})
    };
    for turn in 1..=30 {
        let unsubscribe = json!({"id": 2 * turn, "unsubscribe": {"channel": "feed"}});
        let begin = subscribe(2 * turn + 1, turn);
        phone.send(format!("{unsubscribe}\n{begin}")).await;
        while phone.line().await["id"] != 2 * turn {}
        let reply = phone.line().await;
        assert_eq!((&reply["id"], &reply["subscribe"]["offset"]), (&json!(2 * turn + 1), &json!(turn)), "{reply}");
        assert_eq!(phone.publication().await.0, turn + 1);
    }
    for offset in 32..=300 {
        assert_eq!(phone.publication().await.0, offset);
    }
    rig.stop().await;
}
