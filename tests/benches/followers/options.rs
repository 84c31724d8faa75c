//! What the command line may change.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser as Count;

use crate::star::ALONE;

/// The defaults are what the documented figures were taken with.
#[derive(Parser)]
#[command(about = "What an author with very many followers costs, by push and by pull")]
pub(crate) struct Options {
    /// Who follow the star, each with an inbox; and as many readers of the author whom everyone follows
    #[arg(long, default_value_t = 1_000_000, value_parser = Count::<usize>::new().range(ALONE as u64 + 1..))]
    pub(crate) followers: usize,
    /// Where to write the figures as JSON
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}
