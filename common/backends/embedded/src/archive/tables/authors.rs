//! Where an author's outbox ends, and since when its push is outstanding.

use feedgate_common::{DisplayKey, Millis, OutboxSeq, UserNo};

use super::{fields, table};

table! {
    /// See the module.
    Authors: b'a', Archive, UserNo => AuthorRow
}

/// An author without records has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AuthorRow {
    /// The last sequence number given.
    pub(crate) head: OutboxSeq,
    /// When the oldest record that is not fanned out was accepted; 0 if reopened. Mirrors
    /// [`super::Due`].
    pub(crate) due: Option<Millis>,
    /// The last add in [`super::Lane::InStep`].
    pub(crate) last_in_step: Option<DisplayKey>,
    /// Whether any add was ever put into [`super::Lane::Aside`].
    pub(crate) has_aside: bool,
}

fields!(AuthorRow { head, due, last_in_step, has_aside });
