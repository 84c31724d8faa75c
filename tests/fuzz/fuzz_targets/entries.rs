//! The fuzz target `entries`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_common::fuzzed::entries(bytes));
