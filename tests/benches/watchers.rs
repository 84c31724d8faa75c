//! What it costs to tell many devices what happens around one item.
//!
//! ```text
//!   this process: backend + devices (one thread) ──loopback──▶ feedgate, the release binary (child)
//!
//!   single likes, more than a second apart ─▶ one push to each device ─▶ time, processor time per push
//!   likes as fast as they go, for some seconds ─▶ at most one push a second to each device
//! ```
//!
//! Run it: `cargo bench -p feedgate-tests --bench watchers [-- --json FILE]`, about a minute. Absolute times do not carry
//! to another machine; the pushes per device and second do.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Parser;
use clap::builder::RangedU64ValueParser as Count;
use feedgate_tests::load::{self, Deliver, Fleet, Home, Plan, Report, Times, Wire};
use feedgate_tests::process::load_average;
use tokio::time::sleep;

/// The author whom all devices follow.
const STAR: &str = "star";

/// Pushes of counts are at least a second apart.
const APART: Duration = Duration::from_millis(1200);

/// How many likes are under way at a time.
const LIKING: usize = 32;

/// What the command line may change.
#[derive(Parser)]
#[command(about = "What it costs to tell many devices what happens around one item")]
struct Options {
    /// Devices that watch the item, each of a reader of its own (a process may open 20,000 sockets)
    #[arg(long, default_value_t = 10_000, value_parser = Count::<usize>::new().range(1..=19_000))]
    watchers: usize,
    /// How many single likes are measured
    #[arg(long, default_value_t = 20, value_parser = Count::<usize>::new().range(1..))]
    rounds: usize,
    /// Seconds of likes as fast as they go
    #[arg(long, default_value_t = 10, value_parser = Count::<u64>::new().range(1..))]
    hot: u64,
    /// The directory of the server to measure; else the release build, made first
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Where to write the figures as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    load::run(options.binaries.clone(), async |binaries| measure(options, binaries).await)
}

async fn measure(options: Options, binaries: &Path) -> anyhow::Result<()> {
    let (mut report, load) = (Report::default(), load_average()?);
    let home = Home::make(binaries)?;
    let server = home.start("server", &["feedgate", "serve"], "--listen", "").await?;
    let (backend, count) = (&server.backend, options.watchers);
    let users: Vec<String> = (0..count).map(|nth| format!("reader-{nth}")).collect();
    backend.follow(&users, STAR).await?;
    let item = backend.publish_item(STAR).await?;
    backend.quiet().await?;
    let tokens = home.tokens(users.into_iter())?;
    for (wire, over) in [(Wire::Json, "JSON"), (Wire::Protobuf, "Protobuf")] {
        report.heading(&format!("one item, all devices watch it over {over}"));
        let (deliver, addresses) = (Deliver::Item(item), &[server.address()]);
        let fleet = Fleet::connect(Plan { addresses, deliver, wire, tokens: &tokens, stalled: 0..0 }).await?;

        let (mut times, mut spent) = (Times::default(), 0.0);
        for round in 0..=options.rounds {
            sleep(APART).await;
            fleet.expect(0..count, 1);
            let (before, started) = (server.cpu_seconds()?, Instant::now());
            let user = format!("{over}-single-{round}");
            let (liked, arrivals) = tokio::join!(backend.like(item, &user), fleet.arrived(0..count));
            liked?;
            // The first one finds cold caches.
            if round > 0 {
                times.add(started, &arrivals?);
                spent += server.cpu_seconds()? - before;
            }
        }
        let name = format!("{over}: a single like");
        times.tell(&name, count, &mut report);
        report.figure(&format!("{name}: whole path"), spent * 1e6 / (count * options.rounds) as f64, "CPU-s/M pushes");

        sleep(APART).await;
        let (frames, before, started) = (fleet.tally()?.frames, server.cpu_seconds()?, Instant::now());
        let until = started + Duration::from_secs(options.hot);
        let liking = (0..LIKING).map(async |lane| {
            let mut likes = 0u64;
            while Instant::now() < until {
                backend.like(item, &format!("{over}-{lane}-{likes}")).await?;
                likes += 1;
            }
            anyhow::Ok(likes)
        });
        let likes: u64 = futures_util::future::try_join_all(liking).await?.into_iter().sum();
        let lasted = started.elapsed().as_secs_f64();
        sleep(APART).await;
        let frames = (fleet.tally()?.frames - frames) as f64 / count as f64;
        let cpu = server.cpu_seconds()? - before;
        let name = format!("{over}: likes without a pause");
        report.figure(&format!("{name}: likes"), likes as f64 / lasted, "/s");
        report.figure(&format!("{name}: pushes per device"), frames / lasted, "/s");
        report.figure(&format!("{name}: processor time"), cpu / lasted, "of one processor");
        ensure!(frames <= lasted + 2.0, "a device got {frames} pushes in {lasted} s");
        fleet.hang_up().await;
    }
    report.heading("this run");
    report.count("n", count as u64, "devices");
    report.text("load average before, 1 min", &load);
    report.origin("watchers", options.binaries.as_deref());
    if let Some(path) = &options.json {
        report.write(path)?;
    }
    Ok(())
}
