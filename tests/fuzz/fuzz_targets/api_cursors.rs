//! The fuzz target `api_cursors`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_gateway::fuzzed::api_cursors(bytes));
