//! What it costs to tell many devices what happens around one item.
//!
//! ```text
//!   this process: backend + devices (one thread) ──loopback──▶ feedgate, the release binary (child)
//!
//!   single likes, more than a second apart ─▶ one push to each device ─▶ time, processor time per push
//!   likes as fast as they go, for some seconds ─▶ at most one push a second to each device
//!   the same while readers page through the list of who likes it, at a steady rate and then without a pause
//!                                                          ─▶ likes beside those without, time of a page
//! ```
//!
//! Run it: `cargo bench -p feedgate-tests --bench watchers [-- --json FILE]`, about a minute. With `--cluster` a
//! gateway and a worker over PostgreSQL, Redis and NATS take the place of the one process. Absolute times do not carry
//! to another machine; the pushes per device and second do.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use clap::builder::RangedU64ValueParser as Count;
use feedgate_tests::load::{
    self, Backend, Deliver, Fleet, Home, Installation, Plan, Report, Times, Wire, milliseconds, quantile,
};
use feedgate_tests::process::load_average;
use futures_util::future::try_join_all;
use tokio::time::sleep;

/// The author whom all devices follow.
const STAR: &str = "star";

/// Pushes of counts are at least a second apart.
const APART: Duration = Duration::from_millis(1200);

/// How many likes are under way at a time.
const LIKING: usize = 32;

/// How many readers page through the list of who likes the item, in the runs that have such readers.
const PAGING: usize = 8;

/// How often each of them asks for a page: nobody, at a steady rate, and without a pause.
const READERS: [(usize, Duration); 3] =
    [(0, Duration::ZERO), (PAGING, Duration::from_millis(25)), (PAGING, Duration::ZERO)];

/// After so many lines a reader begins again with the newest.
const WALK: usize = 2000;

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
    /// How many likes one request brings
    #[arg(long, default_value_t = 1, value_parser = Count::<u64>::new().range(1..=100))]
    batch: u64,
    /// Measures a gateway and a worker over PostgreSQL, Redis and NATS
    #[arg(long)]
    cluster: bool,
    /// The directory of the programs to measure; else the release build, made first
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
    load::run_with(Installation::programs(options.cluster), options.binaries.clone(), async |binaries| {
        measure(options, binaries).await
    })
}

async fn measure(options: Options, binaries: &Path) -> anyhow::Result<()> {
    let (mut report, load) = (Report::default(), load_average()?);
    let home = Home::make(binaries)?;
    let server = Installation::start(&home, options.cluster).await?;
    let (backend, count) = (&server.gateway.backend, options.watchers);
    let users: Vec<String> = (0..count).map(|nth| format!("reader-{nth}")).collect();
    backend.follow(&users, STAR).await?;
    let item = backend.publish_item(STAR).await?;
    backend.quiet().await?;
    let tokens = home.tokens(users.into_iter())?;
    for (wire, over) in [(Wire::Json, "JSON"), (Wire::Protobuf, "Protobuf")] {
        report.heading(&format!("one item, all devices watch it over {over}"));
        let (deliver, addresses) = (Deliver::Item(item), &[server.gateway.address()]);
        let fleet =
            Fleet::connect(Plan { addresses, deliver, wire, tokens: &tokens, stalled: 0..0, tls: None }).await?;

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

        let mut alone = None;
        for (paging, every) in READERS {
            sleep(APART).await;
            let (frames, before, started) = (fleet.tally()?.frames, server.cpu_seconds()?, Instant::now());
            let until = started + Duration::from_secs(options.hot);
            let lanes = format!("{over}-{paging}-{}", every.as_millis());
            let (likes, pages) = tokio::try_join!(
                like(backend, item, (&lanes, options.batch), until),
                read(backend, item, (paging, every), until)
            )?;
            let lasted = started.elapsed().as_secs_f64();
            sleep(APART).await;
            let frames = (fleet.tally()?.frames - frames) as f64 / count as f64;
            let cpu = server.cpu_seconds()? - before;
            let with = match (paging, every.as_millis()) {
                (0, _) => String::new(),
                (paging, 0) => format!(", {paging} readers page who likes it"),
                (paging, every) => format!(", {paging} readers page who likes it, each every {every} ms"),
            };
            let name = format!("{over}: likes without a pause{with}");
            let rate = likes as f64 / lasted;
            report.figure(&format!("{name}: likes"), rate, "/s");
            report.figure(&format!("{name}: pushes per device"), frames / lasted, "/s");
            report.figure(&format!("{name}: processor time"), cpu / lasted, "of one processor");
            if let Some(alone) = alone {
                report.figure(&format!("{name}: likes beside those without readers"), rate / alone, "");
                report.figure(&format!("{name}: pages of 100"), pages.len() as f64 / lasted, "/s");
                for (what, share) in [("p50", 0.5), ("p99", 0.99)] {
                    let took = milliseconds(quantile(pages.clone(), share));
                    report.figure(&format!("{name}: a page, {what}"), took, "ms");
                }
            }
            // One at once, one for each second until the last count of frames, and maybe a ping.
            let most = 1.0 + lasted + APART.as_secs_f64() + 1.0;
            ensure!(frames <= most, "a device got {frames} frames in {lasted} s, and {most} are the most");
            alone = alone.or(Some(rate));
        }
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

/// Likes the item in the names of ever new users until then, `batch` in one request. Gives how many likes were
/// answered.
async fn like(backend: &Backend, item: u64, (names, batch): (&str, u64), until: Instant) -> anyhow::Result<u64> {
    let lanes = (0..LIKING).map(async |lane| {
        let mut likes = 0u64;
        while Instant::now() < until {
            let user = |nth| format!("{names}-{lane}-{nth}");
            match batch {
                1 => backend.like(item, &user(likes)).await?,
                _ => backend.like_all(item, (likes..likes + batch).map(user)).await?,
            }
            likes += batch;
        }
        anyhow::Ok(likes)
    });
    Ok(try_join_all(lanes).await?.into_iter().sum())
}

/// So many readers walk through the list of who likes the item until then, from the newest on and again from the newest
/// after some pages; each asks for a page no more often than given. Gives how long each page took. Fails if a walk
/// names a user twice.
async fn read(
    backend: &Backend,
    item: u64,
    (readers, every): (usize, Duration),
    until: Instant,
) -> anyhow::Result<Vec<Duration>> {
    let walks = (0..readers).map(async |_| {
        let (mut took, mut seen, mut cursor) = (vec![], HashSet::new(), None::<String>);
        while Instant::now() < until {
            if seen.len() >= WALK {
                (seen, cursor) = (HashSet::new(), None);
            }
            let from = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
            let asked = Instant::now();
            let page = backend.get(&format!("/v1/items/{item}/reactions?limit=100{from}")).await?;
            took.push(asked.elapsed());
            if let Some(rest) = every.checked_sub(asked.elapsed()) {
                sleep(rest).await;
            }
            for line in page["reactions"].as_array().context("a page has reactions")? {
                let user = line["user"].as_str().context("a reaction has a user")?;
                ensure!(seen.insert(user.to_owned()), "{user} stands twice in one walk");
            }
            cursor = page["next"].as_str().map(str::to_owned);
            if cursor.is_none() {
                seen.clear();
            }
        }
        anyhow::Ok(took)
    });
    Ok(try_join_all(walks).await?.concat())
}
