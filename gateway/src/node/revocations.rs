//! Knows which tokens are revoked, and ends the sessions that have such tokens.
//!
//! ```text
//!   a token is shown ──▶ known? ──no──▶ the archive: before when are the user's tokens refused?
//!   a user is revoked ──▶ confirm, to every node ──┐
//!   every few seconds ─────────────────────────────┴──▶ the list beyond the last number ──▶ known; sessions ended
//! ```
//!
//! Every node follows the list of the archive. So a lost message, or the crash of the node that was asked to revoke,
//! delays a revocation on the other nodes by seconds, and loses no revocation.
//!
//! Invariants:
//! - What is known of a user is as new as `upto`. An answer of the archive that was read before the list went on is not
//!   kept.
//! - A session has its seat before its token is checked, and the list becomes known before seats are looked through. So
//!   a revocation finds the seat, or the check finds the revocation.
//! - Bounded: at most [`KNOWN_MAX`] users are known; the archive is asked about others.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{self, Revocation};
use feedgate_common::error::Result;
use feedgate_common::{Millis, UserNo};
use parking_lot::Mutex;
use quick_cache::unsync::Cache;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};

use crate::node::bounded::bounded;
use crate::node::pool::Pool;

/// The most users for whom the time is known before which their tokens are refused; each takes about 50 bytes.
const KNOWN_MAX: usize = 100_000;

/// How often the list is read, in case every message was lost.
const EVERY: Duration = Duration::from_secs(5);

/// How much of the list is read in one call.
const CHUNK: usize = 500;

/// What this node knows of revocations.
pub(crate) struct Revocations {
    archive: Arc<dyn archive::Revocations>,
    state: Mutex<State>,
    heard: Notify,
}

struct State {
    /// The list is known up to this number; `None` until it is known where to begin.
    upto: Option<u64>,
    /// Before when the tokens of a user are refused, for users who have shown a token lately.
    known: Cache<UserNo, Option<Millis>>,
}

impl Revocations {
    pub(crate) fn new(archive: Arc<dyn archive::Revocations>) -> Self {
        let state = State { upto: None, known: Cache::new(KNOWN_MAX) };
        Self { archive, state: Mutex::new(state), heard: Notify::new() }
    }

    /// Says that the list may have grown. Never blocks.
    pub(crate) fn hear(&self) {
        self.heard.notify_one();
    }

    /// The time before which the tokens of `user` are refused, in Unix ms. Fails if that is not known and the archive
    /// does not answer. Cancel safe.
    pub(crate) async fn before(&self, user: UserNo) -> Result<Option<Millis>> {
        if let Some(known) = self.state.lock().known.get(&user) {
            return Ok(*known);
        }
        let upto = self.upto().await?;
        let before = bounded(self.archive.revoked(user)).await?;
        let mut state = self.state.lock();
        if state.upto == Some(upto) {
            state.known.insert(user, before);
        }
        Ok(before)
    }

    /// Up to which number the list is known. The first call begins at the end of the list.
    async fn upto(&self) -> Result<u64> {
        let known = self.state.lock().upto;
        if let Some(upto) = known {
            return Ok(upto);
        }
        let last = bounded(self.archive.last_revocation()).await?;
        Ok(*self.state.lock().upto.get_or_insert(last))
    }

    /// Takes in the next part of the list.
    fn take_in(&self, list: &[Revocation]) {
        let mut state = self.state.lock();
        for one in list {
            if state.known.peek(&one.user).is_some() {
                state.known.insert(one.user, Some(one.before));
            }
            state.upto = state.upto.max(Some(one.number));
        }
    }

    /// Follows the list for ever. It may be dropped at any time.
    pub(crate) async fn keep_following(&self, pool: &Pool) {
        let mut due = interval(EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.heard.notified() => {}
                _ = due.tick() => {}
            }
            if let Err(error) = self.follow(pool).await {
                tracing::warn!(%error, "it could not be asked whose tokens were revoked; trying again");
            }
        }
    }

    /// Reads the list to its end, and ends the sessions of this node whose tokens it revokes. Cancel safe.
    pub(crate) async fn follow(&self, pool: &Pool) -> Result<()> {
        let mut after = self.upto().await?;
        loop {
            let list = bounded(self.archive.revocations(after, CHUNK)).await?;
            self.take_in(&list);
            list.iter().for_each(|one| pool.revoke(one.user, one.before));
            match list.last() {
                Some(last) if list.len() == CHUNK => after = last.number,
                _ => return Ok(()),
            }
        }
    }
}
