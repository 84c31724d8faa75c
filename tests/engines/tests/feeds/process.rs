//! Two processes of the cluster over one set of engines, each a worker and a node.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use feedgate_common::accept::Policy;
use feedgate_common::archive::Epochs;
use feedgate_common::doorbell::Listening;
use feedgate_common::error::Result;
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::{Archive, DisplayKey, Doorbell, Inboxes, Jobs, Position, UserNo};
use feedgate_engines::{Nats, Postgres, Redis};
use feedgate_nats::{Bus, NatsDoorbell, NatsJobs, Settings as JobSettings};
use feedgate_postgres::{Options, PostgresArchive};
use feedgate_redis::{Link, RedisInboxes, RedisSessions, Spans, Timeouts};
use feedgate_tests::oracle::{
    Changes, Inbox, Line, Look, NOW, Node, Op, PULL_ABOVE, Page, STEP_MAX, Serves, User, World, listens, name_feeds,
    name_notes, name_rankings, rankings,
};
use feedgate_tests::rules::Rules;
use feedgate_timeline::{FanOut, Settings, Worker};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Backfill;

const BUCKETS: u16 = 4;
/// Longer than a Redis takes to come back.
const PATIENCE: Duration = Duration::from_secs(300);

const DATABASE: &str = "feeds_of_the_oracle";

/// The engines, with a database of this test.
pub(crate) struct Engines {
    postgres: String,
    pub(crate) redis: Redis,
    nats: Nats,
}

impl Engines {
    pub(crate) fn start() -> Self {
        let redis = Redis::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
        Self { postgres: Postgres::shared().database(DATABASE), redis, nats: Nats::start() }
    }

    /// Whether every edit and delete was brought to the rankings that hold its item. A renewal that a worker has not
    /// committed yet is still to be done here. The Archive's `renew_rankings` passes over it.
    pub(crate) fn rankings_are_renewed(&self) -> bool {
        Postgres::shared().psql(DATABASE, &["SELECT count(*) FROM ranking_due"]).trim() == "0"
    }

    pub(crate) async fn processes(&self, backfill: Backfill) -> Vec<Process> {
        let mut processes = vec![];
        for name in ["a", "b"] {
            processes.push(Process::start(self, name, backfill).await);
        }
        processes
    }
}

/// Asks again as long as a store is away.
pub(crate) async fn patient<T, F: Future<Output = Result<T>>>(ask: impl Fn() -> F) -> T {
    let started = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) if started.elapsed() > PATIENCE => panic!("after {PATIENCE:?}: {error}"),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// A process over the engines: the rules, a worker, and a listener at the doorbell.
pub(crate) struct Process {
    pub(crate) archive: Arc<dyn Archive>,
    jobs: Arc<dyn Jobs>,
    rules: Arc<Rules>,
    worker: JoinHandle<()>,
    shutdown: CancellationToken,
    _listening: Listening,
}

impl Process {
    async fn start(engines: &Engines, name: &str, Backfill { brings, whole_past }: Backfill) -> Self {
        let policy = Policy { pull_above: PULL_ABOVE, whole_past };
        let options = Options { max_connections: 8, buckets: BUCKETS, policy, ..Options::default() };
        let archive: Arc<dyn Archive> =
            Arc::new(patient(|| PostgresArchive::connect(&engines.postgres, options)).await);
        patient(|| name_feeds(&*archive)).await;
        patient(|| name_rankings(&*archive)).await;
        patient(|| name_notes(&*archive)).await;
        let epochs: Arc<dyn Epochs> = archive.clone();
        let url = engines.redis.url();
        let link = patient(|| Link::connect(&url, Timeouts::default())).await;
        let inboxes = patient(|| RedisInboxes::open(link.clone(), epochs.clone(), BUCKETS)).await;
        let inboxes: Arc<dyn Inboxes> = Arc::new(inboxes);
        let sessions = Arc::new(RedisSessions::new(link, epochs, BUCKETS, Spans::default()));
        let bus = Bus::connect(&engines.nats.url()).await.unwrap();
        let jobs: Arc<dyn Jobs> = Arc::new(NatsJobs::open(bus.clone(), JobSettings::default()).await.unwrap());
        let doorbell: Arc<dyn Doorbell> = Arc::new(NatsDoorbell::open(bus, name, sessions));
        let feeds = Arc::new(Feeds::new(archive.clone(), inboxes, brings).with_named(rankings()));
        let rules = Arc::new(Rules::by_steps(feeds.clone(), STEP_MAX));
        let listening = listens(&rules.changes, &*doorbell);
        let settings = Settings {
            sweep_every: Duration::from_millis(200),
            overdue: Duration::from_millis(300),
            retry_first: Duration::from_millis(10),
            retry_max: Duration::from_millis(200),
            ..Settings::default()
        };
        let worker = Worker::new(
            FanOut::new(feeds).with_step_max(STEP_MAX).with_round_max(4 * STEP_MAX),
            jobs.clone(),
            doorbell,
            settings,
        );
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let worker = tokio::spawn(async move { worker.run(stop).await });
        Self { archive, jobs, rules, worker, shutdown, _listening: listening }
    }

    /// This process as the users of a world meet it.
    pub(crate) fn node(&self, world: &World, numbers: &[UserNo]) -> Patient {
        let feeds = &self.rules.feeds;
        let unranked = Feeds::new(feeds.archive().clone(), feeds.inboxes().clone(), feeds.backfill());
        let node = Node::new(self.rules.clone(), unranked, world.clone(), numbers.to_vec());
        Patient { node, publisher: Publisher::new(self.archive.clone(), self.jobs.clone()) }
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        self.worker.await.unwrap();
    }
}

/// A node of which everything is asked again as long as a store is away.
pub(crate) struct Patient {
    node: Node,
    publisher: Publisher,
}

impl Patient {
    pub(crate) fn world(&self) -> &World {
        &self.node.world
    }

    /// Whether it was accepted.
    pub(crate) async fn write(&self, op: &Op) -> bool {
        patient(|| self.node.accept(op, Some(&self.publisher), NOW)).await
    }

    pub(crate) async fn sleep(&self, inbox: Inbox) {
        patient(|| self.node.rules.feeds.inboxes().discard(self.node.key(inbox))).await;
    }

    pub(crate) async fn hear(&self) {
        patient(|| self.node.hear()).await;
    }
}

#[async_trait]
impl Serves for Patient {
    async fn changes(&self, inbox: Inbox, after: Position, limit: usize) -> Changes {
        patient(|| self.node.try_changes(inbox, after, limit)).await
    }

    async fn page(&self, inbox: Inbox, before: Option<DisplayKey>, limit: usize, look: Look) -> Page {
        patient(|| self.node.try_page(inbox, before, limit, look)).await
    }

    async fn lines(&self, user: User) -> Vec<Line> {
        patient(|| self.node.try_lines(user)).await
    }
}
