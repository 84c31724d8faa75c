//! Inboxes that somebody reads, on their way to the store, which keeps them for the whole time again.
//!
//! ```text
//!   connect, reads by HTTP ──note──▶ one key per inbox ──every minute──▶ Feeds::touch
//!   every few hours: every inbox with a session here ──┘
//! ```
//!
//! What is lost on the way costs a rebuild at worst. Bounded by [`NOTED_MAX`]: what finds no room is lost.

use std::time::Duration;

use feedgate_common::InboxKey;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::Gateway;
use crate::bounded::bounded;

/// Inboxes that may wait; 16 bytes each.
const NOTED_MAX: usize = 1 << 20;

/// How often they are told to the store.
const EVERY: Duration = Duration::from_secs(60);

/// Of which so many times all sessions are noted: every four hours, where an inbox is kept for a day at least.
const ALL_EVERY: u32 = 240;

/// Touched in one call.
const CHUNK: usize = 1000;

/// See the module.
#[derive(Default)]
pub(crate) struct Touches(Mutex<FxHashSet<InboxKey>>);

impl Touches {
    /// Somebody reads it.
    pub(crate) fn note(&self, key: InboxKey) {
        let mut noted = self.0.lock();
        if noted.len() < NOTED_MAX {
            noted.insert(key);
        }
    }
}

/// Forever. Cancel it at any time.
pub(crate) async fn keep_touching(gateway: &Gateway) {
    let mut due = interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in (0..ALL_EVERY).cycle() {
        due.tick().await;
        if round == ALL_EVERY - 1 {
            gateway.pool.users().into_iter().for_each(|reader| gateway.touches.note(InboxKey::main(reader)));
        }
        touch(gateway).await;
    }
}

async fn touch(gateway: &Gateway) {
    let noted: Vec<InboxKey> = gateway.touches.0.lock().drain().collect();
    for chunk in noted.chunks(CHUNK) {
        if let Err(error) = bounded(gateway.parts.feeds.touch(chunk)).await {
            tracing::warn!(%error, "inboxes that are read could not be touched; some may be rebuilt early");
        }
    }
}
