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

use super::keeper;
use crate::clock;
use crate::node::LocalSessions;
use crate::node::bounded::bounded;
use crate::node::pool::Seat;
use crate::settings::LiveSettings;

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

    /// Drops the positions that are stored. A newer position that came for the same key meanwhile waits on.
    fn stored(&self, chunk: &[(Key, SavePosition)]) {
        let mut noted = self.0.lock();
        for (key, stored) in chunk {
            if noted.get(key) == Some(stored) {
                noted.remove(key);
            }
        }
    }
}

/// Saves all positions that wait, at most [`CHUNK`] per call. A position waits until the pool has answered: if a
/// call fails, or if the future is dropped, the positions without an answer wait on. One that is refused waits no more.
pub(crate) async fn save(local: &LocalSessions) -> Result<()> {
    let waiting: Vec<(Key, SavePosition)> =
        local.positions.0.lock().iter().map(|(key, noted)| (*key, noted.clone())).collect();
    for chunk in waiting.chunks(CHUNK) {
        let positions = chunk.iter().map(|(_, position)| position.clone()).collect();
        let saved = bounded(local.sessions.save(positions, clock::now())).await?;
        look_again(local, chunk, &saved).await?;
        local.positions.stored(chunk);
    }
    Ok(())
}

/// Confirms the sessions whose position was refused: either a later position is stored, or the session was replaced; a
/// replaced session is closed then.
async fn look_again(local: &LocalSessions, chunk: &[(Key, SavePosition)], saved: &[bool]) -> Result<()> {
    let refused = chunk.iter().zip(saved).filter(|(_, saved)| !**saved);
    let seats: Vec<Seat> =
        refused.filter_map(|(((connection, _), position), _)| local.pool.seat(position.user, *connection)).collect();
    keeper::confirm_some(local, &seats).await
}

/// Saves for ever. May be dropped at any time and loses nothing: the next [`save`] stores the positions that wait.
pub(crate) async fn keep_saving(local: &LocalSessions, settings: &LiveSettings) {
    let mut due = tokio::time::interval(Duration::from_secs(settings.now().save_interval_secs.into()));
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        if let Err(error) = save(local).await {
            tracing::warn!(%error, "positions could not be saved; trying again");
        }
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds};
    use feedgate_common::sessions::Claim;
    use feedgate_common::{Epoch, Position, UserNo};
    use feedgate_embedded::Embedded;

    use super::*;
    use crate::node::fixture;

    #[tokio::test]
    async fn i12_a_save_that_is_dropped_in_the_middle_loses_no_position() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL);
        let local = &fixture::node(&stores, feeds).local;
        let (user, device) = (UserNo(1), "phone".parse::<feedgate_common::DeviceId>().unwrap());
        let claim = Claim { user, device: device.clone(), durable: true, node: "node".into(), connection: 1, since: 0 };
        let token = stores.sessions.claim(claim).await.unwrap().token;
        let position = Position { epoch: Epoch(1), offset: 7 };
        let noted = SavePosition { user, device: device.clone(), token, feed: FeedId::MAIN, position };
        local.positions.note(1, noted);

        fixture::drop_in_the_middle(save(local)).await;
        assert_eq!(local.positions.0.lock().len(), 1, "what is not stored waits");
        save(local).await.unwrap();
        let stored = stores.sessions.position(user, &device, FeedId::MAIN, clock::now()).await.unwrap();
        assert_eq!(stored, Some(position));
        assert!(local.positions.0.lock().is_empty(), "what is stored waits no more");
    }

    #[test]
    fn i12_a_position_that_comes_while_an_earlier_one_is_stored_waits_on() {
        let of = |offset| SavePosition {
            user: UserNo(1),
            device: "phone".parse().unwrap(),
            token: feedgate_common::sessions::Token { epoch: Epoch(1), counter: 1 },
            feed: FeedId::MAIN,
            position: Position { epoch: Epoch(1), offset },
        };
        let positions = Positions::default();
        positions.note(1, of(8));
        positions.stored(&[((1, FeedId::MAIN), of(7)), ((2, FeedId::MAIN), of(7))]);
        assert_eq!(positions.0.lock().values().map(|noted| noted.position.offset).collect::<Vec<_>>(), [8]);
    }
}
