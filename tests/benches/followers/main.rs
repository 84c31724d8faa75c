//! What a million followers cost: a post that is pushed to all of them, a post that the readers who come pull, and an
//! author whom everyone follows without an edge.
//!
//! ```text
//!   cargo bench -p feedgate-tests --bench followers                          a million, two to five minutes
//!   cargo bench -p feedgate-tests --bench followers -- --followers 10000     to try it
//!
//!   world ─▶ push: until the last inbox has it ─▶ pull: until the last who comes has it ─▶ the star beside an author of ten
//!   everyone, in a store of its own: as many readers, no edge, no inbox until they come
//! ```
//!
//! One process, embedded stores, a worker; every post, step and take is on disk before it counts. Processor time is the
//! whole process's. A post that is pushed and the same post pulled are compared in one run, as are the star and the
//! author of ten: absolute times do not carry to another machine.

mod ears;
mod everyone;
mod options;
mod people;
mod star;
mod world;

use std::time::Instant;

use anyhow::ensure;
use clap::Parser;
use feedgate_tests::load::Report;
use feedgate_tests::process::load_average;

use crate::options::Options;
use crate::world::World;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run(&options))
}

async fn run(options: &Options) -> anyhow::Result<()> {
    let (started, load) = (Instant::now(), load_average()?);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let mut report = Report::default();

    report.heading("the graph and the inboxes");
    let world = World::make(&dir.path().join("star"), options.followers, &mut report).await?;
    report.heading("a post to all of them, pushed");
    let pushed = star::push(&world, &mut report).await?;
    report.heading("the same post, pulled");
    let pulled = star::pull(&world, &pushed, &mut report).await?;
    report.heading("the star beside an author of ten, both pulled");
    people::posts(&world, &mut report).await?;
    people::follows(&world, &mut report).await?;
    world.close().await?;
    report.heading("an author whom everyone follows");
    let everyone = everyone::measure(&dir.path().join("everyone"), options.followers, &mut report).await?;

    report.heading("this run");
    let seen = pushed.seen + pulled + everyone;
    report.count("n", options.followers as u64, "followers");
    report.figure("seconds", started.elapsed().as_secs_f64(), "s");
    report.count("missing", seen.missing, "changes");
    report.count("repeated", seen.repeated, "changes");
    report.text("load average before, 1 min", &load);
    report.text("load average after, 1 min", &load_average()?);
    report.origin("followers", None);
    if let Some(path) = &options.json {
        report.write(path)?;
    }
    ensure!(seen.missing == 0 && seen.repeated == 0, "an inbox holds too little or too much");
    Ok(())
}
