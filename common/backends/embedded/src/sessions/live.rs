//! The sessions that are connected: user → device → the one session that claimed it last.
//!
//! Invariants: a device has at most one session (I17). A caller with another token than that session's changes nothing.
//! No lock is held across an await.

use std::sync::atomic::{AtomicU64, Ordering};

use compact_str::CompactString;
use dashmap::{DashMap, Entry};
use feedgate_common::error::Result;
use feedgate_common::sessions::{Claim, Claimed, Confirmed, Held, SavePosition, SessionInfo, Token};
use feedgate_common::{DeviceId, Epoch, FeedId, Millis, Position, UserNo};

/// A live session. It takes about 120 bytes with the names of its device and node.
struct Live {
    device: DeviceId,
    token: Token,
    node: CompactString,
    connection: u64,
    since: Millis,
    kept: Kept,
}

/// Where the positions of a device are kept.
enum Kept {
    /// On disk, so they outlive the session.
    Stored,
    /// In memory, for the main feed alone and as long as the session lasts: the device has no id of its own.
    Here(Option<Position>),
}

/// Every live session. An entry per user who has one, its sessions sorted by device.
pub(super) struct Pool {
    users: DashMap<UserNo, Vec<Live>>,
    epoch: Epoch,
    claims: AtomicU64,
}

impl Pool {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { users: DashMap::new(), epoch, claims: AtomicU64::new(0) }
    }

    /// Makes a session of this claim and ends the earlier session of the device. The token is drawn while the user's
    /// sessions are locked, so the newest claim has the greatest token.
    pub(super) fn claim(&self, claim: Claim) -> Claimed {
        let mut sessions = self.users.entry(claim.user).or_default();
        let token = Token { epoch: self.epoch, counter: self.claims.fetch_add(1, Ordering::Relaxed) + 1 };
        let kept = if claim.durable { Kept::Stored } else { Kept::Here(None) };
        let live = Live {
            token,
            node: claim.node.into(),
            connection: claim.connection,
            since: claim.since,
            kept,
            device: claim.device,
        };
        let replaced = match sessions.binary_search_by(|other| other.device.cmp(&live.device)) {
            Ok(at) => Some(std::mem::replace(&mut sessions[at], live)),
            Err(at) => {
                // Room for one more, not for four: nearly every user has one device, and spare room would cost more
                // than the session.
                sessions.reserve_exact(1);
                sessions.insert(at, live);
                None
            }
        };
        Claimed { token, replaced: replaced.map(|old| (old.node.into(), old.connection)) }
    }

    pub(super) fn release(&self, user: UserNo, device: &DeviceId, token: Token) {
        self.take(user, |live| live.device == *device && live.token == token);
    }

    /// Ends the session of a device. Answers the node and the connection of the session; `None` if there was no
    /// session.
    pub(super) fn revoke(&self, user: UserNo, device: &DeviceId) -> Option<(String, u64)> {
        self.take(user, |live| live.device == *device).map(|live| (live.node.into(), live.connection))
    }

    fn take(&self, user: UserNo, is_it: impl Fn(&Live) -> bool) -> Option<Live> {
        let Entry::Occupied(mut sessions) = self.users.entry(user) else { return None };
        let at = sessions.get().iter().position(is_it)?;
        let taken = sessions.get_mut().remove(at);
        if sessions.get().is_empty() {
            sessions.remove();
        }
        Some(taken)
    }

    /// Ends every session of the node.
    pub(super) fn retire(&self, node: &str) {
        self.users.retain(|_, sessions| {
            sessions.retain(|live| *live.node != *node);
            !sessions.is_empty()
        });
    }

    /// Whether a session is still its device's.
    pub(super) fn confirm(&self, held: &Held) -> Confirmed {
        let sessions = self.users.get(&held.claim.user);
        let now = sessions.as_ref().and_then(|all| all.iter().find(|live| live.device == held.claim.device));
        match now {
            Some(now) if now.token == held.token => Confirmed::Kept,
            Some(now) if now.since < held.claim.since => Confirmed::Displaced,
            _ => Confirmed::Ended,
        }
    }

    /// The nodes that hold a session of the user, each once.
    pub(super) fn nodes(&self, user: UserNo) -> Vec<String> {
        let mut nodes: Vec<String> = self
            .users
            .get(&user)
            .iter()
            .flat_map(|sessions| sessions.iter())
            .map(|live| live.node.to_string())
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// The user's sessions, sorted by device. Only devices whose position is kept in memory have one here.
    pub(super) fn list(&self, user: UserNo) -> Vec<SessionInfo> {
        let sessions = self.users.get(&user);
        sessions.iter().flat_map(|sessions| sessions.iter()).map(Live::info).collect()
    }

    /// Moves a device's position forward, if `save` has the token of the device's session. `store` moves a position
    /// that is kept on disk. Answers whether the position moved.
    pub(super) fn save(&self, save: &SavePosition, store: impl FnOnce() -> Result<bool>) -> Result<bool> {
        let Some(mut sessions) = self.users.get_mut(&save.user) else { return Ok(false) };
        let Some(live) = sessions.iter_mut().find(|live| live.device == save.device && live.token == save.token) else {
            return Ok(false);
        };
        match &mut live.kept {
            Kept::Stored => store(),
            Kept::Here(_) if save.feed != FeedId::MAIN => Ok(true),
            Kept::Here(position) => {
                // An equal position counts too: it shows that the device was there again.
                let moves = position.is_none_or(|before| before <= save.position);
                if moves {
                    *position = Some(save.position);
                }
                Ok(moves)
            }
        }
    }
}

impl Live {
    fn info(&self) -> SessionInfo {
        let position = match self.kept {
            Kept::Stored => None,
            Kept::Here(position) => position,
        };
        SessionInfo {
            device: self.device.clone(),
            node: self.node.to_string(),
            connection: self.connection,
            token: self.token,
            position,
            since: self.since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i18_a_user_without_sessions_takes_no_memory() {
        let pool = Pool::new(Epoch(1));
        let device: DeviceId = "a".parse().unwrap();
        let (user, node) = (UserNo(1), "n".to_owned());
        let claim = Claim { user, device: device.clone(), durable: true, node, connection: 1, since: 0 };
        let token = pool.claim(claim).token;
        assert_eq!(pool.users.len(), 1);
        pool.release(user, &device, token);
        assert_eq!(pool.users.len(), 0);
    }
}
