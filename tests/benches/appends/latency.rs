//! How long a page and a catch-up take, of logs that are as long as logs get.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use feedgate_common::feed::living;
use feedgate_common::inboxes::{Build, KEEP, Read};
use feedgate_common::{Entry, Epoch, InboxKey, Inboxes, Position, UserNo};
use feedgate_embedded::EmbeddedInboxes;

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
        store.begin_build(*key, Epoch(n), &[]).await?;
        ensure!(store.finish_build(Build { key: *key, epoch: Epoch(n), built_at: 1, entries, floor: None }).await?);
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

fn percentiles(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    for percent in [50, 99] {
        let at = times[(times.len() - 1) * percent / 100];
        figure(&format!("{name}, p{percent}"), at.as_secs_f64() * 1e6, "us");
    }
}
