//! An author's adds to one feed in outbox order, living and deleted. A follow counts its backfill in them.
//!
//! A deleted add stays, with the record that deleted it, because "the newest K up to `from`" means
//! as the outbox stood at `from`: an add deleted later still takes its place among the K.

use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, OutboxSeq, PullSeq};

use super::{AuthorFeed, Lane, fields, table};

table! {
    /// The add at each place of an author's outbox, by feed.
    Adds: b'd', Archive, (AuthorFeed, OutboxSeq) => AddRow
}

/// An add, and what deleted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddRow {
    pub(crate) key: DisplayKey,
    pub(crate) route: Route,
    /// The lane in which it stands in [`super::Shown`] while it lives.
    pub(crate) lane: Lane,
    /// The record that deleted it.
    pub(crate) deleted_by: Option<OutboxSeq>,
    /// 0 if its route is push.
    pub(crate) pull_seq: PullSeq,
}

fields!(AddRow { key, route, lane, deleted_by, pull_seq });
