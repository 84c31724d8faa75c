//! What devices have acknowledged, on its way to the store.
//!
//! ```text
//!   ack, recover (items), history ──note──▶ one entry per connection ──every save_interval──▶ Sessions::save
//!                                                  └── goodbye: saved at once, before the release
//! ```
//!
//! Stored late, never early: a crash costs a device at most repeated changes. Bounded by the number
//! of connections: a later position of a connection takes the place of its earlier one.

use std::time::Duration;

use feedgate_common::error::Result;
use feedgate_common::sessions::SavePosition;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::bounded::bounded;
use crate::pool::Seat;
use crate::{Gateway, clock, keeper};

/// Positions saved in one call.
const CHUNK: usize = 1000;

/// See the module.
#[derive(Default)]
pub(crate) struct Positions(Mutex<FxHashMap<u64, SavePosition>>);

impl Positions {
    /// To be saved soon. Positions of one connection come in rising order.
    pub(crate) fn note(&self, connection: u64, position: SavePosition) {
        self.0.lock().insert(connection, position);
    }

    /// What waits for this connection, taken out.
    pub(crate) fn take(&self, connection: u64) -> Option<SavePosition> {
        self.0.lock().remove(&connection)
    }

    /// Saves all that waits. What could not be saved, or was refused by a pool that then did not say why, waits on,
    /// unless something later has come.
    pub(crate) async fn save(&self, gateway: &Gateway) -> Result<()> {
        let waiting: Vec<(u64, SavePosition)> = self.0.lock().drain().collect();
        for (n, chunk) in waiting.chunks(CHUNK).enumerate() {
            let positions = chunk.iter().map(|(_, position)| position.clone()).collect();
            let done = match bounded(gateway.parts.sessions.save(positions, clock::now())).await {
                Ok(saved) => look_again(gateway, chunk, &saved).await,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                let mut noted = self.0.lock();
                for (connection, position) in &waiting[n * CHUNK..] {
                    noted.entry(*connection).or_insert_with(|| position.clone());
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

/// A position that was not stored lies behind the stored one, or its session has been replaced: then that is closed.
async fn look_again(gateway: &Gateway, chunk: &[(u64, SavePosition)], saved: &[bool]) -> Result<()> {
    let refused = chunk.iter().zip(saved).filter(|(_, saved)| !**saved);
    let seats: Vec<Seat> =
        refused.filter_map(|((connection, position), _)| gateway.pool.seat(position.user, *connection)).collect();
    keeper::confirm_some(gateway, &seats).await
}

/// Saves forever. Cancel it at any time; [`Positions::save`] then saves the rest.
pub(crate) async fn keep_saving(gateway: &Gateway) {
    let mut due = tokio::time::interval(Duration::from_secs(gateway.parts.settings.save_interval_secs.into()));
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        if let Err(error) = gateway.positions.save(gateway).await {
            tracing::warn!(%error, "positions could not be saved; trying again");
        }
    }
}
