//! Counts the bytes that answers take in this node's memory, by HTTP and by WebSocket, until their peers have received
//! them.
//!
//! ```text
//!   reserve(the most it can take) ──▶ read, encode ──▶ shrink(to what it has taken) ──▶ written: dropped
//!       └── first of the user's share, then of the whole node's
//! ```
//!
//! Invariants:
//! - Bytes are counted before they are in memory, and until they are given back to the allocator.
//! - The answers to one user never hold more than one share, on however many connections; the rest is left for other
//!   users.
//! - A user for whom no bytes are counted takes no memory here.

use std::sync::{Arc, Weak};
use std::time::Duration;

use dashmap::DashMap;
use feedgate_common::feed::FETCH;
use feedgate_common::mentions::MENTIONS_MAX;
use feedgate_common::people::{AVATAR_MAX_BYTES, NAME_MAX};
use feedgate_common::{Body, StoreError, UserId};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

/// The answers to one user may hold this fraction (one sixteenth) of the node's bytes.
const SHARES: usize = 16;

/// The least bytes of a share. A share has room for the largest answer while that answer is put together: each route
/// whose answers may be that large asserts it.
pub(crate) const SHARE_MIN: usize = 5 * 1024 * 1024;

/// The least bytes that a node may be given.
pub(crate) const NODE_MIN: usize = SHARES * SHARE_MIN;

/// An answer by HTTP ends once its bodies hold this many bytes: a thousand bodies of the largest size would take 64
/// MiB.
pub(crate) const ANSWER_BYTES: usize = 1024 * 1024;

/// A reply by WebSocket ends once it holds this many bytes.
pub(crate) const REPLY_BYTES: usize = 256 * 1024;

/// How long an answer waits for room before it is refused.
const TIMEOUT: Duration = Duration::from_secs(5);

const NEVER_CLOSED: &str = "the semaphore is never closed";

/// The most bytes in JSON of all names that one item or comment mentions; a name has 64 bytes at most.
pub(crate) const NAMES_MAX: usize = MENTIONS_MAX * 67;

/// The most bytes that one item takes in JSON with its change around it: the body, names and numbers.
pub(crate) const ITEM_MAX: usize = Body::MAX_BYTES + NAMES_MAX + 4 * 1024;

// The WebSocket of iOS takes no message above 1 MiB.
const _: () = assert!(REPLY_BYTES + ITEM_MAX <= 1024 * 1024);

/// The most bytes that it takes to put together an answer of `items` items that ends once it holds `cut` bytes: the
/// bodies that are fetched at a time, and the answer.
pub(crate) const fn most(items: usize, cut: usize) -> usize {
    least(items, FETCH) * Body::MAX_BYTES + least(items.saturating_mul(ITEM_MAX), cut + ITEM_MAX)
}

/// `Ord::min`, which no constant can call.
const fn least(one: usize, other: usize) -> usize {
    if one < other { one } else { other }
}

/// The most bytes that one person takes on a page: the name of the user, the card, and what JSON puts around them.
pub(crate) const CARD_MAX: usize = 64 + 4 * NAME_MAX + AVATAR_MAX_BYTES + 64;

// A page of a hundred reposts is no larger than iOS takes, even if each repost and each original has an author with the
// longest card. Only the last repost, with its original, may exceed the cut.
const _: () = assert!(REPLY_BYTES + 2 * ITEM_MAX + 2 * 101 * CARD_MAX <= 1024 * 1024);

/// As [`most`], for an answer that also shows the originals of its items, and the authors of both. The originals are
/// fetched after the items, into the same room.
pub(crate) const fn most_with_people(items: usize, cut: usize) -> usize {
    most(items, cut) + ITEM_MAX + items.saturating_mul(2 * CARD_MAX)
}

/// An answer found no room in time. Nothing was read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// Other answers to this user hold the user's share.
    Share,
    /// The answers to all users hold what the node has.
    Node,
}

impl From<Full> for StoreError {
    fn from(_: Full) -> Self {
        Self::Overloaded { retry_after_ms: 1000 }
    }
}

/// The bytes that all answers of one node may hold, and what each user may hold of them.
pub(crate) struct Budget {
    node: Arc<Total>,
    share_bytes: usize,
    /// The share of all callers with the API key, together: half of the node's bytes.
    backends: Arc<Share>,
}

struct Total {
    room: Semaphore,
    /// The shares that are in use, by user.
    shares: DashMap<UserId, Weak<Share>>,
}

/// The bytes that the answers to one user, or to all backends together, may hold.
pub(crate) struct Share {
    node: Arc<Total>,
    /// The user of this share; `None` for the share of the backends.
    user: Option<UserId>,
    room: Semaphore,
}

/// Counted bytes. Dropping this gives them back to the share and to the node.
pub(crate) struct Reservation {
    share: Arc<Share>,
    bytes: usize,
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reservation({} bytes)", self.bytes)
    }
}

impl Budget {
    /// The budget of a node whose answers may hold `bytes` bytes, at least [`NODE_MIN`].
    pub(crate) fn new(bytes: usize) -> Self {
        let node = Arc::new(Total { room: Semaphore::new(bytes), shares: DashMap::new() });
        let backends = Share { node: node.clone(), user: None, room: Semaphore::new(bytes / 2) };
        Self { node, share_bytes: bytes / SHARES, backends: Arc::new(backends) }
    }

    /// The share of `user`. If nobody holds this share, it is made.
    pub(crate) fn of(&self, user: &UserId) -> Arc<Share> {
        let mut known = self.node.shares.entry(user.clone()).or_default();
        known.upgrade().unwrap_or_else(|| {
            let room = Semaphore::new(self.share_bytes);
            let share = Arc::new(Share { node: self.node.clone(), user: Some(user.clone()), room });
            *known = Arc::downgrade(&share);
            share
        })
    }

    /// The share of all callers with the API key.
    pub(crate) fn of_backends(&self) -> Arc<Share> {
        self.backends.clone()
    }
}

impl Share {
    /// Counts `bytes` bytes. Waits up to [`TIMEOUT`] for room, and counts nothing if there is none then, or if the
    /// future is dropped.
    pub(crate) async fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Full> {
        if let Some(held) = self.try_reserve(bytes) {
            return Ok(held);
        }
        let wanted = u32::try_from(bytes).expect("an answer has less than 4 GiB");
        let deadline = Instant::now() + TIMEOUT;
        let own = timeout_at(deadline, self.room.acquire_many(wanted)).await.map_err(|_| self.full())?;
        let all = timeout_at(deadline, self.node.room.acquire_many(wanted)).await.map_err(|_| Full::Node)?;
        own.expect(NEVER_CLOSED).forget();
        all.expect(NEVER_CLOSED).forget();
        Ok(Reservation { share: self.clone(), bytes })
    }

    fn full(&self) -> Full {
        if self.user.is_some() { Full::Share } else { Full::Node }
    }

    /// Counts `bytes` bytes at once; `None`, and nothing is counted, if there is no room now.
    pub(crate) fn try_reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let wanted = u32::try_from(bytes).ok()?;
        let own = self.room.try_acquire_many(wanted).ok()?;
        let all = self.node.room.try_acquire_many(wanted).ok()?;
        own.forget();
        all.forget();
        Some(Reservation { share: self.clone(), bytes })
    }
}

impl Reservation {
    /// The number of bytes that are counted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Gives back all but `bytes` bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let _rest = self.split(self.bytes.saturating_sub(bytes));
    }

    /// Takes `bytes` bytes out of this reservation, or all if there are fewer. Both parts stay counted.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        Self { share: self.share.clone(), bytes }
    }

    /// Adds the bytes of `other`, which must be of this share.
    pub(crate) fn merge(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.share, &other.share), "bytes of two users");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Makes the count exactly `bytes`. Gives false, and changes nothing, if there is no room for more.
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        match bytes.checked_sub(self.bytes) {
            Some(0) => true,
            Some(more) => self.share.try_reserve(more).map(|more| self.merge(more)).is_some(),
            None => {
                self.shrink(bytes);
                true
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.share.room.add_permits(self.bytes);
            self.share.node.room.add_permits(self.bytes);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(user) = &self.user {
            self.node.shares.remove_if(user, |_, known| known.strong_count() == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserId {
        name.parse().unwrap()
    }

    fn left(budget: &Budget) -> usize {
        budget.node.room.available_permits()
    }

    #[tokio::test(start_paused = true)]
    async fn i18_one_users_answers_hold_a_share_and_the_others_find_the_rest() {
        let budget = Budget::new(NODE_MIN);
        let (ann, bob) = (budget.of(&user("ann")), budget.of(&user("bob")));
        let share = NODE_MIN / SHARES;
        let mut held = ann.reserve(share).await.unwrap();
        assert_eq!(budget.of(&user("ann")).reserve(1).await.err(), Some(Full::Share), "on whatever connection");
        let others = bob.reserve(share).await.unwrap();
        held.shrink(10);
        assert_eq!(left(&budget), NODE_MIN - share - 10);
        assert!(ann.try_reserve(share - 10).is_some() && ann.try_reserve(share - 9).is_none());
        drop((held, others));
        assert_eq!(left(&budget), NODE_MIN);
    }

    #[tokio::test(start_paused = true)]
    async fn i18_all_answers_together_hold_what_the_node_has() {
        let budget = Budget::new(NODE_MIN);
        let users: Vec<_> = (0..SHARES).map(|n| budget.of(&user(&format!("u{n}")))).collect();
        let mut held = vec![];
        for share in &users {
            held.push(share.reserve(NODE_MIN / SHARES).await.unwrap());
        }
        let late = budget.of(&user("late"));
        assert_eq!(late.reserve(1).await.err(), Some(Full::Node));
        let (waits, gives) = (late.reserve(100), async { drop(held.pop()) });
        assert_eq!(tokio::join!(waits, gives).0.map(|held| held.bytes()).ok(), Some(100));
    }

    #[test]
    fn bytes_that_are_split_merged_and_resized_are_counted_once() {
        let budget = Budget::new(NODE_MIN);
        let mut held = budget.of_backends().try_reserve(100).unwrap();
        let part = held.split(30);
        assert_eq!((held.bytes(), part.bytes(), left(&budget)), (70, 30, NODE_MIN - 100));
        held.merge(part);
        assert!(held.resize(500) && held.resize(200) && !held.resize(NODE_MIN));
        assert_eq!((held.bytes(), left(&budget)), (200, NODE_MIN - 200));
        drop(held);
        assert_eq!(left(&budget), NODE_MIN);
    }

    #[test]
    fn a_user_of_whom_nothing_is_held_costs_nothing() {
        let budget = Budget::new(NODE_MIN);
        let held = budget.of(&user("ann")).try_reserve(1);
        assert_eq!(budget.node.shares.len(), 1);
        drop(held);
        assert_eq!(budget.node.shares.len(), 0);
    }

    #[test]
    fn a_share_has_room_for_the_largest_answer_while_it_is_put_together() {
        assert!(most(1000, ANSWER_BYTES) <= SHARE_MIN, "a thousand changes");
        let (bodies, full) = (FETCH * Body::MAX_BYTES, ANSWER_BYTES + ITEM_MAX);
        assert_eq!([most(1, ANSWER_BYTES), most(1000, ANSWER_BYTES)], [Body::MAX_BYTES + ITEM_MAX, bodies + full]);
        let people = 2000 * CARD_MAX;
        assert_eq!(most_with_people(1000, ANSWER_BYTES), bodies + full + ITEM_MAX + people);
    }
}
