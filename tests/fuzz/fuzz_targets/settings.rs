//! The fuzz target `settings`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate::fuzzed::settings(bytes));
