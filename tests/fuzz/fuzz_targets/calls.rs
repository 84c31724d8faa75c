//! The fuzz target `calls`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_common::fuzzed::calls(bytes));
