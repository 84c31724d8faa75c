//! Changes after a position: live push, catch-up and a slow phone are all this one read.
//!
//! A read takes in the pulled records that this node knew of when the read began, and does not wait for later ones: a
//! later record wakes the device again. So reads end, however fast pulled authors post.

use std::sync::Arc;

use super::news::Looked;
use super::{Feeds, TRIES, contended};
use crate::error::Result;
use crate::inboxes::{Log, Read, STEP_MAX, Stand};
use crate::{InboxKey, Position};

/// The change logs as devices read them: built where they are missing, with what their readers pull.
pub struct Changes {
    pub(super) feeds: Arc<Feeds>,
    pub(super) looked: Looked,
    /// Entries that one take brings at most.
    pub(super) take_max: usize,
}

impl Changes {
    /// Makes the change logs of `feeds` readable. A read pulls nothing before [`Changes::heard_pull`] has told that
    /// there are pull records.
    pub fn new(feeds: Arc<Feeds>) -> Self {
        Self { feeds, looked: Looked::default(), take_max: STEP_MAX }
    }

    /// Bounds a take of what is pulled to `take_max` entries; at least 1, at most [`STEP_MAX`].
    pub fn with_take_max(self, take_max: usize) -> Self {
        Self { take_max: take_max.clamp(1, STEP_MAX), ..self }
    }

    /// [`Inboxes::read`](crate::Inboxes::read), never `Missing`: an inbox that is missing is rebuilt
    /// first, in a new epoch, so that an old position is `Gone`. What the reader can pull is taken in first.
    pub async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read> {
        let known = self.pull_head();
        for _ in 0..TRIES {
            match self.feeds.inboxes.read(key, after, limit).await? {
                Read::Missing => self.feeds.rebuild(key).await?,
                Read::Entries { taken, .. } if self.may_have_news(key, after.epoch, taken, known) => {
                    self.pull(key, after.epoch, taken, known).await?;
                }
                found @ (Read::Entries { .. } | Read::Gone { .. }) => return Ok(found),
            }
        }
        Err(contended("a read"))
    }

    /// Where the log stands, rebuilt if it is missing. What the reader can pull is taken in first.
    pub async fn head(&self, key: InboxKey) -> Result<Position> {
        let known = self.pull_head();
        for _ in 0..TRIES {
            match self.feeds.inboxes.stand(key).await? {
                Some(Stand { head, taken }) if self.may_have_news(key, head.epoch, taken, known) => {
                    self.pull(key, head.epoch, taken, known).await?;
                }
                Some(Stand { head, .. }) => return Ok(head),
                None => self.feeds.rebuild(key).await?,
            }
        }
        Err(contended("a read of the head"))
    }

    /// The whole log, rebuilt if it is missing. What the reader can pull is taken in first.
    pub async fn log(&self, key: InboxKey) -> Result<Log> {
        let known = self.pull_head();
        for _ in 0..TRIES {
            match self.feeds.inboxes.log(key).await? {
                Some(log) if self.may_have_news(key, log.head.epoch, log.taken, known) => {
                    self.pull(key, log.head.epoch, log.taken, known).await?;
                }
                Some(log) => return Ok(log),
                None => self.feeds.rebuild(key).await?,
            }
        }
        Err(contended("a read of the log"))
    }
}
