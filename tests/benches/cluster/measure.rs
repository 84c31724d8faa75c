//! The two measurements: posts to one device, one after another; and one post to all.

use std::time::{Duration, Instant};

use feedgate_tests::load::{Deliver, Fleet, Report, Tally, Times, milliseconds, quantile};
use tokio::time::sleep;

use crate::options::Options;
use crate::spent::Spent;
use crate::world::{QUIET, STAR, World};

/// Bytes of text in a post, which makes a change of about 200 bytes.
const POST_BYTES: usize = 80;

/// The first posts find cold caches.
const WARM_UP: usize = 20;

/// Between two posts to one device, so that each has the installation to itself.
const PAUSE: Duration = Duration::from_millis(20);

/// Milliseconds of one way of delivery, for a comparison; and what the devices saw.
pub(crate) struct Measured {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Until the last of all has it, in the median round.
    pub(crate) last: f64,
    /// Processor time of all processes, in microseconds per delivered change.
    pub(crate) cpu: f64,
    pub(crate) missing: u64,
    pub(crate) repeated: u64,
}

/// Measures posts to one device and posts to many, in one way of delivery.
pub(crate) async fn both(
    world: &World,
    deliver: Deliver,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<Measured> {
    let way = match deliver {
        Deliver::Items => "items",
        Deliver::Notify => "notify",
        Deliver::Item(_) => "around an item",
        Deliver::Raw => "raw",
    };
    let name = format!("{}, {way}", world.name);
    let fleet = world.connect_one(deliver).await?;
    let (p50, p99) = to_one(world, &fleet, options.posts, &name, report).await?;
    let one = ended(fleet).await?;
    let fleet = world.connect_all(deliver).await?;
    let (last, cpu) = to_all(world, &fleet, options.rounds, &name, report).await?;
    let all = ended(fleet).await?;
    let (missing, repeated) = (one.missing + all.missing, one.repeated + all.repeated);
    report.count(&format!("{name}: missing"), missing, "notifications");
    report.count(&format!("{name}: repeated"), repeated, "notifications");
    Ok(Measured { p50, p99, last, cpu, missing, repeated })
}

/// What they saw in all; nobody listens any more.
async fn ended(fleet: Fleet) -> anyhow::Result<Tally> {
    let tally = fleet.tally()?;
    fleet.hang_up().await;
    Ok(tally)
}

async fn to_one(
    world: &World,
    fleet: &Fleet,
    posts: usize,
    name: &str,
    report: &mut Report,
) -> anyhow::Result<(f64, f64)> {
    for _ in 0..WARM_UP {
        post(world, fleet, QUIET, 1).await?;
    }
    world.backend().quiet().await?;
    let before = Spent::so_far(world).await?;
    let (mut answered, mut arrived) = (Vec::new(), Vec::new());
    for _ in 0..posts {
        let post = post(world, fleet, QUIET, 1).await?;
        answered.push(post.answered - post.started);
        arrived.push(post.arrivals.quantile(1.0) - post.started);
        sleep(PAUSE).await;
    }
    let name = format!("{name}: single post to one");
    let of = |times: &Vec<Duration>, share| milliseconds(quantile(times.clone(), share));
    let (p50, p99) = (of(&arrived, 0.5), of(&arrived, 0.99));
    for (what, took) in [("p50", p50), ("p99", p99), ("max", of(&arrived, 1.0))] {
        report.figure(&format!("{name}, publish to device, {what}"), took, "ms");
    }
    for (what, share) in [("p50", 0.5), ("p99", 0.99)] {
        report.figure(&format!("{name}, publish to answer, {what}"), of(&answered, share), "ms");
    }
    world.backend().quiet().await?;
    before.tell_calls(world, &name, posts, report).await?;
    Ok((p50, p99))
}

async fn to_all(
    world: &World,
    fleet: &Fleet,
    rounds: usize,
    name: &str,
    report: &mut Report,
) -> anyhow::Result<(f64, f64)> {
    let readers = world.readers();
    post(world, fleet, STAR, readers).await?;
    world.backend().quiet().await?;
    let before = Spent::so_far(world).await?;
    let mut times = Times::default();
    for _ in 0..rounds {
        let post = post(world, fleet, STAR, readers).await?;
        times.add(post.started, &post.arrivals);
        sleep(PAUSE).await;
    }
    world.backend().quiet().await?;
    let name = format!("{name}: one post to {readers}");
    let last = times.tell(&name, readers, report);
    let cpu = before.tell_cpu(world, &name, (readers * rounds) as u64, report).await?;
    before.tell_calls(world, &name, rounds, report).await?;
    Ok((last, cpu))
}

struct Post {
    started: Instant,
    answered: Instant,
    arrivals: feedgate_tests::load::Arrivals,
}

/// One post, which the first `devices` of the fleet are to get.
async fn post(world: &World, fleet: &Fleet, author: &str, devices: usize) -> anyhow::Result<Post> {
    fleet.expect(0..devices, 1);
    let started = Instant::now();
    let publish = async {
        world.backend().publish(author, POST_BYTES).await?;
        anyhow::Ok(Instant::now())
    };
    let (answered, arrivals) = tokio::join!(publish, fleet.arrived(0..devices));
    Ok(Post { started, answered: answered?, arrivals: arrivals? })
}
