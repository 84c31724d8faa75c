//! An author's living adds to one feed in display order, in two lanes.
//!
//! ```text
//!   in step   each newer in both orders than the one before: outbox order *is* display order
//!   aside     the others: backdated, or with a rank of the business's own
//! ```
//!
//! A reader who followed late sees no add below some outbox sequence number. In step, the first
//! such add ends the search; without the lanes it would go on through the author's whole past. An author has one pair of
//! lanes for all feeds: what is in step among all is in step among those of one.

use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, OutboxSeq};

use super::{AuthorFeed, fields, table};
use crate::codec::Code;

table! {
    /// See the module.
    Shown: b's', Archive, (AuthorFeed, Lane, DisplayKey) => ShownRow
}

/// Of an add, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    InStep = 0,
    Aside = 1,
}

/// Where the add stands in the outbox, and its door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShownRow {
    pub(crate) seq: OutboxSeq,
    pub(crate) route: Route,
}

fields!(ShownRow { seq, route });

impl Code for Lane {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(Self::InStep),
            1 => Some(Self::Aside),
            _ => None,
        }
    }
}
