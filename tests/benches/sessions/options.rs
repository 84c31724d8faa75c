//! What the command line may change.

use std::path::PathBuf;

use anyhow::{Context, bail};

/// See the fields; [`Options::default`] is what the documented figures were taken with.
pub(crate) struct Options {
    /// Devices, each with a reader and an inbox of its own. A process may open 20,000 sockets.
    pub(crate) sessions: usize,
    /// Posts to all of them, per measurement.
    pub(crate) rounds: usize,
    /// Measures a post that readers pull beside one that is pushed to them, and nothing else.
    pub(crate) pull: bool,
    /// The directory of the server to measure; else the release build, made first.
    pub(crate) binaries: Option<PathBuf>,
    /// Where to write the figures as JSON.
    pub(crate) json: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { sessions: 10_000, rounds: 20, pull: false, binaries: None, json: None }
    }
}

impl Options {
    /// From the words after the program's name.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                // Cargo says this to every benchmark.
                "--bench" => {}
                "--sessions" => options.sessions = value()?.parse().context("--sessions N")?,
                "--rounds" => options.rounds = value()?.parse().context("--rounds N")?,
                "--pull" => options.pull = true,
                "--binaries" => options.binaries = Some(value()?.into()),
                "--json" => options.json = Some(value()?.into()),
                other => bail!("{other}? There are --sessions N, --rounds N, --pull, --binaries DIR and --json FILE"),
            }
        }
        if !(500..=19_000).contains(&options.sessions) || options.rounds == 0 {
            bail!("--sessions must be 500 to 19000, --rounds at least 1");
        }
        Ok(options)
    }
}
