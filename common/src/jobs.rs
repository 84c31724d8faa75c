//! Fan-out work: delivered at least once while the queue lives, possibly out of order and twice.
//!
//! A job says only what is behind, never how far: working it off brings it to the current state, so
//! equal jobs are one, and a job delivered again finds nothing left to do.
//!
//! A queue need not outlive its processes. Work is kept in the Archive, as [events](crate::archive::Events) that are
//! outstanding until they are finished. A worker puts all of them at its start, and when the queue
//! [says](Jobs::returns) that it was away or full. So after a crash every accepted event is worked on again.
//!
//! ```text
//!   put ─▶ waiting ─take─▶ in flight ─ack─▶ gone ─▶ look again: what was put meanwhile may have been
//!              ▲               │                    merged with the one in flight
//!              └── nack, lapse ┘
//! ```
//!
//! There are two [lanes](Lane), each a queue of its own: many follows at once delay no post. And the edges of one
//! reader are [one job](Job::merged) in a queue, however many of them have changed.

use std::collections::HashSet;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde::{Deserialize, Serialize};

use crate::UserNo;
use crate::archive::Event;
use crate::error::Result;

/// A piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Job {
    /// Advance the author's outbox in every bucket to its head.
    FanOut {
        /// The author whose outbox it is.
        author: UserNo,
    },
    /// This edge has changed: bring the reader's inboxes to the current generation and state of the edge. A queue holds
    /// this job as [`Job::Edges`] of the reader.
    Edge {
        /// The reader whose inboxes are behind.
        reader: UserNo,
        /// The author at the other end of the edge.
        author: UserNo,
    },
    /// Bring what is addressed to the reader to the reader's inboxes.
    Direct {
        /// The reader whose inboxes are behind.
        reader: UserNo,
    },
    /// Edges of this reader have changed: bring the reader's inboxes to all that are outstanding.
    Edges {
        /// The reader whose inboxes are behind.
        reader: UserNo,
    },
}

/// A lane is a queue of its own: jobs that wait in one lane delay no job in the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Work of items that were published.
    Posts,
    /// Edges that have changed.
    Edges,
}

crate::labels!(Lane, "lane": Posts "posts", Edges "edges");

impl Lane {
    /// Every lane there is.
    pub const ALL: [Self; 2] = [Self::Posts, Self::Edges];
}

impl Job {
    /// The lane in which this job waits.
    pub fn lane(self) -> Lane {
        match self {
            Self::FanOut { .. } | Self::Direct { .. } => Lane::Posts,
            Self::Edge { .. } | Self::Edges { .. } => Lane::Edges,
        }
    }

    /// What a queue holds of `jobs`, each once, in their order: the edges of one reader are one job.
    pub fn merged(jobs: &[Self]) -> Vec<Self> {
        let mut seen = HashSet::with_capacity(jobs.len());
        let held = jobs.iter().map(|job| match *job {
            Self::Edge { reader, .. } => Self::Edges { reader },
            other => other,
        });
        held.filter(|job| seen.insert(*job)).collect()
    }
}

impl From<Event> for Job {
    fn from(event: Event) -> Self {
        match event {
            Event::Outbox { author, .. } => Self::FanOut { author },
            Event::Edge { reader, author, .. } => Self::Edge { reader, author },
            Event::Direct { reader, .. } => Self::Direct { reader },
        }
    }
}

/// A job handed to a worker. Not acknowledged, it comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The number by which the job is acknowledged or given back.
    pub id: u64,
    /// The work to be done.
    pub job: Job,
}

/// The queue of fan-out work.
///
/// Every method fails with `Unavailable` or `Down` while the queue cannot work. A dropped future of a method other than
/// [`take`](Self::take) leaves it done or not done. A queue is bounded, or keeps its jobs on a disk.
#[async_trait]
pub trait Jobs: Send + Sync + 'static {
    /// Adds work, [merged](Job::merged). A job equal to one that waits or is in flight may be merged with it: its
    /// worker sees what came meanwhile, because it looks again after its ack.
    ///
    /// `Overloaded` if the queue has no room for some of the jobs; it has taken the others. It [says](Self::returns)
    /// when it has room, and then a worker puts all that is outstanding: the caller need not keep the jobs.
    async fn put(&self, jobs: &[Job]) -> Result<()>;

    /// Waits for work of this lane, which is delivered in the order in which it was put. Cancel safe: a cancelled call
    /// has taken nothing. A job in flight is held as long as this handle lives, however long the work takes; when its
    /// process has died, others get the job within two seconds.
    async fn take(&self, lane: Lane) -> Result<Delivery>;

    /// The work is done, or somebody else does it. When this answers `Ok`, an equal job put from then on is a job of
    /// its own. An id that is not in flight is ignored.
    async fn ack(&self, id: u64) -> Result<()>;

    /// Gives a job back whose work was not done: the next call of [`take`](Self::take) gets it.
    async fn nack(&self, id: u64) -> Result<()>;

    /// Says each time that the queue was away and is back, or was full and has room again. What was put meanwhile was
    /// refused, and what waited may be lost: a caller that knows what is outstanding puts it again. Of several
    /// listeners in one process at least one hears it.
    fn returns(&self) -> BoxStream<'static, ()> {
        stream::pending().boxed()
    }

    /// Jobs that wait or are in flight, for the stats page. Jobs for which the queue had no room are not counted; they
    /// are among the outstanding events of the Archive.
    async fn pending(&self) -> Result<u64>;

    /// Answers as soon as it can: whether the queue is there.
    async fn ping(&self) -> Result<()>;
}
