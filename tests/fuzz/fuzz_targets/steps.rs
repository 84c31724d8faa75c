//! The fuzz target `steps`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_embedded::fuzzed::steps(bytes));
