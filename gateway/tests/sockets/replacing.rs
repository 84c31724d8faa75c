//! The newest connection of a device wins.

use serde_json::json;

use super::phone::Next;
use super::rig::{Rig, within};

#[tokio::test]
async fn i17_the_older_connection_is_closed_with_4500_and_changes_nothing_any_more() {
    // A position that is refused would end the older connection too, a second later.
    let rig = Rig::with(|settings| settings.save_interval_secs = 3600).await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 5).await;
    let head = rig.grown("ann", 5).await;
    let mut older = rig.connected("ann", "phone").await;
    older.ask("rpc", json!({"method": "ack", "data": {"offset": 1, "epoch": head.epoch.to_string()}})).await;
    let mut newer = rig.connected("ann", "phone").await;
    assert_eq!(older.closed().await, Next::Closed(4500));
    newer.subscribe(json!({})).await;
    rig.post("bob", 1).await;
    assert_eq!(newer.publication().await.0, head.offset + 1);
    let listed = rig.sessions.list(rig.number("ann").await).await.unwrap();
    assert_eq!(listed.len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn i17_of_two_connections_racing_200_times_exactly_one_lives_and_the_other_gets_4500() {
    let rig = Rig::start().await;
    let token = rig.token("ann", Some("phone"), 600);
    let ann = rig.number("ann").await;
    for race in 0..200 {
        let (mut a, mut b) = (rig.socket().await, rig.socket().await);
        let connect = json!({"id": 1, "connect": {"token": token}}).to_string();
        tokio::join!(a.send(connect.clone()), b.send(connect));
        // The loser may or may not have heard that it was connected before it was replaced.
        let (winner, loser) = within(async {
            let (a_lives, b_lives) = (a.outlives(), b.outlives());
            tokio::select! {
                end = a_lives => ("b", end),
                end = b_lives => ("a", end),
            }
        })
        .await;
        assert_eq!(loser, Next::Closed(4500), "race {race}");
        let mut winner = if winner == "a" { a } else { b };
        assert_eq!(winner.ask("ping", json!({})).await["ping"], json!({}), "race {race}");
        assert_eq!(rig.sessions.list(ann).await.unwrap().len(), 1, "race {race}");
        winner.ws.close(None).await.unwrap();
        winner.closed().await;
    }
    within(async {
        while rig.stats().await.to_string().contains("\"sessions\":1") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    rig.stop().await;
}

#[tokio::test]
async fn a_kick_by_http_closes_the_devices_socket_with_3503_and_no_other() {
    let rig = Rig::start().await;
    let (mut phone, mut tablet) = (rig.connected("ann", "phone").await, rig.connected("ann", "tablet").await);
    let mut stranger = rig.connected("eve", "phone").await;
    phone.subscribe(json!({})).await;
    assert_eq!(rig.http("DELETE /v1/users/ann/sessions/phone").await, (204, String::new()));
    assert_eq!(phone.closed().await, Next::Closed(3503));
    for other in [&mut tablet, &mut stranger] {
        assert_eq!(other.ask("ping", json!({})).await["ping"], json!({}));
    }
    within(async {
        while rig.http("DELETE /v1/users/ann/sessions/phone").await.0 != 404 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    rig.connected("ann", "phone").await;
    rig.stop().await;
}
