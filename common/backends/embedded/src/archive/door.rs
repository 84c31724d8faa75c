//! Which adds a feed shows according to the Archive alone: for a follow step, a rebuild and deep pages.
//!
//! ```text
//!   an author's outbox   1 ─────── low ─────── from ─────────── cut ────── head
//!                            not    │ backfill   │  since followed │  push will bring it
//!                            shown  └────────────┴─────────────────┘
//!                                   those that live now are shown
//! ```
//!
//! `low` is the oldest of the newest `backfill` adds that stood in the outbox at `from`. All that it depends on lies at
//! or below `from`, so it never changes and is remembered. If a reader follows an author only because everyone does,
//! nothing at or below `from` is shown. All of this concerns one feed: an author's adds to other feeds are not shown,
//! counted or read.
//!
//! Nothing here reads an author's whole outbox. Outbox order is read from `low` up; display order is read downwards
//! until enough is found or the author's window ends (see [`Lane`]).

mod merge;
mod window;

use std::collections::HashMap;

use feedgate_common::archive::{EDGE_ADDS_MAX, EdgeState, EdgeStates, FeedAdd, FeedState};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::feed::oldest_first;
use feedgate_common::{Cut, DisplayKey, FeedId, InboxKey, OutboxSeq, Progress, PullSeq, UserNo, Watermarks};

use super::tables::{Adds, AuthorFeed, AuthorRow, Authors, Counters, DirectHeads, EdgeRow, Lane};
use super::{feeds, people};
use crate::view::{Read, View};
use merge::Newest;
pub(super) use merge::Stretch;
use window::{Lows, Window};

/// Answers which adds a feed shows. It remembers where backfills begin.
#[derive(Default)]
pub(super) struct Doors {
    lows: Lows,
}

impl Doors {
    /// The edges of a reader to some authors, and for each feed what a follow step appends. With too many adds the
    /// answer ends early, after one author at least.
    pub(super) fn edge_states(
        &self,
        view: &View,
        reader: UserNo,
        of: &[(UserNo, Progress)],
        pulled: &[(FeedId, PullSeq)],
        backfill: usize,
    ) -> Result<EdgeStates> {
        let (mut edges, mut states, mut adds) = (vec![], vec![vec![]; pulled.len()], vec![0; pulled.len()]);
        for &(author, progress) in of {
            let mut shown = Vec::with_capacity(pulled.len());
            for (&(feed, pull), adds) in pulled.iter().zip(&mut adds) {
                let state =
                    self.edge_state(view, InboxKey { reader, feed }, author, Cut { progress, pull }, backfill)?;
                *adds += state.adds.len();
                shown.push(state);
            }
            if !edges.is_empty() && adds.iter().any(|adds| *adds > EDGE_ADDS_MAX) {
                break;
            }
            edges.push(people::edge(view, reader, author)?);
            states.iter_mut().zip(shown).for_each(|(states, state)| states.push(state));
        }
        Ok(EdgeStates { edges, feeds: feeds::all(view)?, states })
    }

    fn edge_state(
        &self,
        view: &View,
        InboxKey { reader, feed }: InboxKey,
        author: UserNo,
        cut: Cut,
        backfill: usize,
    ) -> Result<EdgeState> {
        let list = AuthorFeed { feed, author };
        let row = people::held(view, reader, author)?;
        let (edge, quiet) = (row.edge(), row.quiet);
        if !edge.on {
            return Ok(EdgeState { edge, adds: vec![], quiet });
        }
        let low = self.low(view, list, &row, backfill)?;
        let pushed = cut.progress.cut_for(reader).max(edge.from);
        let has_pulls = view.get::<Authors>(&author)?.is_some_and(|row| row.last_pull > 0);
        let end = if has_pulls { OutboxSeq::MAX } else { pushed };
        let mut adds = vec![];
        for row in view.scan::<Adds>((list, low)..=(list, end)) {
            let ((_, outbox_seq), add) = row?;
            let reached = match add.route {
                Route::Push => outbox_seq <= pushed,
                Route::Pull => outbox_seq <= edge.from || add.pull_seq <= cut.pull,
            };
            if !reached && outbox_seq > pushed && add.pull_seq > cut.pull {
                // Pull numbers ascend with the outbox, so no later add is reached.
                break;
            }
            if reached && add.deleted_by.is_none() {
                adds.push(FeedAdd { author, outbox_seq, generation: edge.generation, key: add.key });
                if adds.len() > EDGE_ADDS_MAX {
                    break;
                }
            }
        }
        Ok(EdgeState { edge, adds, quiet })
    }

    /// The content of a rebuilt inbox: its newest `limit` adds, and how far they reach.
    pub(super) fn build(
        &self,
        view: &View,
        key @ InboxKey { reader, feed }: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState> {
        let counters = view.get::<Counters>(&())?.unwrap_or_default();
        let progress: HashMap<UserNo, Progress> = progress.iter().copied().collect();
        let (mut ahead, mut windows) = (vec![], vec![]);
        for (author, edge) in people::edges(view, reader)? {
            let outbox = view.get::<Authors>(&author)?.unwrap_or_default();
            // A reader who follows only because everyone does is never pushed to.
            let pushed = edge.generation > 0;
            if pushed && outbox.head > progress.get(&author).map_or(0, |progress| progress.done) {
                ahead.push((author, outbox.head));
            }
            windows.push((self.window(view, AuthorFeed { feed, author }, &edge, OutboxSeq::MAX, backfill)?, outbox));
        }
        let mut adds = newest(view, windows, Some(key), Stretch::default(), limit.saturating_add(1))?;
        let floor = adds.get(limit).map(|add| add.key);
        adds.truncate(limit);
        let direct = view.get::<DirectHeads>(&reader)?.unwrap_or_default().head;
        let taken = Watermarks { pull: counters.pull, direct };
        Ok(FeedState { built_at: counters.generation, adds: oldest_first(adds), floor, taken, ahead })
    }

    /// At most `limit` adds of the feed within `stretch`, in display order, newest first.
    pub(super) fn feed_below(
        &self,
        view: &View,
        key: InboxKey,
        stretch: Stretch,
        backfill: usize,
        limit: usize,
    ) -> Result<Vec<FeedAdd>> {
        let mut windows = vec![];
        for (author, edge) in people::edges(view, key.reader)? {
            let list = AuthorFeed { feed: key.feed, author };
            let outbox = view.get::<Authors>(&author)?.unwrap_or_default();
            windows.push((self.window(view, list, &edge, OutboxSeq::MAX, backfill)?, outbox));
        }
        newest(view, windows, Some(key), stretch, limit)
    }

    fn window(&self, view: &View, list: AuthorFeed, edge: &EdgeRow, cut: OutboxSeq, backfill: usize) -> Result<Window> {
        let low = self.low(view, list, edge, backfill)?;
        Ok(Window { list, generation: edge.generation, low, push_up_to: cut.max(edge.from) })
    }

    /// Where the window of an edge begins. A reader who follows only because everyone does never followed by itself,
    /// and gets no adds from before.
    fn low(&self, view: &View, list: AuthorFeed, edge: &EdgeRow, backfill: usize) -> Result<OutboxSeq> {
        self.lows.low(view, list, edge.past, if edge.generation == 0 { 0 } else { backfill })
    }
}

/// The newest `limit` adds of all windows, and of what is addressed to the reader of `to` in its feed, newest first.
fn newest(
    view: &View,
    windows: Vec<(Window, AuthorRow)>,
    to: Option<InboxKey>,
    stretch: Stretch,
    limit: usize,
) -> Result<Vec<FeedAdd>> {
    let mut merge = Newest::default();
    for (window, outbox) in windows {
        merge.open(view, window, &outbox, stretch)?;
    }
    if let Some(inbox) = to {
        merge.open_direct(view, inbox, stretch)?;
    }
    let mut adds = vec![];
    while adds.len() < limit
        && let Some(add) = merge.next()?
    {
        adds.push(add);
    }
    Ok(adds)
}

/// An author's living items of one feed, strictly below `before`, newest first.
pub(super) fn profile(
    view: &View,
    author: UserNo,
    feed: FeedId,
    before: Option<DisplayKey>,
    limit: usize,
) -> Result<Vec<DisplayKey>> {
    let outbox = view.get::<Authors>(&author)?.unwrap_or_default();
    let everything = Window { list: AuthorFeed { feed, author }, generation: 0, low: 0, push_up_to: OutboxSeq::MAX };
    let stretch = Stretch { before, least_rank: None };
    let adds = newest(view, vec![(everything, outbox)], None, stretch, limit)?;
    Ok(adds.into_iter().map(|add| add.key).collect())
}

/// The lanes in which an author has anything.
fn lanes(outbox: &AuthorRow) -> impl Iterator<Item = Lane> {
    let in_step = outbox.last_in_step.is_some().then_some(Lane::InStep);
    let aside = outbox.has_aside.then_some(Lane::Aside);
    in_step.into_iter().chain(aside)
}
