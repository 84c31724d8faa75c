//! What the command line may change.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Count;

/// The defaults are what the documented figures were taken with.
#[derive(Parser)]
#[command(about = "A cluster on this machine, beside the standalone binary")]
pub(crate) struct Options {
    /// Followers who are online when a post goes to all; with --busy, those of each author
    #[arg(long, default_value_t = 500, value_parser = Count::<usize>::new().range(2..=19_000))]
    pub(crate) readers: usize,
    /// Posts to one device, one after another; with --busy, those of all authors
    #[arg(long, default_value_t = 300, value_parser = Count::<usize>::new().range(1..))]
    pub(crate) posts: usize,
    /// Posts to all followers
    #[arg(long, default_value_t = 20, value_parser = Count::<usize>::new().range(1..))]
    pub(crate) rounds: usize,
    /// Measures only posts to so many followers who are online, at as many gateways as that takes
    #[arg(long, value_parser = Count::<usize>::new().range(1000..=200_000))]
    pub(crate) crowd: Option<usize>,
    /// Measures only so many authors who post at the same time
    #[arg(long, conflicts_with = "crowd", value_parser = Count::<usize>::new().range(1..))]
    pub(crate) busy: Option<usize>,
    /// The directory of the programs to measure; else the release build, made first
    #[arg(long)]
    pub(crate) binaries: Option<PathBuf>,
    /// Where to write the figures as JSON
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}
