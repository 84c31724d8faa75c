//! An author's adds to one feed in outbox order, living and deleted. A follow counts its backfill in them.
//!
//! A deleted add stays, with the record that deleted it. A follow counts the newest adds as the outbox stood when the
//! follow began, so an add that was deleted later is still counted.

use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, OutboxSeq, PullSeq};

use super::{AuthorFeed, Track, fields, table};

table! {
    /// The add at each place of an author's outbox, by feed.
    Adds: b'd', Archive, (AuthorFeed, OutboxSeq) => AddRow
}

/// An add, and what deleted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddRow {
    pub(crate) key: DisplayKey,
    pub(crate) route: Route,
    /// The track in which it stands in [`super::Shown`] while it lives.
    pub(crate) track: Track,
    /// The record that deleted it.
    pub(crate) deleted_by: Option<OutboxSeq>,
    /// 0 if its route is push.
    pub(crate) pull_seq: PullSeq,
}

fields!(AddRow { key, route, track, deleted_by, pull_seq });
