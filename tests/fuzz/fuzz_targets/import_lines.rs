//! The fuzz target `import_lines`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_gateway::fuzzed::import_lines(bytes));
