//! The fuzz targets of this crate. `tests/fuzz` searches for inputs that break them, and a test gives them its corpus.
//!
//! Each takes any bytes, and panics if a decoder breaks what it promises.

use crate::{doorbell, jobs};

/// The messages that nodes send to each other.
pub fn told(bytes: &[u8]) {
    doorbell::wire::fuzzed(bytes);
}

/// Jobs as NATS carries them.
pub fn jobs(bytes: &[u8]) {
    jobs::wire::fuzzed(bytes);
}

#[cfg(test)]
#[path = "../../../../tests/fuzz/replay.rs"]
mod replay;

#[cfg(test)]
replay::corpus_of! { told jobs }
