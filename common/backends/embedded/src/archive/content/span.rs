//! The part of one author's outbox that an edge shows in one feed.

use feedgate_common::error::Result;
use feedgate_common::{Generation, OutboxSeq};
use quick_cache::sync::Cache;

use crate::archive::tables::{Adds, AuthorFeed};
use crate::view::{Read, View};

/// The adds of one author to one feed that an edge shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// The author, and the feed to which the adds went.
    pub(super) list: AuthorFeed,
    /// The generation of the edge.
    pub(super) generation: Generation,
    /// No add with a smaller sequence number is shown.
    pub(super) low: OutboxSeq,
    /// No add with a greater sequence number is shown. Every living add from `low` to `high` is.
    pub(super) high: OutboxSeq,
}

/// How many starts of backfills are remembered; at most about 60 bytes each.
const REMEMBERED: usize = 50_000;

/// Remembered starts of backfills, by list, `past` and length.
pub(super) struct Lows(Cache<(AuthorFeed, OutboxSeq, usize), OutboxSeq>);

impl Default for Lows {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Lows {
    /// The sequence number of the oldest of the newest `backfill` adds of the list up to `past` that no record up to
    /// `past` deletes; 1 if there are fewer, `past` + 1 if `backfill` is 0.
    pub(super) fn low(&self, view: &View, list: AuthorFeed, past: OutboxSeq, backfill: usize) -> Result<OutboxSeq> {
        if backfill == 0 {
            return Ok(past.saturating_add(1));
        }
        if past <= backfill as OutboxSeq {
            return Ok(1);
        }
        let asked = (list, past, backfill);
        if let Some(low) = self.0.get(&asked) {
            return Ok(low);
        }
        let low = count_back(view, list, past, backfill)?;
        self.0.insert(asked, low);
        Ok(low)
    }
}

fn count_back(view: &View, list: AuthorFeed, past: OutboxSeq, backfill: usize) -> Result<OutboxSeq> {
    let mut stood = 0;
    for row in view.scan::<Adds>((list, 1)..=(list, past)).rev() {
        let ((_, seq), add) = row?;
        if add.deleted_by.is_none_or(|deleted_by| deleted_by > past) {
            stood += 1;
            if stood == backfill {
                return Ok(seq);
            }
        }
    }
    Ok(1)
}
