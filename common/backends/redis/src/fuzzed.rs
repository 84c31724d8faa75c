//! The fuzz targets of this crate. `tests/fuzz` searches for inputs that break them, and a test gives them its corpus.
//!
//! Each takes any bytes, and panics if a decoder breaks what it promises.

use crate::inboxes;

/// The bytes that Redis keeps for inboxes: headers, entries, progress and keys. Also the lists that the scripts answer.
pub fn redis_inboxes(bytes: &[u8]) {
    inboxes::fuzzed(bytes);
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/replay.rs"]
mod replay;

#[cfg(test)]
replay::corpus_of! { redis_inboxes }
