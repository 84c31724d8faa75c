//! What the command line may change.

use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::star::ALONE;

/// See the fields; [`Options::default`] is what the documented figures were taken with.
pub(crate) struct Options {
    /// Who follow the star, each with an inbox; and as many readers of the author whom everyone follows.
    pub(crate) followers: usize,
    /// Where to write the figures as JSON.
    pub(crate) json: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { followers: 1_000_000, json: None }
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
                "--followers" => options.followers = value()?.parse().context("--followers N")?,
                "--json" => options.json = Some(value()?.into()),
                other => bail!("{other}? There are --followers N and --json FILE"),
            }
        }
        if options.followers <= ALONE {
            bail!("--followers must be more than {ALONE}");
        }
        Ok(options)
    }
}
