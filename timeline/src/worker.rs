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
use feedgate_common::feed::{Eraser, Publisher};
use feedgate_common::jobs::{Delivery, Lane};
use feedgate_common::metrics::Registry;
use feedgate_common::{Doorbell, Jobs};
use tokio::time::{Instant, MissedTickBehavior, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::crew::{Crew, Hands, Work};
use crate::dispatch::Dispatcher;
use crate::execute::Executor;
use crate::fanout::FanOut;
use crate::metrics::Metrics;
use crate::retry::Backoff;
use crate::said::Said;
use crate::sweep::Sweep;
use crate::{Pulse, Settings, clean, erase, index, own_posts, renew};

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
    settings: Settings,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) metrics: Metrics,
}

impl Worker {
    /// Makes a worker with these steps of fan-out. It does nothing until [`Worker::run`].
    pub fn new(fan_out: FanOut, jobs: Arc<dyn Jobs>, doorbell: Arc<dyn Doorbell>, settings: Settings) -> Self {
        let (pulse, metrics) = (Arc::new(Pulse::default()), Metrics::default());
        let dispatcher = Dispatcher {
            archive: fan_out.archive().clone(),
            buckets: fan_out.inboxes().buckets(),
            executor: Executor::new(fan_out, doorbell, pulse.clone(), metrics.clone()),
            buckets_at_once: settings.buckets_at_once.max(1),
        };
        Self { dispatcher: Arc::new(dispatcher), jobs, settings, pulse, metrics }
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
        let (fan_out, jobs) = (&self.dispatcher.executor.fan_out, &self.jobs);
        let (archive, inboxes) = (fan_out.archive(), fan_out.inboxes());
        let sweep = Sweep {
            events: archive.clone(),
            jobs: jobs.clone(),
            every: self.settings.sweep_every,
            overdue: self.settings.overdue,
            pulse: self.pulse.clone(),
        };
        let eraser = Eraser::new(archive.clone(), inboxes.clone());
        let publisher = Publisher::new(archive.clone(), jobs.clone());
        tokio::join!(
            sweep.run(&shutdown),
            clean::run(&**inboxes, self.settings.clean_every, &shutdown),
            erase::run(&eraser, &**jobs, &shutdown),
            index::run(&**archive, fan_out.search(), &shutdown),
            renew::run(&**archive, &**jobs, &shutdown),
            own_posts::run(&**archive, &publisher, fan_out.own_posts(), &shutdown),
            self.work(&shutdown),
        );
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
        let drained = timeout(self.settings.drain, crew.finish()).await.is_ok();
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
        let posts = self.settings.in_flight.max(1);
        match of {
            Hands::Posts => posts,
            Hands::Edges | Hands::Retries => posts.div_ceil(2),
        }
    }

    /// How long a job waits after a failure.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff { first: self.settings.retry_first, max: self.settings.retry_max }
    }

    /// The next job, not before `paused_until`. Cancel safe, as [`Jobs::take`] is.
    async fn take_after(&self, paused_until: Instant, lane: Lane) -> Result<Delivery> {
        sleep_until(paused_until).await;
        self.jobs.take(lane).await
    }
}
