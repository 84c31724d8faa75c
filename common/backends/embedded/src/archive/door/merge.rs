//! Many authors' adds as one display order, downwards.

use std::collections::BinaryHeap;
use std::iter::Rev;
use std::ops::Bound::{Excluded, Included};

use feedgate_common::archive::FeedAdd;
use feedgate_common::error::Result;
use feedgate_common::{DisplayKey, ItemId};

use super::lanes;
use super::window::Window;
use crate::archive::tables::{AuthorRow, Lane, Shown};
use crate::view::{Read, Rows, View};

const LEAST: DisplayKey = DisplayKey { rank: i64::MIN, item: ItemId(0) };
const GREATEST: DisplayKey = DisplayKey { rank: i64::MAX, item: ItemId(u64::MAX) };

/// One lane of one author, newest first.
struct Stream {
    window: Window,
    rows: Rev<Rows<Shown>>,
}

impl Stream {
    fn next(&mut self) -> Result<Option<FeedAdd>> {
        for row in self.rows.by_ref() {
            let ((author, lane, key), add) = row?;
            if add.seq < self.window.low {
                match lane {
                    // In step, everything further down is older in the outbox too.
                    Lane::InStep => return Ok(None),
                    Lane::Aside => continue,
                }
            }
            if self.window.shows(add) {
                let generation = self.window.generation;
                return Ok(Some(FeedAdd { author, outbox_seq: add.seq, generation, key }));
            }
        }
        Ok(None)
    }
}

/// The adds of many windows in display order, newest first, read as they are asked for.
#[derive(Default)]
pub(super) struct Newest {
    streams: Vec<Stream>,
    /// The next add of each stream that has one.
    heads: Vec<Option<FeedAdd>>,
    order: BinaryHeap<(DisplayKey, usize)>,
}

impl Newest {
    /// Adds a window, from strictly below `before` on.
    pub(super) fn open(
        &mut self,
        view: &View,
        window: Window,
        outbox: &AuthorRow,
        before: Option<DisplayKey>,
    ) -> Result<()> {
        for lane in lanes(outbox) {
            let start = Included((window.author, lane, LEAST));
            let end = match before {
                Some(before) => Excluded((window.author, lane, before)),
                None => Included((window.author, lane, GREATEST)),
            };
            self.streams.push(Stream { window, rows: view.scan::<Shown>((start, end)).rev() });
            self.heads.push(None);
            self.refill(self.streams.len() - 1)?;
        }
        Ok(())
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
