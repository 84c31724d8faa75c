//! The fuzz target `commands_protobuf`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| feedgate_gateway::fuzzed::commands_protobuf(bytes));
