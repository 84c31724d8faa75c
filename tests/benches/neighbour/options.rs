//! What the command line may change.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Count;

/// The defaults are what the documented figures were taken with.
#[derive(Parser)]
#[command(about = "How long a neighbour's posts take while somebody attacks the server")]
pub(crate) struct Options {
    /// How long each attack runs, in seconds
    #[arg(long, default_value_t = 8, value_parser = Count::<u64>::new().range(2..=60))]
    pub(crate) seconds: u64,
    /// Readers online for a star's post, and devices that reconnect at once (each is a socket here and there)
    #[arg(long, default_value_t = 4000, value_parser = Count::<usize>::new().range(100..=9000))]
    pub(crate) readers: usize,
    /// Only the attacks whose name contains this
    #[arg(long, default_value = "")]
    pub(crate) only: String,
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
