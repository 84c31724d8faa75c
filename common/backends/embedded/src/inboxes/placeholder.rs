//! A build of an inbox that is under way, with the records that push has brought since the build began: no IO, no lock.
//!
//! Size: 16 to 25 bytes for each note, at most [`NOTES_MAX`] notes.

use feedgate_common::inboxes::{Begun, NOTES_MAX};
use feedgate_common::varint::{put, take};
use feedgate_common::{Entry, Epoch, Generation, packing};

/// The placeholder of the build that is in flight for one inbox, with its notes.
#[derive(Debug, Clone)]
pub(super) struct Placeholder {
    pub(super) epoch: Epoch,
    /// How many notes there are.
    pub(super) count: u64,
    /// The packed notes: each is an entry, then the newest edge generation known to the worker that pushed it.
    pub(super) notes: Vec<u8>,
}

impl Placeholder {
    /// The placeholder of a build that has just begun, without notes.
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { epoch, count: 0, notes: Vec::new() }
    }

    /// The answer to a builder that finds this build in flight.
    pub(super) fn begun(&self) -> Begun {
        Begun { placeholder: self.epoch, notes: self.count }
    }

    /// Keeps these entries as notes. `counter` is the newest edge generation known to the worker that pushed them.
    /// Answers false if there are too many notes; then the caller removes the placeholder.
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
