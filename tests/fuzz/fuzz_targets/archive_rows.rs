//! The fuzz target `archive_rows`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_embedded::fuzzed::archive_rows(bytes));
