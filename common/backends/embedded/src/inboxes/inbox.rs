//! The log of one reader's feed, and how far the log has taken in changes: no IO, no lock.
//!
//! Invariants: only the oldest changes of a log are cut off, in the step that made the log too long. That step raises
//! `floor` to the greatest key of any cut add that still lived. A follow step may raise `floor` too. At least [`KEEP`]
//! changes stay. Marks and watermarks only grow (I10).
//!
//! Size: 176 B, 16 more in the bucket's map, 16 per mark, and the packed changes.

use feedgate_common::inboxes::{KEEP, Log, MARKS_MAX, Read, floor_of_cut};
use feedgate_common::marks::{Mark, Verdict, push_verdict};
use feedgate_common::{DisplayKey, Entry, Epoch, Generation, Op, OutboxSeq, Position, UserNo, Watermarks};

use super::changes::Changes;
use super::until::Until;

/// A log is cut back when it has this many changes more than it must keep. A cut reads the changes that it cuts off. A
/// larger number makes cuts rarer and costs memory.
const SLACK: usize = 256;

/// The log of one reader's feed.
#[derive(Debug, Clone)]
pub(super) struct Inbox {
    pub(super) epoch: Epoch,
    pub(super) built_at: Generation,
    pub(super) floor: Option<DisplayKey>,
    /// How far the inbox has taken in what readers pull and what is addressed to its reader.
    pub(super) taken: Watermarks,
    /// The packed mark of each author who has a mark in this inbox, sorted by author.
    pub(super) marks: Vec<(UserNo, u64)>,
    pub(super) changes: Changes,
    /// How many of the changes are a `delete` or a `forget`.
    pub(super) removals: u32,
    /// From this moment on the inbox may be dropped.
    pub(super) until: Until,
}

impl Inbox {
    /// An empty log that remembers nothing of any author.
    pub(super) fn new(
        epoch: Epoch,
        built_at: Generation,
        floor: Option<DisplayKey>,
        taken: Watermarks,
        until: Until,
    ) -> Self {
        Self { epoch, built_at, floor, taken, marks: Vec::new(), changes: Changes::default(), removals: 0, until }
    }

    /// The epoch of the log and its last sequence id.
    pub(super) fn head(&self) -> Position {
        Position { epoch: self.epoch, offset: self.changes.head() }
    }

    /// The mark that is remembered of `author`, if any.
    #[inline]
    pub(super) fn mark(&self, author: UserNo) -> Option<Mark> {
        let at = self.marks.binary_search_by_key(&author, |&(author, _)| author).ok()?;
        Some(Mark::unpacked(self.marks[at].1))
    }

    /// What to do with an entry that no push brings. `counter` is the newest edge generation known to the caller who
    /// read the entry.
    pub(super) fn verdict(&self, entry: &Entry, counter: Generation) -> Verdict {
        if entry.is_direct() {
            return Verdict::Append;
        }
        push_verdict(self.mark(entry.author), self.built_at, entry.generation, counter)
    }

    /// Sets the mark of `author`, in place of an earlier mark.
    pub(super) fn set_mark(&mut self, author: UserNo, mark: Mark) {
        match self.marks.binary_search_by_key(&author, |&(author, _)| author) {
            Ok(at) => self.marks[at].1 = mark.packed(),
            Err(at) => {
                self.marks.reserve_exact(1);
                self.marks.insert(at, (author, mark.packed()));
            }
        }
    }

    /// Whether the inbox remembers as many follow steps as it may, and none of `author`.
    pub(super) fn is_full_for(&self, author: UserNo) -> bool {
        let is_taken = |packed: u64| matches!(Mark::unpacked(packed), Mark::Taken(_));
        self.marks.len() >= MARKS_MAX
            && !matches!(self.mark(author), Some(Mark::Taken(_)))
            && self.marks.iter().filter(|(_, packed)| is_taken(*packed)).count() >= MARKS_MAX
    }

    /// Notes that push has brought record `seq` of `author`. Removes the mark by which the inbox was ahead of push, if
    /// the mark reaches no further than `seq`.
    #[inline]
    pub(super) fn reached(&mut self, author: UserNo, seq: OutboxSeq) {
        if let Ok(at) = self.marks.binary_search_by_key(&author, |&(author, _)| author)
            && matches!(Mark::unpacked(self.marks[at].1), Mark::Ahead(upto) if upto <= seq)
        {
            self.marks.remove(at);
        }
    }

    /// Appends an entry without cutting; the caller calls [`Inbox::trim`] at the end of the step.
    #[inline]
    pub(super) fn push(&mut self, entry: &Entry) {
        self.removals += u32::from(removes(entry.op));
        self.changes.push(entry);
    }

    /// Cuts the log back if it is too long. Answers how many changes were cut off.
    #[inline]
    pub(super) fn trim(&mut self) -> usize {
        if self.changes.len() <= KEEP + SLACK { 0 } else { self.cut() }
    }

    fn cut(&mut self) -> usize {
        // A clone shares the chunks, so the changes that are cut off can still be read from it.
        let whole = self.changes.clone();
        let cut = self.changes.cut_to(KEEP);
        // If the log has no removal, the changes that stay cannot say that a cut add is gone; they need not be read.
        let told = if self.removals == 0 { cut } else { usize::MAX };
        let removals = whole.after(0).take(cut).filter(|n| removes(n.entry.op)).count();
        self.floor = self.floor.max(floor_of_cut(whole.after(0).map(|n| n.entry).take(told), cut));
        self.removals -= removals as u32;
        cut
    }

    /// At most `limit` changes after the position `after`; `Gone` if the log does not hold all changes after that
    /// position.
    pub(super) fn read(&self, after: Position, limit: usize) -> Read {
        let head = self.head();
        if after.epoch != head.epoch || after.offset < self.changes.base() || after.offset > head.offset {
            return Read::Gone { head };
        }
        let ahead = (head.offset - after.offset) as usize;
        let mut entries = Vec::with_capacity(ahead.min(limit));
        entries.extend(self.changes.after(after.offset).take(limit));
        Read::Entries { entries, head: head.offset, taken: self.taken }
    }

    /// The whole log, with all that is remembered.
    pub(super) fn log(&self) -> Log {
        let mut entries = Vec::with_capacity(self.changes.len());
        entries.extend(self.changes.after(0));
        Log { head: self.head(), floor: self.floor, taken: self.taken, entries }
    }
}

fn removes(op: Op) -> bool {
    matches!(op, Op::Delete | Op::Forget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_common::ItemId;

    const AUTHOR: UserNo = UserNo(7);

    fn key(item: u64) -> DisplayKey {
        DisplayKey { rank: 1000 - item as i64, item: ItemId(item) }
    }

    fn change(op: Op, item: u64) -> Entry {
        Entry { op, author: AUTHOR, outbox_seq: item, generation: 1, key: key(item) }
    }

    fn empty() -> Inbox {
        Inbox::new(Epoch(1), 1, None, Watermarks::default(), Until::at_least(0))
    }

    fn full(first: &[Entry]) -> Inbox {
        let mut inbox = empty();
        first.iter().for_each(|e| inbox.push(e));
        while inbox.changes.len() < KEEP + SLACK {
            inbox.push(&change(Op::Update, 1));
        }
        inbox
    }

    #[test]
    fn i10_the_floor_rises_to_the_greatest_cut_add_that_still_lived() {
        use Op::{Add, Delete, Update};
        let forget = Entry::forget(AUTHOR, 2, None);
        let cases: [(&[Entry], Entry, Option<u64>); 6] = [
            (&[change(Add, 5), change(Add, 6)], change(Update, 1), Some(5)),
            (&[change(Update, 5)], change(Update, 1), None),
            (&[change(Add, 5), change(Add, 6), change(Delete, 5)], change(Update, 1), Some(6)),
            (&[change(Add, 5), change(Add, 6)], change(Delete, 5), Some(6)),
            (&[change(Add, 5), forget, change(Add, 6)], change(Update, 1), Some(6)),
            (&[change(Add, 5), change(Add, 6)], forget, None),
        ];
        for (first, last, floor) in cases {
            let mut inbox = full(first);
            assert_eq!(inbox.trim(), 0);
            inbox.push(&last);
            assert_eq!(inbox.trim(), 256, "{first:?}");
            assert_eq!(inbox.floor, floor.map(key), "{first:?} then {last:?}");
            assert_eq!(inbox.changes.len(), KEEP + 1);
            assert_eq!(inbox.removals as usize, inbox.log().entries.iter().filter(|n| removes(n.entry.op)).count());
        }
    }

    #[test]
    fn an_inbox_takes_176_bytes_besides_its_changes() {
        assert_eq!(size_of::<Inbox>(), 176);
    }

    #[test]
    fn the_floor_never_sinks() {
        let mut inbox = full(&[change(Op::Add, 500)]);
        inbox.floor = Some(key(3));
        inbox.push(&change(Op::Update, 1));
        inbox.trim();
        assert_eq!(inbox.floor, Some(key(3)));
    }

    #[test]
    fn i9_a_read_is_dense_from_the_position_or_gone() {
        let mut inbox = full(&[]);
        inbox.push(&change(Op::Update, 1));
        inbox.trim();
        let (base, head) = (inbox.changes.base(), inbox.changes.head());
        let at = |epoch, offset| Position { epoch: Epoch(epoch), offset };
        for gone in [at(1, base - 1), at(1, 0), at(1, head + 1), at(1, u64::MAX), at(0, head), at(2, head)] {
            assert_eq!(inbox.read(gone, 10), Read::Gone { head: at(1, head) }, "{gone:?}");
        }
        for (offset, first, len) in [(base, base + 1, 10), (head - 3, head - 2, 3)] {
            let Read::Entries { entries, head: h, .. } = inbox.read(at(1, offset), 10) else {
                panic!("gone at {offset}")
            };
            assert_eq!((entries[0].seq, entries.len(), h), (first, len, head));
        }
        assert_eq!(inbox.read(at(1, head), 10), Read::Entries { entries: vec![], head, taken: inbox.taken });
    }

    #[test]
    fn marks_are_found_by_author_and_replaced() {
        let mut inbox = empty();
        for (author, generation) in [(5, 10), (2, 11), (9, 12), (5, 13)] {
            inbox.set_mark(UserNo(author), Mark::Taken(generation));
        }
        inbox.set_mark(UserNo(1), Mark::Ahead(7));
        let found = |inbox: &Inbox| [1, 2, 5, 9, 4].map(|author| inbox.mark(UserNo(author)));
        let taken = [Some(11), Some(13), Some(12), None].map(|taken| taken.map(Mark::Taken));
        [1, 2, 5, 4].into_iter().for_each(|author| inbox.reached(UserNo(author), 6));
        assert_eq!(found(&inbox)[0], Some(Mark::Ahead(7)));
        assert_eq!(found(&inbox)[1..], taken);
        [1, 2, 5, 4].into_iter().for_each(|author| inbox.reached(UserNo(author), 7));
        assert_eq!(found(&inbox)[0], None);
        assert_eq!(found(&inbox)[1..], taken);
    }
}
