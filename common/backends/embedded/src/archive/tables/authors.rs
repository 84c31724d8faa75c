//! Where an author's outbox ends, since when its push is outstanding, and which way its items go.

use feedgate_common::change::Class;
use feedgate_common::{DisplayKey, Millis, OutboxSeq, PullSeq, UserNo};

use super::{fields, table};
use crate::codec::Code;

table! {
    /// See the module.
    Authors: b'a', Archive, UserNo => AuthorRow
}

/// An author without records, class or followers has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AuthorRow {
    /// The last sequence number given.
    pub(crate) head: OutboxSeq,
    /// When the oldest record that is not fanned out was accepted; 0 if reopened, -1 once somebody was told so. Mirrors
    /// [`super::Due`].
    pub(crate) due: Option<Millis>,
    /// The last add in [`super::Lane::InStep`].
    pub(crate) last_in_step: Option<DisplayKey>,
    /// Whether any add was ever put into [`super::Lane::Aside`].
    pub(crate) has_aside: bool,
    pub(crate) class: Class,
    /// The rows in [`super::Followers`].
    pub(crate) followers: u64,
    /// The number of the newest record of route pull. Mirrors [`super::PullHeads`].
    pub(crate) last_pull: PullSeq,
    /// The same of those that were not imported. Mirrors [`super::ToldHeads`].
    pub(crate) last_told: PullSeq,
    /// The last number that was given to whoever goes through reopened work.
    pub(crate) redo: u64,
}

fields!(AuthorRow { head, due, last_in_step, has_aside, class, followers, last_pull, last_told, redo });

impl Code for Class {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Self::from_u8(u8::take(from)?)
    }
}
