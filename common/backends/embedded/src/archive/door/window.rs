//! The part of one author's outbox that an edge shows in one feed.

use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::{Generation, OutboxSeq};
use quick_cache::sync::Cache;

use crate::archive::tables::{Adds, AuthorFeed, ShownRow};
use crate::view::{Read, View};

/// See [`super`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    /// Whose adds, to which feed.
    pub(super) list: AuthorFeed,
    /// Of the edge.
    pub(super) generation: Generation,
    /// No add below is shown.
    pub(super) low: OutboxSeq,
    /// Adds by push above come by push.
    pub(super) push_up_to: OutboxSeq,
}

impl Window {
    /// Whether a living add at or above `low` is shown. One by pull above `from` always is: nobody
    /// pushes it.
    pub(super) fn shows(&self, add: ShownRow) -> bool {
        add.seq <= self.push_up_to || add.route == Route::Pull
    }
}

/// Where backfills begin, remembered: at most about 60 bytes each.
const REMEMBERED: usize = 50_000;

/// See [`Lows::low`].
pub(super) struct Lows(Cache<(AuthorFeed, OutboxSeq, usize), OutboxSeq>);

impl Default for Lows {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Lows {
    /// The oldest of the newest `backfill` adds of the list up to `from` that no record up to `from` deletes; 1
    /// if there are fewer, `from` + 1 if none is wanted.
    pub(super) fn low(&self, view: &View, list: AuthorFeed, from: OutboxSeq, backfill: usize) -> Result<OutboxSeq> {
        if backfill == 0 {
            return Ok(from.saturating_add(1));
        }
        if from <= backfill as OutboxSeq {
            return Ok(1);
        }
        let asked = (list, from, backfill);
        if let Some(low) = self.0.get(&asked) {
            return Ok(low);
        }
        let low = count_back(view, list, from, backfill)?;
        self.0.insert(asked, low);
        Ok(low)
    }
}

fn count_back(view: &View, list: AuthorFeed, from: OutboxSeq, backfill: usize) -> Result<OutboxSeq> {
    let mut stood = 0;
    for row in view.scan::<Adds>((list, 1)..=(list, from)).rev() {
        let ((_, seq), add) = row?;
        if add.deleted_by.is_none_or(|deleted_by| deleted_by > from) {
            stood += 1;
            if stood == backfill {
                return Ok(seq);
            }
        }
    }
    Ok(1)
}
