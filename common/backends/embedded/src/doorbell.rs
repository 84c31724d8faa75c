//! The doorbell of a single process: a ring calls every listener on the caller's own thread.
//!
//! Invariants: ringing takes no lock and allocates nothing; a listener that was dropped before a ring began
//! is not called by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use feedgate_common::UserNo;
use feedgate_common::archive::PullHead;
use feedgate_common::doorbell::{Closing, Doorbell, Growth, Heard, Listening, OnHeard, Onlooker, Stir};
use feedgate_common::error::Result;

/// Listeners by the number they were given.
type Listeners = ArcSwap<Vec<(u64, OnHeard)>>;

/// The doorbell of one process. It keeps its listeners in memory.
#[derive(Default)]
pub struct EmbeddedDoorbell {
    listeners: Arc<Listeners>,
    next: AtomicU64,
}

impl EmbeddedDoorbell {
    fn tell(&self, heard: Heard<'_>) {
        for (_, on_heard) in self.listeners.load().iter() {
            on_heard(heard);
        }
    }
}

#[async_trait]
impl Doorbell for EmbeddedDoorbell {
    async fn ring(&self, growth: &Growth) {
        self.tell(Heard::Growth(growth));
    }

    /// Tells every listener: all of them belong to this one node.
    async fn hot(&self, head: PullHead) {
        self.tell(Heard::Hot(head));
    }

    async fn close(&self, _node: &str, user: UserNo, connection: u64, why: Closing) -> bool {
        self.tell(Heard::Close { user, connection, why });
        true
    }

    async fn pass(&self, _node: &str, session: u128, message: &[u8]) {
        self.tell(Heard::Message { session, message });
    }

    async fn seen(&self, by: Onlooker<'_>) {
        self.tell(Heard::Seen(by));
    }

    async fn stirred(&self, stir: &Stir) {
        self.tell(Heard::Stirred(stir));
    }

    async fn confirm(&self, users: &[UserNo]) {
        self.tell(Heard::Confirm(users));
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    fn listen(&self, on_heard: OnHeard) -> Listening {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.listeners.rcu(|now| {
            let mut more = Vec::clone(now);
            more.push((number, on_heard.clone()));
            more
        });
        let listeners = self.listeners.clone();
        Listening::until(move || {
            listeners.rcu(|now| now.iter().filter(|(n, _)| *n != number).cloned().collect::<Vec<_>>());
        })
    }
}
