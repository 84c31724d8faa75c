//! How long a page and a catch-up take, of logs that are as long as logs get.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use feedgate_common::archive::{Names, Publish, Write, Writes};
use feedgate_common::feed::{Changes, Feeds, Pages, living};
use feedgate_common::inboxes::{Build, KEEP, Read};
use feedgate_common::{Body, Entry, Epoch, InboxKey, Inboxes, Millis, Position, UserId, UserNo, Watermarks};
use feedgate_embedded::archive::EmbeddedArchive;
use feedgate_embedded::inboxes::Settings;
use feedgate_embedded::{Database, EmbeddedInboxes};

use super::world::{World, record};
use super::{Wanted, figure};

/// How many readers of long logs there are, each read ten times.
const READERS: u32 = 200;

/// An item a page.
const PAGE: usize = 20;

pub(crate) async fn measure(store: &EmbeddedInboxes, world: &World, wanted: Wanted) -> anyhow::Result<()> {
    let keys: Vec<_> = (0..READERS).map(|n| InboxKey::main(UserNo(wanted.readers + n))).collect();
    for (key, n) in keys.iter().zip(0..) {
        let entry = |at: u64| Entry::of(&record(at, at), UserNo((at * 7919 % u64::from(world.authors())) as u32), 1);
        let entries = (1..=KEEP as u64).map(entry).collect();
        store.begin_build(*key, Epoch(n)).await?;
        ensure!(
            store
                .finish_build(Build {
                    key: *key,
                    epoch: Epoch(n),
                    built_at: 1,
                    entries,
                    floor: None,
                    taken: Watermarks::default(),
                    ahead: vec![],
                    notes_from: 0,
                    until: Millis::MAX
                })
                .await?
        );
    }
    let (mut pages, mut catch_ups, mut logs) = (Vec::new(), Vec::new(), Vec::new());
    for key in keys.iter().cycle().take(10 * keys.len()) {
        let start = Instant::now();
        let log = store.log(*key).await?.context("built above")?;
        logs.push(start.elapsed());
        let mut shown = living(&log.entries);
        shown.sort_unstable_by(|a, b| b.cmp(a));
        shown.truncate(PAGE);
        pages.push(start.elapsed());
        ensure!(shown.len() == PAGE && log.entries.len() == KEEP);

        let start = Instant::now();
        let read = store.read(*key, Position { offset: 0, ..log.head }, KEEP).await?;
        catch_ups.push(start.elapsed());
        ensure!(matches!(read, Read::Entries { entries, .. } if entries.len() == KEEP));
    }
    percentiles("log of 1000", &mut logs);
    percentiles("page of 20 from a log of 1000, not hydrated", &mut pages);
    percentiles("catch-up of 1000", &mut catch_ups);
    Ok(())
}

/// Pages with their items, through the rules and the embedded archive: 50 readers of 10 authors with
/// 100 posts each.
pub(crate) async fn hydrated(dir: &Path) -> anyhow::Result<()> {
    let inboxes = Arc::new(EmbeddedInboxes::open(&dir.join("inboxes"), None, Settings::default())?);
    let archive = Arc::new(EmbeddedArchive::open(Database::open(&dir.join("archive"))?, inboxes.buckets()).await?);
    let name = |kind: &str, n: usize| format!("{kind}-{n}").parse::<UserId>();
    let mut writes = Vec::new();
    for post in 0..KEEP {
        writes.push(Write::Publish(publish(name("author", post % 10)?)?));
    }
    let mut readers = Vec::new();
    for reader in 0..50 {
        readers.push(name("reader", reader)?);
        for author in 0..10 {
            writes.push(Write::Follow { reader: name("reader", reader)?, author: name("author", author)? });
        }
    }
    ensure!(archive.write(writes, 1_764_000_000_000).await?.iter().all(Result::is_ok), "a write was refused");
    let keys: Vec<_> = archive.intern(&readers).await?.into_iter().map(InboxKey::main).collect();
    let feeds = Arc::new(Feeds::new(archive, inboxes, KEEP));
    for key in &keys {
        feeds.rebuild(*key).await?;
    }
    let read = Pages::new(Arc::new(Changes::new(feeds)));
    let mut pages = Vec::new();
    for key in keys.iter().cycle().take(2000) {
        let start = Instant::now();
        let page = read.page(*key, None, PAGE).await?;
        pages.push(start.elapsed());
        ensure!(page.items.len() == PAGE, "a short page");
    }
    percentiles("page of 20 from a log of 1000, hydrated", &mut pages);
    Ok(())
}

fn publish(author: UserId) -> anyhow::Result<Publish> {
    let text = format!(r#"{{"text":"{}"}}"#, "two hundred bytes ".repeat(11));
    let body = Body::parse(text).map_err(anyhow::Error::msg)?;
    let (kind, id, foreign_id, published_at) = (None, None, None, None);
    Ok(Publish { kind, id, foreign_id, published_at, ..Publish::new(author, body) })
}

fn percentiles(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    for percent in [50, 99] {
        let at = times[(times.len() - 1) * percent / 100];
        figure(&format!("{name}, p{percent}"), at.as_secs_f64() * 1e6, "us");
    }
}
