//! Keeps the positions that devices have acknowledged until they are stored.
//!
//! ```text
//!   ack, recover (items), history ──note──▶ one entry per connection and feed ──every save_interval──▶ Sessions::save
//!                                                  └── goodbye: saved at once, before the release
//! ```
//!
//! A position is stored late, never early: a crash costs a device at most some repeated changes. Bounded by the number
//! of connections and feeds: a later position of a connection replaces its earlier one in the same feed.

use std::time::Duration;

use feedgate_common::FeedId;
use feedgate_common::error::Result;
use feedgate_common::sessions::SavePosition;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::Node;
use super::keeper;
use crate::clock;
use crate::node::bounded::bounded;
use crate::node::pool::Seat;

/// How many positions are saved in one call.
const CHUNK: usize = 1000;

/// The positions that wait to be stored, one per connection and feed.
#[derive(Default)]
pub(crate) struct Positions(Mutex<FxHashMap<Key, SavePosition>>);

/// The number of a connection, and a feed.
type Key = (u64, FeedId);

impl Positions {
    /// Keeps a position until the next save. Positions of one connection in one feed must come in rising order.
    pub(crate) fn note(&self, connection: u64, position: SavePosition) {
        self.0.lock().insert((connection, position.feed), position);
    }

    /// Drops the position that waits for this connection in this feed, since it is stored in another way.
    pub(crate) fn forget(&self, connection: u64, feed: FeedId) {
        self.0.lock().remove(&(connection, feed));
    }

    /// Saves all that waits, some per call. If a call fails, its positions and those after it wait on, unless a later
    /// one has come for the same key. If the future is dropped, positions that it has not stored yet may be lost.
    pub(crate) async fn save(&self, node: &Node) -> Result<()> {
        let waiting: Vec<(Key, SavePosition)> = self.0.lock().drain().collect();
        for (n, chunk) in waiting.chunks(CHUNK).enumerate() {
            let positions = chunk.iter().map(|(_, position)| position.clone()).collect();
            let done = match bounded(node.sessions.save(positions, clock::now())).await {
                Ok(saved) => look_again(node, chunk, &saved).await,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                let mut noted = self.0.lock();
                for (key, position) in &waiting[n * CHUNK..] {
                    noted.entry(*key).or_insert_with(|| position.clone());
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Confirms the sessions whose position was refused: either a later position is stored, or the session was replaced,
/// which is closed then.
async fn look_again(node: &Node, chunk: &[(Key, SavePosition)], saved: &[bool]) -> Result<()> {
    let refused = chunk.iter().zip(saved).filter(|(_, saved)| !**saved);
    let seats: Vec<Seat> =
        refused.filter_map(|(((connection, _), position), _)| node.pool.seat(position.user, *connection)).collect();
    keeper::confirm_some(node, &seats).await
}

/// Saves for ever. It may be dropped at any time, and loses at most what it is saving then; [`Positions::save`] saves
/// the rest.
pub(crate) async fn keep_saving(node: &Node) {
    let mut due = tokio::time::interval(Duration::from_secs(node.settings.save_interval_secs.into()));
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        if let Err(error) = node.positions.save(node).await {
            tracing::warn!(%error, "positions could not be saved; trying again");
        }
    }
}
