//! Publishes announcements, which tell other programs what has happened, and removes them once the bus has them.
//!
//! ```text
//!   anything there? ─▶ the lease ─▶ read, oldest first ─▶ rounds: no two events of one user in one ─▶ published ─▶ forgotten
//! ```
//!
//! Invariants: an announcement is removed only after the bus has acknowledged all announcements of its batch. Any
//! number of relays may run; the lease only saves work. Each relay publishes from the oldest announcement on, and the
//! bus keeps the first of two equal events. So the events of a user keep their order even if two relays work at the
//! same time. The bus knows equal events for two minutes: a relay that stands still for longer in a batch publishes its
//! rest again.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::Archive;
use feedgate_common::announce::{Outlet, rounds, with_names};
use feedgate_common::error::Result;
use tokio_util::sync::CancellationToken;

use crate::rounds::again;

/// How often a relay looks whether there is anything to publish.
const EVERY: Duration = Duration::from_millis(200);

/// How many announcements are published before they are removed.
const BATCH: usize = 512;

/// How long other relays wait after the last sign of life of a relay that has died.
const LEASE: Duration = Duration::from_secs(5);

/// The relay of one process.
pub struct Relay {
    archive: Arc<dyn Archive>,
    outlet: Arc<dyn Outlet>,
    /// The name of the process.
    node: String,
}

impl Relay {
    /// A relay that does nothing until [`Relay::run`]. No other process has the name `node`.
    pub fn new(archive: Arc<dyn Archive>, outlet: Arc<dyn Outlet>, node: &str) -> Self {
        Self { archive, outlet, node: node.to_owned() }
    }

    /// Publishes until the shutdown. A batch that was under way then is published again, by this relay or another.
    pub async fn run(&self, shutdown: CancellationToken) {
        again("a relay of events", EVERY, &shutdown, || self.batch()).await;
    }

    /// Publishes some of the announcements. Gives whether there may be more.
    async fn batch(&self) -> Result<bool> {
        let is_empty = self.archive.announced(0, 1).await?.is_empty();
        if is_empty || !self.archive.may_publish(&self.node, LEASE).await? {
            return Ok(false);
        }
        let list = self.archive.announced(0, BATCH).await?;
        let (full, numbers) = (list.len() == BATCH, list.iter().map(|(number, _)| *number).collect::<Vec<_>>());
        for round in rounds(with_names(&*self.archive, list).await?) {
            self.outlet.publish(&round).await?;
        }
        self.archive.forget_announced(&numbers).await?;
        Ok(full)
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use feedgate_common::announce::PublicEvent;
    use feedgate_common::archive::{Publish, Write};
    use feedgate_common::{Body, StoreError};
    use feedgate_embedded::Embedded;
    use parking_lot::Mutex;

    use super::*;

    /// A bus that fails now and then at first, and keeps the first of equal events.
    #[derive(Default)]
    struct Bus {
        kept: Mutex<Vec<(String, u64)>>,
        calls: Mutex<u32>,
    }

    #[async_trait]
    impl Outlet for Bus {
        async fn publish(&self, events: &[PublicEvent]) -> Result<()> {
            let mut calls = self.calls.lock();
            *calls += 1;
            let fails = *calls < 20 && !calls.is_multiple_of(3);
            // A call that fails has kept only what stands at the end.
            for event in events.iter().skip(if fails { 1 } else { 0 }) {
                let one = (event.owner.to_string(), event.number);
                let mut kept = self.kept.lock();
                if !kept.contains(&one) {
                    kept.push(one);
                }
            }
            if fails { Err(StoreError::unavailable("the bus is away")) } else { Ok(()) }
        }
    }

    #[tokio::test]
    async fn events_of_a_user_keep_their_order_and_none_is_missing_while_the_bus_fails() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let publish = |n: usize| {
            let author = ["ann", "bob", "cem"][n % 3].parse().unwrap();
            Write::Publish(Publish::new(author, Body::parse(n.to_string()).unwrap()))
        };
        stores.archive.write((0..30).map(publish).collect(), 1_800_000_000_000).await.unwrap();
        let bus = Arc::new(Bus::default());
        let relay = Relay::new(stores.archive.clone(), bus.clone(), "one");
        while !stores.archive.announced(0, 1).await.unwrap().is_empty() {
            let _ = relay.batch().await;
        }
        let kept = bus.kept.lock().clone();
        assert_eq!(kept.len(), 30);
        for author in ["ann", "bob", "cem"] {
            let numbers: Vec<_> = kept.iter().filter(|(owner, _)| owner == author).map(|(_, number)| *number).collect();
            assert!(numbers.is_sorted() && numbers.len() == 10, "{author}: {numbers:?}");
        }
    }
}
