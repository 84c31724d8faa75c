//! The fuzz target `redis_inboxes`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_redis::fuzzed::redis_inboxes(bytes));
