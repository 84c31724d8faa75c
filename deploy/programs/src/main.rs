//! The program `feedgate`; the library describes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    feedgate::feedgate()
}
