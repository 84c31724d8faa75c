//! What the commands print.

use std::io::{ErrorKind, Write};

use anyhow::Context;

/// Prints a line and leaves no part of it in a buffer. It is no error if the reader has closed stdout.
pub(crate) fn print(line: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("stdout cannot be written"),
        _ => Ok(()),
    }
}
