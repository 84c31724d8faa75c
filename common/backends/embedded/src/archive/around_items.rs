//! What is known in memory of the reactions or of the comments: whether there are any rows, and whether rows of deleted
//! items are still to be removed. Later writes remove the rows of a deleted item, some at a time.

use std::sync::atomic::{AtomicBool, Ordering};

use feedgate_common::error::Result;

use super::any::Any;
use crate::view::Tx;

/// What is known of one kind of rows without a look into the store.
#[derive(Debug)]
pub(super) struct AroundItems {
    /// Whether there may be a row.
    pub(super) any: Any,
    /// Whether there may be a deleted item whose rows are still to be removed.
    ends: AtomicBool,
    /// Removes some rows of one deleted item. Gives whether there may be more to remove.
    sweep: fn(&mut Tx<'_>) -> Result<bool>,
}

impl AroundItems {
    /// Rows that `sweep` removes. A deleted item may have been left by an earlier run.
    pub(super) fn new(any: Any, sweep: fn(&mut Tx<'_>) -> Result<bool>) -> Self {
        Self { any, ends: AtomicBool::new(true), sweep }
    }

    /// Says that an item was deleted, so that later writes remove its rows.
    pub(super) fn ended(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    /// Removes some rows of deleted items, as part of a write. `ended` says whether the write may delete an item.
    pub(super) fn sweep(&self, tx: &mut Tx<'_>, ended: bool) -> Result<()> {
        if self.ends.swap(ended, Ordering::Relaxed) && (self.sweep)(tx)? {
            self.ends.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}
