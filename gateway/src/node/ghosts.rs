//! Brings the session pool and the nodes together again after a claim, a release or the ending of a session had no
//! answer.
//!
//! ```text
//!   a call without an answer ──note──▶ its user ──every few seconds─┬─▶ what does the pool say of this user?
//!                                                                   │     a session of this node that is not here
//!                                                                   │     ──▶ released
//!                                                                   └─▶ every node confirms its sessions of the user:
//!                                                                         one that was replaced or ended is closed
//! ```
//!
//! The answer that was lost would have named the session that the call replaced or ended; so the node of that session
//! was not told, and only the pool knows.
//!
//! A call that was given up may still be carried out, as long as it waits somewhere on its way. So the pool is asked
//! about a user until it has answered for [`SETTLED`]. The [keeper](crate::node::keeper) handles the opposite case,
//! sessions that are here and not in the pool. Bounded by [`NOTED_MAX`]: a session whose user finds no room stays in
//! the pool until this node ends.

use std::time::Duration;

use feedgate_common::UserNo;
use feedgate_common::error::Result;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::node::LocalSessions;
use crate::node::bounded::bounded;

/// The most users that are noted; each takes 24 bytes.
const NOTED_MAX: usize = 1 << 20;

/// How often the pool is asked about the noted users.
const EVERY: Duration = Duration::from_secs(5);

/// This long after the last call failed, no call that was given up is carried out any more.
const SETTLED: Duration = Duration::from_secs(30);

/// How long this node waits, after it asked all nodes to confirm sessions, before it releases those left in the pool.
const WHILE_OTHERS_LOOK: Duration = Duration::from_secs(1);

/// How many users the pool is asked about at a time.
const AT_ONCE: usize = 16;

/// The noted users, and when a call about each has failed last.
#[derive(Default)]
pub(crate) struct Ghosts(Mutex<FxHashMap<UserNo, Instant>>);

impl Ghosts {
    /// Notes that a claim, a release or a revocation of this user's session has no answer: it may have been carried
    /// out, or may still be. Also notes that a node could not be told to close a session of this user. A new user is
    /// not noted if there are [`NOTED_MAX`] already.
    pub(crate) fn note(&self, user: UserNo) {
        let mut noted = self.0.lock();
        if noted.len() < NOTED_MAX || noted.contains_key(&user) {
            noted.insert(user, Instant::now());
        }
    }

    /// Notes that the pool was asked at `now` and has answered. The user is forgotten if the last failure was
    /// [`SETTLED`] ago.
    fn looked_at(&self, user: UserNo, now: Instant) {
        let mut noted = self.0.lock();
        if noted.get(&user).is_some_and(|failed| now.duration_since(*failed) >= SETTLED) {
            noted.remove(&user);
        }
    }
}

/// Asks the pool about the noted users, and every node to confirm its sessions of these users, for ever. May be dropped
/// at any time.
pub(crate) async fn keep_sweeping(local: &LocalSessions) {
    let mut due = interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let users: Vec<UserNo> = local.ghosts.0.lock().keys().copied().collect();
        if users.is_empty() {
            continue;
        }
        local.doorbell.confirm(&users).await;
        // While the nodes look, the pool still has the sessions that replaced theirs, with the time at which each
        // began.
        sleep(WHILE_OTHERS_LOOK).await;
        stream::iter(users).for_each_concurrent(AT_ONCE, |user| look_at(local, user)).await;
    }
}

async fn look_at(local: &LocalSessions, user: UserNo) {
    let asked = Instant::now();
    match sweep(local, user).await {
        Ok(()) => local.ghosts.looked_at(user, asked),
        Err(error) => {
            tracing::debug!(%error, "sessions that may have been left in the pool could not be looked at");
            local.ghosts.note(user);
        }
    }
}

/// Releases every session of the user that the pool lists for this node and that is not here. Sessions that are here
/// may be in the middle of their claim, so they are left.
async fn sweep(local: &LocalSessions, user: UserNo) -> Result<()> {
    let LocalSessions { node, sessions, pool, .. } = local;
    let mut listed = bounded(sessions.list(user)).await?;
    listed.retain(|session| session.node == *node && pool.seat(user, session.connection).is_none());
    for ghost in listed {
        bounded(sessions.release(user, &ghost.device, ghost.token)).await?;
        tracing::debug!(?user, connection = ghost.connection, "a session that was left in the pool is released");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i18_who_finds_no_room_is_not_noted_and_who_is_noted_stays_until_the_pool_has_answered_long_enough() {
        let (ghosts, begun) = (Ghosts::default(), Instant::now());
        (0..=NOTED_MAX as u32).for_each(|user| ghosts.note(UserNo(user)));
        assert_eq!(ghosts.0.lock().len(), NOTED_MAX);
        ghosts.looked_at(UserNo(0), begun + SETTLED / 2);
        assert!(ghosts.0.lock().contains_key(&UserNo(0)));
        ghosts.looked_at(UserNo(0), Instant::now() + SETTLED);
        assert!(!ghosts.0.lock().contains_key(&UserNo(0)));
    }
}
