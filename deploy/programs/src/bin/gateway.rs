//! The program `gateway`, which serves devices and backends of a cluster; the library describes it.

use std::process::ExitCode;

fn main() -> ExitCode {
    feedgate::gateway()
}
