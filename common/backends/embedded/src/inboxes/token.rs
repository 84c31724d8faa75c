//! A build in flight, and what push has brought since it began: no IO, no lock.
//!
//! Size: 16 to 25 bytes a note, at most [`NOTES_MAX`] of them.

use feedgate_common::inboxes::{Begun, NOTES_MAX};
use feedgate_common::varint::{put, take};
use feedgate_common::{Entry, Epoch, Generation, packing};

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) epoch: Epoch,
    /// How many notes there are.
    pub(super) count: u64,
    /// They, packed: an entry, then the counter of whoever pushed it.
    pub(super) notes: Vec<u8>,
}

impl Token {
    /// One without notes.
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { epoch, count: 0, notes: Vec::new() }
    }

    /// What a builder is told who finds it.
    pub(super) fn begun(&self) -> Begun {
        Begun { token: self.epoch, notes: self.count }
    }

    /// Notes these, which somebody pushed who knew of the edges up to `counter`. False if that is too much: the token is to go.
    pub(super) fn note(&mut self, entries: impl Iterator<Item = Entry>, counter: Generation) -> bool {
        for entry in entries {
            packing::put(&mut self.notes, &entry, &mut { packing::START });
            put(&mut self.notes, counter);
            self.count += 1;
        }
        self.count <= NOTES_MAX as u64
    }

    /// The notes after the first `from`, in order, each with its counter.
    pub(super) fn notes(&self, from: u64) -> impl Iterator<Item = (Entry, Generation)> + '_ {
        let mut rest = &self.notes[..];
        let note = move || Some((packing::take(&mut rest, &mut { packing::START })?, take(&mut rest)?));
        std::iter::from_fn(note).skip(usize::try_from(from).unwrap_or(usize::MAX))
    }
}
