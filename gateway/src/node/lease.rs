//! Whether this node's sessions count. While they do not, nothing is pushed to any device (I17).
//!
//! ```text
//!   doubted ──every session confirmed──▶ stands ──not renewed in time, or renewed anew──▶ doubted …
//! ```
//!
//! Invariants:
//! - The lease ends no later here than in the session pool: its time begins before the renewal is sent, on a clock that
//!   only goes forward, also while the machine is suspended.
//! - Once it has lapsed, it stands again only after every session was confirmed in a pass that began after a renewal.
//!
//! Times are those of [`Lease::now_ms`]. Reading the lease takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};

use feedgate_common::sessions::{LEASE, Renewed};
use tokio::sync::Notify;

use crate::clock;
use crate::node::uptime::Uptime;

/// The lease of one node. A new one is in doubt, so it does not stand.
#[derive(Debug)]
pub(crate) struct Lease {
    uptime: Uptime,
    /// How long the machine was suspended since it was started, in milliseconds.
    pub(super) suspended_ms: fn() -> u64,
    /// When the lease lapses.
    until: AtomicU64,
    /// How many doubts there were; the last one has this number.
    doubts: AtomicU64,
    /// The number of the last doubt that was settled.
    settled: AtomicU64,
    doubted: Notify,
}

impl Lease {
    pub(crate) fn new(uptime: Uptime) -> Self {
        let (until, doubts, settled) = (AtomicU64::new(0), AtomicU64::new(1), AtomicU64::new(0));
        Self { uptime, suspended_ms: clock::suspended_ms, until, doubts, settled, doubted: Notify::new() }
    }

    /// Milliseconds on the clock of the lease: like that of the session pool, it goes on while the machine is
    /// suspended.
    pub(crate) fn now_ms(&self) -> u64 {
        self.uptime.elapsed_ms() + (self.suspended_ms)()
    }

    /// Whether this node's sessions count now: only then may anything be pushed to them.
    pub(crate) fn may_push(&self) -> bool {
        self.stands(self.now_ms())
    }

    /// Whether the node's sessions count at `now`.
    fn stands(&self, now: u64) -> bool {
        now < self.until.load(Ordering::Acquire) && self.doubt().is_none()
    }

    /// Extends the lease after a renewal that was sent at `asked` and answered at `now`. Puts it in doubt if it had
    /// lapsed, or if the pool began it anew.
    pub(crate) fn renewed(&self, asked: u64, now: u64, renewed: Renewed) {
        // The doubt comes before the extension, so that the lease never stands in between.
        if renewed == Renewed::Anew || self.until.load(Ordering::Acquire) <= now {
            self.doubts.fetch_add(1, Ordering::AcqRel);
            self.doubted.notify_one();
        }
        self.until.store(asked + LEASE.as_millis() as u64, Ordering::Release);
    }

    /// The number of the doubt that is not settled, if there is one.
    pub(crate) fn doubt(&self) -> Option<u64> {
        let settled = self.settled.load(Ordering::Acquire);
        Some(self.doubts.load(Ordering::Acquire)).filter(|doubt| *doubt != settled)
    }

    /// Settles `doubt` after every session was confirmed in a pass that began after [`Lease::doubt`] gave it. A later
    /// doubt stays.
    pub(crate) fn settle(&self, doubt: u64) {
        self.settled.fetch_max(doubt, Ordering::AcqRel);
    }

    /// Waits until there may be a new doubt. Cancel safe.
    pub(crate) async fn doubted(&self) {
        self.doubted.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = LEASE.as_millis() as u64;

    fn standing(asked: u64) -> Lease {
        let lease = Lease::new(Uptime::begin());
        lease.renewed(asked, asked, Renewed::Kept);
        lease.settle(lease.doubt().unwrap());
        lease
    }

    #[test]
    fn i17_it_ends_a_lease_after_the_renewal_was_sent_however_late_the_answer_came() {
        let lease = standing(1000);
        assert!(lease.stands(1000 + MS - 1) && !lease.stands(1000 + MS));
        lease.renewed(2000, 1000 + MS - 1, Renewed::Kept);
        assert!(lease.stands(2000 + MS - 1) && !lease.stands(2000 + MS), "not from the answer");
    }

    #[test]
    fn i17_once_lapsed_or_renewed_anew_it_stands_only_after_a_confirmation() {
        for (asked, renewed) in [(1000 + MS, Renewed::Kept), (1500, Renewed::Anew)] {
            let lease = standing(1000);
            lease.renewed(asked, asked, renewed);
            assert!(!lease.stands(asked), "{renewed:?}");
            let doubt = lease.doubt().unwrap();
            lease.renewed(asked, asked, Renewed::Anew);
            lease.settle(doubt);
            assert!(!lease.stands(asked), "what was confirmed before the last doubt says nothing");
            lease.settle(lease.doubt().unwrap());
            assert!(lease.stands(asked));
        }
    }
}
