//! What tells gateways that inboxes have grown.
//!
//! A wake is a bit, not a number: losing, repeating or reordering all of them may change latency,
//! never content.

use std::sync::Arc;

use async_trait::async_trait;

use crate::InboxKey;

/// Called with inboxes that have grown. Quick, never blocks: it sets bits.
pub type OnWake = Arc<dyn Fn(&[InboxKey]) + Send + Sync>;

/// Best effort by contract: there is nothing to handle when a wake is lost.
#[async_trait]
pub trait Doorbell: Send + Sync + 'static {
    /// Wakes whoever serves these inboxes. Called after the append has committed.
    async fn ring(&self, grown: &[InboxKey]);

    /// Every wake from now on also calls `on_wake`, until the returned guard is dropped.
    fn listen(&self, on_wake: OnWake) -> Listening;
}

/// Listens until dropped.
pub struct Listening(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Listening {
    /// A guard that runs `stop` once when dropped.
    pub fn until(stop: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(stop)))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(stop) = self.0.take() {
            stop();
        }
    }
}
