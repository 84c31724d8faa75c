//! The outbox: an author's change log.

use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, FeedId, Millis, Op, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// The records of each author by sequence number, dense from 1. Records are never removed.
    Records: b'r', Archive, (UserNo, OutboxSeq) => RecordRow
}

/// A record, and when it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordRow {
    pub(crate) op: Op,
    pub(crate) route: Route,
    pub(crate) key: DisplayKey,
    pub(crate) at: Millis,
    pub(crate) feed: FeedId,
    /// Whether the record was imported: then nobody is told of it.
    pub(crate) history: bool,
}

fields!(RecordRow { op, route, key, at, feed, history });
