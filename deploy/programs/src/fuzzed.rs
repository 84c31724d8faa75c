//! The fuzz targets of this crate. `tests/fuzz` searches for inputs that break them, and a test gives them its corpus.
//!
//! Each takes any bytes, and panics if a decoder breaks what it promises.

/// A file of settings, and variables beside it.
pub fn settings(bytes: &[u8]) {
    crate::layers::fuzzed(bytes);
}

#[cfg(test)]
#[path = "../../../tests/fuzz/replay.rs"]
mod replay;

#[cfg(test)]
replay::corpus_of! { settings }
