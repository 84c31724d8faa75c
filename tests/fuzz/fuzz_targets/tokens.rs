//! The fuzz target `tokens`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_gateway::fuzzed::tokens(bytes));
