//! The list that a device shows, kept from pages and changes. It never has a hole: only the loaded stretch is shown,
//! and a missing change is an error. `feed.js` explains the rules.

mod stored;
mod wire;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

pub use stored::Stored;
pub use wire::{Around, Change, Gap, Item, Limits, Page, Person, Place, Position, Rest, read};

/// Changes held at most while page one is loading.
const HELD_MAX: usize = 1000;

/// One feed of one reader.
#[derive(Debug, Default)]
pub struct Feed {
    limits: Limits,
    position: Option<Position>,
    next: Option<String>,
    items: HashMap<String, Item>,
    /// How authors are shown, as the last page had them.
    people: BTreeMap<String, Person>,
    /// The place of the last item of the last page, unless that was the end.
    bottom: Option<Place>,
    /// An older page that was read before this offset lacks what the list knows, or has what is gone.
    rewritten: u64,
    /// What the last change deleted: the next one adds it again if it moves.
    removed: Option<Item>,
    /// Changes that came while there was no position, with offset and epoch.
    held: Vec<(Change, u64, Option<String>)>,
}

impl Feed {
    /// An empty feed without a position.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The position of the last change taken in; none while page one is missing.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// The cursor of the next older page; none at the end.
    pub fn next(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// How the last page with an item of this author, or with a repost of one, showed the author.
    pub fn person(&self, author: &str) -> Option<&Person> {
        self.people.get(author)
    }

    /// Starts over from page one, then takes in what came meanwhile. False if the list is newer already.
    pub fn reset(&mut self, page: Page) -> Result<bool, Gap> {
        if self.position.as_ref().is_some_and(|at| at.epoch == page.position.epoch && at.offset > page.position.offset)
        {
            return Ok(false);
        }
        let held = std::mem::take(&mut self.held);
        let (position, rewritten) = (Some(page.position.clone()), page.position.offset);
        *self = Self { limits: self.limits, position, rewritten, ..Self::default() };
        self.extend(page);
        for (change, offset, epoch) in held {
            if epoch.as_deref().is_none_or(|epoch| self.is_of(epoch)) {
                self.apply(change, offset, epoch.as_deref())?;
            }
        }
        Ok(true)
    }

    /// Adds an older page, which was asked for with `cursor`. False if it goes on from another place than the end of
    /// the list, or was read before changes that the list holds: ask again, with the [`Self::next`] of now.
    pub fn append(&mut self, page: Page, cursor: &str) -> bool {
        let is_of_now = self.is_of(&page.position.epoch) && page.position.offset >= self.rewritten;
        let fits = is_of_now && self.next() == Some(cursor);
        if fits {
            self.extend(page);
        }
        fits
    }

    /// The position is worth nothing any more. What is shown stays until [`Self::reset`].
    pub fn lost(&mut self) {
        self.position = None;
        self.held.clear();
    }

    /// Takes in one change. True if it was new. An epoch of none is not compared.
    pub fn apply(&mut self, change: Change, offset: u64, epoch: Option<&str>) -> Result<bool, Gap> {
        if matches!(change, Change::Behind | Change::Seen { .. }) {
            return Ok(false);
        }
        let Some(at) = &self.position else {
            self.hold(change, offset, epoch);
            return Ok(false);
        };
        let is_known = offset <= at.offset;
        if epoch.is_some_and(|epoch| epoch != at.epoch) || offset > at.offset + 1 {
            return Err(Gap { at: at.clone(), came: offset });
        }
        if !is_known {
            self.position = Some(Position { epoch: at.epoch.clone(), offset });
            self.change(change, offset);
        }
        Ok(!is_known)
    }

    /// What to show, newest first. `now`: Unix time in milliseconds.
    pub fn items(&self, now: i64) -> Vec<&Item> {
        let Limits { cap, ttl } = self.limits;
        let is_young = |item: &&Item| ttl.is_none_or(|ttl| now - item.published_at <= ttl);
        self.sorted().into_iter().take(cap.unwrap_or(usize::MAX)).filter(is_young).collect()
    }

    fn is_of(&self, epoch: &str) -> bool {
        self.position.as_ref().is_some_and(|at| at.epoch == epoch)
    }

    fn sorted(&self) -> Vec<&Item> {
        let mut items: Vec<_> = self.items.values().collect();
        items.sort_by_key(|item| Reverse(&item.place));
        items
    }

    fn hold(&mut self, change: Change, offset: u64, epoch: Option<&str>) {
        self.held.drain(..self.held.len().saturating_sub(HELD_MAX - 1)); // `reset` meets the gap
        self.held.push((change, offset, epoch.map(str::to_owned)));
    }

    fn extend(&mut self, page: Page) {
        if let Some(last) = page.items.last() {
            self.bottom = Some(last.place.clone());
        }
        for item in page.items {
            self.meet(&item.author, &page.people);
            if let Some(original) = &item.around.ref_item {
                self.meet(&original.author, &page.people);
            }
            self.keep(item);
        }
        self.next = page.next;
        self.bottom.take_if(|_| self.next.is_none());
    }

    /// Whether a place is in the loaded stretch, and not below it.
    fn reaches(&self, place: &Place) -> bool {
        self.bottom.as_ref().is_none_or(|bottom| place >= bottom)
    }

    fn change(&mut self, change: Change, offset: u64) {
        if !matches!(&change, Change::Add { item } if self.reaches(&item.place)) {
            self.rewritten = offset;
        }
        let removed = self.removed.take();
        match change {
            Change::Add { item } if !self.reaches(&item.place) => {}
            Change::Add { item } => match removed.filter(|removed| removed.id() == item.id()) {
                Some(Item { around, .. }) => self.keep(Item { around, ..item }),
                None => self.keep(item),
            },
            Change::Update { item } => {
                if let Some(shown) = self.items.get(item.id()) {
                    self.keep(Item { around: shown.around.clone(), ..item });
                }
            }
            Change::Delete { item_id } => self.removed = self.items.remove(&item_id),
            Change::Forget { author, rest } => {
                self.items.retain(|_, item| item.author != author || item.direct);
                if let Some(Rest { floor, next }) = rest
                    && self.reaches(&floor)
                {
                    self.items.retain(|_, item| item.place > floor);
                    (self.bottom, self.next) = (Some(floor), Some(next));
                }
            }
            Change::Behind | Change::Seen { .. } => {}
        }
    }

    /// Keeps what a page says of the author of an item on it.
    fn meet(&mut self, author: &str, people: &BTreeMap<String, Person>) {
        match people.get(author) {
            Some(person) => self.people.insert(author.to_owned(), person.clone()),
            None => self.people.remove(author),
        };
    }

    /// A page may know a later version than a change that comes after it.
    fn keep(&mut self, item: Item) {
        if self.items.get(item.id()).is_none_or(|shown| shown.version <= item.version) {
            self.items.insert(item.id().to_owned(), item);
        }
    }
}
