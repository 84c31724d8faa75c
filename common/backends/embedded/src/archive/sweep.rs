//! Removes idempotency keys whose time is over: a few at a time, as part of writes.
//!
//! An expired key counts as absent before it is removed, so the sweep only frees disk space.

use std::sync::atomic::{AtomicI64, Ordering};

use feedgate_common::Millis;
use feedgate_common::error::Result;

use super::tables::{Expiries, Retries};
use crate::view::{Read, Tx};

/// How long to wait after a sweep that found nothing more to remove, in ms.
const PAUSE_MS: i64 = 60_000;

/// The most keys that one sweep removes. So few do not slow down the write that carries the sweep.
const SWEEP_MAX: usize = 512;

/// How far the sweep has come. Only the writer thread uses it; the fields are atomic so that it can be shared. If a
/// transaction fails, the store is opened again, and then the sweep begins [anew](Self::reset).
#[derive(Debug, Default)]
pub(super) struct Sweep {
    not_before: AtomicI64,
    /// All keys that ended before this moment are removed already, so a scan from here meets no removed rows.
    swept_to: AtomicI64,
}

impl Sweep {
    /// To be called when the store was opened again: keys that a transaction has removed may be there.
    pub(super) fn reset(&self) {
        self.not_before.store(0, Ordering::Relaxed);
        self.swept_to.store(0, Ordering::Relaxed);
    }

    pub(super) fn run(&self, tx: &mut Tx<'_>, now: Millis) -> Result<()> {
        if now < self.not_before.load(Ordering::Relaxed) {
            return Ok(());
        }
        let first = (self.swept_to.load(Ordering::Relaxed), feedgate_common::UserNo(0), "".into());
        let end = (now.saturating_add(1), feedgate_common::UserNo(0), "".into());
        let over: Vec<_> = tx.scan::<Expiries>(first..end).take(SWEEP_MAX).collect::<Result<_>>()?;
        for (key, ()) in &over {
            tx.remove::<Expiries>(key);
            tx.remove::<Retries>(&(key.1, key.2.clone()));
        }
        if let Some(((ended, ..), ())) = over.last() {
            self.swept_to.store(*ended, Ordering::Relaxed);
        }
        if over.len() < SWEEP_MAX {
            self.not_before.store(now.saturating_add(PAUSE_MS), Ordering::Relaxed);
        }
        Ok(())
    }
}
