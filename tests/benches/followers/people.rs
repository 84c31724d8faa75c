//! The star beside an author of ten followers: what a post of each costs, and what it costs to follow each.
//!
//! The two take turns, so that other work of the machine slows both. Both have posted more items before than a follow
//! brings.

use std::time::{Duration, Instant};

use feedgate_common::archive::Write;
use feedgate_common::change::Class;
use feedgate_tests::load::{Report, milliseconds, quantile};

use crate::world::{FEW, MODEST, STAR, World, build, classify, newcomers, post, users};

/// Posts of each, more than a follow brings.
const POSTS: usize = 200;

/// Readers who follow both.
const NEWCOMERS: usize = 200;

/// One after the other, each first as often as the other.
fn in_turn(n: usize) -> [usize; 2] {
    if n.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

const AUTHORS: [&str; 2] = [STAR, MODEST];

/// A post until it is accepted, and until every node is told that there is news.
pub(crate) async fn posts(world: &World, report: &mut Report) -> anyhow::Result<()> {
    classify(&world.town, MODEST, Class::Pull).await?;
    let (mut accepted, mut told) = (Sides::default(), Sides::default());
    for n in 0..POSTS {
        for side in in_turn(n) {
            let next = world.ears.hot() + 1;
            let start = Instant::now();
            post(&world.town, AUTHORS[side]).await?;
            accepted.0[side].push(start.elapsed());
            world.ears.until_hot(next).await?;
            told.0[side].push(start.elapsed());
            world.town.settle().await?;
        }
    }
    accepted.tell("a post, accepted", world, report);
    told.tell("a post, every node is told", world, report);
    Ok(())
}

/// A follow until it is accepted, which is when `PUT …/following/{author}` answers, and until the inbox has it.
pub(crate) async fn follows(world: &World, report: &mut Report) -> anyhow::Result<()> {
    let town = &world.town;
    let names = users("newcomer", NEWCOMERS)?;
    build(town, &newcomers(town, &names).await?).await?;
    let (mut accepted, mut taken) = (Sides::default(), Sides::default());
    for (n, reader) in names.iter().enumerate() {
        for side in in_turn(n) {
            let grown = world.ears.grown();
            let start = Instant::now();
            town.write(vec![Write::Follow { reader: reader.clone(), author: AUTHORS[side].parse()? }]).await?;
            accepted.0[side].push(start.elapsed());
            world.ears.until_grown(grown + 1).await?;
            taken.0[side].push(start.elapsed());
            town.settle().await?;
        }
    }
    accepted.tell("a follow, accepted", world, report);
    taken.tell("a follow, the inbox has it", world, report);
    report.text("follow: target", "following an author costs the same whatever the followers: 1 x");
    Ok(())
}

/// Times of the star, and of the other.
#[derive(Default)]
struct Sides([Vec<Duration>; 2]);

impl Sides {
    fn tell(self, what: &str, world: &World, report: &mut Report) {
        let followers = [world.followers.len(), FEW];
        let [many, few] = self.0.map(|times| milliseconds(quantile(times, 0.5)));
        for (followers, p50) in followers.into_iter().zip([many, few]) {
            report.figure(&format!("{what}, {followers} followers, p50"), p50, "ms");
        }
        report.figure(&format!("{what}, {} followers / {}", followers[0], followers[1]), many / few, "x");
    }
}
