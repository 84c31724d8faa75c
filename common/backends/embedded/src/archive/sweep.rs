//! Forgets idempotency keys whose time is over: a little at a time, on the back of writes.
//!
//! An expired key counts as absent anyway, so the sweep only gives its disk back.

use std::sync::atomic::{AtomicI64, Ordering};

use feedgate_common::Millis;
use feedgate_common::error::Result;

use super::tables::{Expiries, Retries};
use crate::view::{Read, Tx};

/// The pause after a sweep that found nothing more to do.
const PAUSE_MS: i64 = 60_000;

/// The most keys one sweep forgets, so that the write that carries it does not feel it.
const SWEEP_MAX: usize = 512;

/// See the module. Used by the writer thread alone; the atomics only make it shareable.
#[derive(Debug)]
pub(super) struct Sweep {
    not_before: AtomicI64,
    /// Everything that ended before is gone already: a scan from here meets no removed rows.
    swept_to: AtomicI64,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { not_before: AtomicI64::new(i64::MIN), swept_to: AtomicI64::new(i64::MIN) }
    }
}

impl Sweep {
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
