//! The fuzz targets of this crate. `tests/fuzz` searches for inputs that break them, and a test gives them its corpus.
//!
//! Each takes any bytes, and panics if a decoder breaks what it promises.

use crate::inboxes;

/// What Redis keeps of inboxes, headers, entries, progress and keys; and the lists that its scripts answer.
pub fn redis_inboxes(bytes: &[u8]) {
    inboxes::fuzzed(bytes);
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/replay.rs"]
mod replay;

#[cfg(test)]
replay::corpus_of! { redis_inboxes }
