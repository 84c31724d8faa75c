//! Processor time per notification, and when it arrives.
//!
//! *Whole path*: accept, 10k durable appends, delivery; every session has an inbox of its own. *Appends* is the cost of
//! as many posts with nobody online. *Delivery* is the difference, and is compared with the floor. A burst is ten posts
//! in one commit; costs are counted per change, not per frame.

use std::time::{Duration, Instant};

use feedgate_tests::load::{Fleet, Report, Tally, Times, milliseconds, quantile};
use tokio::time::sleep;

use crate::floor::Floor;
use crate::world::{QUIET, STAR, World};

/// Bytes of text in a post, which makes a change of about 200 bytes.
const POST_BYTES: usize = 80;

/// Posts in a burst.
const BURST: u64 = 10;

/// Single posts to one reader.
const SINGLES: u32 = 200;

/// The pause between them.
const SINGLES_EVERY: Duration = Duration::from_millis(20);

/// What posts cost the server. Seconds of processor time per million changes.
pub(crate) struct Cost {
    single: f64,
    burst: f64,
}

/// What one mode of delivery cost, and what came of it.
pub(crate) struct Delivered {
    cost: Cost,
    /// What a device got for a single post, as it came.
    frame: Vec<u8>,
    pub(crate) tally: Tally,
}

/// Posts to everyone, one by one and in bursts; in the end everyone hangs up.
pub(crate) async fn measure(world: &World, fleet: Fleet, mode: &str, report: &mut Report) -> anyhow::Result<Delivered> {
    // The first post finds cold caches.
    let mut warm = Times::default();
    to_all(world, &fleet, STAR, 1, &mut warm).await?;
    let frames = fleet.tally()?.frames;

    let mut times = Times::default();
    let single = per_million(world, 1, async || to_all(world, &fleet, STAR, 1, &mut times).await).await?;
    let frame = fleet.last_frame();
    report.figure(&format!("{mode}: whole path"), single, "CPU-s/M");
    times.tell(mode, world.sessions(), report);
    let frames = fleet.tally()?.frames - frames;
    report.figure(&format!("{mode}: frames per post and session"), per(frames, world, 1), "frames");

    let before = fleet.tally()?.frames;
    let mut times = Times::default();
    let burst = per_million(world, BURST, async || to_all(world, &fleet, STAR, BURST, &mut times).await).await?;
    report.figure(&format!("{mode}, burst of ten: whole path"), burst, "CPU-s/M");
    times.tell(&format!("{mode}, burst of ten"), world.sessions(), report);
    let frames = fleet.tally()?.frames - before;
    report.figure(&format!("{mode}, burst of ten: frames per burst and session"), per(frames, world, 1), "frames");

    singles(world, &fleet, mode, report).await?;
    let tally = fleet.tally()?;
    report.count(&format!("{mode}: missing"), tally.missing, "notifications");
    report.count(&format!("{mode}: repeated"), tally.repeated, "notifications");
    fleet.hang_up().await;
    Ok(Delivered { cost: Cost { single, burst }, frame, tally })
}

/// Measures the cost of the appends alone: posts as in the whole path, with nobody online.
pub(crate) async fn appends(world: &World, report: &mut Report) -> anyhow::Result<Cost> {
    while world.server.backend.sessions().await? > 0 {
        sleep(Duration::from_millis(50)).await;
    }
    let alone = async |burst| {
        post(world, STAR, burst).await?;
        sleep(Duration::from_millis(50)).await;
        world.server.backend.quiet().await
    };
    let single = per_million(world, 1, async || alone(1).await).await?;
    let burst = per_million(world, BURST, async || alone(BURST).await).await?;
    report.figure("appends", single, "CPU-s/M");
    report.figure("appends, burst of ten", burst, "CPU-s/M");
    Ok(Cost { single, burst })
}

/// Puts a mode beside the floor: the bytes of one of its frames, by `send(2)`, as often.
pub(crate) async fn compare(
    world: &World,
    mode: &str,
    delivered: &Delivered,
    appends: &Cost,
    report: &mut Report,
) -> anyhow::Result<()> {
    let n = world.sessions();
    let mut floor = Floor::start(n)?;
    let fleet = world.connect_raw(floor.address).await?;
    floor.ready()?;
    let mut times = Times::default();
    let cpu = floor.cpu_seconds()?;
    for _ in 0..world.options.rounds {
        fleet.expect(0..n, 1);
        let started = Instant::now();
        floor.send(&delivered.frame)?;
        let arrivals = fleet.arrived(0..n).await?;
        times.add(started, &arrivals);
        floor.sent()?;
    }
    let bare = (floor.cpu_seconds()? - cpu) * 1e6 / (n * world.options.rounds) as f64;
    fleet.hang_up().await;

    report.count(&format!("{mode}: frame"), delivered.frame.len() as u64, "B");
    report.figure(&format!("{mode}: bare loop"), bare, "CPU-s/M");
    times.tell(&format!("{mode}: bare loop"), n, report);
    let Cost { single, burst } = delivered.cost;
    for (what, cost) in [
        ("delivery", single - appends.single),
        ("whole path", single),
        ("delivery of a burst of ten", burst - appends.burst),
        ("whole path of a burst of ten", burst),
    ] {
        report.figure(&format!("{mode}: {what} / bare loop"), cost / bare, "x");
    }
    Ok(())
}

/// Runs `round` as often as asked and answers what the server spent, per million changes of `burst` a
/// round and session.
async fn per_million(
    world: &World,
    burst: u64,
    mut round: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    world.server.backend.quiet().await?;
    let before = world.cpu_seconds()?;
    for _ in 0..world.options.rounds {
        round().await?;
    }
    world.server.backend.quiet().await?;
    let changes = (world.sessions() * world.options.rounds) as f64 * burst as f64;
    Ok((world.cpu_seconds()? - before) * 1e6 / changes)
}

async fn post(world: &World, author: &str, burst: u64) -> anyhow::Result<()> {
    match burst {
        1 => world.server.backend.publish(author, POST_BYTES).await,
        burst => world.server.backend.publish_burst(author, POST_BYTES, burst).await,
    }
}

/// Posts of an author whom all follow, until the last has them.
pub(crate) async fn to_all(
    world: &World,
    fleet: &Fleet,
    author: &str,
    burst: u64,
    times: &mut Times,
) -> anyhow::Result<()> {
    let everyone = 0..world.sessions();
    fleet.expect(everyone.clone(), burst);
    let started = Instant::now();
    let (posted, arrivals) = tokio::join!(post(world, author, burst), fleet.arrived(everyone));
    posted?;
    times.add(started, &arrivals?);
    Ok(())
}

/// Single posts to one reader at a modest rate, while everyone else is connected and idle.
async fn singles(world: &World, fleet: &Fleet, mode: &str, report: &mut Report) -> anyhow::Result<()> {
    let reader = world.sessions() - 1..world.sessions();
    let mut took = Vec::new();
    for _ in 0..SINGLES {
        fleet.expect(reader.clone(), 1);
        let started = Instant::now();
        let (posted, arrivals) =
            tokio::join!(world.server.backend.publish(QUIET, POST_BYTES), fleet.arrived(reader.clone()));
        posted?;
        took.push(arrivals?.quantile(1.0) - started);
        sleep(SINGLES_EVERY).await;
    }
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let took = milliseconds(quantile(took.clone(), share));
        report.figure(&format!("{mode}: single post to one, publish to device, {name}"), took, "ms");
    }
    Ok(())
}

fn per(frames: u64, world: &World, posts: u64) -> f64 {
    frames as f64 / (world.sessions() * world.options.rounds) as f64 / posts as f64
}
