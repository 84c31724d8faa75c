//! An author's adds to one feed in outbox order, living and deleted. A follow counts its backfill in these rows.
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

/// An add, and the record that deleted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddRow {
    pub(crate) key: DisplayKey,
    pub(crate) route: Route,
    /// The track in which the add stands in [`super::Shown`] while its item lives there.
    pub(crate) track: Track,
    /// The record that deleted the add; `None` if no record did.
    pub(crate) deleted_by: Option<OutboxSeq>,
    /// The number of the add among the records of route pull; 0 if the route is another.
    pub(crate) pull_seq: PullSeq,
}

fields!(AddRow { key, route, track, deleted_by, pull_seq });
