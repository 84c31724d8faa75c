//! Takes jobs, a bounded number of each lane at a time, and settles each. A job is acknowledged when its event is
//! finished. A job that has failed is acknowledged too; this worker then holds it and tries it again.
//!
//! ```text
//!   take ─▶ turn ─┬─ done ───────▶ ack ─▶ look again: more came meanwhile, or is left? put it, to the end of the queue
//!                 ├─ failed ─────▶ ack ─▶ held, and tried again here          (its event stays outstanding)
//!                 └─ cut short ──▶ nack                     (a shutdown that cannot wait)
//! ```
//!
//! Invariants:
//! - A job that was taken is settled. If the process dies before that, or while it holds the job, the job comes again:
//!   its event is outstanding in the Archive, where the sweep finds it.
//! - A job that fails holds up no other job. A panic in a step counts as a failure of its job.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::error::Result;
use feedgate_common::feed::Eraser;
use feedgate_common::jobs::{Delivery, Lane};
use feedgate_common::metrics::Registry;
use feedgate_common::{Archive, Doorbell, Jobs};
use tokio::time::{Instant, MissedTickBehavior, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::clean::Cleaner;
use crate::crew::{Crew, Hands, Work};
use crate::dispatch::Dispatcher;
use crate::erase::Erasing;
use crate::execute::Executor;
use crate::fanout::FanOut;
use crate::index::Indexing;
use crate::metrics::Metrics;
use crate::own_posts::OwnPosts;
use crate::renew::Renewing;
use crate::retry::Backoff;
use crate::said::Said;
use crate::sweep::Sweep;
use crate::{Pulse, Settings};

/// How long the queue is left alone after it gave no job.
const PAUSE: Duration = Duration::from_millis(250);

/// How often the loop goes round while there is nothing to do.
const BEAT: Duration = Duration::from_secs(1);

/// How long a shutdown may take to give jobs back to the queue after its wait is over. The queue hands out the other
/// jobs again when it sees that the connection is gone.
const GIVE_BACK: Duration = Duration::from_secs(1);

/// Carries out the jobs of fan-out. Any number of workers may share the same stores.
pub struct Worker {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) jobs: Arc<dyn Jobs>,
    pub(crate) backoff: Backoff,
    sweep: Sweep,
    cleaner: Cleaner,
    erasing: Erasing,
    indexing: Indexing<dyn Archive>,
    renewing: Renewing,
    own_posts: OwnPosts,
    in_flight: usize,
    drain: Duration,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) metrics: Metrics,
}

impl Worker {
    /// Makes a worker with these steps of fan-out. It does nothing until [`Worker::run`].
    pub fn new(fan_out: FanOut, jobs: Arc<dyn Jobs>, doorbell: Arc<dyn Doorbell>, settings: Settings) -> Self {
        let (archive, inboxes) = (fan_out.archive().clone(), fan_out.inboxes().clone());
        let (pulse, metrics) = (Arc::new(Pulse::default()), Metrics::default());
        let eraser = Eraser::new(archive.clone(), inboxes.clone());
        let indexing = Indexing { archive: archive.clone(), fields: fan_out.search().cloned() };
        let renewing = Renewing { archive: archive.clone(), jobs: jobs.clone() };
        let own_posts = OwnPosts { archive: archive.clone(), jobs: jobs.clone(), on: fan_out.own_posts() };
        let dispatcher = Dispatcher {
            archive: archive.clone(),
            executor: Executor::new(fan_out, doorbell, pulse.clone(), metrics.clone()),
            buckets: inboxes.buckets(),
            buckets_at_once: settings.buckets_at_once.max(1),
        };
        Self {
            dispatcher: Arc::new(dispatcher),
            sweep: Sweep {
                events: archive,
                jobs: jobs.clone(),
                every: settings.sweep_every,
                overdue: settings.overdue,
                pulse: pulse.clone(),
            },
            cleaner: Cleaner { inboxes, every: settings.clean_every },
            erasing: Erasing { eraser, jobs: jobs.clone() },
            indexing,
            renewing,
            own_posts,
            jobs,
            in_flight: settings.in_flight.max(1),
            backoff: Backoff { first: settings.retry_first, max: settings.retry_max },
            drain: settings.drain,
            pulse,
            metrics,
        }
    }

    /// Tells whether the loops of [`Worker::run`] go on, and whether work gets done.
    pub fn pulse(&self) -> Arc<Pulse> {
        self.pulse.clone()
    }

    /// Registers the metrics of this worker, under names that only one worker of a process may take.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(&self.pulse, registry);
    }

    /// Works until `shutdown`, then takes nothing more, waits [`Settings::drain`] for what is in flight and
    /// gives the rest back, within a second.
    ///
    /// Dropping the future loses nothing either: the events of the jobs in flight stay outstanding, and come again when
    /// the stores are next opened.
    pub async fn run(&self, shutdown: CancellationToken) {
        let (sweeping, cleaning) = (self.sweep.run(&shutdown), self.cleaner.run(&shutdown));
        let (erasing, indexing) = (self.erasing.run(&shutdown), self.indexing.run(&shutdown));
        let (renewing, own_posts) = (self.renewing.run(&shutdown), self.own_posts.run(&shutdown));
        tokio::join!(sweeping, cleaning, erasing, indexing, renewing, own_posts, self.work(&shutdown));
    }

    async fn work(&self, shutdown: &CancellationToken) {
        let mut crew = Crew::of(self);
        let (untaken, mut paused_until) = (Said::default(), Instant::now());
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.pulse.took();
            let taken = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = crew.tend() => continue,
                taken = self.take_after(paused_until, Lane::Posts), if crew.has_free(Hands::Posts) => taken,
                taken = self.take_after(paused_until, Lane::Edges), if crew.has_free(Hands::Edges) => taken,
                _ = beat.tick() => {
                    crew.look_for_work();
                    continue;
                }
            };
            match taken {
                Ok(Delivery { id, job }) => crew.begin(Work { job, id: Some(id) }),
                Err(error) => {
                    if let Some(times) = untaken.due() {
                        tracing::warn!(%error, times, "no job could be taken");
                    }
                    paused_until = Instant::now() + PAUSE;
                }
            }
        }
        self.stop(crew).await;
    }

    /// Waits for the jobs in flight. Then gives back to the queue the jobs that are not done, and the jobs that wait
    /// for a retry.
    async fn stop(&self, mut crew: Crew<'_>) {
        let drained = timeout(self.drain, crew.finish()).await.is_ok();
        crew.hurry();
        let give_back = async {
            crew.finish().await;
            for held in crew.let_go().chunks(1000) {
                self.jobs.put(held).await?;
            }
            Result::Ok(())
        };
        let given_back = timeout(GIVE_BACK, give_back).await.is_ok_and(|put| put.is_ok());
        if !drained || !given_back {
            tracing::warn!("stopped before every job was worked off; others, or the next start, go on with them");
        }
    }

    /// How many jobs of one lane are carried out at a time.
    pub(crate) fn hands(&self, of: Hands) -> usize {
        match of {
            Hands::Posts => self.in_flight,
            Hands::Edges | Hands::Retries => self.in_flight.div_ceil(2),
        }
    }

    /// The next job, not before `paused_until`. Cancel safe, as [`Jobs::take`] is.
    async fn take_after(&self, paused_until: Instant, lane: Lane) -> Result<Delivery> {
        sleep_until(paused_until).await;
        self.jobs.take(lane).await
    }
}
