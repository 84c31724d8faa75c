//! Knows in memory whether a table may have rows: if the table has none, a page reads nothing of it.

use std::sync::atomic::{AtomicBool, Ordering};

use feedgate_common::error::Result;

use crate::table::Table;
use crate::view::Read;

/// Whether a table may have a row. The flag is set before the first row is written and never taken back, so nobody
/// misses a row.
#[derive(Debug)]
pub(super) struct Any(AtomicBool);

impl Any {
    /// Looks into the store whether the table has a row.
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
