//! Merges the adds of many authors, and what is addressed to the reader, into display order, newest first.

use std::collections::BinaryHeap;
use std::iter::Rev;
use std::ops::Bound::{self, Excluded, Included};

use feedgate_common::archive::{Below, FeedAdd};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::rules::is_for;
use feedgate_common::{DisplayKey, InboxKey, ItemId, UserNo};

use super::span::Span;
use super::tracks;
use crate::archive::audiences;
use crate::archive::tables::{AuthorFeed, AuthorRow, DirectShown, Shown, ShownRow, Track};
use crate::view::{Read, Rows, View};

/// The range of `below` in a table. `key` makes the table's key of a place in display order.
fn range<Key>(below: Below, key: impl Fn(DisplayKey) -> Key) -> (Bound<Key>, Bound<Key>) {
    let least = below.least_rank.map_or(DisplayKey::LEAST, |rank| DisplayKey { rank, item: ItemId(0) });
    let end = below.before.map_or_else(|| Included(key(DisplayKey::GREATEST)), |before| Excluded(key(before)));
    (Included(key(least)), end)
}

/// A sorted source of adds, read newest first.
enum Stream {
    /// One track of one author, in one feed.
    Track { span: Span, rows: Rev<Rows<Shown>>, reader: Option<UserNo> },
    /// What is addressed to the reader in one feed.
    Direct { rows: Rev<Rows<DirectShown>> },
}

impl Stream {
    fn next(&mut self, view: &View) -> Result<Option<FeedAdd>> {
        let (span, rows, reader) = match self {
            Self::Track { span, rows, reader } => (span, rows, *reader),
            Self::Direct { rows } => {
                let add = |((_, key), author)| FeedAdd { author, outbox_seq: 0, generation: 0, key };
                return Ok(rows.next().transpose()?.map(add));
            }
        };
        for row in rows.by_ref() {
            let ((AuthorFeed { author, .. }, track, key), ShownRow { seq: outbox_seq, narrowed }) = row?;
            if outbox_seq > span.high {
                continue;
            }
            if outbox_seq >= span.low {
                if narrowed && !for_reader(view, (key.item, author), reader)? {
                    continue;
                }
                return Ok(Some(FeedAdd { author, outbox_seq, generation: span.generation, key }));
            }
            // On this track, an add further down is older in the outbox too.
            if track == Track::InStep {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// Whether a narrowed item is for the reader. Without a reader, all items are.
fn for_reader(view: &View, (item, author): (ItemId, UserNo), reader: Option<UserNo>) -> Result<bool> {
    let Some(reader) = reader else { return Ok(true) };
    is_for(Route::Narrow, author == reader, || audiences::has(view, item, reader))
}

/// The adds of many spans in display order, newest first, read as they are asked for.
#[derive(Default)]
pub(super) struct Newest {
    streams: Vec<Stream>,
    /// The next add of each stream that has one left.
    heads: Vec<Option<FeedAdd>>,
    order: BinaryHeap<(DisplayKey, usize)>,
}

impl Newest {
    /// Adds the living adds of one author's span to the merge; if a reader is named, only the narrowed items that are
    /// for the reader.
    pub(super) fn open(
        &mut self,
        view: &View,
        span: Span,
        outbox: &AuthorRow,
        (reader, below): (Option<UserNo>, Below),
    ) -> Result<()> {
        for track in tracks(outbox) {
            let rows = view.scan::<Shown>(range(below, |key| (span.list, track, key))).rev();
            self.add(view, Stream::Track { span, rows, reader })?;
        }
        Ok(())
    }

    /// Adds what is addressed to the reader in this feed to the merge.
    pub(super) fn open_direct(&mut self, view: &View, inbox: InboxKey, below: Below) -> Result<()> {
        self.add(view, Stream::Direct { rows: view.scan::<DirectShown>(range(below, |key| (inbox, key))).rev() })
    }

    fn add(&mut self, view: &View, stream: Stream) -> Result<()> {
        self.streams.push(stream);
        self.heads.push(None);
        self.refill(view, self.streams.len() - 1)
    }

    pub(super) fn next(&mut self, view: &View) -> Result<Option<FeedAdd>> {
        let Some((_, stream)) = self.order.pop() else { return Ok(None) };
        let add = self.heads[stream].take();
        self.refill(view, stream)?;
        Ok(add)
    }

    fn refill(&mut self, view: &View, stream: usize) -> Result<()> {
        self.heads[stream] = self.streams[stream].next(view)?;
        self.order.extend(self.heads[stream].map(|add| (add.key, stream)));
        Ok(())
    }
}
