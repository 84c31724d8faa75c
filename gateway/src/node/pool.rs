//! The sessions and sockets that are on this node.
//!
//! ```text
//!   user ──1:n── seat (Identity, Slot) ──1:1── connection task
//!                         ▲
//!        wake: some bits ─┤      close: a code, the first code stays
//! ```
//!
//! Invariants:
//! - A slot is seated before its session's first read, so that no wake is lost in between.
//! - A seat is left by the number of its connection, so the end of an old connection cannot unseat the device's newer
//!   one.
//! - The counts are exact: they change under the lock of the user whom they count.
//! - No lock is held across an await; waking a task takes no lock of this module.

use std::iter::once;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dashmap::{DashMap, Entry};
use feedgate_common::doorbell::{Closing, Growth};
use feedgate_common::inboxes::Numbered;
use feedgate_common::metrics::{Counter, Series};
use feedgate_common::named::NamedFeeds;
use feedgate_common::{DeviceId, FeedId, InboxKey, Millis, Position, UserNo};
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use tokio::sync::Notify;

use crate::node::growth::RecentGrowth;
use crate::node::identity::Identity;
use crate::node::metrics::Woken;
use crate::node::slot::{Slot, Wake};
use crate::protocol::Close;

/// A session of this node: 16 bytes.
#[derive(Clone)]
pub(crate) struct Seat {
    /// The user and the device of the session.
    pub(crate) who: Arc<Identity>,
    /// How to reach the session's connection.
    pub(crate) slot: Arc<Slot>,
}

/// How many users, devices, sessions and sockets are on this node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Users with at least one seat.
    pub(crate) users: usize,
    /// Devices with at least one seat.
    pub(crate) devices: usize,
    /// Seats: connections that are authenticated.
    pub(crate) sessions: usize,
    /// Sockets, also those that are not yet authenticated.
    pub(crate) connections: usize,
}

/// The node, or the user, already has as many connections as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// The sessions by user, and the sockets by connection number.
pub(crate) struct Pool {
    seats: DashMap<UserNo, Vec<Seat>, FxBuildHasher>,
    /// Every socket from upgrade to end, so that a drain also finds those without a seat.
    slots: [Mutex<FxHashMap<u64, Arc<Slot>>>; 16],
    next: AtomicU64,
    /// Wakes the task that makes every session look at its log; see [`Pool::missed`].
    missed: Notify,
    /// Users whose sessions on this node are to be confirmed in the session pool.
    doubted: Mutex<FxHashSet<UserNo>>,
    doubt: Notify,
    /// How the inboxes of the sessions on this node have grown lately.
    pub(crate) growth: RecentGrowth,
    /// The wakes for growth of an inbox.
    pub(crate) wakes: Series<Woken, Counter>,
    users: AtomicUsize,
    devices: AtomicUsize,
    sessions: AtomicUsize,
    connections: AtomicUsize,
    connections_max: usize,
    per_user_max: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(connections_max: usize, per_user_max: usize, growth: RecentGrowth) -> Self {
        Self {
            seats: DashMap::default(),
            slots: std::array::from_fn(|_| Mutex::default()),
            next: AtomicU64::new(1),
            missed: Notify::new(),
            doubted: Mutex::default(),
            doubt: Notify::new(),
            growth,
            wakes: Series::default(),
            users: AtomicUsize::new(0),
            devices: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            connections_max,
            per_user_max: AtomicUsize::new(per_user_max),
        }
    }

    /// Counts a new socket and gives it a slot; fails if the node holds as many sockets as it may.
    pub(crate) fn arrive(&self) -> Result<Arc<Slot>, Full> {
        let room = |n: usize| (n < self.connections_max).then_some(n + 1);
        self.connections.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).map_err(|_| Full)?;
        let slot = Arc::new(Slot::new(self.next.fetch_add(1, Ordering::Relaxed)));
        self.shelf(slot.connection).lock().insert(slot.connection, slot.clone());
        Ok(slot)
    }

    /// Forgets a socket that has ended. It must have no seat.
    pub(crate) fn depart(&self, slot: &Slot) {
        if self.shelf(slot.connection).lock().remove(&slot.connection).is_some() {
            self.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn shelf(&self, connection: u64) -> &Mutex<FxHashMap<u64, Arc<Slot>>> {
        &self.slots[connection as usize % self.slots.len()]
    }

    /// Seats a connection under its user; fails if the user has as many seats as allowed. An older connection of the
    /// device keeps its seat until [`Pool::end`] or its own end, and does not count against the limit.
    pub(crate) fn enter(&self, who: &Arc<Identity>, slot: &Arc<Slot>) -> Result<(), Full> {
        let mut seats = match self.seats.entry(who.user.no) {
            Entry::Occupied(seats) => seats.into_ref(),
            Entry::Vacant(empty) => {
                self.users.fetch_add(1, Ordering::AcqRel);
                empty.insert(Vec::with_capacity(1))
            }
        };
        let known = seats.iter().any(|seat| seat.who.device == who.device);
        if !known && seats.len() >= self.per_user_max.load(Ordering::Relaxed) {
            return Err(Full);
        }
        if !known {
            self.devices.fetch_add(1, Ordering::AcqRel);
        }
        self.sessions.fetch_add(1, Ordering::AcqRel);
        seats.push(Seat { who: who.clone(), slot: slot.clone() });
        Ok(())
    }

    /// Sets how many seats a user may have from now on. A user who has more keeps them, and gets no further seat.
    pub(crate) fn allow_per_user(&self, per_user_max: usize) {
        self.per_user_max.store(per_user_max, Ordering::Relaxed);
    }

    /// Unseats a connection; false if the connection has no seat.
    pub(crate) fn leave(&self, user: UserNo, connection: u64) -> bool {
        self.unseat(user, connection).is_some()
    }

    /// Unseats a connection and closes it: with 4500 if a newer one of its device has replaced it, with 3503 if an
    /// operator or a backend has ended its session, with 3011 if the device is to connect again.
    pub(crate) fn end(&self, user: UserNo, connection: u64, why: Closing) {
        if let Some(slot) = self.unseat(user, connection) {
            slot.close(match why {
                Closing::Replaced => Close::Replaced,
                Closing::Kicked => Close::ForceDisconnect,
                Closing::Displaced => Close::Displaced,
            });
        }
    }

    /// Ends the sessions of this device on this node whose tokens are older than the token of `who`, which the session
    /// pool has just given. The pool names only the last session that was replaced; an older session is still here if
    /// that last session never learnt which session it had replaced. Does nothing while `who` has no token.
    pub(crate) fn end_older(&self, who: &Identity, why: Closing) {
        let Some(token) = who.token() else { return };
        let is_older = |seat: &Seat| seat.who.device == who.device && seat.who.token().is_some_and(|own| own < token);
        let older = self.seats_of(who.user.no).into_iter().filter(is_older);
        older.for_each(|seat| self.end(who.user.no, seat.slot.connection, why));
    }

    fn unseat(&self, user: UserNo, connection: u64) -> Option<Arc<Slot>> {
        let Entry::Occupied(mut seats) = self.seats.entry(user) else { return None };
        let at = seats.get().iter().position(|seat| seat.slot.connection == connection)?;
        let gone = seats.get_mut().swap_remove(at);
        self.sessions.fetch_sub(1, Ordering::AcqRel);
        if !seats.get().iter().any(|seat| seat.who.device == gone.who.device) {
            self.devices.fetch_sub(1, Ordering::AcqRel);
        }
        if seats.get().is_empty() {
            seats.remove();
            self.users.fetch_sub(1, Ordering::AcqRel);
        }
        Some(gone.slot)
    }

    /// Ends a device's sessions on this node with 3503, and gives how many there were.
    pub(crate) fn kick(&self, user: UserNo, device: &DeviceId) -> usize {
        let of_device = |seat: &&Seat| seat.who.device == *device;
        let connections: Vec<u64> = match self.seats.get(&user) {
            Some(seats) => seats.iter().filter(of_device).map(|seat| seat.slot.connection).collect(),
            None => return 0,
        };
        connections.iter().for_each(|connection| self.end(user, *connection, Closing::Kicked));
        connections.len()
    }

    /// Ends the user's sessions on this node whose tokens were issued before this time, in Unix ms, with 3005.
    pub(crate) fn revoke(&self, user: UserNo, before: Millis) {
        let revoked = self.seats_of(user).into_iter().filter(|seat| seat.who.is_revoked(before));
        revoked.filter_map(|seat| self.unseat(user, seat.slot.connection)).for_each(|slot| slot.close(Close::Expired));
    }

    /// Wakes the sessions that read these inboxes. Never blocks on a session.
    pub(crate) fn grown(&self, growth: &Growth) {
        growth.inboxes.iter().for_each(|grown| self.has_grown(grown.key, grown.head, growth.entries(grown)));
    }

    /// Wakes the sessions that read this inbox, which has grown up to `head`; `entries` are its last changes. Never
    /// blocks on a session.
    pub(crate) fn has_grown(&self, key: InboxKey, head: Position, entries: impl ExactSizeIterator<Item = Numbered>) {
        // The entry is locked for writing, so that growth of one reader is kept in turn.
        let Some(seats) = self.seats.get_mut(&key.reader) else { return };
        let listen = || seats.iter().filter(|seat| seat.slot.listens(key.feed));
        if listen().next().is_some() {
            // The growth is kept before a session is woken, since that session would ask for it.
            self.growth.record(key, head, entries);
            for seat in listen() {
                let woken = if seat.slot.wake(Wake::growth(key.feed)) { Woken::Sent } else { Woken::Coalesced };
                self.wakes.of(woken).inc();
            }
        }
    }

    /// Tells the sessions that read this inbox that their reader has seen more of it, but not the connection `but`.
    /// Never blocks on a session.
    pub(crate) fn seen(&self, key: InboxKey, but: Option<u64>) {
        let Some(seats) = self.seats.get(&key.reader) else { return };
        let others = seats.iter().filter(|seat| seat.slot.listens(key.feed) && Some(seat.slot.connection) != but);
        others.for_each(|seat| _ = seat.slot.wake(Wake::SEEN));
    }

    /// Lets the sessions that read this inbox look at their logs. Never blocks on a session.
    pub(crate) fn look_at(&self, key: InboxKey) {
        let Some(seats) = self.seats.get(&key.reader) else { return };
        seats.iter().filter(|seat| seat.slot.listens(key.feed)).for_each(|seat| _ = seat.slot.wake(Wake::LOOK));
    }

    /// The inboxes of this reader, of the main feed and those in `named`, that sessions on this node listen to.
    pub(crate) fn listened(&self, reader: UserNo, named: &NamedFeeds) -> Vec<InboxKey> {
        let Some(seats) = self.seats.get(&reader) else { return vec![] };
        let listened = |feed: &FeedId| seats.iter().any(|seat| seat.slot.listens(*feed));
        let feeds = once(FeedId::MAIN).chain(named.iter().map(|feed| feed.id)).filter(listened);
        feeds.map(|feed| InboxKey { reader, feed }).collect()
    }

    /// Says that any inbox may have grown, so every session is to look at its log, spread over time. A further call
    /// before that is done causes one more such round.
    pub(crate) fn missed(&self) {
        self.missed.notify_one();
    }

    /// Waits until [`Pool::missed`] is called. Cancel safe.
    pub(crate) async fn until_missed(&self) {
        self.missed.notified().await;
    }

    /// Says that the sessions of these users may have been replaced or ended, so those on this node are to be
    /// confirmed.
    pub(crate) fn doubt(&self, users: &[UserNo]) {
        let here = users.iter().filter(|user| self.seats.contains_key(user));
        self.doubted.lock().extend(here);
        self.doubt.notify_one();
    }

    /// Waits until [`Pool::doubt`] is called, and gives the sessions on this node that are to be confirmed. If the
    /// future is dropped before it is done, nothing is lost.
    pub(crate) async fn until_doubted(&self) -> Vec<Seat> {
        self.doubt.notified().await;
        let users = std::mem::take(&mut *self.doubted.lock());
        users.into_iter().flat_map(|user| self.seats_of(user)).collect()
    }

    /// Every session that is on this node now.
    pub(crate) fn seated(&self) -> Vec<Seat> {
        self.seats.iter().flat_map(|seats| seats.clone()).collect()
    }

    /// Every user with a session on this node.
    pub(crate) fn users(&self) -> Vec<UserNo> {
        self.seats.iter().map(|seats| *seats.key()).collect()
    }

    /// The sessions of a user on this node.
    pub(crate) fn seats_of(&self, user: UserNo) -> Vec<Seat> {
        self.seats.get(&user).map_or_else(Vec::new, |seats| seats.clone())
    }

    /// The session of this user and connection; `None` if it is not here.
    pub(crate) fn seat(&self, user: UserNo, connection: u64) -> Option<Seat> {
        self.seats.get(&user)?.iter().find(|seat| seat.slot.connection == connection).cloned()
    }

    /// Every socket of this node, seated or not.
    pub(crate) fn all(&self) -> Vec<Arc<Slot>> {
        self.slots.iter().flat_map(|shelf| shelf.lock().values().cloned().collect::<Vec<_>>()).collect()
    }

    /// How many users, devices, sessions and sockets there are now.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            users: self.users.load(Ordering::Acquire),
            devices: self.devices.load(Ordering::Acquire),
            sessions: self.sessions.load(Ordering::Acquire),
            connections: self.connections.load(Ordering::Acquire),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use feedgate_common::sessions::User;
    use feedgate_common::{Entry, Epoch, FeedId, InboxKey, Position};

    use super::*;

    fn device(name: &str) -> DeviceId {
        name.parse().unwrap()
    }

    fn who(user: u32, name: &str) -> Arc<Identity> {
        let user = User { id: "ann".parse().unwrap(), no: UserNo(user) };
        Identity::new(user, device(name), true, 0)
    }

    fn seated(pool: &Pool, user: u32, name: &str) -> Arc<Slot> {
        let slot = pool.arrive().unwrap();
        pool.enter(&who(user, name), &slot).unwrap();
        slot
    }

    #[test]
    fn counts_are_exact_through_arrivals_and_departures() {
        let pool = Pool::new(10, 10, RecentGrowth::new(true));
        let (phone, tablet, other) = (seated(&pool, 1, "phone"), seated(&pool, 1, "tablet"), seated(&pool, 2, "phone"));
        let nobody = pool.arrive().unwrap();
        assert_eq!(pool.counts(), Counts { users: 2, devices: 3, sessions: 3, connections: 4 });
        for (user, slot) in [(1, &phone), (1, &tablet), (2, &other)] {
            assert!(pool.leave(UserNo(user), slot.connection));
            assert!(!pool.leave(UserNo(user), slot.connection), "leaving twice changes nothing");
            pool.depart(slot);
            pool.depart(slot);
        }
        pool.depart(&nobody);
        assert_eq!(pool.counts(), Counts::default());
    }

    #[test]
    fn a_late_goodbye_does_not_unseat_the_newer_connection_of_the_device() {
        let pool = Pool::new(10, 10, RecentGrowth::new(true));
        let (older, newer) = (seated(&pool, 1, "phone"), seated(&pool, 1, "phone"));
        assert_eq!(pool.counts(), Counts { users: 1, devices: 1, sessions: 2, connections: 2 });
        pool.end(UserNo(1), older.connection, Closing::Replaced);
        assert!(!pool.leave(UserNo(1), older.connection));
        assert_eq!(older.asked_to_close(), Some(Close::Replaced));
        assert_eq!(newer.asked_to_close(), None);
        assert_eq!(pool.counts(), Counts { users: 1, devices: 1, sessions: 1, connections: 2 });
    }

    #[test]
    fn limits_refuse_the_next_and_a_replaced_device_needs_no_room() {
        let pool = Pool::new(3, 1, RecentGrowth::new(false));
        let _phone = seated(&pool, 1, "phone");
        let second = pool.arrive().unwrap();
        assert_eq!(pool.enter(&who(1, "tablet"), &second), Err(Full));
        assert_eq!(pool.enter(&who(1, "phone"), &second), Ok(()));
        let _third = pool.arrive().unwrap();
        assert!(pool.arrive().is_err());
    }

    #[test]
    fn growth_wakes_the_reader_who_listens_to_that_feed_and_nobody_else() {
        let pool = Pool::new(10, 10, RecentGrowth::new(true));
        let [both, main, other] =
            [(7, "phone"), (7, "tablet"), (8, "phone")].map(|(user, name)| seated(&pool, user, name));
        let likes = InboxKey { reader: UserNo(7), feed: FeedId(3) };
        let grow = |key: InboxKey| {
            let head = Position { epoch: Epoch(1), offset: 1 };
            pool.grown(&Growth::of_one(key, UserNo(9), head));
            [&both, &main, &other].map(|slot| slot.take_wake())
        };
        assert_eq!(grow(InboxKey::main(UserNo(7))), [None; 3], "nobody listens yet");
        both.listen(&[FeedId::MAIN, FeedId(3)]);
        main.listen(&[FeedId::MAIN]);
        other.listen(&[FeedId::MAIN, FeedId(3)]);
        let [woken_by_main, woken_by_likes] = [FeedId::MAIN, FeedId(3)].map(|feed| Some(Wake::growth(feed)));
        assert_eq!(grow(InboxKey::main(UserNo(7))), [woken_by_main, woken_by_main, None]);
        assert_eq!(grow(likes), [woken_by_likes, None, None]);
        assert_eq!(grow(InboxKey { feed: FeedId(4), ..likes }), [None; 3]);
    }

    /// The changes of a growth, which are asked for while the growth is being kept. Another growth comes just then.
    struct Meanwhile<F: FnOnce()>(Option<F>);

    impl<F: FnOnce()> Iterator for Meanwhile<F> {
        type Item = Numbered;

        fn next(&mut self) -> Option<Numbered> {
            self.0.take().map(|meanwhile| {
                meanwhile();
                Numbered { seq: 6, entry: Entry::forget(UserNo(9), 0, None) }
            })
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            let left = usize::from(self.0.is_some());
            (left, Some(left))
        }
    }

    impl<F: FnOnce()> ExactSizeIterator for Meanwhile<F> {}

    #[test]
    fn of_two_growths_that_come_at_once_the_longer_one_stays_known() {
        let pool = Pool::new(10, 10, RecentGrowth::new(true));
        let phone = seated(&pool, 7, "phone");
        phone.listen(&[FeedId::MAIN]);
        let (key, at) = (InboxKey::main(UserNo(7)), |offset| Position { epoch: Epoch(1), offset });
        let is_through = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let other = || {
                pool.has_grown(key, at(7), std::iter::empty());
                is_through.store(true, Ordering::Release);
            };
            let meanwhile = || {
                scope.spawn(other);
                // The other one waits for this one, so this one may not wait for it.
                for _ in 0..10_000 {
                    if is_through.load(Ordering::Acquire) {
                        break;
                    }
                    std::thread::yield_now();
                }
            };
            pool.has_grown(key, at(6), Meanwhile(Some(meanwhile)));
        });
        assert_eq!(pool.growth.head_after(key, at(5)), Some(at(7)));
    }

    #[test]
    fn a_wake_that_finds_another_one_waiting_is_counted_as_coalesced() {
        let pool = Pool::new(10, 10, RecentGrowth::new(true));
        let (phone, _deaf) = (seated(&pool, 7, "phone"), seated(&pool, 7, "deaf"));
        phone.listen(&[FeedId::MAIN]);
        let grow = || {
            let head = Position { epoch: Epoch(1), offset: 1 };
            pool.grown(&Growth::of_one(InboxKey::main(UserNo(7)), UserNo(9), head));
            [Woken::Sent, Woken::Coalesced].map(|outcome| pool.wakes.of(outcome).get())
        };
        assert_eq!([grow(), grow(), grow()], [[1, 0], [1, 1], [1, 2]]);
        phone.take_wake();
        assert_eq!(grow(), [2, 2]);
    }

    #[test]
    fn what_was_seen_is_told_to_the_readers_other_devices_that_listen_and_to_nobody_else() {
        let pool = Pool::new(10, 10, RecentGrowth::new(true));
        let [phone, tablet, deaf, other] =
            [(7, "phone"), (7, "tablet"), (7, "deaf"), (8, "phone")].map(|(user, name)| seated(&pool, user, name));
        [&phone, &tablet, &other].into_iter().for_each(|slot| slot.listen(&[FeedId::MAIN]));
        pool.seen(InboxKey::main(UserNo(7)), Some(phone.connection));
        let told = [&phone, &tablet, &deaf, &other].map(|slot| slot.take_wake());
        assert_eq!(told, [None, Some(Wake::SEEN), None, None]);
        pool.seen(InboxKey::main(UserNo(7)), None);
        let told = [&phone, &tablet].map(|slot| slot.take_wake());
        assert_eq!(told, [Some(Wake::SEEN); 2], "it was said by HTTP");
        pool.seen(InboxKey { reader: UserNo(7), feed: FeedId(3) }, None);
        assert_eq!(tablet.take_wake(), None, "it does not listen to that feed");
    }

    #[test]
    fn the_first_close_stands() {
        let pool = Pool::new(10, 10, RecentGrowth::new(true));
        let slot = seated(&pool, 7, "phone");
        assert_eq!(pool.kick(UserNo(7), &device("phone")), 1);
        slot.close(Close::Shutdown);
        assert_eq!(slot.asked_to_close(), Some(Close::ForceDisconnect));
    }
}
