//! The fuzz target `cursors`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_common::fuzzed::cursors(bytes));
