//! Merges the adds of many authors, and what is addressed to the reader, into display order, newest first.

use std::collections::BinaryHeap;
use std::iter::Rev;
use std::ops::Bound::{self, Excluded, Included};

use feedgate_common::archive::FeedAdd;
use feedgate_common::error::Result;
use feedgate_common::{DisplayKey, InboxKey, ItemId};

use super::lanes;
use super::window::Window;
use crate::archive::tables::{AuthorFeed, AuthorRow, DirectShown, Lane, Shown};
use crate::view::{Read, Rows, View};

const LEAST: DisplayKey = DisplayKey { rank: i64::MIN, item: ItemId(0) };
const GREATEST: DisplayKey = DisplayKey { rank: i64::MAX, item: ItemId(u64::MAX) };

/// The part of display order that is read.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::archive) struct Stretch {
    /// Only adds strictly below this key; all if `None`.
    pub(in crate::archive) before: Option<DisplayKey>,
    /// Only adds of at least this rank; all if `None`.
    pub(in crate::archive) least_rank: Option<i64>,
}

impl Stretch {
    /// The range of this part in a table. `key` makes the table's key of a place in display order.
    fn range<Key>(self, key: impl Fn(DisplayKey) -> Key) -> (Bound<Key>, Bound<Key>) {
        let least = self.least_rank.map_or(LEAST, |rank| DisplayKey { rank, item: ItemId(0) });
        let end = self.before.map_or_else(|| Included(key(GREATEST)), |before| Excluded(key(before)));
        (Included(key(least)), end)
    }
}

/// A sorted source of adds, read newest first.
enum Stream {
    /// One lane of one author, in one feed.
    Lane { window: Window, rows: Rev<Rows<Shown>> },
    /// What is addressed to the reader in one feed.
    Direct { rows: Rev<Rows<DirectShown>> },
}

impl Stream {
    fn next(&mut self) -> Result<Option<FeedAdd>> {
        let (window, rows) = match self {
            Self::Lane { window, rows } => (window, rows),
            Self::Direct { rows } => {
                let add = |((_, key), author)| FeedAdd { author, outbox_seq: 0, generation: 0, key };
                return Ok(rows.next().transpose()?.map(add));
            }
        };
        for row in rows.by_ref() {
            let ((AuthorFeed { author, .. }, lane, key), outbox_seq) = row?;
            if outbox_seq >= window.low {
                return Ok(Some(FeedAdd { author, outbox_seq, generation: window.generation, key }));
            }
            // In this lane, an add further down is older in the outbox too.
            if lane == Lane::InStep {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

/// The adds of many windows in display order, newest first, read as they are asked for.
#[derive(Default)]
pub(super) struct Newest {
    streams: Vec<Stream>,
    /// The next add of each stream that has one left.
    heads: Vec<Option<FeedAdd>>,
    order: BinaryHeap<(DisplayKey, usize)>,
}

impl Newest {
    /// Adds the living adds of one author's window to the merge.
    pub(super) fn open(&mut self, view: &View, window: Window, outbox: &AuthorRow, stretch: Stretch) -> Result<()> {
        for lane in lanes(outbox) {
            let rows = view.scan::<Shown>(stretch.range(|key| (window.list, lane, key))).rev();
            self.add(Stream::Lane { window, rows })?;
        }
        Ok(())
    }

    /// Adds what is addressed to the reader in this feed to the merge.
    pub(super) fn open_direct(&mut self, view: &View, inbox: InboxKey, stretch: Stretch) -> Result<()> {
        self.add(Stream::Direct { rows: view.scan::<DirectShown>(stretch.range(|key| (inbox, key))).rev() })
    }

    fn add(&mut self, stream: Stream) -> Result<()> {
        self.streams.push(stream);
        self.heads.push(None);
        self.refill(self.streams.len() - 1)
    }

    pub(super) fn next(&mut self) -> Result<Option<FeedAdd>> {
        let Some((_, stream)) = self.order.pop() else { return Ok(None) };
        let add = self.heads[stream].take();
        self.refill(stream)?;
        Ok(add)
    }

    fn refill(&mut self, stream: usize) -> Result<()> {
        self.heads[stream] = self.streams[stream].next()?;
        self.order.extend(self.heads[stream].map(|add| (add.key, stream)));
        Ok(())
    }
}
