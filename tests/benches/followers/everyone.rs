//! An author whom everyone follows: readers that the store has heard of, no edge, no inbox.
//!
//! The cost of their follows is the time to give the author the class, and the growth of the store (whose files grow in
//! large pieces). The cost of a reader is the first read, which makes the inbox, and the next read, which finds one
//! more post.

use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use feedgate_common::InboxKey;
use feedgate_common::change::Class;
use feedgate_common::feed::DEFAULT_BACKFILL;
use feedgate_tests::load::{Report, milliseconds, quantile};
use feedgate_tests::process::{directory_size, written_bytes};
use feedgate_tests::town::Town;

use crate::ears::Ears;
use crate::world::{BUCKETS, COMING, Seen, classify, cpu, newcomers, post, read_one, users};

/// The author whom everyone follows.
const HOUSE: &str = "house";

/// Items of a page.
const PAGE: usize = 20;

/// Measures an author of class `everyone` with so many readers, in a new store in `dir`.
pub(crate) async fn measure(dir: &Path, readers: usize, report: &mut Report) -> anyhow::Result<Seen> {
    let town = Town::open(dir, BUCKETS, DEFAULT_BACKFILL)?;
    let ears = Ears::at(&*town.stores.doorbell);
    let keys = newcomers(&town, &users("reader", readers)?).await?;
    let before = directory_size(dir)?;
    let (start, written) = (Instant::now(), written_bytes()?);
    classify(&town, HOUSE, Class::Everyone).await?;
    report.figure("everyone: classified", milliseconds(start.elapsed()), "ms");
    report.count("everyone: written to classify", written_bytes()? - written, "B");
    let after = directory_size(dir)?;
    let counts = town.stores.archive.counts().await?;
    ensure!(counts.edges == 0 && counts.events == 0, "everyone follows without edges: {counts:?}");
    report.count(&format!("everyone: store of {readers} readers, before"), before, "B");
    report.count("everyone: store, since everyone follows", after, "B");
    report.count("everyone: edges", counts.edges, "edges");

    publish(&town, &ears, report).await?;
    let coming = &keys[..COMING.min(keys.len())];
    let first = timed("first read, which makes the inbox", coming, report, async |key| {
        let page = town.pages.page(key, None, PAGE).await?;
        Ok(Seen::of(1, page.items.len() as u64))
    })
    .await?;
    let mut heads = vec![];
    for key in coming {
        heads.push(town.changes.head(*key).await?);
    }
    publish(&town, &ears, report).await?;
    let mut heads = heads.into_iter();
    let next = timed("next read, one post more", coming, report, async |key| {
        let after = heads.next().expect("as many as readers");
        read_one(&town, key, after).await
    })
    .await?;
    let counts = town.stores.inboxes.counts().await?;
    ensure!(counts.inboxes == coming.len() as u64, "who does not come costs nothing: {counts:?}");
    town.close().await?;
    Ok(first + next)
}

/// A post, until every node is told.
async fn publish(town: &Town, ears: &Ears, report: &mut Report) -> anyhow::Result<()> {
    let next = ears.hot() + 1;
    let start = Instant::now();
    post(town, HOUSE).await?;
    ears.until_hot(next).await?;
    report.figure("everyone: a post, every node is told", milliseconds(start.elapsed()), "ms");
    town.settle().await
}

/// Readers who come one after another.
async fn timed(
    what: &str,
    keys: &[InboxKey],
    report: &mut Report,
    mut read: impl AsyncFnMut(InboxKey) -> anyhow::Result<Seen>,
) -> anyhow::Result<Seen> {
    let (mut times, mut seen, used) = (vec![], Seen::default(), cpu()?);
    for key in keys {
        let start = Instant::now();
        seen = seen + read(*key).await?;
        times.push(start.elapsed());
    }
    let spent = (cpu()? - used) * 1e6 / keys.len() as f64;
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let took = milliseconds(quantile(times.clone(), share)) * 1e3;
        report.figure(&format!("everyone: {what}, {name}"), took, "us");
    }
    report.figure(&format!("everyone: {what}"), spent, "CPU-us");
    Ok(seen)
}
