//! What a post costs that many read at the same moment.
//!
//! ```text
//!   cargo bench -p feedgate-postgres --bench items --profile dev
//! ```

#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Items, Publish, Write, Writes, Written};
use feedgate_common::{Body, ItemId};
use feedgate_engines::Postgres;
use feedgate_postgres::{Options, PostgresArchive};
use tokio::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Calls, and by how many tasks.
const RUNS: [(usize, usize); 4] = [(10_000, 256), (10_000, 256), (1000, 1), (1000, 1)];

#[tokio::main]
async fn main() -> Outcome<()> {
    let server = Postgres::start();
    let archive = Arc::new(PostgresArchive::connect(&server.database("items"), Options::default()).await?);
    let item = publish(&archive).await?;
    println!("| calls | tasks | calls/s | p50 µs | p99 µs |");
    println!("|---|---|---|---|---|");
    for (calls, tasks) in RUNS {
        let began = Instant::now();
        let reading: Vec<_> =
            (0..tasks).map(|task| tokio::spawn(read(archive.clone(), item, share(calls, tasks, task)))).collect();
        let mut took = vec![];
        for task in reading {
            took.extend(task.await??);
        }
        let rate = calls as f64 / began.elapsed().as_secs_f64();
        took.sort_unstable();
        let micros = |percent: usize| took[took.len() * percent / 100].as_micros();
        println!("| {calls} | {tasks} | {rate:.0} | {} | {} |", micros(50), micros(99));
    }
    Ok(())
}

/// How many of the calls are this task's.
fn share(calls: usize, tasks: usize, task: usize) -> usize {
    calls / tasks + usize::from(task < calls % tasks)
}

/// How long each call took.
async fn read(archive: Arc<PostgresArchive>, item: ItemId, calls: usize) -> Outcome<Vec<Duration>> {
    let mut took = Vec::with_capacity(calls);
    for _ in 0..calls {
        let asked = Instant::now();
        if archive.items(&[item]).await? == [None] {
            return Err("the item is gone".into());
        }
        took.push(asked.elapsed());
    }
    Ok(took)
}

/// Publishes an item of 200 bytes, and answers its id.
async fn publish(archive: &PostgresArchive) -> Outcome<ItemId> {
    let publish = Publish::new("ann".parse()?, Body::parse(format!("{{\"text\":\"{}\"}}", "x".repeat(189)))?);
    match archive.write(vec![Write::Publish(publish)], 1_800_000_000_000).await?.remove(0) {
        Ok(Written::Published { id, .. }) => Ok(id),
        other => Err(format!("{other:?}").into()),
    }
}
