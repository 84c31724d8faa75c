//! `feedgate`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    feedgate::feedgate()
}
