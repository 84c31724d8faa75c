//! Accepting: the Archive commits item and event together, then the event is relayed.
//!
//! Never a dual write: if relaying fails, the event is still in the Archive and the sweep finds it.

use std::sync::Arc;

use crate::archive::{Refused, Write, Written};
use crate::error::Result;
use crate::jobs::Job;
use crate::{Archive, Jobs, Millis, failpoint};

/// The door for everything that changes the truth.
pub struct Publisher {
    archive: Arc<dyn Archive>,
    jobs: Arc<dyn Jobs>,
}

impl Publisher {
    /// Over the Archive that accepts and the queue that is told.
    pub fn new(archive: Arc<dyn Archive>, jobs: Arc<dyn Jobs>) -> Self {
        Self { archive, jobs }
    }

    /// [`Archive::write`]: what it answers is durable. [Relay](Self::relay) it then.
    pub async fn accept(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        let written = self.archive.write(writes, now).await?;
        failpoint::hit("archive-committed");
        Ok(written)
    }

    /// Puts a job for everything that was new. It may fail, or be dropped at any time: then the sweep does it.
    pub async fn relay(&self, written: &[std::result::Result<Written, Refused>]) {
        let mut jobs: Vec<Job> = written.iter().flatten().flat_map(jobs_of).collect();
        jobs.sort_unstable();
        jobs.dedup();
        if !jobs.is_empty()
            && let Err(error) = self.jobs.put(&jobs).await
        {
            tracing::warn!(%error, "an accepted write could not be relayed; the sweep will");
        }
    }

    /// Both, however long it takes.
    pub async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        let written = self.accept(writes, now).await?;
        self.relay(&written).await;
        Ok(written)
    }
}

/// What a write leaves to do, if it changed anything.
fn jobs_of(written: &Written) -> Vec<Job> {
    if !written.is_fresh() {
        return vec![];
    }
    match written {
        Written::Classified { .. } => vec![],
        Written::Published { author, readers, .. }
        | Written::Edited { author, readers, .. }
        | Written::Deleted { author, readers, .. } => match &readers[..] {
            [] => vec![Job::FanOut { author: *author }],
            readers => readers.iter().map(|&reader| Job::Direct { reader }).collect(),
        },
        Written::Edge { reader, author, .. } => vec![Job::Edge { reader: *reader, author: *author }],
        Written::Shielded { edges, .. } => edges.iter().map(|&(reader, author)| Job::Edge { reader, author }).collect(),
    }
}
