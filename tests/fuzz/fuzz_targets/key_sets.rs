//! The fuzz target `key_sets`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_gateway::fuzzed::key_sets(bytes));
