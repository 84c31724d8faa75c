//! A stretch of one feed as the Archive told it, corrected by what the log has told since.
//!
//! ```text
//!   newest ──── log ──── floor   top ═════════ told ═════════ next ┄┄ month ┄┄ year ┄┄ all ┄┄▶ oldest
//! ```
//!
//! Invariants:
//! - The Archive was read only after the log was read at `position`. So a change that those reads did not tell stands
//!   in the log beyond `position`, and [`Window::follow`] takes it in. Between `top` and `next` the window shows
//!   exactly the items of the feed, whether the floor has risen meanwhile or not. A `forget` with a floor says that the
//!   log does not tell all of a follow; then the window is of no use.
//! - A page enters where it leaves the log. A floor that has risen lies above `top`. A page that leaves the log there
//!   is not [covered](Window::covers) by the window and begins another: nothing between an old floor and a new one is
//!   passed by.
//! - Bounded: [`KEPT_READS`] reads' worth of adds, 24 B each.

use std::sync::Arc;

use crate::archive::{Below, FeedAdd};
use crate::inboxes::Log;
use crate::{DisplayKey, Entry, ItemId, Millis, Op, Position, UserNo};

/// The number of reads whose adds are kept, late adds included.
const KEPT_READS: usize = 3;

const MINUTE: Millis = 60 * 1000;
const DAY: Millis = 24 * 60 * MINUTE;

/// How far down the Archive is read. The further, the more it costs and the fewer ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Month,
    Year,
    All,
}

impl Stage {
    /// The least rank of a feed whose ranks are times and that is read from `begun` down.
    fn least_rank(self, begun: i64) -> Option<i64> {
        match self {
            Self::Month => Some(begun.saturating_sub(30 * DAY)),
            Self::Year => Some(begun.saturating_sub(365 * DAY)),
            Self::All => None,
        }
    }

    fn further(self) -> Self {
        match self {
            Self::Month => Self::Year,
            Self::Year | Self::All => Self::All,
        }
    }
}

/// An add of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Add {
    key: DisplayKey,
    author: UserNo,
    direct: bool,
}

/// A stretch of a feed below the floor of its log, as it was read from the Archive.
#[derive(Debug, Clone)]
pub(super) struct Window {
    position: Position,
    /// The greatest key that the window tells of.
    top: DisplayKey,
    /// The greatest key below the window; `None` if the window reaches the end of the feed.
    next: Option<DisplayKey>,
    stage: Stage,
    /// The rank that the stages count from.
    begun: i64,
    /// How many adds one read asks for.
    most: usize,
    /// Newest first. Shared with the copy that is kept for the next page, until either changes.
    adds: Arc<Vec<Add>>,
}

impl Window {
    /// One that tells of nothing yet, from `top` down, for a log that was read at `position`.
    pub(super) fn begin(position: Position, top: DisplayKey, most: usize) -> Self {
        Self { position, top, next: Some(top), stage: Stage::Month, begun: top.rank, most, adds: Arc::default() }
    }

    /// Whether a page that enters at `at` can go on in it.
    pub(super) fn covers(&self, at: DisplayKey) -> bool {
        at <= self.top && self.next.is_none_or(|next| at >= next)
    }

    /// The first `limit` keys at or below `at`.
    pub(super) fn keys(&self, at: DisplayKey, limit: usize) -> Vec<DisplayKey> {
        let from = self.adds.partition_point(|add| add.key > at);
        self.adds[from..].iter().take(limit).map(|add| add.key).collect()
    }

    /// The next read below the window; `None` if the window reaches the end of the feed.
    pub(super) fn next(&self) -> Option<Below> {
        let least_rank = self.stage.least_rank(self.begun);
        Some(Below { before: self.next?.just_above(), least_rank, limit: self.most })
    }

    /// Takes in the answer to [`Window::next`], and lets go of adds that lie far above it.
    pub(super) fn grow(&mut self, told: &[FeedAdd]) {
        let adds = Arc::make_mut(&mut self.adds);
        let passed = adds.len().saturating_sub(self.most);
        if passed > 0 {
            adds.drain(..passed);
            self.top = adds[0].key;
        }
        adds.extend(told.iter().map(|add| Add { key: add.key, author: add.author, direct: add.outbox_seq == 0 }));
        if told.len() >= self.most {
            self.next = told.last().and_then(|last| last.key.just_below());
            return;
        }
        let least = self.stage.least_rank(self.begun);
        self.next = least.and_then(|rank| DisplayKey { rank, item: ItemId(0) }.just_below());
        self.stage = self.stage.further();
    }

    /// Takes in the changes of the log since the last call. Gives false if the window is of no use any more: the
    /// changes are not known, or are too many, or a follow shows more than the log tells.
    pub(super) fn follow(&mut self, log: &Log) -> bool {
        let base = log.head.offset - log.entries.len() as u64;
        let known = (base..=log.head.offset).contains(&self.position.offset);
        if !known || self.position.epoch != log.head.epoch {
            return false;
        }
        let since = (self.position.offset - base) as usize;
        if log.entries[since..].iter().any(|numbered| numbered.entry.floor().is_some()) {
            return false;
        }
        log.entries[since..].iter().for_each(|numbered| self.apply(&numbered.entry));
        self.position = log.head;
        self.adds.len() <= KEPT_READS * self.most
    }

    fn apply(&mut self, entry: &Entry) {
        let place = self.adds.binary_search_by(|add| entry.key.cmp(&add.key));
        match (entry.op, place) {
            (Op::Add, Err(at)) if self.tells_of(entry.key) => {
                let add = Add { key: entry.key, author: entry.author, direct: entry.is_direct() };
                Arc::make_mut(&mut self.adds).insert(at, add);
            }
            (Op::Delete, Ok(at)) => _ = Arc::make_mut(&mut self.adds).remove(at),
            (Op::Forget, _) => {
                let stays = |add: &Add| add.direct || add.author != entry.author;
                if !self.adds.iter().all(stays) {
                    Arc::make_mut(&mut self.adds).retain(stays);
                }
            }
            (Op::Add | Op::Update | Op::Delete, _) => {}
        }
    }

    fn tells_of(&self, key: DisplayKey) -> bool {
        key <= self.top && self.next.is_none_or(|next| key > next)
    }

    /// How long it is worth keeping: the deeper, the shorter.
    pub(super) fn worth(&self) -> Millis {
        match self.stage {
            Stage::Month => 10 * MINUTE,
            Stage::Year => 5 * MINUTE,
            Stage::All => MINUTE,
        }
    }

    /// How many bytes of memory the window takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Vec<Add>>() + self.adds.capacity() * size_of::<Add>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Epoch;
    use crate::inboxes::Numbered;

    const AUTHOR: UserNo = UserNo(7);

    fn key(rank: i64, item: u64) -> DisplayKey {
        DisplayKey { rank, item: ItemId(item) }
    }

    fn told(ranks: &[i64]) -> Vec<FeedAdd> {
        let add = |&rank: &i64| FeedAdd { author: AUTHOR, outbox_seq: 1, generation: 1, key: key(rank, 1) };
        ranks.iter().map(add).collect()
    }

    fn log(base: u64, changes: &[(Op, i64)]) -> Log {
        let entries = changes.iter().zip(base + 1..).map(|(&(op, rank), seq)| {
            let entry = Entry { op, author: AUTHOR, outbox_seq: seq, generation: 1, key: key(rank, 1) };
            Numbered { seq, entry }
        });
        let head = Position { epoch: Epoch(1), offset: base + changes.len() as u64 };
        Log { head, floor: Some(key(100, 1)), taken: Default::default(), entries: entries.collect() }
    }

    fn ranks(window: &Window) -> Vec<i64> {
        window.keys(window.top, usize::MAX).iter().map(|key| key.rank).collect()
    }

    fn window(at: i64, most: usize) -> Window {
        Window::begin(log(5, &[]).head, key(at, 1), most)
    }

    #[test]
    fn it_is_read_a_month_then_a_year_then_all_and_kept_the_shorter_the_deeper() {
        let top = 2000 * DAY;
        let mut window = window(top, 3);
        let mut asked = vec![];
        for answer in [&[top, top - DAY, top - 2 * DAY][..], &[top - 3 * DAY], &[top - 40 * DAY], &[]] {
            let reading = window.next().unwrap();
            asked.push((reading.before.map(|k| (k.rank / DAY, k.item.0)), reading.least_rank.map(|r| r / DAY)));
            window.grow(&told(answer));
            asked.push((None, Some(window.worth() / MINUTE)));
        }
        let (last, end) = (Some((1998, 1)), Some((1970, 0)));
        let minutes = |n| (None, Some(n));
        assert_eq!(
            asked,
            [
                (Some((2000, 2)), Some(1970)),
                minutes(10),
                (last, Some(1970)),
                minutes(5),
                (end, Some(1635)),
                minutes(1),
                (Some((1635, 0)), None),
                minutes(1),
            ]
        );
        assert_eq!(window.next(), None, "it tells of all");
    }

    #[test]
    fn what_comes_late_is_taken_in_where_it_belongs_and_nowhere_else() {
        use Op::{Add, Delete, Update};
        let mut window = window(100, 3);
        window.grow(&told(&[90, 80, 70]));
        assert!(window.follow(&log(4, &[(Add, 85), (Add, 95), (Add, 101), (Add, 69), (Delete, 80), (Update, 75)])));
        assert_eq!(ranks(&window), [95, 90, 70], "85 was known before; 101 and 69 are not what it tells of");
        assert!(window.follow(&log(4, &[(Add, 85), (Add, 95), (Add, 101), (Add, 69), (Delete, 80), (Update, 75)])));
        assert_eq!(ranks(&window), [95, 90, 70]);
    }

    #[test]
    fn what_is_forgotten_leaves_but_for_what_was_addressed_to_the_reader() {
        let mut window = window(100, 9);
        let mut adds = told(&[90, 80, 70, 60]);
        adds[1].author = UserNo(8);
        adds[2].outbox_seq = 0;
        window.grow(&adds);
        let mut log = log(5, &[(Op::Forget, 0)]);
        log.entries[0].entry = Entry::forget(AUTHOR, 3, None);
        assert!(window.follow(&log));
        assert_eq!(ranks(&window), [80, 70]);
    }

    #[test]
    fn s12_a_follow_that_shows_more_than_the_log_tells_makes_it_useless() {
        let mut followed = log(5, &[(Op::Forget, 0), (Op::Add, 99)]);
        followed.entries[0].entry = Entry::forget(AUTHOR, 3, None);
        assert!(window(100, 9).follow(&followed));
        followed.entries[0].entry = Entry::forget(AUTHOR, 3, Some(key(40, 1)));
        assert!(!window(100, 9).follow(&followed));
    }

    #[test]
    fn a_position_that_the_log_does_not_hold_any_more_makes_it_useless() {
        let held = log(5, &[(Op::Update, 1)]);
        assert!(window(100, 9).follow(&held));
        let cut = log(6, &[(Op::Update, 1)]);
        assert!(!window(100, 9).follow(&cut), "a change was cut that it has not seen");
        let mut other = held;
        other.head.epoch = Epoch(2);
        assert!(!window(100, 9).follow(&other), "another epoch");
    }

    #[test]
    fn i18_it_lets_go_of_what_lies_far_above_and_of_itself_when_too_much_comes_late() {
        let mut window = window(100, 3);
        for adds in [[90, 80, 70], [60, 50, 40], [30, 20, 10]] {
            window.grow(&told(&adds));
        }
        assert_eq!(ranks(&window), [60, 50, 40, 30, 20, 10]);
        assert!(window.covers(key(60, 1)) && !window.covers(key(60, 2)), "it does not tell of what is above");
        let late: Vec<(Op, i64)> = (41..=44).map(|rank| (Op::Add, rank)).collect();
        assert!(!window.follow(&log(5, &late)), "ten adds where a read asks for three");
    }
}
