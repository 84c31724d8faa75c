//! What a device has acknowledged, and what it may claim.

use feedgate_common::{Epoch, Position};
use serde_json::{Value, json};

use super::clock::Clock;
use super::rig::Rig;

fn ack(offset: impl Into<Value>, epoch: impl ToString) -> Value {
    json!({"method": "ack", "data": {"offset": offset.into(), "epoch": epoch.to_string()}})
}

#[tokio::test]
async fn i12_no_lie_of_a_device_damages_its_stored_position() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    let head = rig.grown("ann", 9).await;
    let mut phone = rig.connected("ann", "phone").await;
    let truth = Position { offset: 5, ..head };
    assert_eq!(phone.ask("rpc", ack(5, head.epoch)).await["rpc"]["data"], json!({}));
    let lies = [
        ack(head.offset + 1, head.epoch),
        ack(u64::MAX, head.epoch),
        ack(6, head.epoch.0 - 1),
        ack(6, head.epoch.0 + 1),
        ack(6, "_"),
        ack(-1, head.epoch),
        ack("6", head.epoch),
        json!({"method": "ack", "data": {"offset": 1e300, "epoch": head.epoch.to_string()}}),
        json!({"method": "ack"}),
    ];
    for lie in lies {
        assert_eq!(phone.refused("rpc", lie.clone()).await, 107, "{lie}");
    }
    phone
        .send(format!(
            r#"{{"id":99,"rpc":{{"method":"ack","data":{{"offset":18446744073709551616,"epoch":"{}"}}}}}}"#,
            head.epoch
        ))
        .await;
    assert_eq!(phone.line().await["error"]["code"], 107);
    assert_eq!(phone.ask("rpc", ack(2, head.epoch)).await["rpc"]["data"], json!({}), "an older truth is no lie");
    rig.hang_up(phone, "ann").await;
    assert_eq!(rig.stored("ann", "phone").await, Some(truth));
    rig.stop().await;
}

#[tokio::test]
async fn i12_devices_of_one_user_acknowledge_independently() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    let head = rig.grown("ann", 9).await;
    for (device, offset) in [("phone", 3), ("tablet", 7)] {
        let mut socket = rig.connected("ann", device).await;
        socket.ask("rpc", ack(offset, head.epoch)).await;
        rig.hang_up(socket, "ann").await;
    }
    for (device, offset) in [("phone", 3), ("tablet", 7)] {
        assert_eq!(rig.stored("ann", device).await, Some(Position { offset, ..head }));
    }
    rig.stop().await;
}

#[tokio::test]
async fn a_device_that_subscribes_right_after_its_ack_starts_from_there_and_is_told_the_position_as_data() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    let head = rig.grown("ann", 9).await;
    let clock = Clock::stop();
    let mut phone = rig.connected("ann", "phone").await;
    phone.ask("rpc", ack(4, head.epoch)).await;
    let reply = phone.subscribe(json!({"data": {"deliver": "items", "resume": "stored"}})).await["subscribe"].take();
    assert_eq!((&reply["recovered"], &reply["offset"]), (&json!(true), &json!(4)));
    assert_eq!(reply["data"], json!({"epoch": head.epoch.to_string(), "offset": 4}));
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_device_resumes_from_what_it_recovered_acknowledged_or_named_in_history_whichever_is_greatest() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    let head = rig.grown("ann", 9).await;
    let epoch = head.epoch.to_string();
    let mut phone = rig.connected("ann", "phone").await;
    phone.subscribe(json!({"recover": true, "offset": 2, "epoch": epoch})).await;
    let since = json!({"channel": "feed", "since": {"offset": 6, "epoch": epoch}, "limit": 1});
    phone.ask("history", since).await;
    phone.ask("rpc", ack(4, head.epoch)).await;
    rig.hang_up(phone, "ann").await;

    let mut again = rig.connected("ann", "phone").await;
    let reply = again.subscribe(json!({"data": {"deliver": "items", "resume": "stored"}})).await["subscribe"].take();
    assert_eq!((reply["offset"].as_u64(), &reply["recovered"]), (Some(6), &json!(true)));
    assert_eq!(again.publication().await.0, 7);
    rig.stop().await;
}

#[tokio::test]
async fn a_device_without_an_id_is_never_stored() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 2).await;
    let head = rig.grown("ann", 2).await;
    let mut phone = rig.socket().await;
    let client = phone.connect(&rig.token("ann", None, 600)).await["connect"]["client"].as_str().unwrap().to_owned();
    assert_eq!(phone.ask("rpc", ack(2, head.epoch)).await["rpc"]["data"], json!({}));
    rig.hang_up(phone, "ann").await;
    assert_eq!(rig.stored("ann", &client).await, None);
    assert_ne!(head.epoch, Epoch(0));
    rig.stop().await;
}

#[tokio::test]
async fn in_notify_mode_a_recover_offset_is_what_the_device_was_told_and_not_what_it_has() {
    let rig = Rig::start().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 9).await;
    let head = rig.grown("ann", 9).await;
    let epoch = head.epoch.to_string();
    let mut phone = rig.connected("ann", "phone").await;
    phone.ask("rpc", ack(3, head.epoch)).await;
    // Told of 9, it lost the connection before it had fetched: the SDK comes back with the offset of the push.
    let told = json!({"recover": true, "offset": head.offset, "epoch": epoch, "data": {"deliver": "notify"}});
    assert_eq!(phone.subscribe(told).await["subscribe"]["recovered"], true);
    rig.hang_up(phone, "ann").await;
    assert_eq!(rig.stored("ann", "phone").await, Some(Position { offset: 3, ..head }), "late, never early");
    rig.stop().await;
}
