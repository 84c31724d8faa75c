//! The fuzz target `bodies`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_gateway::fuzzed::bodies(bytes));
