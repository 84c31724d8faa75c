//! The worker on real embedded stores.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics where it fails, after naming its seed")]

mod drain;
mod fan_out;
mod faults;
mod narrowed;
mod pull;
mod push;
mod resume;
mod shares;
mod town;
mod trouble;
