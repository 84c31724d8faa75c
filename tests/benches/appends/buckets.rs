//! What the number of buckets costs if an author has a hundred followers, spread over all buckets.
//!
//! A worker brings every bucket of an author to the head, so one post is as many steps as there are
//! buckets, however few followers each has.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use feedgate_common::archive::Recipient;
use feedgate_common::inboxes::{Advance, Advanced};
use feedgate_common::{Bucket, FeedId, Inboxes, Progress, UserNo};
use feedgate_embedded::EmbeddedInboxes;
use feedgate_embedded::inboxes::Settings;
use feedgate_tests::process::Used;

use super::figure;
use super::world::{COUNTER, all, build_all, record};

const FOLLOWERS: u32 = 100;
const POSTS: u64 = 4000;

/// Posts in flight: together they must not fill the store's queue.
const IN_FLIGHT: usize = 3;

pub(crate) async fn compare(dir: &Path, readers: u32) -> anyhow::Result<()> {
    println!("N: {POSTS} posts to {FOLLOWERS} followers each, {readers} readers");
    for buckets in [16, 64, 256] {
        let settings = Settings { buckets, ..Settings::default() };
        let store = Arc::new(EmbeddedInboxes::open(&dir.join(buckets.to_string()), None, settings)?);
        build_all(&store, readers).await?;
        let (written, used, start) = (store.written(), Used::now()?, Instant::now());
        all(0..POSTS, IN_FLIGHT, |n| post(store.clone(), readers, n)).await?;
        let (seconds, used, now) = (start.elapsed().as_secs_f64(), used.since()?, store.written());
        let appends = (POSTS * u64::from(FOLLOWERS)) as f64;
        anyhow::ensure!(store.counts().await?.entries == POSTS * u64::from(FOLLOWERS), "a step did not append");
        let name = |what: &str| format!("{buckets} buckets, {what}");
        figure(&name("seconds"), seconds, "s");
        figure(&name("posts"), POSTS as f64 / seconds, "posts/s");
        figure(&name("appends"), appends / seconds, "appends/s");
        figure(&name("appends per CPU-second"), appends / used, "appends/CPU-s");
        figure(&name("fdatasyncs"), now.syncs - written.syncs, "");
        figure(&name("bytes logged"), (now.bytes - written.bytes) as f64 / appends, "B/append");
    }
    Ok(())
}

/// Publishes one post: takes a step in every bucket at once.
async fn post(store: Arc<EmbeddedInboxes>, readers: u32, n: u64) -> anyhow::Result<()> {
    let mut to = vec![Vec::new(); usize::from(store.buckets())];
    let mut followers: Vec<_> =
        (0..u64::from(FOLLOWERS)).map(|i| UserNo(((i * 997 + n * 7919) % u64::from(readers)) as u32)).collect();
    followers.sort_unstable();
    for reader in followers {
        let recipient = Recipient { reader, generation: 1, from: 0, counter: COUNTER, listens: false };
        to[usize::from(reader.bucket(store.buckets()).0)].push(recipient);
    }
    let steps = to.into_iter().zip(0..).map(|(recipients, bucket)| Advance {
        author: UserNo(1_000_000 + n as u32),
        bucket: Bucket(bucket),
        feed: FeedId::MAIN,
        expected: Progress::at(0),
        next: Progress::at(1),
        records: vec![record(1, n)],
        recipients,
        kept: false,
    });
    for answer in futures_util::future::join_all(steps.map(|step| store.advance(step))).await {
        anyhow::ensure!(matches!(answer?, Advanced::Moved(_)), "another moved the progress");
    }
    Ok(())
}
