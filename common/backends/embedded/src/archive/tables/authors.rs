//! Authors: where the outbox ends, since when its push is outstanding, and by which class the route of items is chosen.

use feedgate_common::change::Class;
use feedgate_common::{DisplayKey, Millis, OutboxSeq, PullSeq, UserNo};

use super::{fields, table};

table! {
    /// The row of each author; an author without records, class or followers has no row.
    Authors: b'a', Archive, UserNo => AuthorRow
}

/// What is stored of an author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AuthorRow {
    /// The sequence number of the author's newest record.
    pub(crate) head: OutboxSeq,
    /// When the oldest record that is not fanned out was accepted; 0 if the push was reopened, -1 once a worker was
    /// told so. Mirrors [`super::Due`].
    pub(crate) due: Option<Millis>,
    /// The newest add in [`super::Track::InStep`].
    pub(crate) last_in_step: Option<DisplayKey>,
    /// Whether any add was ever put into [`super::Track::Aside`].
    pub(crate) has_aside: bool,
    pub(crate) class: Class,
    /// How many rows the author has in [`super::Followers`].
    pub(crate) followers: u64,
    /// The number of the newest record of route pull. Mirrors [`super::PullHeads`].
    pub(crate) last_pull: PullSeq,
    /// The number of the newest record of route pull that was not imported. Mirrors [`super::ToldHeads`].
    pub(crate) last_told: PullSeq,
    /// The last number that was given to a worker that goes through a reopened push again.
    pub(crate) redo: u64,
}

fields!(AuthorRow { head, due, last_in_step, has_aside, class, followers, last_pull, last_told, redo });
