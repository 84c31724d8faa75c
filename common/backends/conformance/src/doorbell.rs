//! What every home of [`Doorbell`] must pass: wakes arrive while someone listens, and only then.
//!
//! A home may lose wakes by contract, so each test rings again until it is heard.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use feedgate_common::doorbell::OnWake;
use feedgate_common::{Doorbell, InboxKey, UserNo};
use tokio::sync::Notify;

/// All of it. `open` gives a doorbell nobody else rings.
pub async fn doorbell(open: impl AsyncFn() -> Arc<dyn Doorbell>) {
    every_listener_hears_every_inbox(open().await).await;
    who_stopped_listening_hears_nothing(open().await).await;
    ringing_without_listeners_is_fine(open().await).await;
}

/// What one listener has heard.
#[derive(Default)]
struct Ear {
    heard: Mutex<BTreeSet<InboxKey>>,
    news: Notify,
}

impl Ear {
    fn on_wake(self: &Arc<Self>) -> OnWake {
        let ear = self.clone();
        Arc::new(move |grown| {
            ear.heard.lock().expect("no test panics with it").extend(grown);
            ear.news.notify_one();
        })
    }

    fn has_heard(&self, key: InboxKey) -> bool {
        self.heard.lock().expect("no test panics with it").contains(&key)
    }

    /// Rings until this ear has heard of all `keys`.
    async fn rung(&self, doorbell: &dyn Doorbell, keys: &[InboxKey]) {
        let hear = async {
            while !keys.iter().all(|key| self.has_heard(*key)) {
                doorbell.ring(keys).await;
                tokio::select! {
                    () = self.news.notified() => {}
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), hear).await.expect("a listener hears a doorbell rung for 10 s");
    }
}

fn inbox(n: u32) -> InboxKey {
    InboxKey::main(UserNo(n))
}

async fn every_listener_hears_every_inbox(doorbell: Arc<dyn Doorbell>) {
    let [one, two] = [Arc::new(Ear::default()), Arc::new(Ear::default())];
    let _listening = [doorbell.listen(one.on_wake()), doorbell.listen(two.on_wake())];
    one.rung(&*doorbell, &[inbox(1), inbox(2)]).await;
    two.rung(&*doorbell, &[inbox(1), inbox(2)]).await;
    assert!(!one.has_heard(inbox(3)), "nobody rang for inbox 3");
}

async fn who_stopped_listening_hears_nothing(doorbell: Arc<dyn Doorbell>) {
    let [gone, stays] = [Arc::new(Ear::default()), Arc::new(Ear::default())];
    let listening = doorbell.listen(gone.on_wake());
    let _stays = doorbell.listen(stays.on_wake());
    gone.rung(&*doorbell, &[inbox(1)]).await;
    drop(listening);
    stays.rung(&*doorbell, &[inbox(2)]).await;
    assert!(!gone.has_heard(inbox(2)), "a dropped guard must end the listening");
}

async fn ringing_without_listeners_is_fine(doorbell: Arc<dyn Doorbell>) {
    doorbell.ring(&[inbox(1)]).await;
}
