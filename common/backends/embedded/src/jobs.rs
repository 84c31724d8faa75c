//! Fan-out work in memory.
//!
//! ```text
//!   put ──▶ held already? merged ──▶ room in its lane? at the end of the line, wake takers ──▶ else refused
//!   take ◀── the front of the line; half of a line that has refused is free ──▶ say so
//!   ack ──▶ gone        nack ──▶ the front of the line
//! ```
//!
//! Work is kept once: as the events of the Archive, which stay outstanding until they are finished. This queue is lost
//! with its process, and it is bounded. The sweep of a worker fills it with what is outstanding: at the start, and when
//! a lane that has refused jobs has room again.

mod lines;

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::error::{Result, StoreError};
use feedgate_common::jobs::{Delivery, Job, Jobs, Lane};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::Notify;

use lines::Lines;

/// How many jobs of each lane may wait.
const ROOM: usize = 65_536;

/// After how many ms a caller whose job was refused is told to try again.
const RETRY_AFTER_MS: u32 = 250;

/// The queue of fan-out jobs within one process.
pub struct EmbeddedJobs {
    lines: Mutex<Lines>,
    /// Wakes the callers of `take` that wait, after a line has changed.
    news: Notify,
    /// Tells one listener that a lane which has refused jobs has room again.
    room: Arc<Notify>,
}

impl Default for EmbeddedJobs {
    fn default() -> Self {
        Self::with_room(ROOM)
    }
}

impl EmbeddedJobs {
    /// An empty queue in which at most `room` jobs of each lane wait; at least 1.
    pub fn with_room(room: usize) -> Self {
        Self { lines: Mutex::new(Lines::new(room)), news: Notify::new(), room: Arc::default() }
    }
}

#[async_trait]
impl Jobs for EmbeddedJobs {
    async fn put(&self, jobs: &[Job]) -> Result<()> {
        let refused = {
            let mut lines = self.lines.lock();
            Job::merged(jobs).into_iter().filter(|job| !lines.put(*job)).count()
        };
        self.news.notify_waiters();
        if refused > 0 { Err(StoreError::Overloaded { retry_after_ms: RETRY_AFTER_MS }) } else { Ok(()) }
    }

    async fn take(&self, lane: Lane) -> Result<Delivery> {
        loop {
            // Start to listen before the line is looked at, so that no change in between is missed.
            let mut news = std::pin::pin!(self.news.notified());
            news.as_mut().enable();
            let (taken, has_room) = {
                let mut lines = self.lines.lock();
                (lines.take(lane), lines.has_room_again(lane))
            };
            if has_room {
                self.room.notify_one();
            }
            match taken {
                Some(delivery) => return Ok(delivery),
                None => news.await,
            }
        }
    }

    async fn ack(&self, id: u64) -> Result<()> {
        if self.lines.lock().acknowledge(id) {
            self.news.notify_waiters();
        }
        Ok(())
    }

    async fn nack(&self, id: u64) -> Result<()> {
        self.lines.lock().give_back(id);
        self.news.notify_waiters();
        Ok(())
    }

    fn returns(&self) -> BoxStream<'static, ()> {
        stream::unfold(self.room.clone(), |room| async {
            room.notified().await;
            Some(((), room))
        })
        .boxed()
    }

    async fn pending(&self) -> Result<u64> {
        Ok(self.lines.lock().len() as u64)
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }
}
