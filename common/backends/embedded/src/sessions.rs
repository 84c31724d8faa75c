//! The session pool of a single process: claims in memory, positions on the embedded store.
//!
//! ```text
//!   claim, release, list ──▶ user → its live sessions              (memory, gone with the process)
//!   save ──▶ an op of the writer: newest token? forward? ──▶ (user, device) → a position per feed, seen
//! ```
//!
//! Invariants: a token is compared under the lock that guards the claim, and a position on the one thread that
//! writes positions, so no older session and no older position can slip between. Tokens are (epoch, counter) with
//! an epoch that the caller took from the Archive for this opening. Positions are durable against a crash of the
//! process; after a loss of power a device may stand a little earlier, never later.

mod live;
mod stored;

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::error::Result;
use feedgate_common::sessions::{
    Claim, Claimed, Confirmed, Held, Holders, Renewed, SavePosition, SessionInfo, Sessions, Token,
};
use feedgate_common::{DeviceId, Epoch, FeedId, Millis, Position, UserNo};

use crate::database::Database;
use crate::request::Durability;
use crate::view::Tx;
use live::Pool;
use stored::Sweep;

/// The sessions of one process and the positions of its devices.
pub struct EmbeddedSessions {
    database: Arc<Database>,
    pool: Arc<Pool>,
    sweep: Arc<Sweep>,
}

impl EmbeddedSessions {
    /// Opens the pool, without sessions, over the positions in `database`. `epoch` must be greater than that of every
    /// opening before.
    pub fn open(database: Arc<Database>, epoch: Epoch) -> Self {
        Self { database, pool: Arc::new(Pool::new(epoch)), sweep: Arc::default() }
    }
}

#[async_trait]
impl Sessions for EmbeddedSessions {
    async fn claim(&self, claim: Claim) -> Result<Claimed> {
        Ok(self.pool.claim(claim))
    }

    async fn release(&self, user: UserNo, device: &DeviceId, token: Token) -> Result<()> {
        self.pool.release(user, device, token);
        Ok(())
    }

    async fn revoke(&self, user: UserNo, device: &DeviceId) -> Result<Option<(String, u64)>> {
        Ok(self.pool.revoke(user, device))
    }

    /// Always kept: the pool lives in the process of its only node.
    async fn renew(&self, _node: &str) -> Result<Renewed> {
        Ok(Renewed::Kept)
    }

    async fn retire(&self, node: &str) -> Result<()> {
        self.pool.retire(node);
        Ok(())
    }

    async fn confirm(&self, held: Vec<Held>) -> Result<Vec<Confirmed>> {
        Ok(held.iter().map(|held| self.pool.confirm(held)).collect())
    }

    async fn nodes(&self, users: &[UserNo]) -> Result<Vec<Holders>> {
        Ok(users.iter().map(|user| Holders::all(self.pool.nodes(*user))).collect())
    }

    async fn list(&self, user: UserNo) -> Result<Vec<SessionInfo>> {
        let mut sessions = self.pool.list(user);
        let view = self.database.view()?;
        for session in sessions.iter_mut().filter(|session| session.position.is_none()) {
            let row = stored::get(&*view, user, &session.device)?;
            session.position = row.and_then(|row| row.position(FeedId::MAIN));
        }
        Ok(sessions)
    }

    async fn save(&self, positions: Vec<SavePosition>, now: Millis) -> Result<Vec<bool>> {
        let (pool, sweep) = (self.pool.clone(), self.sweep.clone());
        let save = move |tx: &mut Tx<'_>| {
            sweep.run(tx, now)?;
            positions.iter().map(|save| pool.save(save, || stored::put(tx, save, now))).collect()
        };
        self.database.write(Durability::Buffered, save).await
    }

    async fn position(&self, user: UserNo, device: &DeviceId, feed: FeedId, now: Millis) -> Result<Option<Position>> {
        let row = stored::get(&*self.database.view()?, user, device)?;
        Ok(row.filter(|row| row.is_fresh(now)).and_then(|row| row.position(feed)))
    }

    async fn ping(&self) -> Result<()> {
        self.database.ping()
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::sessions::DEVICE_TTL_MS;

    use super::*;

    const NOW: Millis = 1_764_000_000_000;

    #[tokio::test]
    async fn i18_positions_of_users_who_never_return_are_removed_a_stretch_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::open(dir.path()).unwrap();
        let sessions = EmbeddedSessions::open(database.clone(), Epoch(1));
        let device: DeviceId = "phone".parse().unwrap();
        let save = async |users: std::ops::RangeInclusive<u32>, offset: u64, now: Millis| {
            let position = Position { epoch: Epoch(1), offset };
            let mut positions = vec![];
            for user in users.map(UserNo) {
                let (device, node) = (device.clone(), "n".to_owned());
                let claim = Claim { user, device: device.clone(), durable: true, node, connection: 1, since: now };
                let token = sessions.claim(claim).await.unwrap().token;
                positions.push(SavePosition { user, device, token, feed: FeedId::MAIN, position });
            }
            assert!(sessions.save(positions, now).await.unwrap().into_iter().all(|saved| saved));
        };
        let stored = async || {
            let view = database.view().unwrap();
            (1..=601).filter(|user| stored::get(&*view, UserNo(*user), &device).unwrap().is_some()).count()
        };
        save(1..=600, 9, NOW).await;
        let later = NOW + DEVICE_TTL_MS;
        save(601..=601, 1, later).await;
        assert_eq!(stored().await, 601 - Sweep::ROWS);
        save(600..=601, 1, later + 1).await;
        assert_eq!(stored().await, 601 - Sweep::ROWS, "a pause lies between two stretches; what ran out is replaced");
        save(601..=601, 1, later + Sweep::PAUSE_MS).await;
        save(601..=601, 1, later + 2 * Sweep::PAUSE_MS).await;
        assert_eq!(stored().await, 2, "those who are there stay");
    }
}
