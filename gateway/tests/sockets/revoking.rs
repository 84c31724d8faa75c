//! Tokens that are revoked: their sessions end on every node, and they open nothing any more.

use serde_json::json;

use super::clock::Clock;
use super::phone::{Next, Phone};
use super::rig::Rig;

#[tokio::test]
async fn a_revocation_ends_the_users_sessions_on_every_node_and_refuses_their_tokens() {
    let mut rig = Rig::start().await;
    let there = rig.join("other", |_, _| ()).await;
    let old = rig.token("ann", None, 600);
    let mut here = rig.connected("ann", "phone").await;
    let mut elsewhere = rig.connected_at(there, "ann", "tablet").await;
    let mut bystander = rig.connected_at(there, "bob", "phone").await;

    assert_eq!(rig.http("POST /v1/users/ann/revoke").await.0, 204);
    assert_eq!([here.closed().await, elsewhere.closed().await], [Next::Closed(3005), Next::Closed(3005)]);
    for node in [rig.addr, there] {
        assert_eq!(Phone::open(node).await.refused("connect", json!({"token": old})).await, 109);
        rig.connected_at(node, "ann", "phone").await;
    }
    assert_eq!(bystander.ask("ping", json!({})).await["ping"], json!({}));
    rig.stop().await;
}

#[tokio::test]
async fn a_revocation_that_no_node_was_told_of_is_found_within_seconds() {
    let rig = Rig::start().await;
    let mut phone = rig.connected("ann", "phone").await;
    let clock = Clock::stop();
    rig.revoke_in_silence("ann").await;
    clock.advance(5).await;
    assert_eq!(phone.closed().await, Next::Closed(3005));
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_token_from_before_the_revocation_is_no_refresh_either() {
    let rig = Rig::start().await;
    let old = rig.token("ann", None, 600);
    assert_eq!(rig.http("POST /v1/users/ann/revoke").await.0, 204);
    let mut phone = rig.connected("ann", "phone").await;
    assert_eq!(phone.refused("refresh", json!({"token": old})).await, 109);
    let new = rig.token("ann", None, 600);
    assert_eq!(phone.ask("refresh", json!({"token": new})).await["refresh"]["expires"], json!(true));
    rig.stop().await;
}
