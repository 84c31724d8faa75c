//! The fuzz target `snapshots`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_embedded::fuzzed::snapshots(bytes));
