//! What a node does that has lost its place in the session pool, and how it gets it back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use feedgate_common::UserNo;
use feedgate_common::sessions::{Claim, LEASE};
use feedgate_gateway::Settings;
use serde_json::json;

use super::clock::Clock;
use super::faults::{FaultySessions, Weather};
use super::lines::Lines;
use super::phone::{Next, Phone};
use super::rig::{Rig, until, within};

/// Two nodes over the same stores: `rig.addr`, whose way to the session pool may fail, and another.
pub(crate) struct Two {
    pub(crate) rig: Rig,
    pub(crate) other: SocketAddr,
    pub(crate) sessions: Arc<FaultySessions>,
    pub(crate) lines: Arc<Lines>,
}

pub(crate) async fn two(set: impl Fn(&mut Settings)) -> Two {
    let (mut sessions, mut lines) = (None, None);
    let mut rig = Rig::of(|parts, stores| {
        set(&mut parts.settings);
        let faulty = FaultySessions::over(stores.sessions.clone());
        let between = Lines::over(stores.doorbell.clone());
        (parts.sessions, parts.doorbell) = (faulty.clone(), between.of("node"));
        (sessions, lines) = (Some(faulty), Some(between));
    })
    .await;
    let (sessions, lines) = (sessions.unwrap(), lines.unwrap());
    let other = rig
        .join("other", |parts, _| {
            set(&mut parts.settings);
            parts.doorbell = lines.of("other");
        })
        .await;
    Two { rig, other, sessions, lines }
}

#[tokio::test]
async fn i17_a_node_whose_lease_has_lapsed_pushes_nothing_and_goes_on_with_exactly_the_confirmed() {
    let Two { rig, other, sessions, lines } = two(|_| ()).await;
    rig.follow("ann", "bob").await;
    let (mut older, mut tablet) = (rig.connected("ann", "phone").await, rig.connected("ann", "tablet").await);
    older.subscribe(json!({})).await;
    let start = tablet.subscribe(json!({})).await["subscribe"]["offset"].as_u64().unwrap();

    let clock = Clock::stop();
    sessions.renewals.set(Weather::Hanging);
    clock.advance(LEASE.as_secs()).await;
    lines.cut.store(true, Ordering::Release);
    let mut newer = rig.connected_at(other, "ann", "phone").await;
    newer.subscribe(json!({})).await;
    lines.cut.store(false, Ordering::Release);
    rig.post("bob", 1).await;
    assert_eq!(newer.publication().await.0, start + 1);
    for _ in 0..3 {
        for phone in [&mut older, &mut tablet] {
            phone.send(r#"{"id":1,"ping":{}}"#).await;
            assert_eq!(phone.line().await, json!({"id": 1, "ping": {}}), "it is heard, and told nothing");
        }
        clock.advance(2).await;
    }

    sessions.renewals.set(Weather::Fair);
    clock.advance(1).await;
    assert_eq!(older.next().await, Next::Closed(4500));
    assert_eq!(tablet.publication().await.0, start + 1);
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn i17_a_close_that_was_lost_between_nodes_is_made_up_for_within_the_reread_interval() {
    let Two { rig, other, lines, .. } = two(|settings| settings.reread_interval_secs = 1).await;
    let mut older = rig.connected("ann", "phone").await;
    lines.cut.store(true, Ordering::Release);
    let mut newer = rig.connected_at(other, "ann", "phone").await;
    assert_eq!(older.closed().await, Next::Closed(4500));
    assert_eq!(newer.ask("ping", json!({})).await["ping"], json!({}));
    rig.stop().await;
}

#[tokio::test]
async fn i12_i17_a_replaced_session_that_acknowledges_stores_nothing_and_is_closed() {
    let Two { rig, other, lines, .. } = two(|_| ()).await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 3).await;
    let head = rig.grown("ann", 3).await;
    let mut older = rig.connected("ann", "phone").await;
    lines.cut.store(true, Ordering::Release);
    let _newer = rig.connected_at(other, "ann", "phone").await;
    older.ask("rpc", json!({"method": "ack", "data": {"offset": 2, "epoch": head.epoch.to_string()}})).await;
    assert_eq!(older.closed().await, Next::Closed(4500));
    assert_eq!(rig.stored("ann", "phone").await, None);
    rig.stop().await;
}

#[tokio::test]
async fn i17_a_replaced_session_that_could_not_be_asked_about_is_asked_about_again() {
    let Two { rig, other, sessions, lines } = two(|_| ()).await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 3).await;
    let head = rig.grown("ann", 3).await;
    let mut older = rig.connected("ann", "phone").await;
    lines.cut.store(true, Ordering::Release);
    let _newer = rig.connected_at(other, "ann", "phone").await;
    sessions.confirmations.set(Weather::Failing);
    older.ask("rpc", json!({"method": "ack", "data": {"offset": 2, "epoch": head.epoch.to_string()}})).await;
    within(async {
        until(|| sessions.asked.lock().contains(&"confirm")).await;
    })
    .await;
    sessions.confirmations.set(Weather::Fair);
    assert_eq!(older.closed().await, Next::Closed(4500));
    rig.stop().await;
}

#[tokio::test]
async fn i12_a_session_that_acknowledges_less_than_is_stored_stays() {
    let Two { rig, sessions, .. } = two(|_| ()).await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 3).await;
    let head = rig.grown("ann", 3).await;
    let ack = |offset: u64| json!({"method": "ack", "data": {"offset": offset, "epoch": head.epoch.to_string()}});
    let mut first = rig.connected("ann", "phone").await;
    first.ask("rpc", ack(3)).await;
    within(async {
        while rig.stored("ann", "phone").await != Some(head) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut phone = rig.connected("ann", "phone").await;
    assert_eq!(first.closed().await, Next::Closed(4500));
    phone.ask("rpc", ack(1)).await;
    let stored_and_confirmed = || {
        let asked = sessions.asked.lock();
        asked.ends_with(&["save", "confirm"])
    };
    within(async {
        until(stored_and_confirmed).await;
    })
    .await;
    assert_eq!(phone.ask("ping", json!({})).await["ping"], json!({}));
    rig.stop().await;
}

#[tokio::test]
async fn i17_what_was_left_in_the_pool_by_a_lost_answer_or_a_failed_release_is_gone_within_a_minute() {
    let Two { rig, sessions, .. } = two(|settings| settings.ping_interval_secs = 600).await;
    let users = [rig.number("ann").await, rig.number("bob").await];
    let listed = async || {
        let [ann, bob] = users.map(|user| sessions.inner.list(user));
        (ann.await.unwrap().len(), bob.await.unwrap().len())
    };
    let mut stays = rig.connected("ann", "phone").await;
    let (released, mut claimed) = (rig.nameless("ann").await, rig.socket().await);

    sessions.rest.set(Weather::Failing);
    drop(released);
    until(|| sessions.asked.lock().contains(&"release")).await;
    sessions.rest.set(Weather::Fair);
    sessions.answers.set(Weather::Failing);
    claimed.send(rig.connect("bob", None).to_string()).await;
    assert_eq!(claimed.line().await["error"]["code"], json!(100));
    drop(claimed);
    sessions.answers.set(Weather::Fair);
    assert_eq!(listed().await, (2, 1), "one of each sits nowhere");

    let clock = Clock::stop();
    clock.advance(60).await;
    assert_eq!(listed().await, (1, 0));
    assert_eq!(stays.ask("ping", json!({})).await["ping"], json!({}));
    let asked = sessions.asked.lock().len();
    clock.advance(60).await;
    assert!(!sessions.asked.lock()[asked..].contains(&"list"), "nothing is left to look for");
    drop(clock);
    rig.stop().await;
}

/// Ann's phone is connected at the other node; then the answer to its claim at the first node is lost.
async fn claimed_without_an_answer(two: &Two) -> Phone {
    let older = two.rig.connected_at(two.other, "ann", "phone").await;
    let mut between = two.rig.socket().await;
    two.sessions.answers.set(Weather::Failing);
    between.send(two.rig.connect("ann", Some("phone")).to_string()).await;
    assert_eq!(between.line().await["error"]["code"], json!(100));
    two.sessions.answers.set(Weather::Fair);
    older
}

#[tokio::test]
async fn i17_an_older_connection_ends_at_once_though_one_between_it_and_the_newest_had_no_answer() {
    let two = two(|_| ()).await;
    let mut older = claimed_without_an_answer(&two).await;
    two.lines.cut.store(true, Ordering::Release);
    let mut newest = two.rig.connected_at(two.other, "ann", "phone").await;
    assert_eq!(older.closed().await, Next::Closed(4500));
    assert_eq!(newest.ask("ping", json!({})).await["ping"], json!({}));
    two.rig.stop().await;
}

#[tokio::test]
async fn i17_what_a_claim_or_a_kick_without_an_answer_has_ended_on_another_node_ends_within_seconds() {
    let two = two(|_| ()).await;
    let mut replaced = claimed_without_an_answer(&two).await;
    let mut kicked = two.rig.connected_at(two.other, "bob", "phone").await;
    let mut stays = two.rig.connected_at(two.other, "ann", "tablet").await;
    two.sessions.answers.set(Weather::Failing);
    assert_eq!(two.rig.http("DELETE /v1/users/bob/sessions/phone").await.0, 503);
    two.sessions.answers.set(Weather::Fair);
    let clock = Clock::stop();
    clock.advance(6).await;
    assert_eq!(replaced.closed().await, Next::Closed(4500));
    assert_eq!(kicked.closed().await, Next::Closed(4500));
    assert_eq!(stays.ask("ping", json!({})).await["ping"], json!({}));
    drop(clock);
    two.rig.stop().await;
}

#[tokio::test]
async fn i17_what_another_node_could_not_be_told_to_close_ends_within_seconds_once_it_can_be_told() {
    let two = two(|settings| settings.reread_interval_secs = 3600).await;
    let mut older = two.rig.connected_at(two.other, "ann", "phone").await;
    two.lines.dead.store(true, Ordering::Release);
    let mut newer = two.rig.connected("ann", "phone").await;
    two.lines.dead.store(false, Ordering::Release);
    let clock = Clock::stop();
    clock.advance(6).await;
    assert_eq!(older.closed().await, Next::Closed(4500));
    assert_eq!(newer.ask("ping", json!({})).await["ping"], json!({}));
    drop(clock);
    two.rig.stop().await;
}

/// The claim of a connection that was made long ago and has ended.
fn given_up(user: UserNo, device: &str) -> Claim {
    Claim { user, device: device.parse().unwrap(), durable: true, node: "node".to_owned(), connection: 9, since: 0 }
}

#[tokio::test]
async fn i17_a_claim_that_was_given_up_and_is_carried_out_later_leaves_no_session() {
    let Two { rig, sessions, .. } = two(|_| ()).await;
    let user = rig.number("ann").await;
    let mut phone = rig.socket().await;
    sessions.rest.set(Weather::Failing);
    phone.send(rig.connect("ann", None).to_string()).await;
    assert_eq!(phone.line().await["error"]["code"], json!(100));
    drop(phone);
    let clock = Clock::stop();
    // For longer than anything is looked for after a call that failed once.
    clock.advance(90).await;
    sessions.rest.set(Weather::Fair);
    let late = Claim { durable: false, ..given_up(user, "node-9") };
    clock.advance(6).await;
    sessions.inner.claim(late).await.unwrap();
    clock.advance(60).await;
    assert_eq!(sessions.inner.list(user).await.unwrap(), []);
    drop(clock);
    rig.stop().await;
}

#[tokio::test]
async fn a_node_that_goes_gives_its_lease_back_after_everything_else() {
    let Two { rig, sessions, .. } = two(|_| ()).await;
    let mut phone = rig.connected("ann", "phone").await;
    rig.begin_stop();
    assert_eq!(phone.closed().await, Next::Closed(3001));
    rig.stop().await;
    assert_eq!(*sessions.asked.lock(), ["claim", "release", "retire"]);
}

#[tokio::test]
async fn i17_a_slow_claim_of_a_connection_that_has_ended_lets_the_device_connect_again() {
    let Two { rig, other, sessions, .. } = two(|_| ()).await;
    for newer_at in [rig.addr, other] {
        let mut newer = rig.connected_at(newer_at, "ann", "phone").await;
        let mut left = rig.socket().await;
        let clock = Clock::stop();
        sessions.answers.set(Weather::Hanging);
        let claims = || sessions.asked.lock().iter().filter(|asked| **asked == "claim").count();
        let before = claims();
        left.send(rig.connect("ann", Some("phone")).to_string()).await;
        until(|| claims() > before).await;
        left.ws.close(None).await.unwrap();
        left.closed().await;
        sessions.answers.set(Weather::Fair);
        assert_eq!(newer.closed().await, Next::Closed(3011));
        drop(clock);
    }
    rig.stop().await;
}

#[tokio::test]
async fn i17_an_older_claim_that_is_carried_out_late_lets_the_device_connect_again() {
    let Two { rig, other, sessions, .. } = two(|settings| settings.reread_interval_secs = 1).await;
    let user = rig.number("ann").await;
    let mut newer = rig.connected_at(other, "ann", "phone").await;
    sessions.inner.claim(given_up(user, "phone")).await.unwrap();
    assert_eq!(newer.closed().await, Next::Closed(3011));
    let mut again = rig.connected_at(other, "ann", "phone").await;
    assert_eq!(again.ask("ping", json!({})).await["ping"], json!({}));
    rig.stop().await;
}
