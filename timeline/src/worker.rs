//! Takes jobs, a bounded number at a time, and settles each: acknowledged when its event is finished, given
//! back with a growing delay when it failed.
//!
//! ```text
//!   take ─▶ turn ─┬─ done ───────▶ ack ─▶ look again: more came meanwhile? put it
//!                 ├─ failed ─────▶ nack(longer each time), and the worker pauses a little itself
//!                 └─ cut short ──▶ nack(now)                      (a shutdown that cannot wait)
//! ```
//!
//! Invariants: a job taken is settled or, if the process dies, comes again by the contract of [`Jobs`]; a
//! failure never makes the worker spin; a panic in a step costs that job a retry and nobody else anything.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::Event;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::feed::Feeds;
use feedgate_common::jobs::{Delivery, Job};
use feedgate_common::{Doorbell, Jobs, failpoint};
use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::clean::Cleaner;
use crate::dispatch::Dispatcher;
use crate::execute::Executor;
use crate::retry::{Backoff, Failures};
use crate::sweep::Sweep;
use crate::{Pulse, Settings};

/// The longest pause of the worker itself. A failing job waits longer by itself; what is behind it in the
/// queue must not wait as long.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How often the loop comes round with nothing to do.
const BEAT: Duration = Duration::from_secs(1);

/// Works off fan-out. Any number of workers may share the same stores.
pub struct Worker {
    dispatcher: Arc<Dispatcher>,
    jobs: Arc<dyn Jobs>,
    sweep: Sweep,
    cleaner: Cleaner,
    in_flight: usize,
    backoff: Backoff,
    drain: Duration,
    pulse: Arc<Pulse>,
}

/// How a job's turn ended.
enum Turn {
    /// Worked off and acknowledged.
    Done,
    /// To be tried again later, not before the wait that the store asked for.
    Failed { error: String, at_least: Duration },
    /// The shutdown could wait no longer.
    CutShort,
    /// An earlier failure has been given back; its slot is free.
    GivenBack,
}

impl Worker {
    /// A worker on these stores, which does nothing until [`Worker::run`].
    pub fn new(feeds: Arc<Feeds>, jobs: Arc<dyn Jobs>, doorbell: Arc<dyn Doorbell>, settings: Settings) -> Self {
        let (archive, inboxes) = (feeds.archive().clone(), feeds.inboxes().clone());
        let pulse = Arc::new(Pulse::default());
        let executor = Executor::new(feeds.clone(), doorbell, pulse.clone());
        Self {
            dispatcher: Arc::new(Dispatcher::new(feeds, executor, settings.buckets_at_once.max(1))),
            sweep: Sweep {
                archive,
                jobs: jobs.clone(),
                every: settings.sweep_every,
                overdue: settings.overdue,
                pulse: pulse.clone(),
            },
            cleaner: Cleaner { inboxes, every: settings.clean_every },
            jobs,
            in_flight: settings.in_flight.max(1),
            backoff: Backoff { first: settings.retry_first, max: settings.retry_max },
            drain: settings.drain,
            pulse,
        }
    }

    /// Tells whether the loops of [`Worker::run`] come round, and whether the work goes on.
    pub fn pulse(&self) -> Arc<Pulse> {
        self.pulse.clone()
    }

    /// Works until `shutdown`, then takes nothing more, waits [`Settings::drain`] for what is in flight and
    /// gives the rest back, within the same time again.
    ///
    /// Dropping the future instead is a crash without the mess: jobs in flight come again when the queue is
    /// next opened.
    pub async fn run(&self, shutdown: CancellationToken) {
        tokio::join!(self.sweep.run(&shutdown), self.cleaner.run(&shutdown), self.work(&shutdown));
    }

    async fn work(&self, shutdown: &CancellationToken) {
        let hurry = CancellationToken::new();
        let mut crew =
            Crew { worker: self, turns: JoinSet::new(), hurry: &hurry, failures: Failures::default(), failed: None };
        let mut failed_in_a_row = 0;
        let mut paused_until = Instant::now();
        let mut beat = tokio::time::interval(BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.pulse.took();
            let healthy = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some((delivery, turn)) = crew.next() => crew.settle(delivery, turn),
                taken = self.take_after(paused_until), if crew.turns.len() < self.in_flight => match taken {
                    Ok(delivery) => {
                        crew.begin(delivery);
                        None
                    }
                    Err(error) => {
                        tracing::warn!(%error, "no job could be taken");
                        Some(false)
                    }
                },
                _ = beat.tick() => {
                    crew.look_for_work();
                    None
                }
            };
            match healthy {
                Some(true) => failed_in_a_row = 0,
                Some(false) => {
                    failed_in_a_row += 1;
                    paused_until = Instant::now() + self.backoff.after(failed_in_a_row).min(PAUSE_MAX);
                }
                None => {}
            }
        }
        if timeout(self.drain, crew.finish()).await.is_err() {
            hurry.cancel();
            if timeout(self.drain, crew.finish()).await.is_err() {
                tracing::warn!(
                    jobs = crew.turns.len(),
                    "jobs could not be given back; they come again at the next start"
                );
            }
        }
    }

    /// The next job, not before `paused_until`. Cancel safe, as [`Jobs::take`] is.
    async fn take_after(&self, paused_until: Instant) -> Result<Delivery> {
        sleep_until(paused_until).await;
        self.jobs.take().await
    }
}

/// The turns in flight, a task each.
struct Crew<'a> {
    worker: &'a Worker,
    turns: JoinSet<(Delivery, Turn)>,
    /// Cuts every turn short.
    hurry: &'a CancellationToken,
    failures: Failures,
    /// When a turn has failed last.
    failed: Option<Instant>,
}

impl Crew<'_> {
    /// The next turn that ends; `None` if there is none. Cancel safe.
    async fn next(&mut self) -> Option<(Delivery, Turn)> {
        let ended = self.turns.join_next().await?;
        Some(ended.expect("a turn catches its panics and is not aborted while its worker lives"))
    }

    /// Waits for every turn, settling each.
    async fn finish(&mut self) {
        while let Some((delivery, turn)) = self.next().await {
            self.settle(delivery, turn);
        }
    }

    fn begin(&mut self, delivery: Delivery) {
        failpoint::hit("job-taken");
        self.worker.pulse.waits();
        let (dispatcher, jobs) = (self.worker.dispatcher.clone(), self.worker.jobs.clone());
        let (backoff, hurry) = (self.worker.backoff, self.hurry.clone());
        self.turns.spawn(async move {
            let work = async {
                let finished = dispatcher.work_off(delivery.job).await?;
                insist(backoff, || jobs.ack(delivery.id)).await;
                look_again(&dispatcher, &*jobs, delivery.job, finished).await;
                Ok(())
            };
            let turn = tokio::select! {
                biased;
                worked = AssertUnwindSafe(work).catch_unwind() => match worked {
                    Ok(Ok(())) => Turn::Done,
                    Ok(Err(error)) => Turn::Failed { at_least: hint(&error), error: error.to_string() },
                    Err(_panic) => Turn::Failed { at_least: Duration::ZERO, error: "a step panicked".to_owned() },
                },
                () = hurry.cancelled() => Turn::CutShort,
            };
            (delivery, turn)
        });
    }

    /// Whether the turn speaks for or against the health of the stores; `None`: neither.
    fn settle(&mut self, delivery: Delivery, turn: Turn) -> Option<bool> {
        match turn {
            Turn::Done => {
                self.failures.forget(delivery.job);
                self.failed = None;
                self.worker.pulse.stepped();
                self.look_for_work();
                Some(true)
            }
            Turn::Failed { error, at_least } => {
                let failures = self.failures.count(delivery.job);
                self.failed = Some(Instant::now());
                let delay = self.worker.backoff.after(failures).max(at_least);
                let delay_ms = delay.as_millis() as u64;
                tracing::warn!(job = ?delivery.job, failures, delay_ms, error, "a job failed and will be tried again");
                self.give_back(delivery, delay);
                Some(false)
            }
            Turn::CutShort => {
                self.give_back(delivery, Duration::ZERO);
                None
            }
            Turn::GivenBack => None,
        }
    }

    /// There is none if no turn is in flight; unless one failed lately, whose job will come again, here or elsewhere.
    fn look_for_work(&self) {
        if self.turns.is_empty() && self.failed.is_none_or(|failed| failed.elapsed() > 2 * self.worker.backoff.max) {
            self.worker.pulse.rests();
        }
    }

    fn give_back(&mut self, delivery: Delivery, delay: Duration) {
        let (jobs, backoff) = (self.worker.jobs.clone(), self.worker.backoff);
        self.turns.spawn(async move {
            insist(backoff, || jobs.nack(delivery.id, delay)).await;
            (delivery, Turn::GivenBack)
        });
    }
}

/// What was accepted while the job was in flight may have been merged with it. If this fails, the event is
/// outstanding all the same, and the sweep finds it.
async fn look_again(dispatcher: &Dispatcher, jobs: &dyn Jobs, job: Job, finished: Event) {
    let looked = async { if dispatcher.is_behind(finished).await? { jobs.put(&[job]).await } else { Ok(()) } };
    if let Err(error) = looked.await {
        tracing::warn!(?job, %error, "what came while a job was in flight is left to the sweep");
    }
}

/// Repeats a call to the job queue until it is heard, for as long as it takes: a queue that does not answer
/// has no other work to give either, and its job must not stay in flight forever.
async fn insist<F: Future<Output = Result<()>>>(backoff: Backoff, call: impl Fn() -> F) {
    let mut failures = 0;
    while let Err(error) = call().await {
        failures += 1;
        tracing::warn!(%error, failures, "the job queue did not take an answer");
        sleep(backoff.after(failures)).await;
    }
}

/// How long the store asks to be left alone.
fn hint(error: &StoreError) -> Duration {
    match error {
        StoreError::Overloaded { retry_after_ms } => Duration::from_millis((*retry_after_ms).into()),
        StoreError::Unavailable(_) | StoreError::Down(_) | StoreError::Corrupt(_) => Duration::ZERO,
    }
}
