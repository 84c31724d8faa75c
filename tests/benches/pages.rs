//! How long a reader waits for a page: from the log, with news to pull, below the floor, after a week away.
//!
//! `cargo bench -p feedgate-tests --bench pages`. One process, embedded stores, bodies of 200 B; every page is hydrated
//! and checked. Each figure stands beside its target, where there is one.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use feedgate_common::archive::Write;
use feedgate_common::around::{Around, Onlooker, Reaction};
use feedgate_common::change::Class;
use feedgate_common::feed::{Changes, DEFAULT_BACKFILL, Feeds, Page, Pages};
use feedgate_common::inboxes::{KEEP, Read};
use feedgate_common::{DisplayKey, InboxKey, Op, Position, UserId};
use feedgate_tests::process::{commit, load_average};
use feedgate_tests::town::{Town, item, now};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many items a page has.
const PAGE: usize = 20;
/// Readers of each kind.
const READERS: usize = 50;
const PULLED: usize = 50;
const ROUNDS: usize = 20;
/// Pages below the floor that each reader asks for.
const DEEP: usize = 30;
const BODY_BYTES: usize = 200;
const HOUR: i64 = 3600 * 1000;

fn main() -> anyhow::Result<()> {
    println!("command: cargo bench -p feedgate-tests --bench pages");
    println!("commit: {}", commit());
    println!("load: {}", load_average()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    runtime.block_on(async {
        let town = Town::open(dir.path(), 16, DEFAULT_BACKFILL)?;
        from_the_log(&town).await?;
        with_reactions(&town).await?;
        with_news(&town).await?;
        below_the_floor(&town).await?;
        town.close().await
    })
}

/// Readers of 10 authors with 100 items each: all in the log. Then the same readers after a week away, and from far
/// behind.
async fn from_the_log(town: &Town) -> anyhow::Result<()> {
    let authors = users("hundred", 10)?;
    post(town, &authors, KEEP, 0).await?;
    let keys = readers(town, "near", &authors).await?;
    let mut pages = Times::default();
    for key in keys.iter().cycle().take(ROUNDS * keys.len()) {
        full(pages.take(town.pages.page(*key, None, PAGE)).await?)?;
    }
    pages.print("page of 20 from a log of 1000", "p50 200 µs");

    let (mut catch_ups, mut hydrated) = (Times::default(), Times::default());
    for key in keys.iter().cycle().take(ROUNDS * keys.len()) {
        let start = Position { offset: 0, ..town.changes.head(*key).await? };
        let Read::Entries { entries, .. } = catch_ups.take(town.changes.read(*key, start, KEEP)).await? else {
            anyhow::bail!("the log begins with its first change");
        };
        let changes = hydrated.take(town.changes.hydrate(*key, entries.iter().map(|numbered| &numbered.entry))).await?;
        ensure!(changes.len() == KEEP, "{} changes", changes.len());
    }
    catch_ups.print("catch-up of 1000 changes in one call", "p99 20 ms");
    hydrated.print("the items of 1000 changes", "in the 20 ms too");

    let mut returns = Times::default();
    for key in keys.iter().cycle().take(4 * keys.len()) {
        town.stores.inboxes.discard(*key).await?;
        full(returns.take(town.pages.page(*key, None, PAGE)).await?)?;
    }
    returns.print("first page after a week away: rebuild of 1000 from 10 authors", "none");
    Ok(())
}

/// Readers of 10 authors with 100 items each: pages as the gateway shows them, joined with what stands around their
/// items, before anybody has reacted and after three users have reacted to each item.
async fn with_reactions(town: &Town) -> anyhow::Result<()> {
    let authors = users("reacted", 10)?;
    post(town, &authors, KEEP, 0).await?;
    let keys = readers(town, "reacting", &authors).await?;
    let archive = &town.stores.archive;
    let (mut plain, mut without, mut with) = (Times::default(), Times::default(), Times::default());
    let joined = async |key: InboxKey| {
        let page = full(town.pages.page(key, None, PAGE).await?)?;
        let ids: Vec<_> = page.items.iter().map(|item| item.id).collect();
        anyhow::Ok(archive.around(&ids, Onlooker::user(key.reader)).await?)
    };
    for key in keys.iter().cycle().take(ROUNDS * keys.len()) {
        full(plain.take(town.pages.page(*key, None, PAGE)).await?)?;
        ensure!(without.take(joined(*key)).await?.iter().all(Around::is_empty), "nobody has reacted yet");
    }
    let shown = town.pages.page(keys[0], None, PAGE).await?.items;
    let like =
        |item, user| anyhow::Ok(Reaction { item, kind: "like".parse().map_err(anyhow::Error::msg)?, user, at: now() });
    for item in &shown {
        let three = keys[..3].iter().map(|key| like(item.id, key.reader)).collect::<anyhow::Result<Vec<_>>>()?;
        archive.react(&three).await?;
    }
    for key in keys.iter().cycle().take(ROUNDS * keys.len()) {
        ensure!(with.take(joined(*key)).await?.iter().all(|around| around.counts.len() == 1), "each item has a count");
    }
    plain.print("page of 20 before its items are joined", "none");
    without.print("page of 20 joined, nobody has ever reacted", "as plain");
    with.print("page of 20 joined, three reactions to each item", "2 × plain");
    Ok(())
}

/// Readers of 50 authors who are pulled; all of them post between two reads.
async fn with_news(town: &Town) -> anyhow::Result<()> {
    let authors = users("pulled", PULLED)?;
    let pull = |author: &UserId| Write::Classify { author: author.clone(), class: Class::Pull };
    town.write(authors.iter().map(pull).collect()).await?;
    post(town, &authors, KEEP, 0).await?;
    let keys = readers(town, "pulling", &authors).await?;
    let (mut news, mut quiet) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        post(town, &authors, PULLED, 0).await?;
        for key in &keys {
            let before = town.stores.inboxes.stand(*key).await?.context("an inbox")?;
            let page = full(news.take(town.pages.page(*key, None, PAGE)).await?)?;
            ensure!(page.position.offset == before.head.offset + PULLED as u64, "all the news, once");
            full(quiet.take(town.pages.page(*key, None, PAGE)).await?)?;
        }
    }
    news.print("page of 20, each of 50 pulled authors has posted", "p99 5 ms");
    quiet.print("page of 20 of 50 pulled authors, nothing new", "p99 5 ms");
    Ok(())
}

/// Readers of 100 authors with 40 items each over three years: 1000 in the log, 3000 below its floor.
async fn below_the_floor(town: &Town) -> anyhow::Result<()> {
    let authors = users("deep", 100)?;
    post(town, &authors, 4 * KEEP, 3 * 365 * 24 * HOUR / (4 * KEEP as i64)).await?;
    let keys = readers(town, "deep-reader", &authors).await?;
    let without_clock = Feeds::new(town.stores.archive.clone(), town.stores.inboxes.clone(), DEFAULT_BACKFILL);
    let forgetful = Pages::new(Arc::new(Changes::new(Arc::new(without_clock))));
    let (mut first, mut further, mut alone) = (Times::default(), Times::default(), Times::default());
    for key in &keys {
        let log = town.changes.log(*key).await?;
        let least = log.entries.iter().filter(|n| n.entry.op == Op::Add).map(|n| n.entry.key).min();
        let mut before = full(first.take(town.pages.page(*key, least, PAGE)).await?)?.next;
        let mut seen: HashSet<DisplayKey> = HashSet::new();
        for _ in 0..DEEP {
            let page = full(further.take(town.pages.page(*key, before, PAGE)).await?)?;
            let same = full(alone.take(forgetful.page(*key, before, PAGE)).await?)?;
            ensure!(page == same, "what is kept changes nothing");
            ensure!(page.items.iter().all(|item| seen.insert(item.key())), "an item comes twice");
            before = page.next;
        }
    }
    first.print("page of 20 below the floor, 100 authors, the first", "none");
    further.print("page of 20 below the floor, the next ones", "none");
    alone.print("page of 20 below the floor, nothing kept", "none");
    Ok(())
}

fn users(kind: &str, count: usize) -> anyhow::Result<Vec<UserId>> {
    (0..count).map(|n| Ok(format!("{kind}-{n}").parse()?)).collect()
}

/// So many items, by each of the authors in turn, the last of them now and each `apart` ms after the one before.
async fn post(town: &Town, authors: &[UserId], items: usize, apart: i64) -> anyhow::Result<()> {
    let body = "x".repeat(BODY_BYTES - 2);
    let start = now() - apart * items as i64;
    let writes: Vec<Write> =
        (0..items).map(|n| item(&authors[n % authors.len()], None, start + apart * n as i64, &body)).collect();
    for writes in writes.chunks(KEEP) {
        town.write(writes.to_vec()).await?;
    }
    town.settle().await
}

/// New readers who follow all of them and have an inbox.
async fn readers(town: &Town, kind: &str, authors: &[UserId]) -> anyhow::Result<Vec<InboxKey>> {
    let mut keys = vec![];
    for reader in users(kind, READERS)? {
        let follow = |author: &UserId| Write::Follow { reader: reader.clone(), author: author.clone() };
        town.write(authors.iter().map(follow).collect()).await?;
        keys.push(town.key(&reader).await?);
    }
    town.settle().await?;
    for key in &keys {
        town.feeds.rebuild(*key).await?;
    }
    Ok(keys)
}

fn full(page: Page) -> anyhow::Result<Page> {
    ensure!(page.items.len() == PAGE, "a page of {} items", page.items.len());
    Ok(page)
}

/// The times that calls took.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    async fn take<T>(&mut self, call: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let answer = call.await;
        self.0.push(start.elapsed());
        answer
    }

    fn print(mut self, what: &str, target: &str) {
        self.0.sort_unstable();
        let at = |percent: usize| self.0[(self.0.len() - 1) * percent / 100].as_secs_f64() * 1e6;
        println!("{what}: p50 {:.0} µs, p99 {:.0} µs (N {}, target {target})", at(50), at(99), self.0.len());
    }
}
