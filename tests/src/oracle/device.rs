//! A device that shows one feed: it reads by position, and keeps its own view only by the changes it was sent.

use std::collections::BTreeMap;

use async_trait::async_trait;
use feedgate_common::{DisplayKey, Epoch, Millis, Op, Position};
use serde::{Deserialize, Serialize};

use super::history::{Inbox, Item, RANKED, User};

/// An item as a page shows it. Greater stands higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shown {
    /// The rank of the item.
    pub rank: i64,
    /// The number of the item.
    pub item: Item,
    /// The version of the item: 1, and one more for each edit.
    pub version: u32,
}

/// A notification of reactions to one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The item that they have reacted to.
    pub item: Item,
    /// The last users who have reacted, the newest first.
    pub actors: Vec<User>,
    /// How many have reacted.
    pub count: u64,
    /// When the last one joined, in Unix ms. It decides where the line stands, and whether it was seen.
    pub at: Millis,
}

/// A change as a device is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The sequence id of the change.
    pub seq: u64,
    /// What the change does.
    pub op: Op,
    /// The item; of no meaning for a `forget`.
    pub item: Item,
    /// The rank and the id of the item.
    pub place: DisplayKey,
    /// The number of the item's author.
    pub author: u32,
    /// Whether it was addressed to the reader.
    pub direct: bool,
    /// Of a `forget`: the place from which on down the log does not tell all that the follow shows.
    pub floor: Option<DisplayKey>,
}

/// The answer to a read by position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Changes {
    /// The changes after it, and where the log ends.
    After(Vec<Seen>, u64),
    /// The log cannot go on from that position.
    Gone,
}

/// A page: its items, and with each its place, whose it is, and whether it was addressed to the reader; where the next
/// one begins; and the position that was read before it.
pub type Page = (Vec<(Shown, DisplayKey, u32, bool)>, Option<DisplayKey>, Position);

/// How a page is looked at. It makes a difference for rankings alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Look {
    /// As it is shown to the reader, who may not see all that is ranked.
    Shown,
    /// As the log tells it: with all items that are ranked and live.
    Logged,
}

/// A server of devices: the product behind any interface.
#[async_trait]
pub trait Serves: Send + Sync {
    /// At most `limit` changes after `after`.
    async fn changes(&self, inbox: Inbox, after: Position, limit: usize) -> Changes;
    /// At most `limit` items below `before`.
    async fn page(&self, inbox: Inbox, before: Option<DisplayKey>, limit: usize, look: Look) -> Page;
    /// The notifications on a page, newest first.
    async fn lines(&self, user: User) -> Vec<Line>;
}

/// A device that shows one feed, and checks every answer that it gets.
///
/// It is told of a ranking what the log says. A reader may not see all of that, and is not told when this changes: so
/// what is shown depends on when it was read, and the log does not.
#[derive(Debug, Default)]
pub struct Device {
    position: Option<Position>,
    shown: BTreeMap<Item, Held>,
    /// The place from which on down it has to load pages; `None` if it shows the feed to its end.
    missing: Option<DisplayKey>,
}

/// What a device keeps of an item that it shows.
#[derive(Debug, Clone, Copy)]
struct Held {
    place: DisplayKey,
    author: u32,
    direct: bool,
}

impl Device {
    /// The items that the device shows.
    pub fn items(&self) -> Vec<Item> {
        self.shown.keys().copied().collect()
    }

    /// Reads on, at most `reads` times, `limit` changes each; true when it has come to the end.
    ///
    /// # Panics
    /// If an answer has a hole: what is not `Gone` is everything (I9).
    pub async fn sync(&mut self, server: &dyn Serves, inbox: Inbox, reads: usize, limit: usize) -> bool {
        for _ in 0..reads {
            let position = self.position.unwrap_or(Position { epoch: Epoch(0), offset: 0 });
            match server.changes(inbox, position, limit).await {
                Changes::After(changes, head) => {
                    for (change, expected) in changes.iter().zip(position.offset + 1..) {
                        assert_eq!(change.seq, expected, "I9: a read after {position:?} has a hole");
                        self.apply(change);
                    }
                    let offset = position.offset + changes.len() as u64;
                    self.position = Some(Position { offset, ..position });
                    assert!(changes.len() == limit || offset == head, "I9: a read ends at {offset} before {head}");
                    if offset == head && self.load_missing(server, inbox, limit).await {
                        return true;
                    }
                }
                Changes::Gone => self.reload(server, inbox, limit).await,
            }
        }
        false
    }

    fn apply(&mut self, change: &Seen) {
        match change.op {
            Op::Add if self.missing.is_none_or(|missing| change.place > missing) => {
                let (place, author, direct) = (change.place, change.author, change.direct);
                self.shown.insert(change.item, Held { place, author, direct });
            }
            Op::Add => {}
            Op::Update => {}
            Op::Delete => _ = self.shown.remove(&change.item),
            Op::Forget => {
                self.shown.retain(|_, held| held.direct || held.author != change.author);
                self.missing = self.missing.max(change.floor);
                self.shown.retain(|_, held| self.missing.is_none_or(|missing| held.place > missing));
            }
        }
    }

    /// Loads what a follow has left to pages. False if the log was built anew meanwhile: then the next read says so.
    async fn load_missing(&mut self, server: &dyn Serves, inbox: Inbox, limit: usize) -> bool {
        while let Some(missing) = self.missing {
            let (items, next, position) = server.page(inbox, missing.just_above(), limit, Look::Logged).await;
            if Some(position.epoch) != self.position.map(|position| position.epoch) {
                return false;
            }
            self.keep(&items);
            self.missing = next.and_then(DisplayKey::just_below);
        }
        true
    }

    fn keep(&mut self, items: &[(Shown, DisplayKey, u32, bool)]) {
        let held = |&(shown, place, author, direct): &(Shown, DisplayKey, u32, bool)| {
            (shown.item, Held { place, author, direct })
        };
        self.shown.extend(items.iter().map(held));
    }

    /// Loads every page; the position was read before the first.
    async fn reload(&mut self, server: &dyn Serves, inbox: Inbox, limit: usize) {
        let mut fresh = Self::default();
        let mut before = None;
        loop {
            let (items, next, position) = server.page(inbox, before, limit, Look::Logged).await;
            fresh.position.get_or_insert(position);
            fresh.keep(&items);
            before = next;
            if before.is_none() {
                break;
            }
        }
        *self = fresh;
    }
}

/// Walks over all pages, as one who scrolls does.
///
/// # Panics
/// If an item stands where it must not (I7), a page is short and not the last (I8), or what is ranked is not addressed
/// to the reader, so that a `forget` would take it away (S11).
pub async fn walk(server: &dyn Serves, inbox: Inbox, limit: usize) -> Vec<Shown> {
    let mut walked: Vec<Shown> = vec![];
    let mut before = None;
    loop {
        let (items, next, _) = server.page(inbox, before, limit, Look::Shown).await;
        assert!(inbox.1 != RANKED || items.iter().all(|(.., direct)| *direct), "S11: {items:?} are not addressed");
        assert!(items.len() <= limit && (next.is_none() || items.len() == limit), "I8: {items:?} and then {next:?}");
        walked.extend(items.into_iter().map(|(shown, ..)| shown));
        let places: Vec<_> = walked.iter().map(|shown| (shown.rank, shown.item)).collect();
        assert!(places.is_sorted_by(|a, b| a > b), "I7: {walked:?} do not descend");
        before = next;
        if before.is_none() {
            return walked;
        }
    }
}
