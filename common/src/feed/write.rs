//! Accepting: the Archive commits item and event together, then the event is relayed.
//!
//! Never a dual write: if relaying fails, the event is still in the Archive and the sweep finds it.

use std::sync::Arc;

use super::audience::resolve_all;
use crate::archive::{Refused, Write, Written};
use crate::error::Result;
use crate::import::Import;
use crate::jobs::Job;
use crate::named::NamedFeeds;
use crate::{Archive, Jobs, Millis, failpoint};

/// The door for everything that changes the truth.
pub struct Publisher {
    archive: Arc<dyn Archive>,
    jobs: Arc<dyn Jobs>,
}

impl Publisher {
    /// Makes a publisher over the Archive that accepts writes and the queue that gets the jobs.
    pub fn new(archive: Arc<dyn Archive>, jobs: Arc<dyn Jobs>) -> Self {
        Self { archive, jobs }
    }

    /// Writes as they come from outside: each new item goes to the one of `feeds` that claims its kind, and an audience
    /// is resolved. All that the answer says is durable. The caller is then to relay the [jobs](jobs_of) that the
    /// answer leaves to do. If the future is dropped, the writes may or may not be carried out.
    pub async fn accept(
        &self,
        mut writes: Vec<Write>,
        feeds: &NamedFeeds,
        now: Millis,
    ) -> Result<Vec<std::result::Result<Written, Refused>>> {
        for write in &mut writes {
            if let Write::Publish(publish) | Write::Import(Import::Item { publish, .. }) = write {
                publish.feed = feeds.of_kind(publish.kind.as_deref());
            }
        }
        resolve_all(&*self.archive, &mut writes).await?;
        self.commit(writes, now).await
    }

    async fn commit(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        let written = self.archive.write(writes, now).await?;
        failpoint::hit("archive-committed");
        Ok(written)
    }

    /// Commits writes whose items know their feed, and relays what they leave to do, however long it takes. Jobs that
    /// the queue does not take are left to the sweep.
    pub async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Vec<std::result::Result<Written, Refused>>> {
        let written = self.commit(writes, now).await?;
        let jobs = jobs_of(&written);
        if !jobs.is_empty()
            && let Err(error) = self.jobs.put(&jobs).await
        {
            tracing::warn!(%error, "an accepted write could not be relayed; the sweep will");
        }
        Ok(written)
    }
}

/// The jobs that these writes leave to do, each once. A repeated write leaves the jobs of the first one, whose caller
/// may have gone before they were relayed.
pub fn jobs_of(written: &[std::result::Result<Written, Refused>]) -> Vec<Job> {
    let direct = |written: &Written| written.told().iter().map(|&reader| Job::Direct { reader }).collect::<Vec<_>>();
    let all = written.iter().flatten();
    let mut jobs: Vec<Job> = all.flat_map(|written| left_by(written).into_iter().chain(direct(written))).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

fn left_by(written: &Written) -> Vec<Job> {
    match written {
        // A line brings its reader nothing to take in here: only the answer to an import is of this kind.
        Written::Classified { .. } | Written::Line { .. } | Written::Untold => vec![],
        Written::Published { author, own_edge: true, .. } => {
            vec![Job::FanOut { author: *author }, Job::Edge { reader: *author, author: *author }]
        }
        Written::Published { author, readers, .. }
        | Written::Edited { author, readers, .. }
        | Written::Deleted { author, readers, .. } => match &readers[..] {
            [] => vec![Job::FanOut { author: *author }],
            readers => readers.iter().map(|&reader| Job::Direct { reader }).collect(),
        },
        Written::Edge { pending: true, .. } => vec![],
        Written::Edge { reader, author, .. } => vec![Job::Edge { reader: *reader, author: *author }],
        Written::Shielded { edges, .. } => edges.iter().map(|&(reader, author)| Job::Edge { reader, author }).collect(),
    }
}
