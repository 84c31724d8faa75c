//! What a post costs whose readers all sleep: nobody is connected, and each has a device that a push service could
//! wake.
//!
//! ```text
//!   this thread: backend, neighbour's device ──▶ feedgate, the release binary (child)
//!   receiver of the webhook ◀──notifications────┘
//! ```
//!
//! Run it: `cargo bench -p feedgate-tests --bench sleepers [-- --sleepers 200000] [--json FILE]`. With 20,000 sleepers
//! it takes a minute, with 200,000 three.
//!
//! One post goes to as many readers without a device, and another one to the sleepers, on one server: the ratio of the
//! processor times is what a device costs. A third one goes to the sleepers while a neighbour posts every 25 ms, whose
//! only reader is online.

mod options;
mod receiver;

use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Parser;
use feedgate_tests::load::{self, Backend, Home, Neighbour, Report, Seen, Server, milliseconds, quantile};
use feedgate_tests::process::load_average;
use futures_util::StreamExt;
use futures_util::stream;
use tokio::time::sleep;

use crate::options::Options;
use crate::receiver::Receiver;

/// All sleepers follow this author.
const STAR: &str = "star";
/// As many readers without a device follow this author.
const PLAIN: &str = "plain";
/// The neighbour's device follows this author.
const QUIET: &str = "quiet";
/// Devices that are registered at a time.
const REGISTERING: usize = 64;
const POST_BYTES: usize = 200;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    load::run(options.binaries.clone(), async |binaries| measure(options, binaries).await)
}

async fn measure(options: Options, binaries: &std::path::Path) -> anyhow::Result<()> {
    let (started, load) = (Instant::now(), load_average()?);
    let mut report = Report::default();
    let receiver = Receiver::listen().await?;
    let home = Home::make(binaries)?;
    let settings = format!("[push]\nwebhook_url = {:?}\nallow_private = [\"127.0.0.1\"]\n", receiver.url());
    let server = home.start("server", &["feedgate", "serve"], "--listen", &settings).await?;
    fill(&server.backend, options.sleepers).await?;
    let token = home.tokens(std::iter::once("neighbour".to_owned()))?.remove(0);
    let mut neighbour = Neighbour::connect(&server, &token, QUIET).await?;
    // The first posts are not measured, because they find empty caches.
    neighbour.posts(&server.backend, Duration::from_secs(1)).await?;

    let peace = neighbour.posts(&server.backend, Duration::from_secs(options.seconds)).await?;
    tell("peace", &peace, &mut report)?;
    let plain = post(&server, PLAIN, None, options.sleepers, &mut report).await?;
    let star = post(&server, STAR, Some(&receiver), options.sleepers, &mut report).await?;
    report.figure("a sleeper costs, compared with a reader without a device", star / plain, "times");

    // A second post, now beside the neighbour. The notices of the first rest for `push.min_interval_secs`.
    report.heading("the neighbour, beside another post to the sleepers");
    let during = Duration::from_secs(options.seconds.max(40));
    let (posted, seen) =
        tokio::join!(server.backend.publish(STAR, POST_BYTES), neighbour.posts(&server.backend, during));
    posted?;
    tell("beside", &seen?, &mut report)?;
    report.count("beside: readers told of that post meanwhile", receiver.repeated(), "readers");

    report.finish("sleepers", (started, &load), options.binaries.as_deref(), options.json.as_deref())
}

/// Makes the readers: `count` with a device, and as many without.
async fn fill(backend: &Backend, count: usize) -> anyhow::Result<()> {
    let [sleepers, plain] = ["sleeper", "plain"].map(|kind| (0..count).map(move |n| format!("{kind}-{n}")));
    for author in [STAR, PLAIN] {
        backend.classify(author, "push").await?;
    }
    let sleepers: Vec<String> = sleepers.collect();
    backend.follow(&sleepers, STAR).await?;
    backend.follow(&plain.collect::<Vec<_>>(), PLAIN).await?;
    backend.follow(&["neighbour".to_owned()], QUIET).await?;
    backend.quiet().await?;
    let mut registered =
        stream::iter(&sleepers).map(|user| backend.register(user, "phone")).buffer_unordered(REGISTERING);
    while let Some(one) = registered.next().await {
        one?;
    }
    Ok(())
}

/// Posts once to `count` readers and waits until all is done: until every inbox has it, and until the receiver, if
/// there is one, was told of all of them. Gives the processor time of the server for each reader, in microseconds.
async fn post(
    server: &Server,
    author: &str,
    receiver: Option<&Receiver>,
    count: usize,
    report: &mut Report,
) -> anyhow::Result<f64> {
    report.heading(if receiver.is_some() { "a post to sleepers" } else { "the same post to readers without a device" });
    report.figure(&format!("{author}: peak memory of the server before"), server.peak_memory()? as f64 / 1e6, "MB");
    let (began, cpu) = (Instant::now(), server.cpu_seconds()?);
    server.backend.publish(author, POST_BYTES).await?;
    server.backend.quiet().await?;
    report.figure(&format!("{author}: until every inbox has it"), began.elapsed().as_secs_f64(), "s");
    if let Some(receiver) = receiver {
        let limit = Duration::from_secs(60) + Duration::from_millis(count as u64);
        while receiver.told() < count {
            ensure!(began.elapsed() < limit, "{} of {count} readers were told", receiver.told());
            sleep(Duration::from_millis(50)).await;
        }
        let took = began.elapsed().as_secs_f64();
        report.figure(&format!("{author}: until every reader was told"), took, "s");
        report.count(&format!("{author}: calls"), receiver.calls(), "calls");
        report.count(&format!("{author}: readers told twice"), receiver.repeated(), "readers");
        report.figure(&format!("{author}: peak memory of the server"), server.peak_memory()? as f64 / 1e6, "MB");
    }
    let each = (server.cpu_seconds()? - cpu) / count as f64 * 1e6;
    report.figure(&format!("{author}: processor time for each reader"), each, "µs");
    Ok(each)
}

fn tell(when: &str, seen: &Seen, report: &mut Report) -> anyhow::Result<()> {
    ensure!(seen.failed == 0, "{} posts of the neighbour were refused or lost", seen.failed);
    for (what, share) in [("p50", 0.5), ("p99", 0.99)] {
        let took = milliseconds(quantile(seen.took.clone(), share));
        report.figure(&format!("{when}: publish to the neighbour's device, {what}"), took, "ms");
    }
    Ok(())
}
