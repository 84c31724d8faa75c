//! Notes which inboxes are read, and tells the store, which then keeps these inboxes for their whole lifetime again.
//!
//! ```text
//!   connect, subscribe, reads by HTTP ──note──▶ one key per inbox ──every minute──▶ Feeds::touch
//!   every few hours: every inbox with a session here ────┘
//! ```
//!
//! An inbox of which the store is not told is at worst rebuilt. Bounded by [`NOTED_MAX`]: the store is not told of
//! inboxes that find no room.

use std::time::Duration;

use feedgate_common::error::Result;
use feedgate_common::feed::Feeds;
use feedgate_common::{FeedId, InboxKey};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::node::Reads;
use crate::node::bounded::bounded;
use crate::node::pool::{Pool, Seat};

/// The most inboxes that wait; each takes 16 bytes.
const NOTED_MAX: usize = 1 << 20;

/// How often the store is told of the inboxes that were read.
const EVERY: Duration = Duration::from_secs(60);

/// After this many rounds all inboxes with a session here are told: every four hours, where an inbox is kept for at
/// least a day.
const ALL_EVERY: u32 = 240;

/// How many inboxes the store is told of in one call.
const CHUNK: usize = 1000;

/// The inboxes that were read since the store was told last.
#[derive(Default)]
pub(crate) struct Touches(Mutex<FxHashSet<InboxKey>>);

impl Touches {
    /// Notes that an inbox is read. Does nothing if [`NOTED_MAX`] inboxes wait.
    pub(crate) fn note(&self, key: InboxKey) {
        let mut noted = self.0.lock();
        if noted.len() < NOTED_MAX {
            noted.insert(key);
        }
    }

    /// Tells the store of all inboxes that wait, some per call. An inbox waits until the store knows: if a call fails,
    /// or if the future is dropped, the others wait on. An inbox that is noted again while the store is being told of
    /// it counts as told; the moments between the two do not matter beside a lifetime of days.
    async fn tell(&self, feeds: &Feeds) -> Result<()> {
        let waiting: Vec<InboxKey> = self.0.lock().iter().copied().collect();
        for chunk in waiting.chunks(CHUNK) {
            bounded(feeds.touch(chunk)).await?;
            let mut noted = self.0.lock();
            chunk.iter().for_each(|key| _ = noted.remove(key));
        }
        Ok(())
    }
}

/// Tells the store for ever. May be dropped at any time; the store is told of the rest when this function is called
/// again.
pub(crate) async fn keep_touching(reads: &Reads, pool: &Pool) {
    let mut due = interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for round in (0..ALL_EVERY).cycle() {
        due.tick().await;
        touch(reads, pool, round == ALL_EVERY - 1).await;
    }
}

/// Tells the store of the inboxes that were noted and, if `all`, of every inbox with a session here.
async fn touch(reads: &Reads, pool: &Pool, all: bool) {
    if all {
        let named = reads.feeds.named();
        for Seat { who, slot } in pool.seated() {
            let listened = named.iter().map(|feed| feed.id).filter(|feed| slot.listens(*feed));
            std::iter::once(FeedId::MAIN).chain(listened).for_each(|feed| reads.touches.note(who.inbox(feed)));
        }
    }
    if let Err(error) = reads.touches.tell(&reads.feeds).await {
        tracing::warn!(%error, "inboxes that are read could not be touched; trying again");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use feedgate_common::feed::DEFAULT_BACKFILL;
    use feedgate_common::{Inboxes, UserNo};
    use feedgate_embedded::Embedded;

    use super::*;
    use crate::node::fixture::{self, LIKES, STORIES};

    const HOUR: i64 = 3600 * 1000;

    async fn kept(inboxes: &dyn Inboxes, keys: &[InboxKey], now: i64) -> Vec<bool> {
        while inboxes.discard_expired(now, 100).await.unwrap() > 0 {}
        inboxes.stands(keys).await.unwrap().iter().map(Option::is_some).collect()
    }

    #[tokio::test]
    async fn an_inbox_that_is_read_or_has_a_session_here_outlives_one_that_nobody_reads() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let now = Arc::new(AtomicI64::new(0));
        let clock = now.clone();
        let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL)
            .with_retention(Duration::from_secs(24 * 3600), Arc::new(move || clock.load(Ordering::Relaxed)))
            .with_named(fixture::likes_and_stories());
        let node = fixture::node(&stores, feeds);
        let names = ["seated0", "asks", "sleeps"].map(|name| name.parse().unwrap());
        let readers: Vec<UserNo> = stores.archive.intern(&names).await.unwrap();
        let in_feed = |reader, feed| InboxKey { reader, feed };
        let keys = [
            InboxKey::main(readers[0]),
            in_feed(readers[0], LIKES),
            InboxKey::main(readers[1]),
            InboxKey::main(readers[2]),
            in_feed(readers[0], STORIES),
        ];
        for key in &keys {
            node.reads.changes.head(*key).await.unwrap();
        }
        let seated = fixture::seated(&node, "seated", 1).await;
        seated[0].1.listen(&[LIKES]);

        now.store(20 * HOUR, Ordering::Relaxed);
        node.reads.touches.note(keys[2]);
        touch(&node.reads, &node.local.pool, true).await;
        assert_eq!(kept(&*stores.inboxes, &keys, 23 * HOUR).await, [true; 5]);
        assert_eq!(kept(&*stores.inboxes, &keys, 25 * HOUR).await, [true, true, true, false, false]);

        now.store(40 * HOUR, Ordering::Relaxed);
        touch(&node.reads, &node.local.pool, false).await;
        assert_eq!(kept(&*stores.inboxes, &keys, 45 * HOUR).await, [false; 5], "touched once, at 20");
    }

    #[tokio::test]
    async fn a_round_that_is_dropped_in_the_middle_loses_no_inbox() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let now = Arc::new(AtomicI64::new(0));
        let clock = now.clone();
        let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL)
            .with_retention(Duration::from_secs(24 * 3600), Arc::new(move || clock.load(Ordering::Relaxed)));
        let node = fixture::node(&stores, feeds);
        node.reads.changes.head(InboxKey::main(UserNo(1))).await.unwrap();
        now.store(20 * HOUR, Ordering::Relaxed);
        node.reads.touches.note(InboxKey::main(UserNo(1)));

        fixture::drop_in_the_middle(node.reads.touches.tell(&node.reads.feeds)).await;
        assert_eq!(node.reads.touches.0.lock().len(), 1, "what the store was not told of waits");
        node.reads.touches.tell(&node.reads.feeds).await.unwrap();
        assert!(node.reads.touches.0.lock().is_empty(), "what it was told of waits no more");
    }

    #[test]
    fn i18_what_finds_no_room_is_lost() {
        let touches = Touches::default();
        (0..=NOTED_MAX as u32).for_each(|reader| touches.note(InboxKey::main(UserNo(reader))));
        assert_eq!(touches.0.lock().len(), NOTED_MAX);
    }
}
