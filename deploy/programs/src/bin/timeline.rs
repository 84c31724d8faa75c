//! The program `timeline`, a worker of a cluster; the library describes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    feedgate::timeline()
}
