//! `timeline`: a worker of a cluster; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    feedgate::timeline()
}
