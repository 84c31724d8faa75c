//! Pings, pongs and tokens that run out.

use serde_json::json;

use super::phone::Next;
use super::rig::Rig;

#[tokio::test]
async fn pings_come_on_time_and_a_device_that_answers_stays() {
    let rig = Rig::with(|settings| (settings.ping_interval_secs, settings.pong_within_secs) = (1, 1)).await;
    let mut phone = rig.connected("ann", "phone").await;
    phone.polite = false;
    for _ in 0..3 {
        assert_eq!(phone.line().await, json!({}));
        phone.send("{}").await;
    }
    assert_eq!(phone.ask("ping", json!({})).await["ping"], json!({}));
    rig.stop().await;
}

#[tokio::test]
async fn a_device_that_does_not_answer_a_ping_is_closed_with_3012() {
    let rig = Rig::with(|settings| (settings.ping_interval_secs, settings.pong_within_secs) = (1, 1)).await;
    let mut phone = rig.connected("ann", "phone").await;
    phone.polite = false;
    assert_eq!(phone.closed().await, Next::Closed(3012));
    rig.stop().await;
}

#[tokio::test]
async fn a_second_pong_for_one_ping_closes_with_3501() {
    let rig = Rig::with(|settings| settings.ping_interval_secs = 1).await;
    let mut phone = rig.connected("ann", "phone").await;
    phone.polite = false;
    assert_eq!(phone.line().await, json!({}));
    phone.send("{}\n{}").await;
    assert_eq!(phone.closed().await, Next::Closed(3501));
    rig.stop().await;
}

#[tokio::test]
async fn a_token_that_runs_out_closes_with_3005_after_its_grace_and_a_refresh_prevents_it() {
    let rig = Rig::with(|settings| settings.refresh_grace_secs = 1).await;
    let (mut lax, mut careful) = (rig.socket().await, rig.socket().await);
    lax.connect(&rig.token("ann", Some("lax"), 1)).await;
    careful.connect(&rig.token("ann", Some("careful"), 1)).await;
    let reply = careful.ask("refresh", json!({"token": rig.token("ann", Some("careful"), 600)})).await;
    assert!(reply["refresh"]["ttl"].as_u64().unwrap() > 590 && reply["refresh"]["client"].is_string(), "{reply}");
    assert_eq!(lax.closed().await, Next::Closed(3005));
    assert_eq!(careful.ask("ping", json!({})).await["ping"], json!({}));
    rig.stop().await;
}

#[tokio::test]
async fn a_refresh_by_another_user_or_device_or_an_old_token_is_refused() {
    let rig = Rig::start().await;
    let mut phone = rig.connected("ann", "phone").await;
    assert_eq!(phone.refused("refresh", json!({"token": rig.token("eve", None, 600)})).await, 103);
    assert_eq!(phone.refused("refresh", json!({"token": rig.token("ann", Some("tablet"), 600)})).await, 103);
    assert_eq!(phone.refused("refresh", json!({"token": rig.token("ann", None, -5)})).await, 109);
    phone.send(json!({"id": 9, "refresh": {"token": "forged"}}).to_string()).await;
    assert_eq!(phone.closed().await, Next::Closed(3500));
    rig.stop().await;
}
