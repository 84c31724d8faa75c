//! `feedgate`: gateway and timeline worker in one process over embedded storage, and the command
//! line that talks to it.
//!
//! ```text
//!   cli ─┬─ serve ──▶ layers ▶ settings ▶ data, secrets ▶ stores ▶ gateway + worker ▶ until a signal
//!        ├─ token, publish, follow, unfollow, feed ──▶ api (HTTP) ──▶ the running server
//!        ├─ tail ──▶ device (WebSocket) ──▶ the running server
//!        └─ check-config, default-config
//! ```
//!
//! Exit codes: 0 done or stopped as asked, 1 an error (said on stderr), 2 a wrong command line, 130 a
//! second Ctrl-C.

mod api;
mod banner;
mod cli;
mod commands;
mod data;
mod device;
mod layers;
mod ports;
mod secrets;
mod serve;
mod settings;
mod tail;

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What `default-config` prints.
const DEFAULT_CONFIG: &str = include_str!("../default.toml");

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("feedgate: {error:#}");
            ExitCode::FAILURE
        }
    }
}
