//! What a device may ask, and how it is refused.

use serde_json::json;

use super::rig::Rig;

#[tokio::test]
async fn each_wrong_command_is_refused_by_its_own_number_and_the_connection_stays() {
    let rig = Rig::start().await;
    let mut phone = rig.connected("ann", "phone").await;
    assert_eq!(phone.refused("subscribe", json!({"channel": "news"})).await, 102);
    assert_eq!(phone.refused("rpc", json!({"method": "unheard"})).await, 104);
    assert_eq!(phone.refused("teleport", json!({})).await, 104);
    assert_eq!(phone.refused("publish", json!({"channel": "feed", "data": {}})).await, 103);
    assert_eq!(phone.refused("sub_refresh", json!({"channel": "feed"})).await, 108);
    assert_eq!(phone.refused("rpc", json!({"method": "page", "data": {"limit": 101}})).await, 107);
    assert_eq!(phone.refused("rpc", json!({"method": "page", "data": {"cursor": "AAAA"}})).await, 107);
    assert_eq!(phone.refused("history", json!({"channel": "feed", "since": {"offset": 1, "epoch": "1"}})).await, 112);
    phone.subscribe(json!({})).await;
    assert_eq!(phone.subscribe(json!({})).await["error"]["code"], 105);
    phone.send(json!({"id": 50, "send": {"data": 1}}).to_string()).await;
    assert_eq!(phone.ask("ping", json!({})).await["ping"], json!({}), "send is not answered, ping is");
    rig.stop().await;
}

#[tokio::test]
async fn what_is_sent_in_one_frame_with_connect_is_no_early_command() {
    let rig = Rig::start().await;
    let mut phone = rig.socket().await;
    let connect = json!({"id": 1, "connect": {"token": rig.token("ann", None, 600)}});
    phone
        .send(
            [connect, json!({"send": {"data": 1}}), json!({"id": 2, "ping": {}})]
                .map(|line| line.to_string())
                .join("\n"),
        )
        .await;
    assert!(phone.line().await["connect"]["client"].is_string());
    assert_eq!(phone.line().await, json!({"id": 2, "ping": {}}));
    rig.stop().await;
}

#[tokio::test]
async fn a_token_decides_who_comes_in() {
    let rig = Rig::start().await;
    let mut phone = rig.socket().await;
    assert_eq!(phone.refused("connect", json!({})).await, 101);
    assert_eq!(phone.refused("connect", json!({"token": rig.token("ann", None, -5)})).await, 109);
    phone.connect(&rig.token("ann", None, 600)).await;
    let mut forger = rig.socket().await;
    forger.send(json!({"id": 1, "connect": {"token": "a.b.c"}}).to_string()).await;
    assert_eq!(forger.closed().await, super::phone::Next::Closed(3500));
    rig.stop().await;
}

#[tokio::test]
async fn pages_lead_through_the_feed_by_cursor() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 25).await;
    let head = rig.grown("ann", 25).await;
    let mut phone = rig.connected("ann", "phone").await;
    let (mut bodies, mut cursor) = (vec![], json!(null));
    loop {
        let asked = json!({"method": "page", "data": {"limit": 10, "cursor": cursor}});
        let page = phone.ask("rpc", asked).await["rpc"]["data"].take();
        assert_eq!(page["position"], json!({"epoch": head.epoch.to_string(), "offset": head.offset}));
        bodies.extend(page["items"].as_array().unwrap().iter().map(|item| item["body"].as_u64().unwrap()));
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(bodies, (0..25).rev().collect::<Vec<u64>>());
    rig.stop().await;
}

#[tokio::test]
async fn history_reads_the_log_forward_backward_and_from_a_position() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    let head = rig.grown("ann", 9).await;
    let since = |offset: u64| json!({"offset": offset, "epoch": head.epoch.to_string()});
    let mut phone = rig.connected("ann", "phone").await;
    for (asked, wanted) in [
        (json!({"limit": 3}), vec![1, 2, 3]),
        (json!({"limit": 2, "reverse": true}), vec![head.offset, head.offset - 1]),
        (json!({"since": since(4), "limit": 2}), vec![5, 6]),
        (json!({"since": since(4), "limit": 2, "reverse": true}), vec![3, 2]),
        // Some SDKs leave a zero out.
        (json!({"since": {"epoch": head.epoch.to_string()}, "limit": 2}), vec![1, 2]),
        (json!({"since": since(head.offset), "limit": 5}), vec![]),
        (json!({"since": since(head.offset), "limit": 0}), vec![]),
        (json!({"limit": -1}), (1..=head.offset).collect()),
        (json!({}), vec![]),
    ] {
        let mut params = asked.clone();
        params["channel"] = json!("feed");
        let history = phone.ask("history", params).await["history"].take();
        assert_eq!(
            (history["offset"].as_u64(), &history["epoch"]),
            (Some(head.offset), &json!(head.epoch.to_string()))
        );
        let publications = history["publications"].as_array().unwrap();
        let offsets: Vec<u64> =
            publications.iter().map(|publication| publication["offset"].as_u64().unwrap()).collect();
        assert_eq!(offsets, wanted, "{asked}");
    }
    rig.stop().await;
}

#[tokio::test]
async fn presence_shows_the_users_other_devices_and_stats_count_all() {
    let rig = Rig::start().await;
    let mut phone = rig.connected("ann", "phone").await;
    let _tablet = rig.connected("ann", "tablet").await;
    let _stranger = rig.connected("eve", "phone").await;
    let presence = phone.ask("presence", json!({"channel": "feed"})).await["presence"]["presence"].take();
    let others: Vec<_> = presence.as_object().unwrap().values().map(|other| &other["conn_info"]["device"]).collect();
    assert_eq!(others, [&json!("tablet")]);
    let stats = phone.ask("presence_stats", json!({"channel": "feed"})).await["presence_stats"].take();
    assert_eq!(stats, json!({"num_clients": 1, "num_users": 1}));
    let online = rig.stats().await;
    assert!(online.to_string().contains("\"sessions\":3"), "{online}");
    rig.stop().await;
}

#[tokio::test]
async fn i8_a_page_and_a_history_of_large_items_end_early_and_lead_on() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post_bodies("bob", (0..12).map(|_| format!("\"{}\"", "x".repeat(60_000)))).await;
    let head = rig.grown("ann", 12).await;
    let mut phone = rig.connected("ann", "phone").await;
    let (mut counts, mut cursor) = (vec![], json!(null));
    loop {
        let asked = json!({"method": "page", "data": {"limit": 100, "cursor": cursor}});
        let page = phone.ask("rpc", asked).await["rpc"]["data"].take();
        counts.push(page["items"].as_array().unwrap().len());
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(counts, [5, 5, 2], "a reply ends at the item that brings it to 256 KiB");
    let (mut counts, mut offset) = (vec![], 0);
    while offset < head.offset {
        let since = json!({"offset": offset, "epoch": head.epoch.to_string()});
        let asked = json!({"channel": "feed", "limit": 100, "since": since});
        let history = phone.ask("history", asked).await["history"].take();
        assert_eq!(history["offset"], head.offset, "the head");
        let publications = history["publications"].as_array().unwrap();
        counts.push(publications.len());
        offset = publications.last().unwrap()["offset"].as_u64().unwrap();
    }
    assert_eq!(counts, [5, 5, 2]);
    rig.stop().await;
}
