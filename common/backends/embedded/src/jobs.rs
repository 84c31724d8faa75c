//! Fan-out work on the embedded store.
//!
//! ```text
//!   put ──▶ in memory already? merged ──▶ else an op of the writer: on disk ──▶ into its lane's line, wake takers
//!   take ◀── the line ◀── the lane's next stretch from disk, when the line has run dry
//!   ack ──▶ an op of the writer: off the disk        nack ──▶ memory alone: the disk still has it
//! ```
//!
//! The disk has one order for all jobs. A line that reads on passes by the jobs of the other lane.
//!
//! Invariants: the disk holds exactly the jobs that nobody has acknowledged, so opening the store delivers each
//! again; what is decided about a job's place on disk is decided on the writer thread. Jobs are durable against a
//! crash of the process; after a loss of power the Archive's events bring back what is missing.

mod line;
mod rows;

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::jobs::{Delivery, Job, Jobs, Lane};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::database::{Database, Durability, Request};
use crate::view::{Read, Tx};
use line::{Line, Next};
use rows::{ByJob, ByOrder};

/// Jobs of a lane that are held in memory; the others wait on disk.
const ROOM: usize = 65_536;

/// Jobs read from disk at a time.
const STRETCH: usize = 1000;

/// The queue of fan-out jobs on the embedded store.
pub struct EmbeddedJobs {
    database: Arc<Database>,
    shared: Arc<Shared>,
}

struct Shared {
    lines: Mutex<Lines>,
    /// Wakes the waiting takers after a line has changed.
    news: Notify,
}

/// The state in memory: a line for each lane.
struct Lines {
    posts: Line,
    edges: Line,
    /// The greatest order number given to a job. Numbers that no line knows of are on their way to disk, or were lost
    /// on it.
    given: u64,
    /// How many deliveries there were; the count is the id of the newest.
    deliveries: u64,
}

impl Lines {
    fn of(&mut self, lane: Lane) -> &mut Line {
        match lane {
            Lane::Posts => &mut self.posts,
            Lane::Edges => &mut self.edges,
        }
    }

    /// Merges a job that is put with an equal one in memory; false if there is none.
    fn merge(&mut self, job: Job) -> bool {
        self.of(job.lane()).merge(job)
    }

    /// Gives the next order number to a job that is put; `None` if the job is merged with an equal one, which `on_disk`
    /// may name.
    fn place_for(&mut self, job: Job, on_disk: Option<u64>) -> Option<u64> {
        if self.of(job.lane()).has(job, on_disk) {
            return None;
        }
        self.given += 1;
        Some(self.given)
    }

    /// Takes note of jobs that are on disk now, each in the line of its lane.
    fn stored(&mut self, jobs: &[(u64, Job)]) {
        for lane in Lane::ALL {
            let own: Vec<(u64, Job)> = jobs.iter().copied().filter(|(_, job)| job.lane() == lane).collect();
            self.of(lane).stored(&own);
        }
    }

    /// Takes the delivery `id` out of memory. Answers the order and the job to remove from disk; `None` if there is
    /// nothing to remove.
    fn acknowledge(&mut self, id: u64) -> Option<(u64, Job)> {
        self.posts.acknowledge(id).or_else(|| self.edges.acknowledge(id))
    }

    /// Lets the job of the delivery `id` wait again, before all others of its lane.
    fn give_back(&mut self, id: u64) {
        self.posts.give_back(id);
        self.edges.give_back(id);
    }

    /// The next job of the lane or what to do to find one, and the id that its delivery has.
    fn next(&mut self, lane: Lane) -> (u64, Next) {
        self.deliveries += 1;
        let id = self.deliveries;
        (id, self.of(lane).next(id))
    }
}

impl EmbeddedJobs {
    /// Opens the queue in `database`. Every job that was not acknowledged waits again.
    ///
    /// Reads every waiting job once, to count them. Errors: those of a read of the store.
    pub fn open(database: Arc<Database>) -> Result<Self> {
        Self::open_with_room(database, ROOM)
    }

    /// Opens the queue in `database`, with at most `room` jobs of each lane in memory. Errors: those of a read of the
    /// store.
    pub fn open_with_room(database: Arc<Database>, room: usize) -> Result<Self> {
        let [posts, edges] = on_disk(&*database.view()?)?;
        let line = |(last, total)| Line::new(room, last, total);
        let given = posts.0.max(edges.0);
        let lines = Mutex::new(Lines { posts: line(posts), edges: line(edges), given, deliveries: 0 });
        let shared = Arc::new(Shared { lines, news: Notify::new() });
        let beginning = shared.clone();
        database.when_reopened(move |view| {
            let [posts, edges] = on_disk(view)?;
            let mut lines = beginning.lines.lock();
            lines.given = posts.0.max(edges.0);
            lines.posts.begin_again(posts.0, posts.1);
            lines.edges.begin_again(edges.0, edges.1);
            drop(lines);
            beginning.news.notify_waiters();
            Ok(())
        });
        Ok(Self { database, shared })
    }

    /// Reads the lane's next jobs with an order above `after` from disk into its line, at most `room` of them.
    fn read_on(&self, lane: Lane, after: u64, until: u64, room: usize) -> Result<()> {
        let limit = room.min(STRETCH);
        let view = self.database.view()?;
        let own = |row: &Result<(u64, Job)>| row.as_ref().map_or(true, |(_, job)| job.lane() == lane);
        let jobs: Vec<(u64, Job)> = view.scan::<ByOrder>(after + 1..).filter(own).take(limit).collect::<Result<_>>()?;
        let all_until = (jobs.len() < limit).then_some(until);
        self.shared.lines.lock().of(lane).read(jobs, all_until);
        Ok(())
    }
}

#[async_trait]
impl Jobs for EmbeddedJobs {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        let news: Vec<Job> = {
            let mut lines = self.shared.lines.lock();
            Job::merged(jobs).into_iter().filter(|job| !lines.merge(*job)).collect()
        };
        if news.is_empty() {
            return Ok(());
        }
        let (deciding, telling) = (self.shared.clone(), self.shared.clone());
        let bytes = size_of_val(&*news);
        let put = Request::new(Durability::Buffered, move |tx| store(tx, &deciding, &news)).bytes(bytes).then(
            move |stored: &Vec<(u64, Job)>| {
                telling.lines.lock().stored(stored);
                telling.news.notify_waiters();
            },
        );
        self.database.submit(put).await?;
        Ok(())
    }

    async fn take(&self, lane: Lane) -> Result<Delivery> {
        loop {
            // Start to listen before the line is looked at, so that no change in between is missed.
            let mut news = std::pin::pin!(self.shared.news.notified());
            news.as_mut().enable();
            let (id, next) = self.shared.lines.lock().next(lane);
            match next {
                Next::Job(job) => return Ok(Delivery { id, job }),
                Next::OnDisk { after, until, room } => self.read_on(lane, after, until, room)?,
                Next::Nothing => news.await,
            }
        }
    }

    async fn ack(&self, id: u64) -> Result<()> {
        let shared = self.shared.clone();
        let ack = move |tx: &mut Tx<'_>| {
            let done = shared.lines.lock().acknowledge(id);
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
        // Memory has room again: a taker may read the next job from disk.
        self.shared.news.notify_waiters();
        Ok(())
    }

    async fn nack(&self, id: u64) -> Result<()> {
        self.shared.lines.lock().give_back(id);
        self.shared.news.notify_waiters();
        Ok(())
    }

    async fn pending(&self) -> Result<u64> {
        let lines = self.shared.lines.lock();
        Ok(lines.posts.total() + lines.edges.total())
    }

    async fn ping(&self) -> Result<()> {
        self.database.ping()
    }
}

/// The greatest order on disk and the number of jobs, for posts and then for edges.
fn on_disk(from: &impl Read) -> Result<[(u64, u64); 2]> {
    let mut lanes = [(0, 0); 2];
    for row in from.scan::<ByOrder>(..) {
        let (order, job) = row?;
        let (last, total) = &mut lanes[usize::from(job.lane() == Lane::Edges)];
        (*last, *total) = (order, *total + 1);
    }
    Ok(lanes)
}

/// Runs on the writer thread. Puts each job on disk that is neither there nor in memory. Answers those, each with its
/// order.
fn store(tx: &mut Tx<'_>, shared: &Shared, jobs: &[Job]) -> Result<Vec<(u64, Job)>> {
    let mut stored = vec![];
    for &job in jobs {
        let before = tx.get::<ByJob>(&job)?;
        let Some(order) = shared.lines.lock().place_for(job, before) else { continue };
        if let Some(before) = before {
            // This row is left from an acknowledgement that the disk did not take.
            tx.remove::<ByOrder>(&before);
        }
        tx.put::<ByOrder>(&order, &job);
        tx.put::<ByJob>(&job, &order);
        stored.push((order, job));
    }
    Ok(stored)
}
