//! A graph as the world has them: a few authors whom nearly everybody follows, many with a handful of followers.
//!
//! Half of the readers sleep. While the worker runs, authors post, readers follow and leave so that authors cross the
//! threshold of pull either way, some readers fall asleep and some wake up. In the end *every* reader's pages hold what
//! the oracle says, and so do those of every third reader's other feed, where every fourth post goes.
//!
//! Usually a twentieth, in a debug build: `FEEDGATE_READERS=200000 cargo test --release -p feedgate-tests --test skewed
//! -- --nocapture` is all of it, with the threshold of 10,000.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use feedgate_common::accept::Policy;
use feedgate_common::archive::{Event, Written};
use feedgate_common::change::Route;
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::{FeedId, Millis};
use feedgate_embedded::{Embedded, Kept, Opening};
use feedgate_tests::oracle::{
    FEEDS, Inbox, NOW, Node, Op, Oracle, User, World, all_inboxes, name_feeds, seeds, some_feed, walk,
};
use feedgate_tests::rules::Rules;
use feedgate_timeline::{FanOut, Settings, Worker};
use futures_util::{StreamExt, stream};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio_util::sync::CancellationToken;

const BUCKETS: u16 = 16;
const BACKFILL: usize = 5;
const ROUNDS: usize = 10;
/// Operations of one write.
const BATCH: usize = 1000;
/// Readers who are looked at side by side.
const AT_ONCE: usize = 64;
/// The least an author has.
const FOLLOWERS_MIN: usize = 10;

/// How large it is; all else follows from the readers.
struct Scale {
    readers: usize,
}

impl Scale {
    fn of_environment() -> Self {
        let readers = std::env::var("FEEDGATE_READERS").map_or(10_000, |text| text.parse().expect("a number"));
        Self { readers }
    }

    /// How many authors there are. They are the first of the readers.
    fn authors(&self) -> usize {
        self.readers / 50
    }

    fn posts(&self) -> usize {
        self.readers / 40
    }

    fn pull_above(&self) -> u64 {
        self.readers as u64 / 20
    }

    /// The inboxes that the test looks at.
    fn inboxes(&self) -> impl Iterator<Item = Inbox> {
        all_inboxes(self.readers).filter(|(reader, feed)| *feed == FeedId::MAIN || reader.is_multiple_of(3))
    }

    /// By how many the author is followed in the end, more or less.
    fn followers(&self, author: User) -> usize {
        (self.readers / (author + 1)).max(FOLLOWERS_MIN)
    }
}

struct Town {
    stores: Embedded,
    node: Arc<Node>,
    oracle: Oracle,
    rng: SmallRng,
    /// Draws moves, so that all else happens as it would without them.
    moves: SmallRng,
    scale: Scale,
    items: u64,
}

impl Town {
    async fn open(dir: &std::path::Path, scale: Scale, seed: u64) -> Self {
        let policy = Policy { pull_above: scale.pull_above(), whole_past: seed % 2 == 1 };
        let opening = Opening { buckets: BUCKETS, policy, accept_loss: false, kept: Kept::default() };
        let stores = Embedded::open_with(dir, opening).unwrap();
        name_feeds(&*stores.archive).await.unwrap();
        let world = World::new(1, scale.readers);
        let numbers = stores.archive.intern(&world.names).await.unwrap();
        let feeds = || Feeds::new(stores.archive.clone(), stores.inboxes.clone(), BACKFILL);
        let node = Arc::new(Node::new(Arc::new(Rules::new(Arc::new(feeds()))), feeds(), world, numbers));
        let mut oracle = Oracle::new(BACKFILL);
        oracle.set_whole_past(policy.whole_past);
        Self {
            stores,
            node,
            oracle,
            rng: SmallRng::seed_from_u64(seed),
            moves: SmallRng::seed_from_u64(!seed),
            scale,
            items: 0,
        }
    }

    /// Accepts all of it, in order; what became of each.
    async fn write(&mut self, ops: Vec<Op>) -> Vec<Written> {
        let publisher = Publisher::new(self.stores.archive.clone(), self.stores.jobs.clone());
        let mut written = vec![];
        for batch in ops.chunks(BATCH) {
            let writes = batch.iter().map(|op| self.node.world.write(op).unwrap()).collect();
            for (op, answer) in batch.iter().zip(publisher.write(writes, NOW).await.unwrap()) {
                assert_eq!(answer.is_ok(), self.oracle.accept(op), "{op:?} was answered {answer:?}");
                written.extend(answer);
            }
        }
        written
    }

    /// About this share of the edges there will ever be.
    fn follows(&mut self, share: f64) -> Vec<Op> {
        let mut follows = vec![];
        for author in 0..self.scale.authors() {
            let expected = self.scale.followers(author) as f64 * share;
            let count = expected as usize + usize::from(self.rng.random_bool(expected.fract()));
            // Some follows are drawn twice. The second one changes nothing.
            follows.extend((0..count).map(|_| Op::Follow(self.rng.random_range(0..self.scale.readers), author)));
        }
        follows
    }

    /// Nobody has an inbox yet: a follow step would find none.
    async fn begin(&mut self) {
        let follows = self.follows(0.6);
        let archive = self.stores.archive.clone();
        let events: Vec<Event> = self.write(follows).await.iter().filter_map(edge_event).collect();
        for batch in events.chunks(BATCH) {
            archive.finish(batch).await.unwrap();
        }
    }

    /// A tenth of all that happens, in no order.
    fn round(&mut self) -> Vec<Op> {
        let mut ops = self.follows(0.04);
        for _ in 0..ops.len() / 2 {
            // The authors around the threshold lose as many as they win.
            let author = self.rng.random_range(0..self.scale.authors().min(60));
            ops.push(Op::Unfollow(self.rng.random_range(0..self.scale.readers), author));
        }
        for _ in 0..self.scale.posts() / ROUNDS {
            self.items += 1;
            let popular = self.rng.random_bool(0.5);
            let authors = self.scale.authors();
            let among = if popular { authors.min(60) } else { authors };
            let author = self.rng.random_range(0..among);
            let (item, feed) = (self.items, FEEDS[usize::from(self.items.is_multiple_of(4))]);
            ops.push(Op::Publish {
                author,
                item,
                feed,
                rank: NOW + self.rng.random_range(0..100),
                to: vec![],
                narrowed: false,
            });
            match self.rng.random_range(0..10) {
                0 => ops.push(Op::Delete(self.rng.random_range(1..=self.items))),
                1 => ops.push(Op::Edit(self.rng.random_range(1..=self.items))),
                _ => {}
            }
        }
        for at in (1..ops.len()).rev() {
            ops.swap(at, self.rng.random_range(0..=at));
        }
        for _ in 0..self.scale.posts() / ROUNDS / 10 {
            let (item, rank) = (self.moves.random_range(1..=self.items), self.moves.random_range(0..100));
            ops.insert(self.moves.random_range(0..=ops.len()), Op::Move(item, NOW + rank));
        }
        ops
    }

    /// One in so many of the readers comes by, or has been dropped.
    async fn come_and_go(&mut self) {
        for _ in 0..self.scale.readers / 200 {
            let inbox = (self.rng.random_range(0..self.scale.readers), some_feed(&mut self.rng));
            let key = self.node.key(inbox);
            match self.rng.random_bool(0.5) {
                true => self.node.rules.feeds.rebuild(key).await.unwrap(),
                false => self.stores.inboxes.discard(key).await.unwrap(),
            }
        }
    }

    async fn wake_every_other(&self) {
        let awake = self.scale.inboxes().filter(|(reader, _)| reader.is_multiple_of(2));
        let visits =
            awake.map(|inbox| async move { self.node.rules.feeds.rebuild(self.node.key(inbox)).await.unwrap() });
        stream::iter(visits).buffer_unordered(AT_ONCE).collect::<()>().await;
    }

    async fn settle(&self) {
        while !self.stores.archive.outstanding(None, Millis::MAX, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.node.hear().await.unwrap();
    }

    /// How many feeds there were, and how many items they showed in all.
    async fn check(&self) -> (usize, usize) {
        let looks = self.scale.inboxes().map(|inbox| async move {
            let walked = walk(&*self.node, inbox, 100).await;
            assert_eq!(walked, self.oracle.feed(inbox), "I4/I13: {inbox:?}");
            walked.len()
        });
        let seen: Vec<usize> = stream::iter(looks).buffer_unordered(AT_ONCE).collect().await;
        (seen.len(), seen.iter().sum())
    }

    /// Authors who have posted both ways.
    async fn crossed(&self) -> usize {
        let mut crossed = 0;
        for author in &self.node.numbers[..self.scale.authors()] {
            let records = self.stores.archive.outbox(*author, 0, 10_000).await.unwrap().records;
            let both = [Route::Push, Route::Pull].map(|route| records.iter().any(|record| record.route == route));
            crossed += usize::from(both == [true, true]);
        }
        crossed
    }
}

fn edge_event(written: &Written) -> Option<Event> {
    match written {
        Written::Edge { reader, author, edge, .. } => {
            Some(Event::Edge { reader: *reader, author: *author, generation: edge.generation })
        }
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i13_in_a_skewed_graph_every_reader_ends_with_the_feed_whatever_the_size_of_the_authors() {
    let dir = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let say = |what: &str| eprintln!("{:>6.1} s  {what}", started.elapsed().as_secs_f64());
    let mut town = Town::open(dir.path(), Scale::of_environment(), seeds(1).start).await;
    town.begin().await;
    say("the graph stands");
    town.wake_every_other().await;
    say("every other reader has an inbox");
    let settings = Settings { sweep_every: Duration::from_secs(1), ..Settings::default() };
    let (jobs, doorbell) = (town.stores.jobs.clone(), town.stores.doorbell.clone());
    let worker = Worker::new(FanOut::new(town.node.rules.feeds.clone()), jobs, doorbell, settings);
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let working = tokio::spawn(async move { worker.run(stop).await });
    for _ in 0..ROUNDS {
        let ops = town.round();
        town.write(ops).await;
        town.come_and_go().await;
    }
    say("all is accepted");
    town.settle().await;
    let edges = town.stores.archive.counts().await.unwrap().edges;
    say(&format!("all is worked off: {edges} edges, {} posts", town.items));
    let crossed = town.crossed().await;
    assert!(crossed >= 1, "{crossed} authors have crossed the threshold");
    let (feeds, items) = town.check().await;
    say(&format!("{feeds} feeds hold {items} items, as they should; {crossed} authors have crossed the threshold"));
    assert!(items > feeds, "{items} items");
    shutdown.cancel();
    working.await.unwrap();
}
