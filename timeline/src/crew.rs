//! The turns in flight, a task each, and the jobs that have failed and wait for their next turn.
//!
//! Invariants: an answer that the queue does not take is repeated until it does, or until the shutdown. A job whose
//! turn fails is acknowledged after the turn, and held here from then on.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use feedgate_common::error::{Result, StoreError};
use feedgate_common::jobs::{Job, Lane};
use feedgate_common::{Jobs, failpoint};
use futures_util::FutureExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Worker;
use crate::dispatch::Dispatcher;
use crate::metrics::Ended;
use crate::retry::{Backoff, Cause, Retries};
use crate::said::Said;

/// The longest pause between two tries to tell the queue something: it is to know soon after it is back.
const INSIST_MAX: Duration = Duration::from_millis(250);

/// The groups of hands. A group does not use the hands of another one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hands {
    /// Posts from the queue.
    Posts,
    /// Edges from the queue.
    Edges,
    /// Jobs that have failed before.
    Retries,
}

/// A job that is worked off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) job: Job,
    /// The delivery of the job; `None` if the job was held here for a retry.
    pub(crate) id: Option<u64>,
}

impl Work {
    fn hands(self) -> Hands {
        match (self.id, self.job.lane()) {
            (None, _) => Hands::Retries,
            (Some(_), Lane::Posts) => Hands::Posts,
            (Some(_), Lane::Edges) => Hands::Edges,
        }
    }
}

/// How a turn ended.
enum Turn {
    /// The job is done and acknowledged.
    Done,
    /// To be tried again later, not before the wait that the store asked for; with the cause, and whether a store was
    /// found damaged.
    Failed { error: String, at_least: Duration, cause: Cause, damaged: bool },
    /// The shutdown could wait no longer.
    CutShort,
}

impl Turn {
    /// How this end is counted.
    fn ended(&self) -> Ended {
        match self {
            Self::Done => Ended::Done,
            Self::Failed { damaged: true, .. } => Ended::Damaged,
            Self::Failed { .. } => Ended::Failed,
            Self::CutShort => Ended::CutShort,
        }
    }
}

/// The jobs that a worker has in hand, each as a task.
pub(crate) struct Crew<'a> {
    worker: &'a Worker,
    /// Each with how long it has taken.
    turns: JoinSet<(Work, Turn, Duration)>,
    /// How many turns each of [`Hands`] have.
    busy: [usize; 3],
    retries: Retries,
    /// Cuts every turn short.
    hurry: CancellationToken,
    failing: Said,
}

impl<'a> Crew<'a> {
    pub(crate) fn of(worker: &'a Worker) -> Self {
        let (retries, hurry) = (Retries::new(worker.backoff()), CancellationToken::new());
        Self { worker, turns: JoinSet::new(), busy: [0; 3], retries, hurry, failing: Said::default() }
    }

    pub(crate) fn has_free(&self, hands: Hands) -> bool {
        self.busy[hands as usize] < self.worker.hands(hands)
    }

    /// Waits for the next turn that ends and settles it, or begins with a job that is to be tried again. Waits for ever
    /// if there is neither. Cancel safe.
    pub(crate) async fn tend(&mut self) {
        let due = self.retries.next_due(Instant::now()).filter(|_| self.has_free(Hands::Retries));
        tokio::select! {
            biased;
            Some((work, turn, time)) = next(&mut self.turns) => self.settle(work, turn, time),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                if let Some(job) = self.retries.next() {
                    self.begin(Work { job, id: None });
                }
            }
            else => std::future::pending().await,
        }
    }

    /// Waits for every turn, settling each. Cancel safe.
    pub(crate) async fn finish(&mut self) {
        while let Some((work, turn, time)) = next(&mut self.turns).await {
            self.settle(work, turn, time);
        }
    }

    /// There is none if no turn is in flight, and nothing that could be done waits to be tried again. A job that fails
    /// by itself does not count: else one such job would end, by `/healthz`, every worker with nothing else to do.
    pub(crate) fn look_for_work(&self) {
        if self.turns.is_empty() && !self.retries.are_held_up() {
            self.worker.pulse.rests();
        }
    }

    /// Every turn ends as soon as it can.
    pub(crate) fn hurry(&self) {
        self.hurry.cancel();
    }

    /// Gives all jobs that are held for a retry, and holds them no longer.
    pub(crate) fn let_go(&mut self) -> Vec<Job> {
        self.retries.let_go()
    }

    pub(crate) fn begin(&mut self, work: Work) {
        failpoint::hit("job-taken");
        self.worker.pulse.waits();
        self.busy[work.hands() as usize] += 1;
        let (dispatcher, jobs) = (self.worker.dispatcher.clone(), self.worker.jobs.clone());
        let (backoff, hurry) = (self.worker.backoff(), self.hurry.clone());
        let began = Instant::now();
        self.turns.spawn(async move {
            let turn = tokio::select! {
                biased;
                turn = turn(&dispatcher, &*jobs, backoff, work) => turn,
                () = hurry.cancelled() => {
                    if let Some(id) = work.id && let Err(error) = jobs.nack(id).await {
                        tracing::debug!(%error, "a job could not be given back");
                    }
                    Turn::CutShort
                }
            };
            (work, turn, began.elapsed())
        });
    }

    fn settle(&mut self, work: Work, turn: Turn, time: Duration) {
        self.worker.metrics.turned(work.job.lane(), turn.ended(), time);
        self.busy[work.hands() as usize] -= 1;
        match turn {
            Turn::Done => {
                self.retries.succeeded(work.job);
                self.worker.pulse.stepped();
                self.look_for_work();
            }
            Turn::Failed { error, at_least, cause, .. } => {
                if let Some(times) = self.failing.due() {
                    tracing::warn!(job = ?work.job, times, error, "jobs failed and will be tried again");
                }
                self.retries.failed(work.job, Instant::now(), at_least, cause);
                self.look_for_work();
            }
            Turn::CutShort if work.id.is_none() => {
                self.retries.failed(work.job, Instant::now(), Duration::ZERO, Cause::Around);
            }
            Turn::CutShort => {}
        }
    }
}

/// The next turn that ends; `None` if there is none. Cancel safe.
async fn next(turns: &mut JoinSet<(Work, Turn, Duration)>) -> Option<(Work, Turn, Duration)> {
    let ended = turns.join_next().await?;
    Some(ended.expect("a turn catches its panics and is not aborted while its worker lives"))
}

async fn turn(dispatcher: &Dispatcher, jobs: &dyn Jobs, backoff: Backoff, work: Work) -> Turn {
    let failed = match AssertUnwindSafe(work_off(dispatcher, jobs, backoff, work)).catch_unwind().await {
        Ok(Ok(())) => return Turn::Done,
        Ok(Err(error)) => {
            let damaged = matches!(error, StoreError::Corrupt(_));
            let cause = if damaged { Cause::Own } else { Cause::Around };
            Turn::Failed { at_least: hint(&error), error: error.to_string(), cause, damaged }
        }
        Err(_panic) => {
            let error = "a step panicked".to_owned();
            Turn::Failed { at_least: Duration::ZERO, error, cause: Cause::Own, damaged: false }
        }
    };
    ack(jobs, backoff, work).await;
    failed
}

/// Works the job off, or a turn's worth of it. If work is left then, or has come meanwhile and was merged with this
/// job, the job is put again, behind all jobs that wait.
async fn work_off(dispatcher: &Dispatcher, jobs: &dyn Jobs, backoff: Backoff, work: Work) -> Result<()> {
    let finished = dispatcher.work_off(work.job).await?;
    ack(jobs, backoff, work).await;
    if dispatcher.is_behind(work.job, &finished).await? { jobs.put(&[work.job]).await } else { Ok(()) }
}

/// Repeats it until it is heard, for as long as it takes: a queue that does not answer has no other work to give
/// either.
async fn ack(jobs: &dyn Jobs, backoff: Backoff, work: Work) {
    let Some(id) = work.id else { return };
    let mut failures = 0;
    while let Err(error) = jobs.ack(id).await {
        failures += 1;
        tracing::debug!(%error, failures, "the job queue did not take an answer");
        sleep(backoff.after(failures).min(INSIST_MAX)).await;
    }
}

/// How long the store asks to be left alone.
fn hint(error: &StoreError) -> Duration {
    match error {
        StoreError::Overloaded { retry_after_ms } => Duration::from_millis((*retry_after_ms).into()),
        StoreError::Unavailable(_) | StoreError::Misconfigured(_) | StoreError::Down(_) | StoreError::Corrupt(_) => {
            Duration::ZERO
        }
    }
}
