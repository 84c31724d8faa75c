//! One post to a crowd: a hundred thousand devices at many gateways are told of one post of the author whom all of them
//! follow. Measured are the memory that this takes, and what a neighbour notices: a device at the last of these
//! gateways, whose reader follows another author.

use std::time::{Duration, Instant};

use anyhow::ensure;
use feedgate_tests::load::{Neighbour, Report, milliseconds, quantile};
use futures_util::future::try_join_all;

use crate::crew::Crew;
use crate::options::Options;
use crate::world::{QUIET, STAR, World};

/// Devices at one gateway and in one crew: a process of either opens a socket for each.
const AT_ONE: usize = 12_500;

/// How long the neighbour's author posts in each phase.
const PHASE: Duration = Duration::from_secs(8);

/// Bytes of text in a post to the crowd.
const POST_BYTES: usize = 80;

pub(crate) async fn measure(
    binaries: &std::path::Path,
    crowd: usize,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let world = World::crowd(binaries, crowd, crowd.div_ceil(AT_ONE)).await?;
    let gateways = world.gateways();
    report.heading(&format!("{crowd} readers at {} gateways, two workers, PostgreSQL, Redis, NATS", gateways.len()));
    let last = &gateways[gateways.len() - 1];
    let mut neighbour = Neighbour::connect(last, &world.token_of(0)?, QUIET).await?;
    neighbour.posts(world.backend(), Duration::from_secs(1)).await?;
    let peace = phase("nobody else is online", &mut neighbour, &world, report).await?;

    let started = Instant::now();
    let mut crews = Vec::new();
    for (n, gateway) in gateways.iter().enumerate() {
        let share = n * crowd / gateways.len()..(n + 1) * crowd / gateways.len();
        crews.push(Crew::connect(gateway.address(), &world.write_tokens(share)?).await?);
    }
    report.figure("the crowd has connected and subscribed", started.elapsed().as_secs_f64(), "s");
    world.backend().quiet().await?;
    let mut idle = Vec::new();
    for gateway in gateways {
        idle.push(gateway.settled_memory().await?.rss);
    }
    report.figure("memory of all gateways, the crowd is silent", idle.iter().sum::<u64>() as f64 / 1e6, "MB");
    phase("the crowd is online and silent", &mut neighbour, &world, report).await?;

    for round in 1..=options.rounds.min(3) {
        try_join_all(crews.iter_mut().map(Crew::expect)).await?;
        let posted = Instant::now();
        let publish = async {
            world.backend().publish(STAR, POST_BYTES).await?;
            let arrived = try_join_all(crews.iter_mut().map(Crew::arrived)).await?;
            anyhow::Ok((arrived, posted.elapsed()))
        };
        let name = format!("post {round} to the crowd");
        let (published, beside) = tokio::join!(publish, phase(&name, &mut neighbour, &world, report));
        let ((arrived, took), p99) = (published?, beside?);
        let halves = arrived.iter().map(|(half, _)| *half).sum::<f64>() / arrived.len() as f64;
        report.figure(&format!("{name}: half of the devices have it, mean of the gateways"), halves, "ms");
        report.figure(&format!("{name}: the last device has it"), milliseconds(took), "ms");
        report.figure(&format!("{name}: the neighbour's p99 beside peace"), p99 / peace, "x");
        world.backend().quiet().await?;
    }
    let peaks: Vec<u64> = gateways.iter().map(|gateway| gateway.peak_memory()).collect::<Result<_, _>>()?;
    report.figure("peak memory of all gateways", peaks.iter().sum::<u64>() as f64 / 1e6, "MB");
    report.figure("greatest peak of one gateway", peaks.iter().max().copied().unwrap_or(0) as f64 / 1e6, "MB");
    let tallies = try_join_all(crews.iter_mut().map(Crew::tally)).await?;
    let (missing, repeated) = tallies.iter().fold((0, 0), |sum, tally| (sum.0 + tally.0, sum.1 + tally.1));
    report.count("missing", missing, "notifications");
    report.count("repeated", repeated, "notifications");
    ensure!(missing == 0 && repeated == 0, "a device was told too little or too much");
    Ok(())
}

/// Lets the neighbour's author post for a while, and gives the p99 from when a post was due until it arrived, in
/// milliseconds.
async fn phase(name: &str, neighbour: &mut Neighbour, world: &World, report: &mut Report) -> anyhow::Result<f64> {
    let seen = neighbour.posts(world.backend(), PHASE).await?;
    let [half, most] = [0.5, 0.99].map(|share| milliseconds(quantile(seen.took.clone(), share)));
    report.figure(&format!("{name}: the neighbour's posts, p50"), half, "ms");
    report.figure(&format!("{name}: the neighbour's posts, p99"), most, "ms");
    report.count(&format!("{name}: the neighbour's posts refused or lost"), seen.failed, "posts");
    Ok(most)
}
