//! How fast and how small the embedded inboxes are, beside a naive store in the same run.
//!
//! ```text
//!   cargo bench -p feedgate-tests --bench appends                        100 entries a reader
//!   cargo bench -p feedgate-tests --bench appends -- --entries 1000      the full size, 16 GB free wanted
//!   cargo bench -p feedgate-tests --bench appends -- --compare-buckets   small fan-outs by buckets
//! ```
//!
//! Steps of 1000 readers, as many in flight as a worker keeps; each is answered only after its
//! `fdatasync`. The CPU time counted is the whole process's: making the steps is in it. Every author's
//! followers share one bucket, so that each step is full; `--compare-buckets` shows what it costs
//! when they do not. The naive store is fjall with a key per entry (16 B → 24 B) and a sync per ten
//! steps.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "appends/buckets.rs"]
mod buckets;
#[path = "appends/latency.rs"]
mod latency;
#[path = "appends/naive.rs"]
mod naive;
#[path = "appends/world.rs"]
mod world;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use feedgate_common::inboxes::Inboxes;
use feedgate_embedded::EmbeddedInboxes;
use feedgate_embedded::inboxes::Settings;
use feedgate_tests::process::{Used, commit, directory_size, memory};
use world::World;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints one figure with its name and unit.
fn figure(name: &str, value: impl std::fmt::Display, unit: &str) {
    println!("{name}: {value:.3} {unit}");
}

/// What the command line says.
#[derive(Debug, Clone, Copy, Parser)]
#[command(about = "Durable appends beside a naive store, and what they take")]
struct Wanted {
    /// Readers, each with an inbox; a bucket holds a step of 1000
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(16_000..))]
    readers: u32,
    /// How many authors there are
    #[arg(long, default_value_t = 10_000)]
    authors: u32,
    /// How many entries each reader gets
    #[arg(long, default_value_t = 100)]
    entries: u32,
    /// Entries per reader of the naive store; 0: none
    #[arg(long, default_value_t = 20)]
    naive_entries: u32,
    /// Measures numbers of buckets beside each other, and nothing else
    #[arg(long)]
    compare_buckets: bool,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let wanted = Wanted::parse();
    let command: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    println!("command: cargo bench -p feedgate-tests --bench appends -- {}", command.join(" "));
    println!("commit: {}", commit());
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if wanted.compare_buckets {
        return runtime.block_on(buckets::compare(dir.path(), wanted.readers));
    }
    let appends_per_s = embedded(&runtime, &dir.path().join("inboxes"), wanted)?;
    if wanted.naive_entries > 0 {
        let naive_per_s = naive::run(&dir.path().join("naive"), wanted)?;
        figure("ratio to naive", appends_per_s.0 / naive_per_s.0, "x appends/s");
        figure("ratio to naive per CPU-second", appends_per_s.1 / naive_per_s.1, "x appends/CPU-s");
    }
    Ok(())
}

/// Fills the store, then measures its size, its reads and its reopening. Answers appends per second
/// and per CPU-second.
fn embedded(runtime: &tokio::runtime::Runtime, dir: &Path, wanted: Wanted) -> anyhow::Result<(f64, f64)> {
    let world = Arc::new(World::new(wanted.readers, wanted.authors, Settings::default().buckets));
    let before = memory(std::process::id())?.rss;
    let store = Arc::new(EmbeddedInboxes::open(dir, None, Settings::default())?);
    runtime.block_on(world::build_all(&store, wanted.readers))?;
    let (written, used, start) = (store.written(), Used::now()?, Instant::now());
    let appends = runtime.block_on(world::push_all(&world, &store, wanted.entries))?;
    let (seconds, used, now) = (start.elapsed().as_secs_f64(), used.since()?, store.written());
    let rates = (appends as f64 / seconds, appends as f64 / used);
    let (syncs, bytes) = (now.syncs - written.syncs, now.bytes - written.bytes);
    println!("N: {appends} appends, {} readers, {} authors, steps of 1000", wanted.readers, wanted.authors);
    figure("seconds", seconds, "s");
    figure("durable appends", rates.0, "appends/s");
    figure("appends per CPU-second", rates.1, "appends/CPU-s");
    figure("fdatasyncs", syncs, "");
    figure("bytes logged", bytes as f64 / appends as f64, "B/append");
    let counts = runtime.block_on(store.counts())?;
    ensure!(counts.inboxes == u64::from(wanted.readers), "{} inboxes", counts.inboxes);
    figure("live entries", counts.entries, "");

    let store = reopened(runtime, store, dir, "reopen, log not compacted")?;
    let start = Instant::now();
    store.compact()?;
    figure("compaction", start.elapsed().as_secs_f64(), "s");
    let (grown, disk) = (memory(std::process::id())?.rss.saturating_sub(before), directory_size(dir)?);
    figure("resident growth", grown as f64 / counts.entries as f64, "B/entry");
    figure("data directory", disk as f64 / counts.entries as f64, "B/entry");
    figure("bytes per entry", (grown + disk) as f64 / counts.entries as f64, "B/entry");
    let store = reopened(runtime, store, dir, "reopen, compacted")?;
    runtime.block_on(latency::measure(&store, &world, wanted))?;
    runtime.block_on(latency::hydrated(&dir.with_file_name("hydrated")))?;
    Ok(rates)
}

/// Closes the store and opens it again; all that was there must be.
fn reopened(
    runtime: &tokio::runtime::Runtime,
    store: Arc<EmbeddedInboxes>,
    dir: &Path,
    name: &str,
) -> anyhow::Result<Arc<EmbeddedInboxes>> {
    let (remembered, counts) = (store.incarnation(), runtime.block_on(store.counts())?);
    drop(Arc::into_inner(store).context("no step is in flight")?);
    let start = Instant::now();
    let store = Arc::new(EmbeddedInboxes::open(dir, Some(&remembered), Settings::default())?);
    figure(name, start.elapsed().as_secs_f64(), "s");
    ensure!(runtime.block_on(store.counts())? == counts, "reopening lost entries");
    Ok(store)
}
