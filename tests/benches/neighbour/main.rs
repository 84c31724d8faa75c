//! What a neighbour notices of an attack: the time from publish to device of an author and a reader who are not
//! attacked, first without an attack and then during each attack.
//!
//! ```text
//!   this thread: neighbour's backend + device ──127.0.0.1──▶ feedgate, the release binary (child),
//!   attacker's thread: its sockets ───────────127.0.0.66──▶ started anew for each attack
//! ```
//!
//! Run it: `cargo bench -p feedgate-tests --bench neighbour [-- --json FILE]`, three minutes. `--binaries DIR` measures
//! the server in that directory, for example an older one.
//!
//! Posts are made on schedule, whether or not those before have arrived, and their time counts from when they were due:
//! a server that stands still for a second delays every post of that second. A post that was refused, or has not come
//! after half a minute, counts as that long. The attacker shares the machine with the server: what it takes of the
//! processor is part of what the neighbour notices, so the ratios are those of one machine.

mod attack;
mod floods;
mod options;
mod table;
mod unread;
mod wire;
mod world;

use std::time::{Duration, Instant};

use clap::Parser;
use feedgate_tests::load::{self, Neighbour, Report};
use feedgate_tests::process::load_average;

use crate::attack::{ATTACKS, Attack, Running};
use crate::options::Options;
use crate::table::{Row, Table};
use crate::world::{QUIET, World};

/// From the end of an attack's preparations until the neighbour begins to post.
const SETTLE: Duration = Duration::from_millis(300);

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    load::run(options.binaries.clone(), async |binaries| measure(options, binaries).await)
}

async fn measure(options: Options, binaries: &std::path::Path) -> anyhow::Result<()> {
    let (started, load) = (Instant::now(), load_average()?);
    let mut report = Report::default();
    let mut world = World::make(&options, binaries).await?;
    let mut table = Table::default();
    table.add(suffer(&mut world, &options, None).await?, &mut report);
    for attack in ATTACKS.iter().filter(|attack| attack.name().contains(&options.only)) {
        table.add(suffer(&mut world, &options, Some(*attack)).await?, &mut report);
    }
    table.print(&report);

    report.finish("neighbour", (started, &load), options.binaries.as_deref(), options.json.as_deref())
}

/// What the neighbour sees of one attack, or of none, on a server that has just started.
async fn suffer(world: &mut World, options: &Options, attack: Option<Attack>) -> anyhow::Result<Row> {
    world.server.restart().await?;
    let mut neighbour = Neighbour::connect(&world.server, &world.neighbour_token, QUIET).await?;
    // The first posts are not measured, because they find empty caches.
    neighbour.posts(&world.server.backend, Duration::from_secs(1)).await?;
    let running = attack.map(|attack| Running::begin(attack, world.target())).transpose()?;
    if let Some(running) = &running {
        running.prepared().await;
        tokio::time::sleep(SETTLE).await;
    }
    let (began, cpu) = (Instant::now(), world.server.cpu_seconds()?);
    let seen = neighbour.posts(&world.server.backend, Duration::from_secs(options.seconds)).await?;
    let spent = (world.server.cpu_seconds()? - cpu) / began.elapsed().as_secs_f64();
    let peak = world.server.peak_memory()?;
    let ended = running.map(Running::end).transpose()?;
    Ok(Row {
        name: attack.map_or("no attack", Attack::name),
        seen,
        cores: spent,
        peak,
        ended: ended.unwrap_or_default(),
    })
}
