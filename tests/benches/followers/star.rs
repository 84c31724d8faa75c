//! Posts to all followers of the star: one way pushed, one way pulled.
//!
//! A pushed post is appended to every inbox, also to those of followers who do not come to read. A pulled post is taken
//! by the followers who come, and costs the author as little with many followers as with few. Both ways it is measured
//! what a reader who comes costs; the read of a pushed post is a part of this.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::ensure;
use feedgate_common::change::Class;
use feedgate_common::{InboxKey, Position};
use feedgate_tests::load::{Report, milliseconds, quantile};

use crate::world::{STAR, Seen, World, all, classify, cpu, post, read_one};

/// Posts each way; what is told is the median, or the mean of processor time.
const ROUNDS: usize = 5;

/// Of those who come, so many come one after another, for the latency.
pub(crate) const ALONE: usize = 1000;

/// What posts cost that were pushed.
pub(crate) struct Pushed {
    /// Seconds of processor time for a post.
    post: f64,
    /// Seconds of processor time for the read of one reader who comes.
    read: f64,
    pub(crate) seen: Seen,
}

/// Posts to all followers by push, and measures the post and the reads of those who come.
pub(crate) async fn push(world: &World, report: &mut Report) -> anyhow::Result<Pushed> {
    let n = world.followers.len();
    classify(&world.town, STAR, Class::Push).await?;
    let (mut accepted, mut last, mut spent, mut seen) = (vec![], vec![], 0.0, Seen::default());
    let mut readers = Readers::default();
    for _ in 0..ROUNDS {
        let before = world.heads(&world.followers).await?;
        let grown = world.ears.grown();
        let (start, used) = (Instant::now(), cpu()?);
        post(&world.town, STAR).await?;
        accepted.push(start.elapsed());
        world.ears.until_grown(grown + n as u64).await?;
        last.push(start.elapsed());
        spent += cpu()? - used;
        seen = seen + Seen::grown(&before, &world.heads(&world.followers).await?, 1);
        readers.come(world, &before).await?;
        readers.come_alone(world, &before).await?;
        world.town.settle().await?;
    }
    let (post, slowest) = (spent / ROUNDS as f64, quantile(last.clone(), 1.0));
    let median = quantile(last, 0.5).as_secs_f64();
    report.figure("push: accepted", milliseconds(quantile(accepted, 0.5)), "ms");
    report.figure("push: the last inbox has it", median, "s");
    report.figure("push: the last inbox has it, the slowest post", slowest.as_secs_f64(), "s");
    report.text("push: target", "a post to 1 M followers' inboxes in 2 s at most, 1 M appends/s per core");
    report.figure("push: durable appends", n as f64 / median, "appends/s");
    report.figure("push: processor time", post * 1e6 / n as f64, "CPU-s/M appends");
    let seen = seen + readers.seen;
    Ok(Pushed { post, read: readers.tell("push", report), seen })
}

/// Posts to all followers by pull, and compares the cost with `pushed`, the cost of push.
pub(crate) async fn pull(world: &World, pushed: &Pushed, report: &mut Report) -> anyhow::Result<Seen> {
    let (n, coming) = (world.followers.len(), world.coming().len());
    classify(&world.town, STAR, Class::Pull).await?;
    let all_before = world.heads(&world.followers[coming..]).await?;
    let (mut accepted, mut told, mut last) = (vec![], vec![], vec![]);
    let mut readers = Readers::default();
    for _ in 0..ROUNDS {
        let before = world.heads(world.coming()).await?;
        let next = world.ears.hot() + 1;
        let start = Instant::now();
        post(&world.town, STAR).await?;
        accepted.push(start.elapsed());
        world.ears.until_hot(next).await?;
        told.push(start.elapsed());
        world.town.changes.heard_pull(world.ears.hot());
        readers.come(world, &before).await?;
        last.push(start.elapsed());
        readers.come_alone(world, &before).await?;
        world.town.settle().await?;
    }
    ensure!(all_before == world.heads(&world.followers[coming..]).await?, "who does not come costs nothing");
    report.figure("pull: accepted", milliseconds(quantile(accepted, 0.5)), "ms");
    report.figure("pull: every node is told", milliseconds(quantile(told, 0.5)), "ms");
    let last = quantile(last, 0.5).as_secs_f64();
    report.figure(&format!("pull: {} come together, the last has read it", coming - ALONE), last, "s");
    let seen = readers.seen;
    let read = readers.tell("pull", report);
    let share = pushed.post / ((read - pushed.read).max(f64::EPSILON) * n as f64);
    report.figure(
        "pull costs less than push while fewer come after each post than",
        100.0 * share,
        "% of the followers",
    );
    Ok(seen)
}

/// Who come after posts: many at a time, then one after another.
#[derive(Default)]
struct Readers {
    /// How many came together, in how many seconds, of how many of processor time.
    together: (usize, f64, f64),
    alone: Vec<Duration>,
    seen: Seen,
}

impl Readers {
    /// Those who come together read what their inboxes have grown by since `before`.
    async fn come(&mut self, world: &World, before: &[Position]) -> anyhow::Result<()> {
        let who = &who(world, before)[ALONE..];
        let (seen, start, used) = (Cell::new(self.seen), Instant::now(), cpu()?);
        all(who, |(key, after)| {
            let seen = &seen;
            async move {
                let read = read_one(&world.town, *key, *after).await?;
                seen.set(seen.get() + read);
                Ok(())
            }
        })
        .await?;
        let (came, seconds, spent) = &mut self.together;
        *came += who.len();
        *seconds += start.elapsed().as_secs_f64();
        *spent += cpu()? - used;
        self.seen = seen.get();
        Ok(())
    }

    /// The first [`ALONE`] readers read one after another what their inboxes have grown by since `before`.
    async fn come_alone(&mut self, world: &World, before: &[Position]) -> anyhow::Result<()> {
        for (key, after) in &who(world, before)[..ALONE] {
            let start = Instant::now();
            self.seen = self.seen + read_one(&world.town, *key, *after).await?;
            self.alone.push(start.elapsed());
        }
        Ok(())
    }

    /// Reports all; seconds of processor time of one who comes together with others.
    fn tell(self, way: &str, report: &mut Report) -> f64 {
        for (what, share) in [("p50", 0.5), ("p99", 0.99)] {
            let took = milliseconds(quantile(self.alone.clone(), share)) * 1e3;
            report.figure(&format!("{way}: a reader who comes alone has read it, {what}"), took, "us");
        }
        let (came, seconds, spent) = self.together;
        report.figure(&format!("{way}: readers who come together"), came as f64 / seconds, "reads/s");
        report.figure(&format!("{way}: one of them"), spent * 1e6 / came as f64, "CPU-us");
        spent / came as f64
    }
}

/// The inboxes of the readers who come, each with its position before the post.
fn who(world: &World, before: &[Position]) -> Vec<(InboxKey, Position)> {
    world.coming().iter().copied().zip(before.iter().copied()).collect()
}
