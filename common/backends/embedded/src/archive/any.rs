//! Whether a table may have rows, in memory: a page of a store that has none reads nothing for them.

use std::sync::atomic::{AtomicBool, Ordering};

use feedgate_common::error::Result;

use crate::table::Table;
use crate::view::Read;

/// Whether there may be a row. It is set before the first row is written and never taken back, so nobody misses a row.
#[derive(Debug)]
pub(super) struct Any(AtomicBool);

impl Any {
    /// Looks into the store.
    pub(super) fn of<T: Table>(from: &impl Read) -> Result<Self> {
        let first = from.scan::<T>(..).next().transpose()?;
        Ok(Self(AtomicBool::new(first.is_some())))
    }

    /// There may be a row from now on.
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
