//! Epochs are taken in blocks, so that one sync serves many numbers.
//!
//! Invariant: a number is given only from a block whose end is durable, and each number is greater than every earlier
//! one. A crash leaves a gap, never a repetition.

use std::ops::Range;

use feedgate_common::Epoch;
use feedgate_common::error::Result;
use parking_lot::Mutex;

use super::tables::Counters;
use crate::database::Database;
use crate::request::Durability;
use crate::view::Read;

/// How many numbers one sync makes available.
const BLOCK: u64 = 1024;

/// The numbers of the newest block that were not given yet.
#[derive(Debug, Default)]
pub(super) struct Epochs(Mutex<Range<u64>>);

impl Epochs {
    pub(super) async fn next(&self, db: &Database) -> Result<Epoch> {
        loop {
            if let Some(epoch) = self.0.lock().next() {
                return Ok(Epoch(epoch));
            }
            let block = db
                .write(Durability::Synced, |tx| {
                    let mut counters = tx.get::<Counters>(&())?.unwrap_or_default();
                    let first = counters.epoch + 1;
                    counters.epoch += BLOCK;
                    tx.put::<Counters>(&(), &counters);
                    Ok(first..first + BLOCK)
                })
                .await?;
            self.take_in(block);
        }
    }

    /// Keeps a new block. Concurrent callers may get their blocks in another order than they asked: only the newest
    /// block is kept, and the numbers that are left of an older block are never given.
    fn take_in(&self, block: Range<u64>) {
        let mut left = self.0.lock();
        if block.end > left.end {
            *left = block;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i16_an_older_block_that_arrives_late_is_not_given_out() {
        let epochs = Epochs::default();
        epochs.take_in(11..21);
        assert_eq!(epochs.0.lock().next(), Some(11));
        epochs.take_in(1..11);
        assert_eq!(epochs.0.lock().next(), Some(12));
        epochs.take_in(21..31);
        assert_eq!(epochs.0.lock().next(), Some(21));
    }
}
