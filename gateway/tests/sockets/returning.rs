//! Many devices that come back in one moment.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::clock::Clock;
use super::faults::{FaultyInboxes, Weather};
use super::rig::{Rig, feeds, until, within};

/// Reads of the store at once in a node: `READS_MAX` of the gateway.
const READS_MAX: usize = 256;

const DEVICES: usize = READS_MAX + 44;

#[tokio::test]
async fn i18_devices_that_return_at_once_read_the_store_so_many_at_a_time_and_all_are_served() {
    let mut faulty = None;
    let rig = Rig::of(|parts, stores| {
        let inboxes = FaultyInboxes::over(stores.inboxes.clone());
        parts.feeds = Arc::new(feeds(stores, inboxes.clone()));
        // On a busy machine it may take long until all are connected. No ping of the gateway comes in between.
        (parts.settings.ping_interval_secs, parts.settings.pong_within_secs) = (3600, 3600);
        faulty = Some(inboxes);
    })
    .await;
    let inboxes = faulty.unwrap();
    let mut phones = vec![];
    for n in 0..DEVICES {
        let head = rig.head(&format!("reader-{n}")).await;
        phones.push((rig.connected(&format!("reader-{n}"), "phone").await, head));
    }
    let clock = Clock::stop();
    inboxes.gate.set(Weather::Hanging);
    inboxes.reads.lock().clear();
    for (phone, head) in &mut phones {
        let own = json!({"channel": "feed", "recover": true, "offset": head.offset, "epoch": head.epoch.to_string()});
        phone.ws.feed(Message::text(json!({"id": 1, "subscribe": own}).to_string())).await.unwrap();
        // A gateway that answers the ping has heard what came before it.
        phone.ws.send(Message::Ping("heard".into())).await.unwrap();
        assert_eq!(within(phone.ws.next()).await.unwrap().unwrap(), Message::Pong("heard".into()));
    }
    until(|| inboxes.reads.lock().len() >= READS_MAX).await;
    assert_eq!(inboxes.reads.lock().len(), READS_MAX, "the others wait for their turn");
    inboxes.gate.set(Weather::Fair);
    for (phone, _) in &mut phones {
        assert_eq!(phone.line().await["subscribe"]["recovered"], true);
    }
    assert_eq!(inboxes.reads.lock().len(), DEVICES, "one read for each");
    drop(clock);
    rig.stop().await;
}
