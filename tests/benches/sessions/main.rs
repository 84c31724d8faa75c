//! What a session costs: memory while idle, processor time per notification, time from publish to
//! device.
//!
//! ```text
//!   this process: backend + devices (one thread) ──loopback──▶ feedgate, the release binary (child)
//!                              └───────────────raw sockets───▶ the bare send loop (child)
//!
//!   world ─▶ notify: memory, posts, bursts, latency ─▶ appends alone ─▶ items: the same ─▶ stalled readers
//! ```
//!
//! Run it: `cargo bench -p feedgate-tests --bench sessions [-- --json FILE]`, one to three minutes. With `--protobuf`
//! it measures sessions and deliveries over Protobuf too. With `--tls` all devices connect by TLS, and the bare loop
//! stays plain. With `--nginx` they connect by TLS to nginx, which is then part of what is measured. With `--pull` it
//! measures something else: a post that all readers pull, compared with a post that is pushed.
//!
//! Absolute times do not carry to another machine. What counts is the ratio to the bare loop of the
//! same run: as many raw sockets on the same machine, the same bytes, the same receiving side. On
//! loopback a sender's time includes the kernel's receive path, for both alike.

mod delivery;
mod floor;
mod idle;
mod options;
mod pulled;
mod stalled;
mod world;

use std::time::Instant;

use anyhow::{Context, ensure};
use clap::Parser;
use feedgate_tests::load::{self, Deliver, Report, Tally, Wire};
use feedgate_tests::process::load_average;

use crate::options::Options;
use crate::world::World;

fn main() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(floor::ROLE) {
        return floor::run(words.next().context("how many sockets?")?.parse()?);
    }
    let options = Options::parse();
    load::run(options.binaries.clone(), async |binaries| measure(options, binaries).await)
}

async fn measure(options: Options, binaries: &std::path::Path) -> anyhow::Result<()> {
    let (started, load) = (Instant::now(), load_average()?);
    let mut report = Report::default();
    let mut world = World::make(options, binaries).await?;
    let seen = if world.options.pull {
        vec![
            pulled::measure(&world, Deliver::Notify, &mut report).await?,
            pulled::measure(&world, Deliver::Items, &mut report).await?,
        ]
    } else {
        pushed(&mut world, &mut report).await?
    };

    report.heading("this run");
    let (missing, repeated) =
        seen.iter().fold((0, 0), |(missing, repeated), tally| (missing + tally.missing, repeated + tally.repeated));
    report.count("n", world.sessions() as u64, "sessions");
    report.figure("seconds", started.elapsed().as_secs_f64(), "s");
    report.count("missing", missing, "notifications");
    report.count("repeated", repeated, "notifications");
    report.text("load average before, 1 min", &load);
    report.origin("sessions", world.options.binaries.as_deref());
    if let Some(path) = &world.options.json {
        report.write(path)?;
    }
    ensure!(missing == 0 && repeated == 0, "a device was told too little or too much");
    Ok(())
}

/// Everything of posts that are pushed, and of sessions that are idle or stalled.
async fn pushed(world: &mut World, report: &mut Report) -> anyhow::Result<Vec<Tally>> {
    let formats = [(Wire::Json, ""), (Wire::Protobuf, " over Protobuf")];
    let mut delivered = vec![];
    for (wire, over) in formats.into_iter().take(if world.options.protobuf { 2 } else { 1 }) {
        if wire != Wire::Json {
            // The sessions before have left room in the heap, which would be counted as no memory at all.
            world.server.restart().await?;
        }
        report.heading(&format!("idle, then one notification to each, in notify mode{over}"));
        let fleet = idle::measure(world, Deliver::Notify, wire, Some((report, over))).await?;
        let name = format!("notify{over}");
        let notify = delivery::measure(world, fleet, &name, report).await?;
        delivered.push((name, notify));
        report.heading(&format!("the same with items{over}"));
        let fleet = idle::measure(world, Deliver::Items, wire, None).await?;
        let name = format!("items{over}");
        let items = delivery::measure(world, fleet, &name, report).await?;
        delivered.push((name, items));
    }
    report.heading("the appends alone, nobody online");
    let appends = delivery::appends(world, report).await?;
    report.heading("beside the bare send loop");
    for (name, cost) in &delivered {
        delivery::compare(world, name, cost, &appends, report).await?;
    }
    report.heading("readers that stopped reading");
    let stalled = stalled::measure(world, report).await?;

    Ok(delivered.iter().map(|(_, delivered)| delivered.tally).chain([stalled]).collect())
}
