//! What the embedded Archive takes in and gives back: durable publishes, alone and with their fan-out, and the reads of
//! a feed.
//!
//! `cargo bench -p feedgate-tests --bench publishes`. Every publish is answered only when it is on
//! disk, so one publisher at a time shows the disk's sync and many show group commit. Prints plain
//! lines; bounded at about half a minute.

use std::sync::Arc;
use std::time::{Duration, Instant};

use feedgate_common::archive::{Below, Publish, Write};
use feedgate_common::change::Class;
use feedgate_common::feed::{Changes, Feeds, Publisher};
use feedgate_common::{Archive, Body, InboxKey, Millis, Progress, UserId, UserNo, Watermarks};
use feedgate_embedded::Embedded;
use feedgate_tests::process::{Used, commit};
use feedgate_timeline::{FanOut, Settings, Worker};
use tokio_util::sync::CancellationToken;

/// How long each rate is measured.
const MEASURED: Duration = Duration::from_secs(4);
const FOLLOWEES: usize = 100;
/// Publishers whose posts are fanned out, the authors for whom each of them posts in turn, and the readers of all of
/// them.
const FANNED: usize = 64;
const AUTHORS_EACH: usize = 50;
const READERS: usize = 1000;
/// How many of the readers follow an author.
const FOLLOWERS: usize = 10;
/// Authors who are pulled, and how often each has posted.
const PULLED: usize = 50;
const PULLED_EACH: usize = 100;
const BODY_BYTES: usize = 200;

fn main() -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let stores = Embedded::open(dir.path(), 16)?;
    for publishers in [1, 64, 256] {
        let rate = publish_alone(&stores.archive, publishers).await?;
        line(&format!("durable publishes, {publishers} at a time"), rate, "per second");
    }
    fan_out(&stores).await?;
    let reader = follow_and_fill(&stores.archive).await?;
    reads(&stores.archive, reader).await?;
    let fan = follow_and_pull(&stores.archive).await?;
    news(&stores.archive, fan).await?;
    stores.close().await?;
    say(&format!("commit: {}", commit()));
    say(&format!("command: cargo bench -p feedgate-tests --bench publishes (bodies of {BODY_BYTES} bytes)"));
    Ok(())
}

/// Lets `publishers` tasks publish for a while, each one item at a time. `post` publishes an item, and gets the numbers
/// of its publisher and of the item among those of this publisher. Answers how many items were published.
async fn publish<Posted>(
    publishers: usize,
    post: impl Fn(usize, usize) -> Posted + Clone + Send + 'static,
) -> anyhow::Result<usize>
where
    Posted: Future<Output = anyhow::Result<()>> + Send,
{
    let start = Instant::now();
    let one = |n| {
        let post = post.clone();
        tokio::spawn(async move {
            let mut published = 0;
            while start.elapsed() < MEASURED {
                post(n, published).await?;
                published += 1;
            }
            anyhow::Ok(published)
        })
    };
    let tasks: Vec<_> = (0..publishers).map(one).collect();
    let mut published = 0;
    for task in tasks {
        published += task.await??;
    }
    Ok(published)
}

/// Publishes for a while without fan-out; how many items per second.
async fn publish_alone(archive: &Arc<dyn Archive>, publishers: usize) -> anyhow::Result<f64> {
    let (start, archive) = (Instant::now(), archive.clone());
    let post = move |n, _| {
        let archive = archive.clone();
        async move {
            archive.write(vec![item(&format!("p{publishers}-{n}"), now())], now()).await?.remove(0)?;
            Ok(())
        }
    };
    Ok(publish(publishers, post).await? as f64 / start.elapsed().as_secs_f64())
}

/// Publishes for a while to readers with inboxes, until the fan-out of the last post is finished.
async fn fan_out(stores: &Embedded) -> anyhow::Result<()> {
    let readers: Vec<UserId> = (0..READERS).map(|n| Ok(format!("r{n}").parse()?)).collect::<anyhow::Result<_>>()?;
    for author in 0..FANNED * AUTHORS_EACH {
        let followers = (0..FOLLOWERS).map(|n| readers[(author * 7 + n * READERS / FOLLOWERS) % READERS].clone());
        let author: UserId = format!("f{author}").parse()?;
        let follows = followers.map(|reader| Write::Follow { reader, author: author.clone() });
        stores.archive.write(follows.collect(), now()).await?;
    }
    let feeds = Arc::new(Feeds::new(stores.archive.clone(), stores.inboxes.clone(), 0));
    let changes = Changes::new(feeds.clone());
    for reader in stores.archive.intern(&readers).await? {
        changes.head(InboxKey::main(reader)).await?;
    }
    let worker = Worker::new(FanOut::new(feeds), stores.jobs.clone(), stores.doorbell.clone(), Settings::default());
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let working = tokio::spawn(async move { worker.run(stop).await });
    finished(stores).await?;

    let (start, used) = (Instant::now(), Used::now()?);
    let publisher = Arc::new(Publisher::new(stores.archive.clone(), stores.jobs.clone()));
    let post = move |n, nth| {
        let publisher = publisher.clone();
        async move {
            let author = format!("f{}", n * AUTHORS_EACH + nth % AUTHORS_EACH);
            publisher.write(vec![item(&author, now())], now()).await?.remove(0)?;
            Ok(())
        }
    };
    let published = publish(FANNED, post).await?;
    finished(stores).await?;
    let (rate, cost) = (published as f64 / start.elapsed().as_secs_f64(), used.since()? * 1e6 / published as f64);
    shutdown.cancel();
    working.await?;
    let what = format!("durable publishes with fan-out to {FOLLOWERS} inboxes, {FANNED} at a time");
    line(&what, rate, "per second");
    line(&format!("{what}, processor time"), cost, "µs each");
    Ok(())
}

/// Waits until the fan-out of everything accepted is finished.
async fn finished(stores: &Embedded) -> anyhow::Result<()> {
    while !stores.archive.outstanding(None, Millis::MAX, 1).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// A reader of 100 authors with 20 items each.
async fn follow_and_fill(archive: &Arc<dyn Archive>) -> anyhow::Result<UserNo> {
    let reader: UserId = "reader".parse()?;
    for author in 0..FOLLOWEES {
        let name = format!("author-{author}");
        let mut writes = vec![Write::Follow { reader: reader.clone(), author: name.parse()? }];
        writes.extend((0..20).map(|_| item(&name, now())));
        archive.write(writes, now()).await?;
    }
    Ok(archive.intern(&[reader]).await?[0])
}

async fn reads(archive: &Arc<dyn Archive>, reader: UserNo) -> anyhow::Result<()> {
    let followees = archive.followees(reader).await?;
    let cuts: Vec<_> = followees.iter().map(|author| (*author, Progress::at(20))).collect();
    quantiles("rebuild of 1000 entries from 100 authors", || async {
        archive.build(InboxKey::main(reader), &cuts, 100, 1000).await.map(drop)
    })
    .await?;
    quantiles("deep page of 20 from 100 authors", || async {
        archive.feed_below(InboxKey::main(reader), Below::newest(21), 100).await.map(drop)
    })
    .await?;
    Ok(())
}

/// A reader of 1000 authors, of whom 50 are pulled and have posted in turn, 100 times each.
async fn follow_and_pull(archive: &Arc<dyn Archive>) -> anyhow::Result<UserNo> {
    let fan: UserId = "fan".parse()?;
    let follow = |n: usize| Ok(Write::Follow { reader: fan.clone(), author: format!("star-{n}").parse()? });
    archive.write((0..1000).map(follow).collect::<anyhow::Result<_>>()?, now()).await?;
    let classify = |n: usize| Ok(Write::Classify { author: format!("star-{n}").parse()?, class: Class::Pull });
    archive.write((0..PULLED).map(classify).collect::<anyhow::Result<_>>()?, now()).await?;
    for _ in 0..PULLED_EACH {
        archive.write((0..PULLED).map(|n| item(&format!("star-{n}"), now())).collect(), now()).await?;
    }
    Ok(archive.intern(&[fan]).await?[0])
}

async fn news(archive: &Arc<dyn Archive>, fan: UserNo) -> anyhow::Result<()> {
    let head = archive.pull_head().await?;
    let all = PULLED * PULLED_EACH;
    let cases =
        [("nothing", 0, 0), ("1 of each of 50 authors", PULLED, PULLED), ("100 of each, the first 1000", all, 1000)];
    for (what, behind, wants) in cases {
        let after = Watermarks { pull: head - behind as u64, direct: 0 };
        let found = archive.news(InboxKey::main(fan), after, 1000).await?.entries.len();
        anyhow::ensure!(found == wants, "{what}: {found} entries, not {wants}");
        let what = format!("news of a reader of 1000, behind by {what}");
        quantiles(&what, || async { archive.news(InboxKey::main(fan), after, 1000).await.map(drop) }).await?;
    }
    Ok(())
}

/// Times 200 calls; prints median and 99th percentile.
async fn quantiles<F>(what: &str, call: impl Fn() -> F) -> anyhow::Result<()>
where
    F: Future<Output = feedgate_common::error::Result<()>>,
{
    let mut micros = Vec::with_capacity(200);
    for _ in 0..200 {
        let start = Instant::now();
        call().await?;
        micros.push(start.elapsed().as_secs_f64() * 1e6);
    }
    micros.sort_by(f64::total_cmp);
    line(&format!("{what}, p50"), micros[100], "µs");
    line(&format!("{what}, p99"), micros[197], "µs");
    Ok(())
}

fn item(author: &str, now: i64) -> Write {
    let body = format!("\"{}\"", "x".repeat(BODY_BYTES - 2));
    Write::Publish(Publish {
        published_at: Some(now),
        ..Publish::new(author.parse().expect("a plain name"), Body::parse(body).expect("a JSON string"))
    })
}

fn now() -> i64 {
    feedgate_gateway::clock::now()
}

fn line(what: &str, value: f64, unit: &str) {
    say(&format!("{what}: {value:.0} {unit}"));
}

#[allow(clippy::print_stdout, reason = "a benchmark's result")]
fn say(line: &str) {
    println!("{line}");
}
