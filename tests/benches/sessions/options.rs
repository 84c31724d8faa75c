//! What the command line may change.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Count;

/// The defaults are what the documented figures were taken with.
#[derive(Parser)]
#[command(about = "What a session costs, idle, stalled and when something is delivered to it")]
pub(crate) struct Options {
    /// Devices, each with a reader and an inbox of its own (a process may open 20,000 sockets)
    #[arg(long, default_value_t = 10_000, value_parser = Count::<usize>::new().range(500..=19_000))]
    pub(crate) sessions: usize,
    /// Posts to all of them, per measurement
    #[arg(long, default_value_t = 20, value_parser = Count::<usize>::new().range(1..))]
    pub(crate) rounds: usize,
    /// Measures a post that readers pull beside one that is pushed to them, and nothing else
    #[arg(long)]
    pub(crate) pull: bool,
    /// Measures idle sessions and deliveries over Protobuf too, beside those over JSON
    #[arg(long, conflicts_with = "pull")]
    pub(crate) protobuf: bool,
    /// Connects all devices by TLS; openssl makes the certificate
    #[arg(long)]
    pub(crate) tls: bool,
    /// Connects all devices by TLS to nginx, which passes them on; its memory and its processor time are counted too.
    /// It holds two sockets for each device, so 9,500 are the most
    #[arg(long, conflicts_with_all = ["tls", "protobuf"])]
    pub(crate) nginx: bool,
    /// The directory of the server to measure; else the release build, made first
    #[arg(long)]
    pub(crate) binaries: Option<PathBuf>,
    /// Where to write the figures as JSON
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}
