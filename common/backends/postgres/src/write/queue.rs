//! Calls that wait together become one transaction, as one of the groups of [`crate::groups`].
//!
//! ```text
//!   call ─▶ queue ─▶ a group is free ─▶ all that waits, up to GROUP_MAX ─▶ one transaction ─▶ answers
//! ```
//!
//! A publish costs a few round trips and a sync, and its author's row is locked meanwhile. A group pays that once, so a
//! node gets faster the more calls wait, and its own calls do not wait for each other at the row of a busy author.
//!
//! Invariants:
//! - A call is in one transaction as a whole, and calls of a group are carried out in the order in which they came.
//! - A call that meets damaged rows fails alone: its group is rolled back, and each call is tried by itself. Any other
//!   error is of the server, and fails all calls of the group.
//! - Waiting calls are bounded in number and in bytes. Beyond that a call is refused, and nothing of it is written.

use std::sync::Arc;

use feedgate_common::Millis;
use feedgate_common::accept::Ask;
use feedgate_common::archive::{COMMIT_READERS_MAX, Write};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::notify::Rules;
use parking_lot::RwLock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::names::spoken_of;
use super::{Answers, Settings, Sweep};
use crate::groups::{self, Groups, UpTo, Weight};
use crate::pool::{self, Pool};
use crate::users::Users;

/// How many groups are under way at once: while one group waits for the disk, another can work.
const GROUPS: usize = 4;

/// A group takes no further call once its operations weigh this much together. An operation weighs as much as it names
/// users, since each of them may get a record in the commit.
const GROUP_MAX: usize = COMMIT_READERS_MAX;

/// What an operation weighs at least: a group has about a thousand operations at most.
const OPERATION: usize = GROUP_MAX / 1000;

/// How many calls may wait for a group.
const CALLS_MAX: usize = 4096;

/// How many KiB all calls together may hold that wait or are under way. A larger call counts as this many KiB, so it
/// fits only alone.
const ROOM_KIB: usize = 32 * 1024;

/// After how many ms a caller whose call was refused is told to try again.
const RETRY_AFTER_MS: u32 = 100;

/// The operations of one call of `write`.
struct Asked {
    asks: Vec<Ask>,
    _room: OwnedSemaphorePermit,
}

type Call = groups::Call<Asked, Answers>;

impl Weight for Asked {
    fn weight(&self) -> usize {
        self.asks.iter().map(|ask| spoken_of(ask).len().max(OPERATION)).sum()
    }
}

/// The calls that become one transaction.
type Group = UpTo<GROUP_MAX, Asked, Answers>;

/// What the tasks need to carry out a group.
struct Worker {
    pool: Arc<Pool>,
    users: Arc<Users>,
    settings: Settings,
    rules: Arc<RwLock<Arc<Rules>>>,
    sweep: Sweep,
}

/// The calls of `write` of this process, and the tasks that carry them out.
pub(crate) struct Queue {
    groups: Groups<Asked, Answers>,
    room: Arc<Semaphore>,
}

impl Queue {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(
        pool: Arc<Pool>,
        users: Arc<Users>,
        settings: Settings,
        rules: Arc<RwLock<Arc<Rules>>>,
    ) -> Self {
        let worker = Arc::new(Worker { pool, users, settings, rules, sweep: Sweep::default() });
        let groups = Groups::start(GROUPS, CALLS_MAX, move |group: Group| {
            let worker = worker.clone();
            async move { worker.carry_out(group.calls).await }
        });
        Self { groups, room: Arc::new(Semaphore::new(ROOM_KIB)) }
    }

    /// Carries out one call, as [`Writes::write`](feedgate_common::archive::Writes::write) says.
    pub(crate) async fn write(&self, writes: Vec<Write>, now: Millis) -> Result<Answers> {
        let overloaded = || StoreError::Overloaded { retry_after_ms: RETRY_AFTER_MS };
        let asks: Vec<Ask> = writes.into_iter().map(|write| Ask::new(write, now)).collect();
        let kib = asks.iter().map(Ask::bytes).sum::<usize>().div_ceil(1024).clamp(1, ROOM_KIB);
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let room = self.room.clone().try_acquire_many_owned(kib).map_err(|_| overloaded())?;
        if self.groups.is_full() {
            return Err(overloaded());
        }
        // The call waits to the end, so that its caller, which relays events, knows what was committed. If there is no
        // answer, the call was not begun, or the runtime is ending.
        self.groups.ask_to_the_end(Asked { asks, _room: room }).await.unwrap_or_else(|| Err(pool::no_reply()))
    }
}

impl Worker {
    async fn carry_out(&self, mut calls: Vec<Call>) {
        let Some(now) = calls.iter().flat_map(|call| &call.asked.asks).map(Ask::now).max() else {
            return answer_all(calls, |_| Ok(vec![]));
        };
        let sizes: Vec<usize> = calls.iter().map(|call| call.asked.asks.len()).collect();
        let asks: Vec<Ask> = calls.iter_mut().flat_map(|call| std::mem::take(&mut call.asked.asks)).collect();
        match self.write(&asks).await {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                answer_all(calls, |at| Ok(answers.by_ref().take(sizes[at]).collect()));
            }
            Err(StoreError::Corrupt(_)) if calls.len() > 1 => {
                let mut rest = &asks[..];
                for (call, size) in calls.into_iter().zip(sizes) {
                    let (own, others) = rest.split_at(size);
                    rest = others;
                    call.answer(self.write(own).await);
                }
            }
            Err(error) => answer_all(calls, |_| Err(error.clone())),
        }
        self.sweep.run(&self.pool, now).await;
    }

    async fn write(&self, asks: &[Ask]) -> Result<Answers> {
        let rules = self.rules.read().clone();
        let writing = super::write(&self.pool, &self.users, (self.settings, &rules), asks);
        timeout(pool::CALL, writing).await.unwrap_or_else(|_| Err(pool::no_reply()))
    }
}

fn answer_all(calls: Vec<Call>, mut answer: impl FnMut(usize) -> Result<Answers>) {
    for (at, call) in calls.into_iter().enumerate() {
        call.answer(answer(at));
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::Body;
    use feedgate_common::archive::{Audience, Publish};
    use futures_util::future::join_all;

    use super::*;

    /// How many calls each group has, if twenty calls of one operation wait together.
    async fn groups_of(audience: Audience) -> Vec<usize> {
        let (told, room) = (Arc::new(parking_lot::Mutex::new(vec![])), Arc::new(Semaphore::new(20)));
        let kept = told.clone();
        let groups = Groups::start(1, 20, move |group: Group| {
            kept.lock().push(group.calls.len());
            async move { answer_all(group.calls, |_| Ok(vec![])) }
        });
        let body = Body::parse("1".to_owned()).unwrap();
        let write = Write::Publish(Publish { audience, ..Publish::new("ann".parse().unwrap(), body) });
        let call = || {
            let room = room.clone().try_acquire_owned().unwrap();
            groups.ask_to_the_end(Asked { asks: vec![Ask::new(write.clone(), 1)], _room: room })
        };
        let answers = join_all((0..20).map(|_| call())).await;
        assert!(answers.iter().all(|answer| matches!(answer, Some(Ok(_)))));
        told.lock().clone()
    }

    #[tokio::test]
    async fn a_group_names_about_as_many_readers_as_one_commit_may_address() {
        let readers = (0..1000).map(|n| format!("reader{n}").parse().unwrap()).collect();
        assert_eq!(groups_of(Audience::Users(readers)).await, [10, 10]);
        assert_eq!(groups_of(Audience::Followers).await, [20]);
    }
}
