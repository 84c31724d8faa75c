//! Devices and backends on one node, sessions on another.

use std::sync::atomic::Ordering;

use feedgate_common::doorbell::Heard;
use serde_json::{Value, json};

use super::leasing::{Two, two};
use super::phone::{Next, Phone};
use super::rig::{http_at, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i17_of_two_connections_racing_at_two_nodes_exactly_one_lives_and_the_other_gets_4500() {
    let Two { rig, other, .. } = two(|_| ()).await;
    let connect = json!({"id": 1, "connect": {"token": rig.token("ann", Some("phone"), 600)}}).to_string();
    let ann = rig.number("ann").await;
    for race in 0..100 {
        let (mut a, mut b) = (Phone::open(rig.addr).await, Phone::open(other).await);
        tokio::join!(a.send(connect.clone()), b.send(connect.clone()));
        let (mut winner, loser) = within(async {
            let first = {
                let (a_lives, b_lives) = (a.outlives(), b.outlives());
                tokio::select! {
                    end = a_lives => ("b", end),
                    end = b_lives => ("a", end),
                }
            };
            (if first.0 == "a" { a } else { b }, first.1)
        })
        .await;
        assert_eq!(loser, Next::Closed(4500), "race {race}");
        assert_eq!(winner.ask("ping", json!({})).await["ping"], json!({}), "race {race}");
        assert_eq!(rig.sessions.list(ann).await.unwrap().len(), 1, "race {race}");
        winner.ws.close(None).await.unwrap();
    }
    rig.stop().await;
}

#[tokio::test]
async fn sessions_of_all_nodes_are_listed_by_any_and_ended_from_any() {
    let Two { rig, other, .. } = two(|_| ()).await;
    let mut phone = rig.connected("ann", "phone").await;
    let mut tablet = rig.connected_at(other, "ann", "tablet").await;
    for addr in [rig.addr, other] {
        let listed: Value = serde_json::from_str(&http_at(addr, "GET /v1/users/ann/sessions", "").await.1).unwrap();
        let at = |n: usize| (listed["sessions"][n]["device"].clone(), listed["sessions"][n]["node"].clone());
        assert_eq!((at(0), at(1)), ((json!("phone"), json!("node")), (json!("tablet"), json!("other"))));
    }
    let present = phone.ask("presence", json!({"channel": "feed"})).await["presence"]["presence"].take();
    assert_eq!(present["other-1"]["conn_info"]["device"], "tablet", "{present}");

    assert_eq!(http_at(other, "DELETE /v1/users/ann/sessions/phone", "").await.0, 204);
    assert_eq!(phone.closed().await, Next::Closed(3503));
    for addr in [rig.addr, other] {
        assert_eq!(http_at(addr, "DELETE /v1/users/ann/sessions/phone", "").await.0, 404);
    }
    assert_eq!(tablet.ask("ping", json!({})).await["ping"], json!({}), "whose connection has the same number");
    rig.stop().await;
}

#[tokio::test]
async fn i4_when_wakes_may_have_been_lost_every_session_looks_at_its_log() {
    let Two { rig, lines, .. } = two(|_| ()).await;
    let mut phones = vec![];
    for n in 0..40 {
        rig.follow(&format!("reader-{n}"), "bob").await;
        let mut phone = rig.connected(&format!("reader-{n}"), "phone").await;
        let opened = phone.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();
        phones.push((phone, opened));
    }
    lines.cut.store(true, Ordering::Release);
    rig.post("bob", 1).await;
    for (n, (_, opened)) in phones.iter().enumerate() {
        rig.grown(&format!("reader-{n}"), opened + 1).await;
    }
    lines.tell("node", Heard::Missed);
    for (phone, opened) in &mut phones {
        assert_eq!(phone.publication().await.0, *opened + 1);
    }
    rig.stop().await;
}

#[tokio::test]
async fn i17_when_closes_may_have_been_lost_every_session_that_was_replaced_is_closed() {
    let Two { rig, other, lines, .. } = two(|settings| settings.reread_interval_secs = 3600).await;
    let mut older = rig.connected("ann", "phone").await;
    let mut tablet = rig.connected("ann", "tablet").await;
    lines.cut.store(true, Ordering::Release);
    let mut newer = rig.connected_at(other, "ann", "phone").await;
    lines.tell("node", Heard::Missed);
    assert_eq!(older.closed().await, Next::Closed(4500));
    for phone in [&mut tablet, &mut newer] {
        assert_eq!(phone.ask("ping", json!({})).await["ping"], json!({}), "nobody has replaced it");
    }
    rig.stop().await;
}
