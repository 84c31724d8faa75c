//! The three programs of Feedgate, and the command line that talks to them.
//!
//! ```text
//!   feedgate   gateway and worker in one process, over embedded stores or shared ones; and the commands
//!   gateway    devices and backends            ┐ over shared stores: PostgreSQL, Redis, NATS
//!   timeline   the worker that fans posts out  ┘ (feature `cluster`)
//!
//!   cli ─┬─ serve ──▶ layers ▶ settings ▶ stores ▶ secrets ▶ gateway + worker ▶ until a signal
//!        ├─ token, publish, follow, unfollow, feed, console ──▶ client (HTTP) ──▶ the running server
//!        ├─ tail ──▶ device (WebSocket) ──▶ the running server
//!        ├─ top ──▶ /metrics of the running processes
//!        └─ ready, secrets, check-config, default-config
//! ```
//!
//! Exit codes: 0 done or stopped as asked, 1 an error (said on stderr), 2 a wrong command line, 3 and 4 as
//! `check-config --against` says, 130 a second Ctrl-C.

mod against;
mod backup;
mod banner;
mod change;
mod cli;
mod client;
#[cfg(feature = "cluster")]
mod cluster;
mod commands;
mod data;
mod descriptors;
mod device;
mod doctor;
mod effective;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
mod handover;
mod health;
mod inherited;
mod jwks;
mod kind;
mod layers;
mod life;
mod log;
#[cfg(feature = "otlp")]
mod otlp;
mod outbound;
mod passed;
mod ports;
mod reach;
mod reload;
mod restore;
mod secrets;
mod serve;
mod settings;
mod stdout;
mod stores;
mod tail;
mod tls;
mod top;
mod transfer;
mod url;
mod webhook;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The text that `default-config` prints.
const DEFAULT_CONFIG: &str = include_str!("../default.toml");

/// Runs the program `feedgate` to its end.
pub fn feedgate() -> ExitCode {
    end(serve::Role::FEEDGATE, commands::run(cli::Cli::parse()))
}

/// Runs the program `gateway` to its end.
#[cfg(feature = "cluster")]
pub fn gateway() -> ExitCode {
    end(cluster::programs::GATEWAY, cluster::programs::Gateway::parse().run().map(|()| ExitCode::SUCCESS))
}

/// Runs the program `timeline` to its end.
#[cfg(feature = "cluster")]
pub fn timeline() -> ExitCode {
    end(cluster::programs::TIMELINE, cluster::programs::Timeline::parse().run().map(|()| ExitCode::SUCCESS))
}

/// The error and its causes, in one line. A cause whose text is said already is left out.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let said = error.chain().map(ToString::to_string);
    said.reduce(|said, cause| if says(&said, &cause) { said } else { format!("{said}: {cause}") }).unwrap_or_default()
}

/// Whether `said` has the words of `cause`. A line of PostgreSQL's own source, which the client puts behind them, does
/// not count.
fn says(said: &str, cause: &str) -> bool {
    let words = cause.rsplit_once(" at line ").filter(|(_, line)| line.parse::<u32>().is_ok());
    said.contains(words.map_or(cause, |(words, _)| words))
}

/// A runtime with a thread for tasks, besides the thread that waits for the command to end.
pub(crate) fn runtime() -> anyhow::Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?)
}

/// Says on stderr why a program ends.
pub(crate) fn say(program: &str, why: &str) {
    eprintln!("{program}: {why}");
}

fn end(role: serve::Role, ended: anyhow::Result<ExitCode>) -> ExitCode {
    match ended {
        Ok(code) => code,
        Err(error) => {
            say(role.name, &told(&error));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use feedgate_common::StoreError;

    use super::*;

    #[test]
    fn an_error_is_told_with_its_sources_and_nothing_twice() {
        let full = io::Error::other("no room");
        let store = StoreError::unavailable(format_args!("cannot write a file: {full}")).with_source(full);
        let error = anyhow::Error::new(store).context("the stores did not close");
        let right = "the stores did not close: the store is not available: cannot write a file: no room";
        assert_eq!(told(&error), right);
        let of_server = io::Error::other("database \"x\" does not exist at line 948");
        let store = StoreError::misconfigured("PostgreSQL: database \"x\" does not exist (create it)");
        let error = anyhow::Error::new(store.with_source(of_server));
        assert_eq!(told(&error), "the store is not available: PostgreSQL: database \"x\" does not exist (create it)");
    }
}
