//! Prints the output of the commands.

use std::io::{ErrorKind, Write};

use anyhow::Context;

/// Prints a line and leaves no part of it in a buffer. Succeeds also if the reader of stdout has closed it.
pub(crate) fn print(line: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("stdout cannot be written"),
        _ => Ok(()),
    }
}
