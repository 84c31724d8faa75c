//! The items that devices of this node watch, the watchers of each item, and what the watchers are told.
//!
//! ```text
//!   a write, on whatever node ─▶ stir ─▶ doorbell ─▶ noted ─▶ a round: one read for all items that are due
//!                                                              └─▶ told: encoded once ─▶ wake ─▶ each connection copies it
//!   a reader may see less ─▶ doubted ─▶ asked again: seen no more ─▶ dropped ─▶ wake ─▶ the connection says so
//!   every minute: all who watch are asked about, some hundreds at a time ──┘
//! ```
//!
//! Invariants:
//! - An item is read at most once a second, however many watch it and whatever happens to it (S4).
//! - A device watches before it reads where the item stands, so no change is lost in between.
//! - Leaving takes no read. A device that watches nothing holds nothing here.
//! - A change that is lost on its way from another node is found by a look now and then.

mod checks;
mod rounds;
mod told;
mod watched;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use feedgate_common::doorbell::{Stir, Touch};
use feedgate_common::{ItemId, UserNo};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::Notify;

use crate::node::slot::{Slot, Wake};
use crate::node::uptime::Uptime;
use crate::protocol::Format;
pub(crate) use checks::keep_checking;
pub(crate) use rounds::{keep_reading, keep_telling};
use told::Told;
pub(crate) use watched::State;
use watched::{Watched, Work};

/// The most changes that wait to be told to other nodes. Further changes are found by the looks of these nodes.
const UNTOLD_MAX: usize = 1 << 16;

/// The most items that are read in one call.
const ITEMS_MAX: usize = 500;

/// No further items are read in one call once the call has this many changed comments.
const COMMENTS_MAX: usize = 256;

/// All items that are watched on this node.
pub(crate) struct Watches {
    all: Mutex<All>,
    /// Wakes the task that reads, when something may be due earlier than before.
    noted: Notify,
    untold: Mutex<Untold>,
    tell: Notify,
    doubted: Mutex<FxHashSet<UserNo>>,
    doubt: Notify,
    count: AtomicUsize,
    uptime: Uptime,
}

#[derive(Default)]
struct All {
    items: FxHashMap<ItemId, Entry>,
    /// When each item is to be read, in ms: a round looks at those that are due, and not at all items.
    due: BTreeSet<(u64, ItemId)>,
    /// The items that each user watches, one entry for each device.
    users: FxHashMap<UserNo, Vec<ItemId>>,
}

/// Changes that other nodes are to hear of.
#[derive(Default)]
struct Untold {
    touches: FxHashSet<Touch>,
    readers: FxHashSet<UserNo>,
}

/// An item that is watched.
struct Entry {
    hub: Arc<Hub>,
    watched: Watched,
    /// The connections that watch the item, by their numbers.
    watchers: FxHashMap<u64, Arc<Watcher>>,
}

/// The part of an item that all its watchers share.
struct Hub {
    item: ItemId,
    channel: Box<str>,
    told: Mutex<Told>,
}

/// A connection that watches an item.
struct Watcher {
    user: UserNo,
    slot: Arc<Slot>,
    /// Whether the user has lost the right to see the item.
    dropped: AtomicBool,
}

/// Keeps a connection watching an item, until this value is dropped.
pub(crate) struct Watch {
    watches: Arc<Watches>,
    hub: Arc<Hub>,
    watcher: Arc<Watcher>,
    /// The number of the last news of the item that the device was told.
    upto: u64,
}

impl All {
    /// Changes what is known of an item, and gives the answer of `change` with what the watchers of the item share.
    /// Gives `None` if nobody watches the item.
    fn change<T>(&mut self, item: ItemId, change: impl FnOnce(&mut Watched) -> T) -> Option<(T, &Entry)> {
        let entry = self.items.get_mut(&item)?;
        let before = entry.watched.due_ms();
        let answer = change(&mut entry.watched);
        let after = entry.watched.due_ms();
        if after != before {
            self.due.remove(&(before, item));
            self.due.insert((after, item));
        }
        Some((answer, entry))
    }
}

impl Watches {
    pub(crate) fn new(uptime: Uptime) -> Self {
        Self {
            all: Mutex::default(),
            noted: Notify::new(),
            untold: Mutex::default(),
            tell: Notify::new(),
            doubted: Mutex::default(),
            doubt: Notify::new(),
            count: AtomicUsize::new(0),
            uptime,
        }
    }

    /// How many items are watched.
    pub(crate) fn items(&self) -> usize {
        self.all.lock().items.len()
    }

    /// How many watches there are, of however many items.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Wakes this connection from now on by news of the item. The state that the device is told first must be read
    /// after this call, and [given](Watch::begins) to the result.
    pub(crate) fn join(self: &Arc<Self>, item: ItemId, user: UserNo, slot: &Arc<Slot>) -> Watch {
        let watcher = Arc::new(Watcher { user, slot: slot.clone(), dropped: AtomicBool::new(false) });
        let mut guard = self.all.lock();
        let all = &mut *guard;
        let entry = all.items.entry(item).or_insert_with(|| {
            let entry = Entry::new(item);
            all.due.insert((entry.watched.due_ms(), item));
            entry
        });
        entry.watchers.insert(slot.connection, watcher.clone());
        let hub = entry.hub.clone();
        all.users.entry(user).or_default().push(item);
        self.count.fetch_add(1, Ordering::Relaxed);
        let upto = hub.told.lock().last();
        Watch { watches: self.clone(), hub, watcher, upto }
    }

    /// Notes that a request to this node has made this change. Every node is told soon. Never blocks.
    pub(crate) fn touched(&self, touch: Touch) {
        let mut untold = self.untold.lock();
        if untold.touches.len() < UNTOLD_MAX {
            untold.touches.insert(touch);
            self.tell.notify_one();
        }
    }

    /// Notes that a request to this node lets these readers see less. Every node is told soon. Never blocks.
    pub(crate) fn narrowed(&self, readers: impl IntoIterator<Item = UserNo>) {
        let mut untold = self.untold.lock();
        for reader in readers {
            if untold.readers.len() < UNTOLD_MAX {
                untold.readers.insert(reader);
                self.tell.notify_one();
            }
        }
    }

    /// Takes in a message of a node. Never blocks.
    pub(crate) fn hear(&self, stir: &Stir) {
        let mut all = self.all.lock();
        let mut concerned = false;
        for touch in &stir.touches {
            concerned |= all.change(touch.item, |watched| watched.note(touch.comment)).is_some();
        }
        let readers = stir.readers.iter().filter(|reader| all.users.contains_key(reader));
        let doubted: Vec<UserNo> = readers.copied().collect();
        drop(all);
        if concerned {
            self.noted.notify_one();
        }
        if !doubted.is_empty() {
            self.doubted.lock().extend(doubted);
            self.doubt.notify_one();
        }
    }

    /// Notes that messages may have been lost: every item is looked at soon.
    pub(crate) fn missed(&self) {
        let mut all = self.all.lock();
        let items: Vec<ItemId> = all.items.keys().copied().collect();
        items.into_iter().for_each(|item| _ = all.change(item, |watched| watched.note(None)));
        drop(all);
        self.noted.notify_one();
    }

    /// Takes out what is to be told to other nodes.
    fn take_untold(&self) -> Stir {
        let Untold { touches, readers } = std::mem::take(&mut *self.untold.lock());
        Stir { touches: touches.into_iter().collect(), readers: readers.into_iter().collect() }
    }

    /// Begins the reads that are due, for as many items as one call takes. The items that have waited longest come
    /// first, so no item waits for ever while many others change all the time.
    fn take_due(&self, now: u64) -> Vec<(ItemId, Work)> {
        let mut all = self.all.lock();
        let (mut due, mut comments) = (vec![], 0);
        while due.len() < ITEMS_MAX
            && comments < COMMENTS_MAX
            && let Some(&(due_ms, item)) = all.due.first()
            && due_ms <= now
        {
            // After this the item is due later than now, also if there is nothing to read.
            if let Some((Some(work), _)) = all.change(item, |watched| watched.begin(now)) {
                comments += work.comments.len();
                due.push((item, work));
            }
        }
        due
    }

    /// When the next read is due; `None` if nothing is watched.
    fn next_due(&self) -> Option<u64> {
        self.all.lock().due.first().map(|(due_ms, _)| *due_ms)
    }

    /// Makes these reads due again, since they have failed.
    fn failed(&self, due: Vec<(ItemId, Work)>) {
        let mut all = self.all.lock();
        for (item, work) in due {
            all.change(item, |watched| watched.failed(work));
        }
    }

    /// Drops all watchers of an item that was deleted.
    fn end(&self, item: ItemId) {
        self.watchers(item).iter().for_each(|watcher| watcher.drop_out());
    }

    /// The connections that watch the item.
    fn watchers(&self, item: ItemId) -> Vec<Arc<Watcher>> {
        self.all.lock().items.get(&item).map_or_else(Vec::new, |entry| entry.watchers.values().cloned().collect())
    }

    /// The items that a user watches, each once.
    fn watched_by(&self, user: UserNo) -> Vec<ItemId> {
        let mut items = self.all.lock().users.get(&user).cloned().unwrap_or_default();
        items.sort_unstable();
        items.dedup();
        items
    }

    fn leave(&self, hub: &Hub, watcher: &Arc<Watcher>) {
        let mut guard = self.all.lock();
        let all = &mut *guard;
        let Some(entry) = all.items.get_mut(&hub.item) else { return };
        // A connection watches an item once, but an earlier watch may be dropped late, after the next watch has begun.
        let own = entry.watchers.get(&watcher.slot.connection).is_some_and(|found| Arc::ptr_eq(found, watcher));
        if own {
            entry.watchers.remove(&watcher.slot.connection);
        }
        if entry.watchers.is_empty() {
            all.due.remove(&(entry.watched.due_ms(), hub.item));
            all.items.remove(&hub.item);
        }
        if let Some(items) = all.users.get_mut(&watcher.user) {
            if let Some(at) = items.iter().position(|item| *item == hub.item) {
                items.swap_remove(at);
            }
            if items.is_empty() {
                all.users.remove(&watcher.user);
            }
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Entry {
    fn new(item: ItemId) -> Self {
        let channel = format!("{}{item}", crate::protocol::ITEM_CHANNEL).into();
        let hub = Arc::new(Hub { item, channel, told: Mutex::default() });
        Self { hub, watched: Watched::default(), watchers: FxHashMap::default() }
    }
}

impl Watcher {
    /// Notes that the user may not see the item any more. The connection then tells the device, and leaves.
    fn drop_out(&self) {
        self.dropped.store(true, Ordering::Release);
        self.slot.wake(Wake::AROUND);
    }
}

impl Watch {
    /// The item that is watched.
    pub(crate) fn item(&self) -> ItemId {
        self.hub.item
    }

    /// The name of the item's channel.
    pub(crate) fn channel(&self) -> &str {
        &self.hub.channel
    }

    /// Notes that the device is told this state first.
    pub(crate) fn begins(&self, state: &State) {
        let begun = self.watches.all.lock().change(self.hub.item, |watched| watched.begins(state)).is_some();
        if begun {
            self.watches.noted.notify_one();
        }
    }

    /// Whether the user has lost the right to see the item.
    pub(crate) fn is_dropped(&self) -> bool {
        self.watcher.dropped.load(Ordering::Acquire)
    }

    /// Appends to `out`, as pushes, the news that the device was not told yet, until `out` holds `bytes_max` bytes.
    /// Returns whether that was all.
    pub(crate) fn take(&mut self, format: Format, out: &mut Vec<u8>, bytes_max: usize) -> bool {
        let told = self.hub.told.lock();
        if self.upto < told.last() {
            self.upto = told.after(self.upto, self.watcher.user, (&self.hub.channel, format), out, bytes_max);
        }
        self.upto == told.last()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watches.leave(&self.hub, &self.watcher);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&self.hub.item).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn watches() -> Arc<Watches> {
        Arc::new(Watches::new(Uptime::begin()))
    }

    fn touch(item: u64) -> Touch {
        Touch { item: ItemId(item), comment: None }
    }

    #[test]
    fn s4_who_leaves_leaves_nothing_behind() {
        let watches = watches();
        let slots = [1, 2].map(|connection| Arc::new(Slot::new(connection)));
        let [one, two] = slots.each_ref().map(|slot| watches.join(ItemId(5), UserNo(7), slot));
        let other = watches.join(ItemId(6), UserNo(7), &slots[0]);
        assert_eq!((watches.items(), watches.count()), (2, 3));
        assert_eq!(watches.watched_by(UserNo(7)), [ItemId(5), ItemId(6)]);
        drop(one);
        assert_eq!((watches.items(), watches.watchers(ItemId(5)).len()), (2, 1));
        drop((two, other));
        assert_eq!((watches.items(), watches.count(), watches.all.lock().users.len()), (0, 0, 0));
    }

    #[test]
    fn s4_only_what_is_watched_here_is_due() {
        let watches = watches();
        let _watch = watches.join(ItemId(5), UserNo(7), &Arc::new(Slot::new(1)));
        assert!(watches.take_due(0).is_empty(), "who begins to watch has just read it");
        watches.hear(&Stir { touches: vec![touch(4), touch(5), touch(5)], readers: vec![UserNo(8)] });
        let due = watches.take_due(5000);
        assert_eq!(due.iter().map(|(item, _)| *item).collect::<Vec<_>>(), [ItemId(5)]);
        assert!(watches.doubted.lock().is_empty(), "reader 8 watches nothing");
        watches.hear(&Stir { touches: vec![], readers: vec![UserNo(7)] });
        assert_eq!(watches.doubted.lock().len(), 1);
    }

    #[test]
    fn s4_the_list_of_what_is_due_has_each_item_that_is_watched_once() {
        let watches = watches();
        let due = || watches.all.lock().due.iter().copied().collect::<Vec<_>>();
        let slot = Arc::new(Slot::new(1));
        let watch = watches.join(ItemId(5), UserNo(7), &slot);
        let other = watches.join(ItemId(6), UserNo(7), &slot);
        watch.begins(&State { version: 1, around: Default::default() });
        assert_eq!(due(), [(0, ItemId(5)), (0, ItemId(6))]);
        assert!(watches.take_due(10).is_empty(), "who begins to watch has just read it");
        assert_eq!(due(), [(15_010, ItemId(5)), (15_010, ItemId(6))]);
        watches.hear(&Stir { touches: vec![touch(6)], readers: vec![] });
        assert_eq!((due(), watches.next_due()), (vec![(1_010, ItemId(6)), (15_010, ItemId(5))], Some(1_010)));
        let taken = watches.take_due(2_000);
        assert_eq!((taken.len(), due()[0]), (1, (15_010, ItemId(5))));
        watches.failed(taken);
        assert_eq!(due(), [(3_000, ItemId(6)), (15_010, ItemId(5))]);
        watches.missed();
        assert_eq!(due(), [(1_010, ItemId(5)), (3_000, ItemId(6))]);
        drop((watch, other));
        assert_eq!((due(), watches.next_due()), (vec![], None));
    }

    #[test]
    fn s4_no_item_waits_for_ever_while_more_than_one_read_takes_change_all_the_time() {
        let watches = watches();
        let slot = Arc::new(Slot::new(1));
        let items = 0..3 * ITEMS_MAX as u64;
        let _watching: Vec<Watch> = items.clone().map(|item| watches.join(ItemId(item), UserNo(7), &slot)).collect();
        let mut read = BTreeSet::new();
        for round in 1..=3 {
            watches.hear(&Stir { touches: items.clone().map(touch).collect(), readers: vec![] });
            read.extend(watches.take_due(5000 * round).into_iter().map(|(item, _)| item));
        }
        assert_eq!(read.len() as u64, items.end);
    }

    #[test]
    fn s4_ten_thousand_watchers_of_an_item_cost_one_read_a_second() {
        let watches = watches();
        let join = |nth| watches.join(ItemId(5), UserNo(nth), &Arc::new(Slot::new(nth.into())));
        let _watching: Vec<Watch> = (0..10_000).map(join).collect();
        let reads = (0..10_000).filter(|now| {
            watches.hear(&Stir { touches: vec![touch(5); 3], readers: vec![] });
            !watches.take_due(*now).is_empty()
        });
        assert_eq!(reads.count(), 10, "in ten seconds");
    }

    #[test]
    fn i18_what_waits_to_be_told_is_bounded_and_told_once() {
        let watches = watches();
        (0..UNTOLD_MAX as u64 + 9).for_each(|item| watches.touched(touch(item)));
        watches.touched(touch(1));
        assert_eq!(watches.take_untold().touches.len(), UNTOLD_MAX);
        assert_eq!(watches.take_untold(), Stir::default());
    }

    #[test]
    fn s4_who_may_see_an_item_no_more_is_woken_to_hear_so() {
        let watches = watches();
        let slots = [1, 2].map(|connection| Arc::new(Slot::new(connection)));
        let watch = watches.join(ItemId(5), UserNo(7), &slots[0]);
        let other = watches.join(ItemId(6), UserNo(7), &slots[1]);
        watches.end(ItemId(5));
        assert!(watch.is_dropped() && !other.is_dropped());
        assert_eq!(slots.each_ref().map(|slot| slot.take_wake()), [Some(Wake::AROUND), None]);
    }
}
