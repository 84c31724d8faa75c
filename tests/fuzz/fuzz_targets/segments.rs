//! The fuzz target `segments`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_embedded::fuzzed::segments(bytes));
