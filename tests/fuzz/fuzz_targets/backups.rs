//! The fuzz target `backups`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_embedded::fuzzed::backups(bytes));
