//! What this node knows of one item that is watched, and when it is read again. Pure: no clock, no store.
//!
//! ```text
//!   noted ──(a second after the last read, or at once)──▶ due ──read──▶ settled: counts that differ, comments
//!   not noted for a while ─────────────────────────────▶ due: a look, in case nobody could tell
//! ```
//!
//! Invariants:
//! - Between two reads there is at least [`EVERY_MS`], whatever is noted.
//! - Changes that are noted while a read is under way are read by the next read.
//! - The number of comments goes up and down with the comments that were told. If it stays different from the number
//!   that is read for [`UNEXPLAINED_MS`], a message was lost, and the watchers are told that they have missed
//!   something.

use std::collections::BTreeMap;

use feedgate_common::ItemId;
use feedgate_common::around::Around;
use feedgate_common::doorbell::Talked;

use super::told::KEPT_MAX;

/// The least time between two reads of an item.
pub(super) const EVERY_MS: u64 = 1000;

/// An item is read after this time even if nothing was noted.
pub(super) const LOOK_MS: u64 = 15_000;

/// How long the number of comments may differ from what was told: messages on their way arrive within seconds.
const UNEXPLAINED_MS: u64 = 5_000;

/// What was read of an item that lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    /// The version of the item.
    pub(crate) version: u32,
    /// The counts around the item, without anything that belongs to one user.
    pub(crate) around: Around,
}

/// What is to be read of an item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// The comments that have changed. For each, by how many it changes the number of comments.
    pub(super) comments: BTreeMap<ItemId, i64>,
    /// Whether more comments have changed than are told.
    pub(super) too_many: bool,
    /// Whether something else than a comment has changed.
    pub(super) other: bool,
}

/// What is to be told after a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settled {
    /// Whether the counts or the version differ from what was told.
    pub(super) counts: bool,
    /// Whether changes of comments were left out.
    pub(super) missed: bool,
}

/// What this node knows of one item.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// The state that was told last; `None` if it is not known, or if not all watchers were told the same.
    told: Option<State>,
    /// The number of comments by what was told of them; `None` before the first read.
    explained: Option<i64>,
    /// Since when `explained` differs from the number that was read.
    unexplained: Option<u64>,
    noted: bool,
    work: Work,
    /// When it was last read, in ms; `None` if it was not.
    read_ms: Option<u64>,
}

impl Watched {
    /// Notes that something has changed: a comment, or something else.
    pub(super) fn note(&mut self, comment: Option<(ItemId, Talked)>) {
        self.noted = true;
        let Some((comment, talked)) = comment else {
            self.work.other = true;
            return;
        };
        if self.work.too_many || (self.work.comments.len() >= KEPT_MAX && !self.work.comments.contains_key(&comment)) {
            self.work = Work { comments: BTreeMap::new(), too_many: true, ..self.work };
            return;
        }
        *self.work.comments.entry(comment).or_default() += match talked {
            Talked::Made => 1,
            Talked::Edited => 0,
            Talked::Deleted => -1,
        };
    }

    /// Notes that a device that begins to watch was told this state.
    pub(super) fn begins(&mut self, state: &State) {
        match (&self.told, self.read_ms) {
            (Some(told), _) if told == state => {}
            (None, None) if self.explained.is_none() => {
                self.explained = Some(number(state));
                self.told = Some(state.clone());
            }
            _ => {
                self.told = None;
                self.noted = true;
            }
        }
    }

    /// When the item is to be read.
    pub(super) fn due_ms(&self) -> u64 {
        let after = if self.noted { EVERY_MS } else { LOOK_MS };
        self.read_ms.map_or(0, |read| read + after)
    }

    /// Begins a read, if one is due.
    pub(super) fn begin(&mut self, now: u64) -> Option<Work> {
        // A device that begins to watch has just read the item, so the next look may wait.
        if self.read_ms.is_none() && !self.noted {
            self.read_ms = Some(now);
        }
        if now < self.due_ms() {
            return None;
        }
        self.read_ms = Some(now);
        self.noted = false;
        Some(std::mem::take(&mut self.work))
    }

    /// Makes the read due again, since it has failed.
    pub(super) fn failed(&mut self, work: Work) {
        self.noted = true;
        self.work.other |= work.other;
        self.work.too_many |= work.too_many || self.work.comments.len() + work.comments.len() > KEPT_MAX;
        if self.work.too_many {
            self.work.comments.clear();
            return;
        }
        for (comment, by) in work.comments {
            *self.work.comments.entry(comment).or_default() += by;
        }
    }

    /// Takes in the state that was read for `work` at `now`. Gives what is to be told.
    pub(super) fn settle(&mut self, now: u64, work: &Work, state: State) -> Settled {
        let there = number(&state);
        let mut missed = work.too_many;
        let explained = match self.explained {
            Some(explained) if !work.too_many => explained + work.comments.values().sum::<i64>(),
            _ => there,
        };
        self.explained = Some(explained);
        if explained == there {
            self.unexplained = None;
        } else if now >= *self.unexplained.get_or_insert(now) + UNEXPLAINED_MS {
            missed = true;
            (self.explained, self.unexplained) = (Some(there), None);
        } else {
            self.noted = true;
        }
        let counts = self.told.as_ref() != Some(&state);
        self.told = Some(state);
        Settled { counts, missed }
    }
}

fn number(state: &State) -> i64 {
    i64::try_from(state.around.comments).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(comments: u64) -> State {
        State { version: 1, around: Around { comments, ..Around::default() } }
    }

    fn made(id: u64) -> Option<(ItemId, Talked)> {
        Some((ItemId(id), Talked::Made))
    }

    /// An item that somebody watches since 0 ms, with as many comments.
    fn watched(comments: u64) -> Watched {
        let mut watched = Watched::default();
        watched.begins(&state(comments));
        assert_eq!(watched.begin(0), None, "who begins to watch has read it");
        watched
    }

    const NOTHING: Settled = Settled { counts: false, missed: false };

    #[test]
    fn s4_an_item_is_read_once_a_second_however_much_is_noted() {
        let mut watched = watched(0);
        let mut reads = vec![];
        for now in (1..=5000).step_by(7) {
            watched.note(None);
            assert!(watched.due_ms() <= now + EVERY_MS);
            reads.extend(watched.begin(now).map(|_| now));
        }
        assert_eq!(reads.len(), 4, "{reads:?}");
        assert!(reads.windows(2).all(|two| two[1] - two[0] >= EVERY_MS), "{reads:?}");
    }

    #[test]
    fn s4_what_is_noted_after_a_while_is_read_at_once_and_without_a_note_there_is_a_look() {
        let mut watched = watched(0);
        watched.note(None);
        assert_eq!(watched.begin(1200), Some(Work { other: true, ..Work::default() }));
        assert_eq!(watched.begin(1200 + LOOK_MS - 1), None);
        assert_eq!(watched.begin(1200 + LOOK_MS), Some(Work::default()), "in case nobody could tell");
        watched.note(None);
        assert_eq!((watched.begin(1201 + LOOK_MS), watched.due_ms()), (None, 1200 + LOOK_MS + EVERY_MS));
    }

    #[test]
    fn s4_counts_are_told_only_if_they_differ_from_what_everybody_was_told() {
        let mut watched = watched(3);
        assert_eq!(watched.settle(1, &Work::default(), state(3)), NOTHING);
        let liked = State { version: 2, ..state(3) };
        assert_eq!(watched.settle(2, &Work::default(), liked.clone()), Settled { counts: true, missed: false });
        assert_eq!(watched.settle(3, &Work::default(), liked.clone()), NOTHING);
        watched.begins(&liked);
        assert_eq!(watched.settle(4, &Work::default(), liked.clone()), NOTHING);
        // Somebody came and read what the others were not told yet. It may be undone before they are.
        watched.begins(&state(3));
        assert!(watched.begin(5000).is_some(), "it is read at once");
        assert_eq!(watched.settle(5000, &Work::default(), liked), Settled { counts: true, missed: false });
    }

    #[test]
    fn s4_what_is_noted_during_a_read_is_for_the_next_one() {
        let mut watched = watched(0);
        watched.note(made(7));
        let work = watched.begin(2000).unwrap();
        watched.note(made(8));
        watched.settle(2000, &work, state(1));
        assert_eq!(watched.begin(3000).unwrap().comments, BTreeMap::from([(ItemId(8), 1)]));
    }

    #[test]
    fn s4_a_read_that_failed_is_tried_again_with_all_that_was_noted() {
        let mut watched = watched(0);
        watched.note(made(7));
        let work = watched.begin(2000).unwrap();
        watched.note(Some((ItemId(7), Talked::Deleted)));
        watched.failed(work);
        assert_eq!(watched.begin(2999), None);
        assert_eq!(watched.begin(3000).unwrap().comments, BTreeMap::from([(ItemId(7), 0)]));
    }

    #[test]
    fn s4_a_comment_of_which_nobody_told_is_found_by_the_number_of_comments() {
        let mut watched = watched(2);
        watched.note(made(7));
        let work = watched.begin(2000).unwrap();
        assert_eq!(watched.settle(2000, &work, state(4)), Settled { counts: true, missed: false }, "one is under way");
        watched.note(made(8));
        let work = watched.begin(3000).unwrap();
        assert_eq!(watched.settle(3000, &work, state(4)), NOTHING, "and now it is told");
        assert_eq!(watched.begin(4000), None, "nothing is left to explain");
        let mut missed = vec![];
        for now in (3000 + LOOK_MS..).step_by(1000).take(10) {
            let Some(work) = watched.begin(now) else { continue };
            missed.extend(watched.settle(now, &work, state(3)).missed.then_some(now));
        }
        assert_eq!(missed, [3000 + LOOK_MS + UNEXPLAINED_MS], "it is told once, after a while");
    }

    #[test]
    fn i18_more_comments_than_are_kept_are_told_as_missed() {
        let mut watched = watched(0);
        (0..=KEPT_MAX as u64).for_each(|id| watched.note(made(id)));
        watched.note(made(1));
        let work = watched.begin(2000).unwrap();
        assert_eq!(work, Work { too_many: true, ..Work::default() });
        let settled = watched.settle(2000, &work, state(KEPT_MAX as u64 + 1));
        assert_eq!(settled, Settled { counts: true, missed: true });
        watched.failed(work);
        assert!(watched.begin(3000).unwrap().too_many);
    }
}
