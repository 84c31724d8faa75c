//! Which adds a feed shows according to the Archive alone: for a follow step, a rebuild and deep pages.
//!
//! ```text
//!   an author's outbox   1 ─────── low ─────── past ─── from ──────── cut ────── head
//!                            not    │ backfill   │ long   │  since     │  push will bring it
//!                            shown  │            │ past   │  followed  │
//!                                   └────────────┴────────┴────────────┘
//!                                      those that live now are shown
//! ```
//!
//! `from` is the author's head at the follow. `past` is `from`, or an earlier place if the follow was imported, or 0 if
//! it shows the whole past. Of a long past, which is all from `past` to `from`, a follow step brings only the newest.
//! `low` is the oldest of the newest `backfill` adds that stood in the outbox at `past`. `low` depends only on records
//! at or below `past`, so it never changes and is remembered. If a reader follows an author only because everyone does,
//! nothing at or below `past` is shown. All of this concerns one feed: an author's adds to other feeds are not shown,
//! counted or read.
//!
//! Nothing here reads an author's whole outbox. Outbox order is read from `low` up; display order is read downwards
//! until enough is found or the author's span ends (see [`Track`]).

mod merge;
mod span;

use feedgate_common::accept::EdgeRow as Held;
use feedgate_common::archive::{Below, EDGE_ADDS_MAX, EdgeState, EdgeStates, FeedAdd, FeedState};
use feedgate_common::error::Result;
use feedgate_common::feed::first_log;
use feedgate_common::rules::{ahead_of_push, backfill_of, is_for, is_past};
use feedgate_common::{
    Cut, DisplayKey, FeedId, InboxKey, Op, OutboxSeq, Progress, PullSeq, Record, UserNo, Watermarks,
};

use super::tables::{AddRow, Adds, AuthorFeed, AuthorRow, Authors, Counters, DirectHeads, EdgeRow, Track};
use super::{audiences, feeds, people};
use crate::view::{Read, View};
use merge::Newest;
use span::{Lows, Span};

/// Answers which adds a feed shows, and remembers where backfills begin.
#[derive(Default)]
pub(super) struct Contents {
    lows: Lows,
}

impl Contents {
    /// The edges of a reader to some authors, and for each feed what a follow step appends. If there are too many adds,
    /// the answer has only the first of these authors, but at least one.
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
        let (edge, quiet) = (row.held.edge(), row.quiet);
        if !edge.on {
            return Ok(EdgeState { edge, adds: vec![], floor: None, quiet });
        }
        let outbox = view.get::<Authors>(&author)?.unwrap_or_default();
        let mut adds = self.since(view, (reader, list), (row.held, &outbox), cut, backfill)?;
        if adds.len() > EDGE_ADDS_MAX {
            return Ok(EdgeState { edge, adds, floor: None, quiet });
        }
        let past = Span { list, generation: edge.generation, low: row.held.past().saturating_add(1), high: edge.from };
        let (newest, floor) = newest_of(view, (past, &outbox), reader, backfill)?;
        adds.extend(newest);
        adds.sort_unstable_by_key(|add| add.outbox_seq);
        Ok(EdgeState { edge, adds, floor, quiet })
    }

    /// The adds that an edge that is on shows, without those of a long past, in outbox order; of too many adds, only
    /// the first.
    fn since(
        &self,
        view: &View,
        (reader, list): (UserNo, AuthorFeed),
        (held, outbox): (Held, &AuthorRow),
        cut: Cut,
        backfill: usize,
    ) -> Result<Vec<FeedAdd>> {
        let (edge, past, AuthorFeed { feed, author }) = (held.edge(), held.past(), list);
        let low = self.low(view, list, held, backfill)?;
        let pushed = cut.progress.cut_for(reader).max(edge.from);
        let end = if outbox.last_pull > 0 { OutboxSeq::MAX } else { pushed };
        let (own, mut adds) = (author == reader, vec![]);
        let since = view.scan::<Adds>((list, edge.from.saturating_add(1))..=(list, end));
        for row in view.scan::<Adds>((list, low)..=(list, past)).chain(since) {
            let ((_, outbox_seq), add) = row?;
            let AddRow { key, route, pull_seq, .. } = add;
            let record = Record { seq: outbox_seq, op: Op::Add, route, feed, key };
            let reached = outbox_seq <= edge.from || is_past(cut, reader, &record, pull_seq);
            if !reached && outbox_seq > pushed && pull_seq > cut.pull {
                // Pull numbers ascend with the outbox, so no later add is reached.
                break;
            }
            if reached && add.deleted_by.is_none() && is_for(route, own, || audiences::has(view, key.item, reader))? {
                adds.push(FeedAdd { author, outbox_seq, generation: edge.generation, key });
                if adds.len() > EDGE_ADDS_MAX {
                    break;
                }
            }
        }
        Ok(adds)
    }

    /// The content of a rebuilt inbox: its newest `limit` adds, and how far they reach.
    pub(super) fn build(
        &self,
        view: &View,
        key: InboxKey,
        progress: &[(UserNo, Progress)],
        backfill: usize,
        limit: usize,
    ) -> Result<FeedState> {
        let counters = view.get::<Counters>(&())?.unwrap_or_default();
        let spans = self.spans(view, key, backfill)?;
        let outboxes = spans.iter().map(|(span, outbox)| (span.list.author, span.generation, outbox.head));
        let ahead = ahead_of_push(outboxes, progress);
        let newest = newest(view, spans, Some(key), Below::newest(limit.saturating_add(1)))?;
        let (adds, floor) = first_log(newest, limit);
        let direct = view.get::<DirectHeads>(&key.reader)?.unwrap_or_default().head;
        let taken = Watermarks { pull: counters.pull, direct };
        Ok(FeedState { built_at: counters.generation, adds, floor, taken, ahead })
    }

    /// A part of the feed in display order, newest first.
    pub(super) fn feed_below(&self, view: &View, key: InboxKey, below: Below, backfill: usize) -> Result<Vec<FeedAdd>> {
        newest(view, self.spans(view, key, backfill)?, Some(key), below)
    }

    /// What each edge of the reader that is on shows of the feed, with the author's outbox.
    fn spans(&self, view: &View, key: InboxKey, backfill: usize) -> Result<Vec<(Span, AuthorRow)>> {
        let span = |(author, EdgeRow { held, .. })| {
            let list = AuthorFeed { feed: key.feed, author };
            let low = self.low(view, list, held, backfill)?;
            let span = Span { list, generation: held.generation, low, high: OutboxSeq::MAX };
            Ok((span, view.get::<Authors>(&author)?.unwrap_or_default()))
        };
        people::edges(view, key.reader)?.into_iter().map(span).collect()
    }

    /// Where the span of an edge begins.
    fn low(&self, view: &View, list: AuthorFeed, held: Held, backfill: usize) -> Result<OutboxSeq> {
        self.lows.low(view, list, held.past(), backfill_of(held.generation, backfill))
    }
}

/// The part that [`Below`] describes of the adds of all spans, and of what is addressed to the reader of `to` in its
/// feed, newest first.
fn newest(view: &View, spans: Vec<(Span, AuthorRow)>, to: Option<InboxKey>, below: Below) -> Result<Vec<FeedAdd>> {
    let mut merge = Newest::default();
    for (span, outbox) in spans {
        merge.open(view, span, &outbox, (to.map(|inbox| inbox.reader), below))?;
    }
    if let Some(inbox) = to {
        merge.open_direct(view, inbox, below)?;
    }
    let mut adds = vec![];
    while adds.len() < below.limit
        && let Some(add) = merge.next(view)?
    {
        adds.push(add);
    }
    Ok(adds)
}

/// The newest adds of a span that the reader sees, at most `limit`, and the key of the next one.
fn newest_of(
    view: &View,
    (span, outbox): (Span, &AuthorRow),
    reader: UserNo,
    limit: usize,
) -> Result<(Vec<FeedAdd>, Option<DisplayKey>)> {
    let mut merge = Newest::default();
    if span.low <= span.high {
        merge.open(view, span, outbox, (Some(reader), Below::newest(limit)))?;
    }
    let mut adds = vec![];
    while let Some(add) = merge.next(view)? {
        if adds.len() == limit {
            return Ok((adds, Some(add.key)));
        }
        adds.push(add);
    }
    Ok((adds, None))
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
    let everything = Span { list: AuthorFeed { feed, author }, generation: 0, low: 0, high: OutboxSeq::MAX };
    let below = Below { before, ..Below::newest(limit) };
    let adds = newest(view, vec![(everything, outbox)], None, below)?;
    Ok(adds.into_iter().map(|add| add.key).collect())
}

/// The tracks in which an author has anything.
fn tracks(outbox: &AuthorRow) -> impl Iterator<Item = Track> {
    let in_step = outbox.last_in_step.is_some().then_some(Track::InStep);
    let aside = outbox.has_aside.then_some(Track::Aside);
    in_step.into_iter().chain(aside)
}
