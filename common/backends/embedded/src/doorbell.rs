//! The doorbell of a single process: whoever rings calls every listener inline.
//!
//! Invariants: ringing takes no lock and allocates nothing; a listener that was dropped before a ring began
//! is not called by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use feedgate_common::InboxKey;
use feedgate_common::doorbell::{Doorbell, Listening, OnWake};

/// Listeners by the number they were given.
type Listeners = ArcSwap<Vec<(u64, OnWake)>>;

/// See the module.
#[derive(Default)]
pub struct EmbeddedDoorbell {
    listeners: Arc<Listeners>,
    next: AtomicU64,
}

#[async_trait]
impl Doorbell for EmbeddedDoorbell {
    async fn ring(&self, grown: &[InboxKey]) {
        for (_, on_wake) in self.listeners.load().iter() {
            on_wake(grown);
        }
    }

    fn listen(&self, on_wake: OnWake) -> Listening {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.listeners.rcu(|now| {
            let mut more = Vec::clone(now);
            more.push((number, on_wake.clone()));
            more
        });
        let listeners = self.listeners.clone();
        Listening::until(move || {
            listeners.rcu(|now| now.iter().filter(|(n, _)| *n != number).cloned().collect::<Vec<_>>());
        })
    }
}
