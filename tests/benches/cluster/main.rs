//! What a cluster costs: the time from publish to device through two nodes, compared with one process.
//!
//! ```text
//!   this process ── POST ──▶ gateway-1 ─▶ PostgreSQL ─┐
//!        ▲                        └─────▶ NATS ─▶ timeline-1 or -2 ─▶ Redis
//!        │                                             │
//!        └──── WebSocket ──── gateway-2 ◀──── NATS ◀───┘
//! ```
//!
//! Run it: `cargo bench -p feedgate-tests --bench cluster [-- --json FILE]`, about two minutes; the engines are
//! real ones, started with the settings of `deploy/`. PostgreSQL syncs every commit, so the disk is in every figure.
//!
//! With `--crowd 100000` it measures something else, in about five minutes: one post to so many followers who are
//! online, at as many gateways as that takes, beside a neighbour who follows somebody else.
//!
//! With `--busy 200` it measures a third thing, in a minute: so many authors post at the same time, each to `--readers`
//! followers who are away.
//!
//! Everything runs on one machine: with two cores, eight processes wait for each other. Absolute times do not
//! carry to another machine; what counts is the ratio to the standalone binary in the same run.

mod busy;
mod crew;
mod crowd;
mod measure;
mod options;
mod spent;
mod world;

use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use clap::Parser;
use feedgate_tests::load::{self, Deliver, Report};
use feedgate_tests::process::load_average;

use crate::measure::Measured;
use crate::options::Options;
use crate::world::World;

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let here = tokio::task::LocalSet::new();
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [role, address, tokens] = &words[..]
        && role == crew::ROLE
    {
        return here.block_on(&runtime, crew::run(address.parse()?, Path::new(tokens)));
    }
    let options = Options::parse();
    let binaries = options.binaries.clone().map_or_else(|| load::build(&["--bins", "--features", "cluster"]), Ok)?;
    here.block_on(&runtime, run(&options, &binaries))
}

async fn run(options: &Options, binaries: &Path) -> anyhow::Result<()> {
    let (started, load) = (Instant::now(), load_average()?);
    let mut report = Report::default();
    if let Some(crowd) = options.crowd {
        crowd::measure(binaries, crowd, options, &mut report).await?;
        return ended(options, started, &load, report);
    }
    if let Some(authors) = options.busy {
        busy::measure(binaries, authors, options, &mut report).await?;
        return ended(options, started, &load, report);
    }

    report.heading("two gateways, two workers, PostgreSQL, Redis, NATS");
    let cluster = installation(&World::cluster(binaries, options.readers).await?, options, &mut report).await?;
    report.heading("the standalone binary");
    let standalone = installation(&World::standalone(binaries, options.readers).await?, options, &mut report).await?;
    report.heading("the cluster beside it");
    for (way, cluster, standalone) in [("items", &cluster[0], &standalone[0]), ("notify", &cluster[1], &standalone[1])]
    {
        for (what, ratio) in [
            ("single post to one, p50", cluster.p50 / standalone.p50),
            ("single post to one, p99", cluster.p99 / standalone.p99),
            ("one post to all, last", cluster.last / standalone.last),
            ("processor time per change", cluster.cpu / standalone.cpu),
        ] {
            report.figure(&format!("{way}: {what}, cluster / standalone"), ratio, "x");
        }
    }

    let all = [&cluster[0], &cluster[1], &standalone[0], &standalone[1]];
    let (missing, repeated): (u64, u64) =
        (all.iter().map(|run| run.missing).sum(), all.iter().map(|run| run.repeated).sum());
    report.count("n", options.readers as u64, "readers");
    report.count("missing", missing, "notifications");
    report.count("repeated", repeated, "notifications");
    ended(options, started, &load, report)?;
    ensure!(missing == 0 && repeated == 0, "a device was told too little or too much");
    Ok(())
}

/// Says how the run went, and writes all figures if asked.
fn ended(options: &Options, started: Instant, load: &str, mut report: Report) -> anyhow::Result<()> {
    report.heading("this run");
    report.figure("seconds", started.elapsed().as_secs_f64(), "s");
    report.text("load average before, 1 min", load);
    report.origin("cluster", options.binaries.as_deref());
    options.json.as_ref().map_or(Ok(()), |path| report.write(path))
}

/// Both ways of delivery in one installation.
async fn installation(world: &World, options: &Options, report: &mut Report) -> anyhow::Result<[Measured; 2]> {
    let items = measure::both(world, Deliver::Items, options, report).await?;
    let notify = measure::both(world, Deliver::Notify, options, report).await?;
    Ok([items, notify])
}
