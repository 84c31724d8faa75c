//! What the command line may change.

use std::path::PathBuf;

use anyhow::{Context, bail};

/// See the fields; [`Options::default`] is what the documented figures were taken with.
pub(crate) struct Options {
    /// Followers who are online when a post goes to all.
    pub(crate) readers: usize,
    /// Posts to one device, one after another.
    pub(crate) posts: usize,
    /// Posts to all followers.
    pub(crate) rounds: usize,
    /// The directory of the programs to measure; else the release build, made first.
    pub(crate) binaries: Option<PathBuf>,
    /// Where to write the figures as JSON.
    pub(crate) json: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { readers: 500, posts: 300, rounds: 20, binaries: None, json: None }
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
                "--readers" => options.readers = value()?.parse().context("--readers N")?,
                "--posts" => options.posts = value()?.parse().context("--posts N")?,
                "--rounds" => options.rounds = value()?.parse().context("--rounds N")?,
                "--binaries" => options.binaries = Some(value()?.into()),
                "--json" => options.json = Some(value()?.into()),
                other => {
                    bail!("{other}? There are --readers N, --posts N, --rounds N, --binaries DIR and --json FILE")
                }
            }
        }
        if !(2..=19_000).contains(&options.readers) || options.posts == 0 || options.rounds == 0 {
            bail!("--readers must be 2 to 19000, --posts and --rounds at least 1");
        }
        Ok(options)
    }
}
