//! Fan-out work on the embedded store.
//!
//! ```text
//!   put ──▶ in memory already? merged ──▶ else an op of the writer: on disk ──▶ into the line, wake takers
//!   take ◀── the line ◀── the next stretch from disk, when the line has run dry
//!   ack ──▶ an op of the writer: off the disk        nack ──▶ memory alone: the disk still has it
//! ```
//!
//! Invariants: the disk holds exactly the jobs that nobody has acknowledged, so opening the store delivers each
//! again; what is decided about a job's place on disk is decided on the writer thread. Jobs are durable against a
//! crash of the process; after a loss of power the Archive's events bring back what is missing.

mod line;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::jobs::{Delivery, Job, Jobs};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::database::{Database, Durability, Request};
use crate::view::{Read, Tx};
use line::{Line, Next};
use rows::{ByJob, ByOrder};

/// Jobs held in memory; the others wait on disk.
const ROOM: usize = 65_536;

/// Jobs read from disk at a time.
const STRETCH: usize = 1000;

/// See the module.
pub struct EmbeddedJobs {
    database: Arc<Database>,
    shared: Arc<Shared>,
}

struct Shared {
    line: Mutex<Line>,
    /// The line has changed.
    news: Notify,
}

impl EmbeddedJobs {
    /// The queue in `database`. Everything that was not acknowledged waits again.
    ///
    /// Errors: as a read of the store. Reads every waiting job once, to count them.
    pub fn open(database: Arc<Database>) -> Result<Self> {
        Self::open_with_room(database, ROOM)
    }

    /// The same with at most `room` jobs in memory.
    pub fn open_with_room(database: Arc<Database>, room: usize) -> Result<Self> {
        let (last, total) = on_disk(&*database.view()?)?;
        let line = Mutex::new(Line::new(room, last, total));
        let shared = Arc::new(Shared { line, news: Notify::new() });
        let beginning = shared.clone();
        database.when_reopened(move |view| {
            let (last, total) = on_disk(view)?;
            beginning.line.lock().begin_again(last, total);
            beginning.news.notify_waiters();
            Ok(())
        });
        Ok(Self { database, shared })
    }

    /// Brings the next stretch, after `after`, into the line, which may hold `room` more.
    fn read_on(&self, after: u64, until: u64, room: usize) -> Result<()> {
        let limit = room.min(STRETCH);
        let view = self.database.view()?;
        let jobs: Vec<(u64, Job)> = view.scan::<ByOrder>(after + 1..).take(limit).collect::<Result<_>>()?;
        let all_until = (jobs.len() < limit).then_some(until);
        self.shared.line.lock().read(jobs, all_until);
        Ok(())
    }
}

#[async_trait]
impl Jobs for EmbeddedJobs {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        let news: Vec<Job> = {
            let mut line = self.shared.line.lock();
            jobs.iter().copied().filter(|job| !line.merge(*job)).collect()
        };
        if news.is_empty() {
            return Ok(());
        }
        let (deciding, telling) = (self.shared.clone(), self.shared.clone());
        let bytes = size_of_val(&*news);
        let put = Request::new(Durability::Buffered, move |tx| store(tx, &deciding, &news)).bytes(bytes).then(
            move |stored: &Vec<(u64, Job)>| {
                telling.line.lock().stored(stored);
                telling.news.notify_waiters();
            },
        );
        self.database.submit(put).await?;
        Ok(())
    }

    async fn take(&self) -> Result<Delivery> {
        loop {
            // Listening begins before the line is looked at, so that no news falls between.
            let mut news = std::pin::pin!(self.shared.news.notified());
            news.as_mut().enable();
            let next = self.shared.line.lock().next(Instant::now());
            match next {
                Next::Job(delivery) => return Ok(delivery),
                Next::OnDisk { after, until, room } => self.read_on(after, until, room)?,
                Next::Nothing(None) => news.await,
                // Due or told, the line says which.
                Next::Nothing(Some(due)) => drop(timeout_at(due, news).await),
            }
        }
    }

    async fn ack(&self, id: u64) -> Result<()> {
        let shared = self.shared.clone();
        let ack = move |tx: &mut Tx<'_>| {
            let done = shared.line.lock().acknowledge(id);
            match done {
                Some((order, job)) => {
                    tx.remove::<ByOrder>(&order);
                    tx.remove::<ByJob>(&job);
                }
                None => shared.news.notify_waiters(),
            }
            Ok(())
        };
        self.database.write(Durability::Buffered, ack).await?;
        // A place in memory is free for what waits on disk.
        self.shared.news.notify_waiters();
        Ok(())
    }

    async fn nack(&self, id: u64, delay: Duration) -> Result<()> {
        self.shared.line.lock().give_back(id, Instant::now(), delay);
        self.shared.news.notify_waiters();
        Ok(())
    }

    async fn pending(&self) -> Result<u64> {
        Ok(self.shared.line.lock().total())
    }

    async fn ping(&self) -> Result<()> {
        self.database.ping()
    }
}

/// The greatest order on disk, and how many jobs are there.
fn on_disk(from: &impl Read) -> Result<(u64, u64)> {
    from.scan::<ByOrder>(..).try_fold((0, 0), |(_, total), row| Ok((row?.0, total + 1)))
}

/// On the writer thread: gives each job that is nowhere yet a place on disk.
fn store(tx: &mut Tx<'_>, shared: &Shared, jobs: &[Job]) -> Result<Vec<(u64, Job)>> {
    let mut stored = vec![];
    for &job in jobs {
        let before = tx.get::<ByJob>(&job)?;
        let Some(order) = shared.line.lock().place_for(job, before) else { continue };
        if let Some(before) = before {
            // Left by an acknowledgement that the disk did not take.
            tx.remove::<ByOrder>(&before);
        }
        tx.put::<ByOrder>(&order, &job);
        tx.put::<ByJob>(&job, &order);
        stored.push((order, job));
    }
    Ok(stored)
}
