//! The fuzz target `told`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_nats::fuzzed::told(bytes));
