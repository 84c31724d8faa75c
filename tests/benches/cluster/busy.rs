//! Many authors who post at the same time, each to a few followers who are away: what accepting and fan-out cost when
//! no process waits for work.

use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use feedgate_tests::load::Report;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::options::Options;
use crate::spent::Spent;
use crate::world::World;

/// How many readers the followers are chosen from.
const READERS: usize = 1_000;

/// How many posts a backend sends at a time.
const AT_ONCE: usize = 32;

/// Bytes of text in a post.
const POST_BYTES: usize = 80;

/// The authors post in turn, `options.posts` in all; each is followed by `options.readers`.
pub(crate) async fn measure(
    binaries: &Path,
    authors: usize,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let (followers, posts) = (options.readers, options.posts);
    ensure!(followers <= READERS, "--readers: an author has at most {READERS} followers here");
    let world = World::busy(binaries, READERS).await?;
    report.heading(&format!("{authors} authors with {followers} followers, {AT_ONCE} posts at a time"));
    for author in 0..authors {
        let of: Vec<String> = (0..followers).map(|n| World::reader((author * followers + n) % READERS)).collect();
        world.backend().follow(&of, &name(author)).await?;
    }
    world.make_inboxes().await?;
    publish(&world, authors, authors).await?;

    let (before, started) = (Spent::so_far(&world).await?, Instant::now());
    let accepted = publish(&world, authors, posts).await?;
    let took = started.elapsed().as_secs_f64();
    report.figure("posts accepted", posts as f64 / accepted, "posts/s");
    report.figure("posts fanned out", posts as f64 / took, "posts/s");
    before.tell_cpu(&world, "per append", (posts * followers) as u64, report).await?;
    before.tell_calls(&world, "calls", posts, report).await
}

fn name(author: usize) -> String {
    format!("author-{author}")
}

/// Publishes so many posts, and waits until they are fanned out. Gives the seconds until all were accepted.
async fn publish(world: &World, authors: usize, posts: usize) -> anyhow::Result<f64> {
    let started = Instant::now();
    let each = |n| async move { world.backend().publish(&name(n % authors), POST_BYTES).await };
    stream::iter(0..posts).map(each).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await?;
    let accepted = started.elapsed().as_secs_f64();
    world.backend().quiet().await?;
    Ok(accepted)
}
