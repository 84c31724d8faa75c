//! What `/readyz` and `/healthz` answer from: findings kept in memory, so that both answer at once even if a store
//! hangs.
//!
//! ```text
//!   prober: every second a small read of each store, bounded ──▶ which are away, why ──▶ /readyz   fails fast
//!   keeper and prober: when they last came round             ──▶ progress           ──▶ /healthz  fails slow
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::error::Result;
use futures_util::future::join5;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::node::Node;
use crate::node::bounded::within;

/// A store is away if it does not answer a small read within this time. The stores are asked again after the same time.
const PROBE: Duration = Duration::from_secs(1);

/// The process is stuck if the keeper or the prober has not completed a round for this long.
const STUCK_MS: u64 = 60_000;

/// The names of the stores, in the order of their bits.
const STORES: [&str; 5] = ["archive", "inboxes", "sessions", "jobs", "doorbell"];

/// The bits of the stores that a subscription's read needs.
const READ_FROM: u64 = 0b11;

/// Which stores are away, and when the background has last made progress.
pub(crate) struct Vitals {
    /// One bit for each of [`STORES`], set if that store is away.
    away: AtomicU64,
    /// Why each store is away, if the store has said so itself.
    whys: Mutex<[Option<Arc<str>>; STORES.len()]>,
    kept_ms: AtomicU64,
    probed_ms: AtomicU64,
}

impl Vitals {
    /// All stores are away until they have answered.
    pub(crate) fn new() -> Self {
        let away = AtomicU64::new((1 << STORES.len()) - 1);
        Self { away, whys: Mutex::default(), kept_ms: AtomicU64::new(0), probed_ms: AtomicU64::new(0) }
    }

    /// Notes that the keeper has completed a round at `now`.
    pub(crate) fn kept(&self, now: u64) {
        self.kept_ms.store(now, Ordering::Release);
    }

    /// Says in words which stores are away and why; `None` if no store is away.
    pub(crate) fn away(&self) -> Option<String> {
        let away = self.away.load(Ordering::Acquire);
        let (mut whys, mut silent) = (Vec::new(), Vec::new());
        for (bit, why) in self.whys.lock().iter().enumerate().filter(|(bit, _)| away >> bit & 1 == 1) {
            match why {
                // Stores that share a disk give the same reason, which is said once.
                Some(why) if whys.iter().any(|said| *said == **why) => {}
                Some(why) => whys.push(why.to_string()),
                None => silent.push(STORES[bit]),
            }
        }
        if !silent.is_empty() {
            whys.push(format!("no answer from: {}", silent.join(", ")));
        }
        (!whys.is_empty()).then(|| whys.join("; "))
    }

    /// Whether the background work has made no progress for so long that only a restart of the process will help.
    pub(crate) fn stuck(&self, now: u64) -> bool {
        let last = self.kept_ms.load(Ordering::Acquire).min(self.probed_ms.load(Ordering::Acquire));
        now >= last + STUCK_MS
    }
}

/// Asks the stores for ever. May be dropped at any time.
pub(crate) async fn keep_probing(node: &Node) {
    loop {
        let asked = Instant::now();
        probe(node).await;
        sleep_until(asked + PROBE).await;
    }
}

/// Asks every store once, and wakes all sessions if the stores that they read from are back.
pub(crate) async fn probe(node: &Node) {
    let vitals = &node.vitals;
    let answers = join5(
        within(PROBE, node.reads.feeds.archive().ping()),
        within(PROBE, node.reads.feeds.inboxes().ping()),
        within(PROBE, node.local.sessions.ping()),
        within(PROBE, node.jobs.ping()),
        within(PROBE, node.local.doorbell.ping()),
    );
    let (archive, inboxes, sessions, jobs, doorbell) = answers.await;
    let all: [Result<()>; STORES.len()] = [archive, inboxes, sessions, jobs, doorbell];
    let mut away = 0;
    let before = vitals.away.load(Ordering::Acquire);
    for (bit, answer) in all.iter().enumerate() {
        let (name, was_away) = (STORES[bit], before >> bit & 1 == 1);
        match answer {
            Ok(()) if was_away => tracing::info!("{name}: there"),
            Err(error) if !was_away => tracing::warn!(%error, "{name}: away"),
            Ok(()) | Err(_) => {}
        }
        away |= u64::from(answer.is_err()) << bit;
    }
    *vitals.whys.lock() = all.map(|answer| match answer {
        Err(StoreError::Down(why)) => Some(why),
        _ => None,
    });
    vitals.away.store(away, Ordering::Release);
    vitals.probed_ms.store(node.uptime.elapsed_ms(), Ordering::Release);
    // Subscriptions whose reads have failed try again by themselves, but after longer and longer waits.
    if before & READ_FROM != 0 && away & READ_FROM == 0 {
        node.local.pool.missed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_says_why_it_is_away_is_quoted_once_and_the_others_are_named() {
        let vitals = Vitals::new();
        assert_eq!(vitals.away().unwrap(), "no answer from: archive, inboxes, sessions, jobs, doorbell");
        vitals.away.store(0b01101, Ordering::Release);
        let why: Arc<str> = "the archive has no room on its disk".into();
        *vitals.whys.lock() = [Some(why.clone()), None, None, Some(why), None];
        assert_eq!(vitals.away().unwrap(), "the archive has no room on its disk; no answer from: sessions");
        vitals.away.store(0, Ordering::Release);
        assert_eq!(vitals.away(), None);
    }

    #[test]
    fn a_process_is_stuck_only_when_its_background_has_not_come_round_for_a_minute() {
        let vitals = Vitals::new();
        assert!(!vitals.stuck(STUCK_MS - 1) && vitals.stuck(STUCK_MS), "from the start");
        vitals.kept(90_000);
        assert!(vitals.stuck(100_000), "one of the two is enough");
        vitals.probed_ms.store(90_000, Ordering::Release);
        assert!(!vitals.stuck(90_000 + STUCK_MS - 1) && vitals.stuck(90_000 + STUCK_MS));
    }
}
