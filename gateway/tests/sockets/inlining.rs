//! What the doorbell tells of changes spares reads, and no device can tell whether it did.

use std::net::SocketAddr;
use std::sync::Arc;

use feedgate_common::doorbell::{Growth, Heard};
use serde_json::{Value, json};

use super::faults::FaultyInboxes;
use super::lines::Lines;
use super::phone::Phone;
use super::rig::{LIKES, Rig, feeds, http_at, within};

const NODES: [&str; 2] = ["told", "plain"];
const ROUNDS: usize = 15;

/// Dice from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }
}

/// Two nodes over the same stores that hear the same; only the first makes use of what is told.
struct Both {
    rig: Rig,
    lines: Arc<Lines>,
    addrs: [SocketAddr; 2],
    inboxes: [Arc<FaultyInboxes>; 2],
}

async fn both() -> Both {
    let mut lines = None;
    let mut inboxes = vec![];
    let mut addrs = vec![];
    let mut rig = Rig::start().await;
    for (n, node) in NODES.into_iter().enumerate() {
        let addr = rig.join(node, |parts, stores| {
            let between: &Arc<Lines> = lines.get_or_insert_with(|| Lines::over(stores.doorbell.clone()));
            let counted = FaultyInboxes::over(stores.inboxes.clone());
            parts.feeds = Arc::new(feeds(stores, counted.clone()));
            parts.doorbell = between.of(node);
            parts.settings.inline_changes = n == 0;
            inboxes.push(counted);
        });
        addrs.push(addr.await);
    }
    Both {
        rig,
        lines: lines.unwrap(),
        addrs: addrs.try_into().unwrap(),
        inboxes: inboxes.try_into().unwrap_or_else(|_| panic!("two")),
    }
}

/// What has been caught so far, once it tells of `offset`.
async fn caught(lines: &Lines, offset: u64) -> Growth {
    within(async {
        loop {
            let tells = |growth: &Growth| growth.inboxes.iter().any(|grown| grown.head.offset >= offset);
            let found =
                lines.caught.lock().as_ref().unwrap().iter().find(|(node, g)| node == NODES[0] && tells(g)).cloned();
            match found {
                Some((_, growth)) => return growth,
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await
}

/// Reads on until the publication at `offset`.
async fn up_to(phone: &mut Phone, offset: u64) -> Value {
    loop {
        let (at, data) = phone.publication().await;
        if at == offset {
            return data;
        }
    }
}

#[tokio::test]
async fn i2_i4_devices_are_told_the_same_whether_changes_come_with_the_wake_or_from_the_log() {
    let Both { rig, lines, addrs, .. } = both().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 1).await;
    let mut head = rig.grown("ann", 1).await.offset;
    let (mut items, mut notified) = (vec![], vec![]);
    for addr in addrs {
        let mut phone = rig.connected_at(addr, "ann", &format!("items-{addr}")).await;
        assert_eq!(phone.subscribe(json!({})).await["subscribe"]["offset"], head);
        phone.raw = Some(vec![]);
        items.push(phone);
        let mut phone = rig.connected_at(addr, "ann", &format!("notified-{addr}")).await;
        assert_eq!(phone.subscribe(json!({"data": {"deliver": "notify"}})).await["subscribe"]["offset"], head);
        notified.push(phone);
    }
    *lines.caught.lock() = Some(vec![]);
    let mut dice = Dice(0x5EED);
    let mut under_way: Vec<Growth> = vec![];
    for _ in 0..ROUNDS {
        let mut ids = vec![];
        for _ in 0..10 {
            let (_, answer) = http_at(rig.addr, "POST /v1/items", r#"{"author":"bob","body":{"a": [1]}}"#).await;
            ids.push(serde_json::from_str::<Value>(&answer).unwrap()["id"].as_str().unwrap().to_owned());
            head += 1;
            under_way.push(caught(&lines, head).await);
            // Some are lost, some come late, some twice, some before older ones.
            for _ in 0..dice.roll(3) {
                let chosen = dice.roll(under_way.len());
                let growth = if dice.roll(4) == 0 { under_way[chosen].clone() } else { under_way.remove(chosen) };
                if dice.roll(8) > 0 {
                    NODES.iter().for_each(|node| lines.tell(node, Heard::Growth(&growth)));
                }
                if under_way.is_empty() {
                    break;
                }
            }
        }
        NODES.iter().for_each(|node| lines.tell(node, Heard::Missed));
        for phone in &mut items {
            up_to(phone, head).await;
        }
        for phone in &mut notified {
            assert_eq!(up_to(phone, head).await, json!({"op": "behind"}));
        }
        // An add whose item is gone is told as a delete, so items go only when their adds have been told.
        http_at(rig.addr, &format!("DELETE /v1/items/{}", ids[dice.roll(10)]), "").await;
        head += 1;
        under_way.push(caught(&lines, head).await);
    }
    NODES.iter().for_each(|node| lines.tell(node, Heard::Missed));
    for phone in items.iter_mut().chain(&mut notified) {
        up_to(phone, head).await;
    }
    let pushes = |phone: &Phone| {
        phone.raw.as_ref().unwrap().iter().filter(|line| line.contains("push")).cloned().collect::<Vec<_>>()
    };
    let (told, plain) = (pushes(&items[0]), pushes(&items[1]));
    assert_eq!(told.len(), ROUNDS * 11);
    assert_eq!(told, plain);
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_late_wake_among_lost_ones_does_not_keep_a_session_from_the_log() {
    let Both { rig, lines, addrs, .. } = both().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 1).await;
    let head = rig.grown("ann", 1).await.offset;
    let mut phone = rig.connected_at(addrs[0], "ann", "phone").await;
    phone.subscribe(json!({})).await;
    *lines.caught.lock() = Some(vec![]);
    rig.post("bob", 1).await;
    let late = caught(&lines, head + 1).await;
    rig.post("bob", 1).await;
    rig.grown("ann", head + 2).await;
    lines.tell(NODES[0], Heard::Missed);
    lines.tell(NODES[0], Heard::Growth(&late));
    assert_eq!([phone.publication().await.0, phone.publication().await.0], [head + 1, head + 2]);
    rig.stop().await;
}

#[tokio::test]
async fn a_session_that_is_told_the_next_change_reads_nothing() {
    let Both { rig, addrs, inboxes, .. } = both().await;
    rig.follow("ann", "bob").await;
    rig.post("bob", 1).await;
    let head = rig.grown("ann", 1).await.offset;
    let mut phone = rig.connected_at(addrs[0], "ann", "phone").await;
    phone.subscribe(json!({})).await;
    inboxes[0].reads.lock().clear();
    for offset in head + 1..head + 10 {
        rig.post("bob", 1).await;
        assert_eq!(phone.publication().await.0, offset);
    }
    assert_eq!(*inboxes[0].reads.lock(), []);
    rig.stop().await;
}

#[tokio::test]
async fn i4_a_catch_up_does_not_end_where_what_was_told_ends_if_nobody_listened_since() {
    let rig = Rig::with(|settings| (settings.inline_changes, settings.batch) = (true, 4)).await;
    rig.follow("ann", "bob").await;
    let start = rig.head_in(LIKES, "ann").await;
    let from_start =
        json!({"channel": "notifications", "recover": true, "offset": 0, "epoch": start.epoch.to_string()});
    let mut tablet = rig.connected("ann", "tablet").await;
    tablet.subscribe(from_start.clone()).await;
    for offset in 1..=5 {
        rig.like("bob", 1).await;
        assert_eq!(tablet.pushed().await.1, offset);
    }
    tablet.ask("unsubscribe", json!({"channel": "notifications"})).await;
    rig.like("bob", 5).await;
    rig.grown_in(LIKES, "ann", 10).await;
    let mut phone = rig.connected("ann", "phone").await;
    assert_eq!(phone.subscribe(from_start).await["subscribe"]["recovered"], true);
    for offset in 1..=10 {
        assert_eq!(phone.pushed().await.1, offset);
    }
    rig.stop().await;
}
