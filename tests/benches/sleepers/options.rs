//! What the command line may change.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Count;

/// The defaults are what the documented figures were taken with.
#[derive(Parser)]
#[command(about = "What a post costs whose readers all sleep")]
pub(crate) struct Options {
    /// Readers with a device, and as many without
    #[arg(long, default_value_t = 20_000, value_parser = Count::<usize>::new().range(100..=200_000))]
    pub(crate) sleepers: usize,
    /// How long the neighbour posts in peace, in seconds
    #[arg(long, default_value_t = 8, value_parser = Count::<u64>::new().range(2..=60))]
    pub(crate) seconds: u64,
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
