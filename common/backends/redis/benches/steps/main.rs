//! What a push step and a take cost Redis, beside a bare pipelined XADD and the other ways to do it; and what an inbox
//! weighs.
//!
//! ```text
//!   cargo bench -p feedgate-redis --bench steps
//! ```
//!
//! Starts a Redis of its own. Appends are counted per second of the server's CPU, by its own `INFO cpu`: on a machine
//! that others share, wall time says little.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and stops where something fails")]

mod memory;
mod others;
mod ours;
mod server;

use server::Server;
use tokio::time::Instant;

/// Readers of the bucket, all of whom follow.
const READERS: u32 = 1000;
/// Appends of one measurement.
const APPENDS: u64 = 400_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("1 Redis, {READERS} readers, {APPENDS} appends a line; load before: {load}");
    println!("{:<46} {:>12} {:>12} {:>7}", "", "per CPU-s", "per second", "of XADD");
    let mut table = Table::default();
    for round in 1..=2 {
        println!("round {round}");
        others::measure(&mut table).await;
        ours::measure(&mut table).await;
        ours::measure_takes(&mut table).await;
    }
    println!("\nbytes by MEMORY USAGE, key and all");
    memory::measure().await;
}

/// The lines so far; the first of a round is what the others are compared with.
#[derive(Default)]
struct Table {
    bare: f64,
}

impl Table {
    /// Runs `work`, which makes so many appends, and prints its line.
    async fn line(&mut self, name: &str, appends: u64, server: &Server, work: impl Future<Output = ()>) {
        let (cpu, begun) = (server.cpu().await, Instant::now());
        work.await;
        let wall = begun.elapsed().as_secs_f64();
        let rate = appends as f64 / (server.cpu().await - cpu);
        if name == others::BARE {
            self.bare = rate;
        }
        println!("{name:<46} {rate:>12.0} {:>12.0} {:>6.0}%", appends as f64 / wall, 100.0 * rate / self.bare);
    }
}
