//! Which adds a feed shows by the truth alone: the follow door, the rebuild and deep pages.
//!
//! ```text
//!   an author's outbox   1 ─────── low ─────── from ─────────── cut ────── head
//!                            not    │ backfill   │  since followed │  push will bring it
//!                            shown  └────────────┴─────────────────┘
//!                                   those that live now are shown
//! ```
//!
//! `low` is the oldest of the newest `backfill` adds that stood in the outbox at `from`. Everything
//! it depends on lies at or below `from`, so it never changes and is remembered.
//!
//! Nothing here reads an author's whole outbox: outbox order is read from `low` up, display order
//! downwards until enough is found or the author's window ends (see [`Lane`]).

mod merge;
mod window;

use std::collections::HashMap;

use feedgate_common::archive::{Built, EdgeState, FeedAdd, FeedState};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::feed::oldest_first;
use feedgate_common::{DisplayKey, OutboxSeq, Progress, UserNo};

use super::lists::{self, edges_on};
use super::tables::{Adds, AuthorRow, Authors, Counters, EdgeRow, Lane};
use crate::view::{Read, View};
use merge::Newest;
use window::{Lows, Window};

/// See the module.
#[derive(Default)]
pub(super) struct Doors {
    lows: Lows,
}

impl Doors {
    /// What a follow step brings.
    pub(super) fn edge_state(
        &self,
        view: &View,
        reader: UserNo,
        author: UserNo,
        progress: Progress,
        backfill: usize,
    ) -> Result<EdgeState> {
        let edge = lists::edge(view, reader, author)?;
        if !edge.on {
            return Ok(EdgeState { edge, adds: vec![] });
        }
        let low = self.lows.low(view, author, edge.from, backfill)?;
        let end = progress.cut_for(reader).max(edge.from);
        let mut adds = vec![];
        for row in view.scan::<Adds>((author, low)..=(author, end)) {
            let ((_, outbox_seq), add) = row?;
            let comes_by_push = add.route == Route::Push;
            if add.deleted_by.is_none() && (outbox_seq <= edge.from || comes_by_push) {
                adds.push(FeedAdd { author, outbox_seq, generation: edge.generation, key: add.key });
            }
        }
        Ok(EdgeState { edge, adds })
    }

    /// What a rebuilt inbox holds.
    pub(super) fn build(
        &self,
        view: &View,
        reader: UserNo,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<Built> {
        let built_at = view.get::<Counters>(&())?.unwrap_or_default().generation;
        let progress: HashMap<UserNo, Progress> = progress.iter().copied().collect();
        let edges = edges_on(view, reader)?;
        let missing: Vec<UserNo> = edges.iter().map(|e| e.0).filter(|author| !progress.contains_key(author)).collect();
        if !missing.is_empty() {
            return Ok(Built::CutsMissing(missing));
        }
        let (mut lagging, mut windows) = (vec![], vec![]);
        for (author, edge) in edges {
            let outbox = view.get::<Authors>(&author)?.unwrap_or_default();
            if outbox.head > progress[&author].done {
                lagging.push(author);
            }
            let cut = progress[&author].cut_for(reader);
            windows.push((self.window(view, author, &edge, cut, backfill)?, outbox));
        }
        let mut adds = newest(view, windows, None, limit.saturating_add(1))?;
        let floor = adds.get(limit).map(|add| add.key);
        adds.truncate(limit);
        Ok(Built::State(FeedState { built_at, adds: oldest_first(adds), floor, taken: Default::default(), lagging }))
    }

    /// A stretch of the feed in display order.
    pub(super) fn feed_below(
        &self,
        view: &View,
        reader: UserNo,
        before: Option<DisplayKey>,
        backfill: usize,
        limit: usize,
    ) -> Result<Vec<FeedAdd>> {
        let mut windows = vec![];
        for (author, edge) in edges_on(view, reader)? {
            let outbox = view.get::<Authors>(&author)?.unwrap_or_default();
            windows.push((self.window(view, author, &edge, OutboxSeq::MAX, backfill)?, outbox));
        }
        newest(view, windows, before, limit)
    }

    fn window(&self, view: &View, author: UserNo, edge: &EdgeRow, cut: OutboxSeq, backfill: usize) -> Result<Window> {
        let low = self.lows.low(view, author, edge.from, backfill)?;
        Ok(Window { author, generation: edge.generation, low, push_up_to: cut.max(edge.from) })
    }
}

/// The newest `limit` adds of all windows strictly below `before`, newest first.
fn newest(
    view: &View,
    windows: Vec<(Window, AuthorRow)>,
    before: Option<DisplayKey>,
    limit: usize,
) -> Result<Vec<FeedAdd>> {
    let mut merge = Newest::default();
    for (window, outbox) in windows {
        merge.open(view, window, &outbox, before)?;
    }
    let mut adds = vec![];
    while adds.len() < limit
        && let Some(add) = merge.next()?
    {
        adds.push(add);
    }
    Ok(adds)
}

/// An author's living items, strictly below `before`, newest first.
pub(super) fn profile(
    view: &View,
    author: UserNo,
    before: Option<DisplayKey>,
    limit: usize,
) -> Result<Vec<DisplayKey>> {
    let outbox = view.get::<Authors>(&author)?.unwrap_or_default();
    let everything = Window { author, generation: 0, low: 0, push_up_to: OutboxSeq::MAX };
    let adds = newest(view, vec![(everything, outbox)], before, limit)?;
    Ok(adds.into_iter().map(|add| add.key).collect())
}

/// The lanes an author has anything in.
fn lanes(outbox: &AuthorRow) -> impl Iterator<Item = Lane> {
    let in_step = outbox.last_in_step.is_some().then_some(Lane::InStep);
    let aside = outbox.has_aside.then_some(Lane::Aside);
    in_step.into_iter().chain(aside)
}
