//! Pages of a feed that changes all the time, against plain sorted sets.
//!
//! What is true changes first (the Archive), the log hears of it later, step by step, and is cut and rebuilt
//! meanwhile, also between the reads of one page.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::cap::End;
use super::descent::{Descent, Leg, above_floor};
use super::window::Window;
use super::*;
use crate::archive::{Below, FeedAdd};
use crate::inboxes::{Log, floor_of_cut};
use crate::{Entry, Epoch};

const AUTHORS: u32 = 3;
const BACKFILL: usize = 2;
/// How many adds one read of the Archive asks for.
const MOST: usize = 4;
const DAY: i64 = 24 * 3600 * 1000;

#[derive(Debug, Clone)]
enum Change {
    Publish {
        author: u32,
        rank: i64,
        direct: bool,
    },
    Delete(prop::sample::Index),
    /// An item gets this rank.
    Move(prop::sample::Index, i64),
    Follow(u32),
    /// A follow that shows the whole past.
    FollowAll(u32),
    Unfollow(u32),
    /// The next so many steps reach the log.
    Deliver(usize),
    /// The log is cut to so many changes.
    Trim(usize),
    /// The log is lost, and rebuilt of the newest so many adds.
    Rebuild(usize),
    /// What was kept for the next page is lost.
    Forgotten,
}

#[derive(Debug, Clone)]
enum Act {
    Change(Change),
    /// The next page; the changes happen between its reads.
    Page(usize, Vec<Change>),
    /// From now on the pages go down from here.
    From(Option<DisplayKey>),
}

fn rank() -> impl Strategy<Value = i64> {
    let times = (0..50i64).prop_map(|n| 1000 * DAY - n * 9 * DAY);
    prop_oneof![4 => times, 2 => 0..3i64, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, -1])]
}

/// Ids in no order of time, with the extremes.
fn id(nth: usize) -> ItemId {
    let nth = nth as u64;
    ItemId(if nth.is_multiple_of(3) { nth } else { u64::MAX / (nth % 5 + 1) - nth })
}

fn change() -> impl Strategy<Value = Change> {
    let author = 0..AUTHORS;
    prop_oneof![
        8 => (author.clone(), rank(), prop::bool::weighted(0.1))
            .prop_map(|(author, rank, direct)| Change::Publish { author, rank, direct }),
        2 => any::<prop::sample::Index>().prop_map(Change::Delete),
        2 => (any::<prop::sample::Index>(), rank()).prop_map(|(nth, rank)| Change::Move(nth, rank)),
        2 => author.clone().prop_map(Change::Follow),
        2 => author.clone().prop_map(Change::FollowAll),
        1 => author.prop_map(Change::Unfollow),
        8 => (1..8usize).prop_map(Change::Deliver),
        4 => prop_oneof![Just(0), 1..12usize].prop_map(Change::Trim),
        1 => (0..6usize).prop_map(Change::Rebuild),
        1 => Just(Change::Forgotten),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let cursor = prop::option::of((rank(), 0..40usize).prop_map(|(rank, nth)| DisplayKey { rank, item: id(nth) }));
    prop_oneof![
        10 => change().prop_map(Act::Change),
        6 => (1..6usize, prop::collection::vec(change(), 0..4)).prop_map(|(limit, meanwhile)| Act::Page(limit, meanwhile)),
        1 => cursor.prop_map(Act::From),
    ]
}

/// One reader's feed, as the Archive has it and as the log has told it.
struct Feed {
    /// All that were published: author, key, whether to the reader, whether it lives.
    items: Vec<(u32, DisplayKey, bool, bool)>,
    /// How many items were published.
    published: usize,
    follows: [bool; AUTHORS as usize],
    truth: BTreeMap<DisplayKey, (u32, bool)>,
    told: BTreeMap<DisplayKey, (u32, bool)>,
    /// Steps that have not reached the log, each with what it took out of the truth.
    pending: VecDeque<(Vec<Entry>, Vec<DisplayKey>)>,
    /// What follows of the whole past leave to the Archive, by the author and the floor.
    left: Vec<(u32, DisplayKey, Vec<DisplayKey>)>,
    log: Log,
    kept: Option<Window>,
    /// What was in the feed, one way or the other, since this was emptied.
    ever: BTreeSet<DisplayKey>,
    /// What [stood](Feed::stands) in the feed since this was filled.
    always: BTreeSet<DisplayKey>,
}

impl Feed {
    fn new() -> Self {
        let head = Position { epoch: Epoch(1), offset: 0 };
        Self {
            items: vec![],
            published: 0,
            follows: [true; AUTHORS as usize],
            truth: BTreeMap::new(),
            told: BTreeMap::new(),
            pending: VecDeque::new(),
            left: vec![],
            log: Log { head, floor: None, taken: Default::default(), entries: vec![] },
            kept: None,
            ever: BTreeSet::new(),
            always: BTreeSet::new(),
        }
    }

    fn change(&mut self, change: &Change) {
        match *change {
            Change::Publish { author, rank, direct } => {
                let key = DisplayKey { rank, item: id(self.published) };
                self.published += 1;
                self.items.push((author, key, direct, true));
                if direct || self.follows[author as usize] {
                    self.truth.insert(key, (author, direct));
                    self.pending.push_back((vec![add(author, key, direct)], vec![]));
                }
            }
            Change::Delete(nth) if !self.items.is_empty() => {
                let (author, key, direct, lives) = nth.get(&self.items);
                let (author, key, direct, was) = (*author, *key, *direct, *lives);
                self.items.iter_mut().filter(|item| item.1 == key).for_each(|item| item.3 = false);
                if self.truth.remove(&key).is_some() && was {
                    self.pending.push_back((vec![Entry { op: Op::Delete, ..add(author, key, direct) }], vec![key]));
                }
            }
            Change::Move(nth, rank) if !self.items.is_empty() => {
                let (author, key, direct, lives) = *nth.get(&self.items);
                let moved = DisplayKey { rank, ..key };
                // An item that comes back to a rank is left out here: a key has one row in `items`.
                if !lives || self.items.iter().any(|item| item.1 == moved) {
                    return;
                }
                self.items.iter_mut().filter(|item| item.1 == key).for_each(|item| item.3 = false);
                self.items.push((author, moved, direct, true));
                let was = self.truth.remove(&key).is_some();
                if was || direct || self.follows[author as usize] {
                    self.truth.insert(moved, (author, direct));
                    let gone = Entry { op: Op::Delete, ..add(author, key, direct) };
                    self.pending.push_back((vec![gone, add(author, moved, direct)], vec![key]));
                }
            }
            Change::Follow(author) if !self.follows[author as usize] => {
                self.follows[author as usize] = true;
                let of_theirs = self.items.iter().rev().filter(|item| item.0 == author && !item.2);
                let newest: Vec<_> = of_theirs.take(BACKFILL).filter(|item| item.3).map(|item| item.1).collect();
                let adds = newest.iter().rev().map(|&key| add(author, key, false));
                self.pending
                    .push_back(([Entry::forget(UserNo(author), 1, None)].into_iter().chain(adds).collect(), vec![]));
                self.truth.extend(newest.into_iter().map(|key| (key, (author, false))));
            }
            Change::FollowAll(author) if !self.follows[author as usize] => {
                self.follows[author as usize] = true;
                let of_theirs = self.items.iter().filter(|item| item.0 == author && !item.2 && item.3);
                let mut all: Vec<_> = of_theirs.map(|item| item.1).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                let floor = all.get(BACKFILL).copied();
                self.truth.extend(all.iter().map(|&key| (key, (author, false))));
                let rest = all.split_off(all.len().min(BACKFILL));
                self.left.extend(floor.map(|floor| (author, floor, rest)));
                let adds = all.into_iter().rev().map(|key| add(author, key, false));
                let forget = Entry::forget(UserNo(author), 1, floor);
                self.pending.push_back(([forget].into_iter().chain(adds).collect(), vec![]));
            }
            Change::Unfollow(author) if self.follows[author as usize] => {
                self.follows[author as usize] = false;
                let theirs = |&(_, &(of, direct)): &(&DisplayKey, &(u32, bool))| !direct && of == author;
                let gone: Vec<_> = self.truth.iter().filter(theirs).map(|(key, _)| *key).collect();
                gone.iter().for_each(|key| _ = self.truth.remove(key));
                self.pending.push_back((vec![Entry::forget(UserNo(author), 1, None)], gone));
            }
            Change::Deliver(steps) => (0..steps).for_each(|_| self.deliver()),
            Change::Trim(keep) => {
                let cut = self.log.entries.len().saturating_sub(keep);
                let cut_adds = floor_of_cut(self.log.entries.iter().map(|numbered| numbered.entry), cut);
                self.log.floor = self.log.floor.max(cut_adds);
                self.log.entries.drain(..cut);
            }
            Change::Rebuild(most) => {
                while !self.pending.is_empty() {
                    self.deliver();
                }
                let newest: Vec<_> = self.truth.iter().rev().take(most).map(|(key, of)| (*key, *of)).collect();
                self.log.floor = self.truth.keys().rev().nth(most).copied();
                self.log.head = Position { epoch: Epoch(self.log.head.epoch.0 + 1), offset: 0 };
                self.log.entries.clear();
                newest.into_iter().rev().for_each(|(key, (author, direct))| self.append(add(author, key, direct)));
            }
            Change::Forgotten => self.kept = None,
            Change::Delete(_) | Change::Move(..) | Change::Follow(_) | Change::FollowAll(_) | Change::Unfollow(_) => {}
        }
        self.ever.extend(self.truth.keys().chain(self.told.keys()));
        let mut always = std::mem::take(&mut self.always);
        always.retain(|key| self.stands(key));
        self.always = always;
    }

    /// Whether it is in the feed both ways, and nothing on the way to the log takes it out, to come back or not.
    fn stands(&self, key: &DisplayKey) -> bool {
        let going = self.pending.iter().any(|(_, gone)| gone.contains(key));
        self.truth.contains_key(key) && self.told.contains_key(key) && !going
    }

    fn deliver(&mut self) {
        for entry in self.pending.pop_front().unwrap_or_default().0 {
            match entry.op {
                Op::Add => _ = self.told.insert(entry.key, (entry.author.0, entry.is_direct())),
                Op::Delete => _ = self.told.remove(&entry.key),
                Op::Forget => {
                    self.told.retain(|_, &mut (of, direct)| direct || of != entry.author.0);
                    self.log.floor = self.log.floor.max(entry.floor());
                    let left = self
                        .left
                        .iter()
                        .position(|(of, floor, _)| (*of, Some(*floor)) == (entry.author.0, entry.floor()));
                    let rest = left.map(|at| self.left.remove(at).2).unwrap_or_default();
                    self.told.extend(rest.into_iter().map(|key| (key, (entry.author.0, false))));
                }
                Op::Update => {}
            }
            self.append(entry);
        }
    }

    fn append(&mut self, entry: Entry) {
        self.log.head.offset += 1;
        self.log.entries.push(Numbered { seq: self.log.head.offset, entry });
    }

    fn archive(&self, reading: Below) -> Vec<FeedAdd> {
        let below = |key: &DisplayKey| reading.before.is_none_or(|before| *key < before);
        let above = |key: &DisplayKey| reading.least_rank.is_none_or(|least| key.rank >= least);
        let adds = self.truth.iter().rev().filter(|(key, _)| below(key) && above(key)).take(reading.limit);
        let add = |key, author, direct: bool| FeedAdd {
            author: UserNo(author),
            outbox_seq: (!direct).into(),
            generation: (!direct).into(),
            key,
        };
        adds.map(|(key, (author, direct))| add(*key, *author, *direct)).collect()
    }

    /// Where the feed ends if it shows so many, as [`Pages::page`] finds it.
    fn end(&self, most: usize) -> Option<DisplayKey> {
        match End::of(&shown_of(&self.log), self.log.floor, most) {
            End::At(end) => end,
            End::Below(reading) => self.archive(reading).get(reading.limit - 1).map(|add| add.key),
        }
    }

    /// A page as [`Pages::page`] makes it, and whether there is a next one.
    fn page(
        &mut self,
        before: Option<DisplayKey>,
        cap: Option<usize>,
        limit: usize,
        meanwhile: &[Change],
    ) -> (Vec<DisplayKey>, bool) {
        let log = self.log.clone();
        let mut meanwhile = meanwhile.iter();
        let end = cap.and_then(|most| self.end(most));
        let mut descent = Descent::new(&log, shown_of(&log), before, end, MOST);
        let mut page = vec![];
        while page.len() <= limit {
            let leg = descent.next(limit + 1, || self.kept.take());
            meanwhile.next().into_iter().for_each(|change| self.change(change));
            match leg {
                Leg::Keys(keys) => {
                    assert!(!keys.is_empty());
                    let lives = |key: &DisplayKey| self.items.iter().any(|item| item.1.item == key.item && item.3);
                    page.extend(keys.into_iter().filter(lives));
                }
                Leg::Read(reading) => descent.told(&self.archive(reading)),
                Leg::End => break,
            }
        }
        self.kept = descent.into_window().or(self.kept.take());
        meanwhile.for_each(|change| self.change(change));
        let items: BTreeSet<ItemId> = page.iter().map(|key| key.item).collect();
        assert_eq!(items.len(), page.len(), "I7: an item comes twice: {page:?}");
        let more = page.len() > limit;
        page.truncate(limit);
        (page, more)
    }
}

fn shown_of(log: &Log) -> Vec<DisplayKey> {
    above_floor(&living_adds(&log.entries), log.floor)
}

fn add(author: u32, key: DisplayKey, direct: bool) -> Entry {
    let author = UserNo(author);
    if direct {
        Entry::direct(Op::Add, author, key)
    } else {
        Entry { op: Op::Add, author, outbox_seq: 1, generation: 1, key }
    }
}

/// A reader who scrolls.
#[derive(Default)]
struct Scroll {
    cursor: Option<DisplayKey>,
    /// What must have been seen by now, if it lies above the cursor, is what was always there and lies below this.
    start: Option<DisplayKey>,
    seen: Vec<DisplayKey>,
}

impl Scroll {
    fn from(feed: &mut Feed, start: Option<DisplayKey>) -> Self {
        let below = |key: &&DisplayKey| start.is_none_or(|start| **key < start);
        feed.always = feed.truth.keys().filter(|key| feed.stands(key)).filter(below).copied().collect();
        Self { cursor: start, start, seen: vec![] }
    }

    fn page(&mut self, feed: &mut Feed, limit: usize, meanwhile: &[Change]) {
        // What is gone by the truth, and the log has not heard of that.
        let going = feed.pending.iter().flat_map(|(_, gone)| gone);
        feed.ever = feed.truth.keys().chain(feed.told.keys()).chain(going).copied().collect();
        let (page, more) = feed.page(self.cursor, None, limit, meanwhile);
        let below = |key: &DisplayKey| self.start.is_none_or(|start| *key < start);
        assert!(page.iter().all(|key| feed.ever.contains(key) && below(key)), "I5: {page:?} was never in the feed");
        assert!(page.len() == limit || !more, "I8: a short page that is not the end");
        self.seen.extend(&page);
        assert!(self.seen.is_sorted_by(|a, b| a > b), "I7: strictly descending: {:?}", self.seen);
        let reached = |key: &&DisplayKey| !more || self.seen.last().is_some_and(|last| **key >= *last);
        for key in feed.always.iter().filter(reached) {
            assert!(self.seen.contains(key), "I7: {key:?} is missing in {:?}", self.seen);
        }
        *self = match more {
            true => Self { cursor: self.seen.last().copied(), seen: std::mem::take(&mut self.seen), ..*self },
            false => Self::from(feed, None),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn i7_i8_pages_descend_without_repeat_or_gap_whatever_happens_meanwhile(
        acts in prop::collection::vec(act(), 0..120),
        cursor in prop::option::of(rank()),
        cap in 1..12usize,
    ) {
        let mut feed = Feed::new();
        let mut scroll = Scroll::default();
        for act in &acts {
            match act {
                Act::Change(change) => feed.change(change),
                Act::Page(limit, meanwhile) => scroll.page(&mut feed, *limit, meanwhile),
                Act::From(start) => scroll = Scroll::from(&mut feed, *start),
            }
        }
        // In the end both ways tell the same, and the pages show exactly that.
        while !feed.pending.is_empty() {
            feed.deliver();
        }
        let start = cursor.map(|rank| DisplayKey { rank, item: ItemId(5) });
        for (start, cap) in [(None, None), (start, None), (None, Some(cap)), (start, Some(cap))] {
            let below = |key: &DisplayKey| start.is_none_or(|start| *key < start);
            let newest = feed.truth.keys().rev().take(cap.unwrap_or(usize::MAX));
            let expected: Vec<DisplayKey> = newest.copied().filter(below).collect();
            let (mut shown, mut before, mut more) = (vec![], start, true);
            while more {
                let (page, another) = feed.page(before, cap, 3, &[]);
                shown.extend(page);
                (before, more) = (shown.last().copied(), another);
            }
            prop_assert_eq!(shown, expected);
        }
    }
}

fn log(changes: &[(Op, u32, u64)]) -> Vec<Numbered> {
    changes
        .iter()
        .zip(1..)
        .map(|(&(op, author, item), seq)| {
            let key = DisplayKey { rank: item as i64, item: ItemId(item) };
            Numbered { seq, entry: Entry { op, author: UserNo(author), outbox_seq: seq, generation: 1, key } }
        })
        .collect()
}

#[test]
fn what_lives_is_what_was_added_and_neither_deleted_nor_forgotten_since() {
    use Op::{Add, Delete, Forget, Update};
    let entries = log(&[
        (Add, 1, 10),
        (Add, 2, 20),
        (Add, 1, 11),
        (Update, 1, 10),
        (Delete, 2, 20),
        (Forget, 1, 0),
        (Add, 1, 11),
        (Add, 3, 30),
    ]);
    let mut shown: Vec<u64> = living(&entries).iter().map(|k| k.item.0).collect();
    shown.sort_unstable();
    assert_eq!(shown, [11, 30]);
}
