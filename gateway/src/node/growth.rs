//! Keeps how inboxes grew lately, as the doorbell told it or as this node did it, so that a session that is nearly up
//! to date needs no read of the store.
//!
//! ```text
//!   growth ──▶ kept: inbox → head, and its last changes ──▶ wake ──▶ a live session one step behind: read from here
//!                                                               any other, and each look by itself: from the log
//! ```
//!
//! This is only an optimisation: without it every device gets the same changes from the log.
//!
//! Invariants:
//! - What is kept here is also in the log, because nobody is told before the append has committed: dense sequence ids
//!   of one epoch that end at the head that was told.
//! - Growth is kept here before the session is woken.
//! - A look at the log that is to find lost wakes is never answered from here. Nor is a catch-up: nothing is told of an
//!   inbox that has no session here, so what is kept may be old.
//! - Bounded: the last [`KEPT_MAX`] changes of an inbox with a session on this node, [`BYTES_MAX`] bytes in all.

use std::sync::Arc;

use feedgate_common::inboxes::Numbered;
use feedgate_common::{InboxKey, Position};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// The most changes that are kept of one inbox.
const KEPT_MAX: usize = 32;

/// The most bytes that are kept in all.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The last changes of inboxes with a session here; `None` if nothing is kept.
pub(crate) struct RecentGrowth(Option<Cache<InboxKey, Arc<Run>, ByBytes>>);

/// The end of one inbox's log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    head: Position,
    /// The last changes up to `head`, without a hole; empty if the doorbell did not say what they are.
    entries: Vec<Numbered>,
}

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<InboxKey, Arc<Run>> for ByBytes {
    fn weight(&self, _: &InboxKey, run: &Arc<Run>) -> u64 {
        (size_of::<Run>() + run.entries.capacity() * size_of::<Numbered>() + 96) as u64
    }
}

impl RecentGrowth {
    /// Keeps changes if `on`, otherwise nothing.
    pub(crate) fn new(on: bool) -> Self {
        Self(on.then(|| Cache::with_weighter((BYTES_MAX / 256) as usize, BYTES_MAX, ByBytes)))
    }

    /// Notes that the inbox has grown up to `head`, and that `entries` are its last changes. Not atomic: calls
    /// for one inbox must come one after another.
    pub(crate) fn record(&self, key: InboxKey, head: Position, entries: impl ExactSizeIterator<Item = Numbered>) {
        let Some(growth) = &self.0 else { return };
        let known = growth.get(&key);
        if let Some(run) = Run::grown(known.as_deref(), head, entries) {
            growth.insert(key, Arc::new(run));
        }
    }

    /// The log's last position, if it is known to be after `own`.
    pub(crate) fn head_after(&self, key: InboxKey, own: Position) -> Option<Position> {
        let head = self.0.as_ref()?.get(&key)?.head;
        (head.epoch == own.epoch && head.offset > own.offset).then_some(head)
    }

    /// Gives at least one and at most `limit` changes right after `own`, and the log's last sequence id; `None` if they
    /// are not kept.
    pub(crate) fn after(&self, key: InboxKey, own: Position, limit: usize) -> Option<(Vec<Numbered>, u64)> {
        let run = self.0.as_ref()?.get(&key)?;
        let at = run.entries.iter().position(|numbered| numbered.seq == own.offset + 1)?;
        let some = run.entries[at..].iter().take(limit).copied().collect();
        (run.head.epoch == own.epoch).then_some((some, run.head.offset))
    }
}

impl Run {
    /// `known` with `entries` added; `None` if `head` is not after that of `known`.
    fn grown(known: Option<&Self>, head: Position, entries: impl ExactSizeIterator<Item = Numbered>) -> Option<Self> {
        if known.is_some_and(|known| head <= known.head) {
            return None;
        }
        let fresh = entries.len();
        let before = head.offset.saturating_sub(fresh as u64);
        let goes_on = |known: &&Self| fresh > 0 && known.head.epoch == head.epoch && known.head.offset == before;
        let kept = known.filter(goes_on).map_or(&[][..], |known| &known.entries);
        let kept = &kept[kept.len().saturating_sub(KEPT_MAX.saturating_sub(fresh))..];
        let mut all = Vec::with_capacity(kept.len() + fresh.min(KEPT_MAX));
        all.extend_from_slice(kept);
        all.extend(entries.skip(fresh.saturating_sub(KEPT_MAX)));
        Some(Self { head, entries: all })
    }
}

#[cfg(test)]
mod tests {
    use feedgate_common::{Entry, Epoch, FeedId, UserNo};

    use super::*;

    const KEY: InboxKey = InboxKey { reader: UserNo(1), feed: FeedId::MAIN };

    fn at(epoch: u64, offset: u64) -> Position {
        Position { epoch: Epoch(epoch), offset }
    }

    fn record(growth: &RecentGrowth, head: Position, count: u64) {
        let entry = Entry::forget(UserNo(2), 0, None);
        let seqs = head.offset - count + 1..=head.offset;
        let entries: Vec<_> = seqs.map(|seq| Numbered { seq, entry }).collect();
        growth.record(KEY, head, entries.into_iter());
    }

    fn after(growth: &RecentGrowth, own: Position, limit: usize) -> Option<(Vec<u64>, u64)> {
        growth.after(KEY, own, limit).map(|(some, head)| (some.iter().map(|n| n.seq).collect(), head))
    }

    #[test]
    fn what_follows_without_a_hole_is_joined_and_anything_else_begins_anew() {
        let growth = RecentGrowth::new(true);
        record(&growth, at(1, 5), 2);
        record(&growth, at(1, 6), 1);
        assert_eq!(after(&growth, at(1, 3), 9), Some((vec![4, 5, 6], 6)));
        assert_eq!(after(&growth, at(1, 3), 2), Some((vec![4, 5], 6)));
        assert_eq!(after(&growth, at(1, 2), 9), None, "what came before was not told");
        assert_eq!(after(&growth, at(1, 6), 9), None, "there is nothing beyond");
        assert_eq!(after(&growth, at(2, 3), 9), None, "another epoch");
        record(&growth, at(1, 4), 1);
        assert_eq!(growth.head_after(KEY, at(1, 3)), Some(at(1, 6)), "an old one changes nothing");
        record(&growth, at(1, 9), 2);
        assert_eq!((after(&growth, at(1, 5), 9), after(&growth, at(1, 7), 9)), (None, Some((vec![8, 9], 9))), "a hole");
        record(&growth, at(2, 1), 1);
        assert_eq!((growth.head_after(KEY, at(1, 3)), after(&growth, at(2, 0), 9)), (None, Some((vec![1], 1))));
    }

    #[test]
    fn i18_of_one_inbox_only_the_last_changes_are_kept() {
        let growth = RecentGrowth::new(true);
        (1..=100).for_each(|seq| record(&growth, at(1, seq), 1));
        assert_eq!(after(&growth, at(1, 67), 100), None);
        assert_eq!(after(&growth, at(1, 68), 100).map(|(some, _)| some.len()), Some(KEPT_MAX));
        record(&growth, at(1, 160), 60);
        assert_eq!(after(&growth, at(1, 127), 100), None);
        assert_eq!(after(&growth, at(1, 128), 100).map(|(some, _)| some.len()), Some(KEPT_MAX));
        record(&growth, at(1, 161), 0);
        assert_eq!((growth.head_after(KEY, at(1, 160)), after(&growth, at(1, 160), 9)), (Some(at(1, 161)), None));
    }
}
