//! The fuzz target `proxy_headers`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_gateway::fuzzed::proxy_headers(bytes));
