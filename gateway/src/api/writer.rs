//! Commits what backends write, and tells the workers.

use std::panic::resume_unwind;
use std::sync::Arc;

use feedgate_common::archive::{Refused, Write, Written};
use feedgate_common::doorbell::Touch;
use feedgate_common::feed::{Feeds, Publisher, jobs_of};
use feedgate_common::jobs::Job;
use feedgate_common::notify::Notified;
use feedgate_common::{ItemId, Jobs, StoreError, UserNo, error, failpoint, trace};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::metrics::Metrics;
use super::problem::Problem;
use super::relay::Relay;
use super::traced;
use crate::clock;
use crate::node::watches::Watches;

/// Accepts writes. All clones are the same writer.
#[derive(Clone)]
pub(crate) struct Writer {
    publisher: Arc<Publisher>,
    feeds: Arc<Feeds>,
    relay: Arc<Relay>,
    metrics: Arc<Metrics>,
    watches: Arc<Watches>,
    /// Every task that serves a peer.
    tasks: TaskTracker,
}

impl Writer {
    /// Makes a writer that carries out each call in a task of `tasks`.
    pub(crate) fn new(
        publisher: Arc<Publisher>,
        feeds: Arc<Feeds>,
        jobs: Arc<dyn Jobs>,
        tasks: TaskTracker,
        metrics: Arc<Metrics>,
        watches: Arc<Watches>,
    ) -> Self {
        Self { publisher, feeds, relay: Relay::new(jobs), metrics, watches, tasks }
    }

    /// Commits the writes, each accepted or refused by itself, and tells the workers. If the workers cannot be told,
    /// the answer waits a second at most, and they are told later. This runs in a task of its own: if the future is
    /// dropped, the writes are still carried out, and the workers are told.
    pub(super) async fn write(&self, writes: Vec<Write>) -> error::Result<Vec<Result<Written, Refused>>> {
        let Self { publisher, feeds, relay, metrics, watches, .. } = self.clone();
        let traced = traced::current().zip(trace::began()).map(|of| (of, traced::changes(&writes)));
        let accepting = async move {
            let items: Vec<Option<ItemId>> = writes.iter().map(item_of).collect();
            let written = metrics.writing(writes.len(), publisher.accept(writes, &feeds.named(), clock::now())).await?;
            for (item, written) in items.into_iter().zip(&written) {
                let changed = item.filter(|_| written.is_ok()).into_iter().chain(original_of(written));
                changed.for_each(|item| watches.touched(Touch { item, comment: None }));
                watches.narrowed(narrowed(written));
            }
            if let Some(((under, began), changes)) = traced {
                trace::accepted(under, began, traced::made(changes, &written)).await;
            }
            relay.tell(jobs_of(&written)).await;
            Ok(written)
        };
        self.to_the_end(accepting).await
    }

    /// Makes a change around an item by a call of [`Notifications`], and tells the workers which users got something by
    /// it. If the future is dropped, the change is still carried out, as by `write`.
    ///
    /// [`Notifications`]: feedgate_common::archive::Notifications
    pub(super) async fn notify<T: Send + 'static>(
        &self,
        change: impl Future<Output = error::Result<Notified<T>>> + Send + 'static,
    ) -> error::Result<Vec<T>> {
        let relay = self.relay.clone();
        let notifying = async move {
            let Notified { answers, told } = change.await?;
            if !told.is_empty() {
                failpoint::hit("archive-committed");
            }
            relay.tell(told.into_iter().map(|reader| Job::Direct { reader }).collect()).await;
            Ok(answers)
        };
        self.to_the_end(notifying).await
    }

    /// Tells the watchers of an item of a change around the item.
    pub(super) fn touched(&self, touch: Touch) {
        self.watches.touched(touch);
    }

    /// Notes that this reader may see less now: the items that the reader watches are checked again.
    pub(super) fn narrowed(&self, reader: UserNo) {
        self.watches.narrowed([reader]);
    }

    /// Waits for work in a task of its own, which goes on if this future is dropped.
    async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = error::Result<T>> + Send + 'static,
    ) -> error::Result<T> {
        self.tasks.spawn(work.in_current_span()).await.unwrap_or_else(|ended| match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(StoreError::unavailable("the server is stopping")),
        })
    }

    /// Commits one write, as `write` does for several.
    pub(super) async fn write_one(&self, write: Write) -> Result<Written, Problem> {
        let written = self.write(vec![write]).await?;
        Ok(written.into_iter().next().expect("the Archive answers each write")?)
    }
}

/// The item that a write changes, or that it reposts.
fn item_of(write: &Write) -> Option<ItemId> {
    match write {
        Write::Edit { item, .. } | Write::Delete { item, .. } => Some(*item),
        Write::Publish(publish) => publish.repost_of,
        _ => None,
    }
}

/// The item that has one repost less after a write.
fn original_of(written: &Result<Written, Refused>) -> Option<ItemId> {
    match written {
        Ok(Written::Deleted { repost_of, .. }) => *repost_of,
        _ => None,
    }
}

/// The readers who may see less after a write. These readers are only checked, so one too many does no harm.
fn narrowed(written: &Result<Written, Refused>) -> Vec<UserNo> {
    match written {
        Ok(Written::Edge { reader, edge, .. }) if !edge.on => vec![*reader],
        Ok(Written::Shielded { edges, .. }) => edges.iter().map(|(reader, _)| *reader).collect(),
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::Body;
    use feedgate_common::archive::Publish;

    use super::*;

    #[test]
    fn s4_a_repost_and_its_delete_are_news_of_the_original() {
        let publish = Publish::new("bob".parse().unwrap(), Body::parse("1".to_owned()).unwrap());
        assert_eq!(item_of(&Write::Publish(publish.clone())), None, "nobody watches what is not there yet");
        let repost = Publish { repost_of: Some(ItemId(7)), ..publish };
        assert_eq!(item_of(&Write::Publish(repost)), Some(ItemId(7)));
        let delete = Write::Delete { item: ItemId(8), if_version: None };
        let deleted = |repost_of| {
            let (author, readers, mentions, told) = (UserNo(1), vec![], vec![], vec![]);
            Ok(Written::Deleted { author, readers, fresh: true, repost_of, mentions, told })
        };
        assert_eq!(item_of(&delete), Some(ItemId(8)));
        assert_eq!([Some(ItemId(7)), None].map(|of| original_of(&deleted(of))), [Some(ItemId(7)), None]);
    }
}
