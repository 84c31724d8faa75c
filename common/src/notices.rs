//! What becomes of the row of a notice, as pure functions: when a post is noted, when a call is over, and when an
//! operator tries a dead notice again. An Archive loads rows and stores what these functions say. The Archive on
//! PostgreSQL does so for [`NoticeRow::settled`]; it has the two other functions in SQL, each as one statement.
//!
//! ```text
//!   no row ──noted──▶ due ──settled: Sent──▶ sent, rests until `due` ──noted──▶ due
//!                      │ ▲ noted, settled: Later
//!                      │ └─┘
//!                      └──settled: Dropped, Dead──▶ no row      (Dead: on the list of dead notices)
//! ```

use crate::archive::{Note, Notice, Outcome, UNREAD_MAX};
use crate::{InboxKey, ItemId, Millis};

/// What one reader is still to be told of one feed, or was told of it a moment ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoticeRow {
    /// The newest item that was noted.
    pub item: ItemId,
    /// How many items were noted since the reader was told, at most [`UNREAD_MAX`]; 0 if none was.
    pub count: u32,
    /// A number that changes with each note, and that no other notice ever has.
    pub number: u64,
    /// How many calls in a row had no success.
    pub tries: u32,
    /// When the notice is due, or, if the reader was told, until when the row is kept. In Unix ms.
    pub due: Millis,
    /// Whether the reader was told, and nothing was noted since.
    pub sent: bool,
}

impl NoticeRow {
    /// The row after a note; `None` if the row stays as it is, because its item was noted already. `number` is a new
    /// number, and `due` is the time at which a new notice is due.
    pub fn noted(known: Option<Self>, note: &Note, due: Millis, number: u64) -> Option<Self> {
        let count = note.count.min(UNREAD_MAX);
        let Some(known) = known else {
            return Some(Self { item: note.item, count, number, tries: 0, due, sent: false });
        };
        let count = known.count.saturating_add(count).min(UNREAD_MAX);
        let due = if known.sent { due.max(known.due) } else { known.due };
        (known.item != note.item).then_some(Self { item: note.item, count, number, due, sent: false, ..known })
    }

    /// The row after a call that told `taken`; `None` if the row goes, and then, if the outcome is [`Outcome::Dead`],
    /// onto the list of dead notices. A row that has another number than `taken` was noted during the call.
    pub fn settled(self, taken: &Notice, outcome: &Outcome, now: Millis) -> Option<Self> {
        if self.sent {
            return Some(self);
        }
        let is_same = self.number == taken.number;
        let newer = Self { count: self.count.saturating_sub(taken.count).max(1), tries: 0, due: now, ..self };
        match *outcome {
            Outcome::Sent { quiet_until } if is_same => {
                Some(Self { count: 0, tries: 0, due: quiet_until, sent: true, ..self })
            }
            Outcome::Sent { quiet_until } => Some(Self { due: quiet_until, ..newer }),
            Outcome::Later { due } => Some(Self { due, tries: taken.tries + 1, ..self }),
            Outcome::Dropped | Outcome::Dead { .. } => (!is_same).then_some(newer),
        }
    }

    /// The row after a dead notice is tried again; `None` if the row stays as it is, because it is still to be told.
    pub fn revived(known: Option<Self>, dead: &Notice, now: Millis) -> Option<Self> {
        let Notice { item, count, number, .. } = *dead;
        let is_idle = known.is_none_or(|known| known.sent);
        is_idle.then_some(Self { item, count, number, tries: 0, due: now, sent: false })
    }

    /// The notice as a sender takes it.
    pub fn notice(self, key: InboxKey) -> Notice {
        Notice { key, item: self.item, count: self.count, number: self.number, tries: self.tries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FeedId, UserNo};

    const KEY: InboxKey = InboxKey { reader: UserNo(1), feed: FeedId::MAIN };

    const ROW: NoticeRow = NoticeRow { item: ItemId(1), count: 3, number: 7, tries: 2, due: 50, sent: false };

    /// A notice of which the reader was told, and which rests until 70.
    const SENT: NoticeRow = NoticeRow { count: 0, tries: 0, due: 70, sent: true, ..ROW };

    fn note(item: u64, count: u32) -> Note {
        Note { key: KEY, item: ItemId(item), count }
    }

    #[test]
    fn a_note_counts_on_and_moves_the_time_only_of_a_notice_that_was_sent() {
        let fresh = NoticeRow { item: ItemId(2), count: 4, number: 8, tries: 0, due: 60, sent: false };
        let noted = |known| NoticeRow::noted(known, &note(2, 4), 60, 8);
        assert_eq!(noted(None), Some(fresh));
        assert_eq!(noted(Some(ROW)), Some(NoticeRow { count: 7, tries: 2, due: 50, ..fresh }));
        assert_eq!(noted(Some(NoticeRow { due: 55, ..SENT })), Some(fresh));
        assert_eq!(noted(Some(SENT)), Some(NoticeRow { due: 70, ..fresh }));
    }

    #[test]
    fn a_note_of_the_item_that_is_noted_changes_nothing() {
        assert_eq!(NoticeRow::noted(Some(ROW), &note(1, 1), 60, 8), None);
        assert_eq!(NoticeRow::noted(Some(SENT), &note(1, 1), 60, 8), None);
    }

    #[test]
    fn a_count_ends_at_its_greatest_number() {
        let counts = [None, Some(ROW)].map(|known| NoticeRow::noted(known, &note(2, u32::MAX), 60, 8).unwrap().count);
        assert_eq!(counts, [UNREAD_MAX; 2]);
    }

    #[test]
    fn what_was_noted_during_a_call_stays_due_whatever_became_of_the_call() {
        let before = NoticeRow { count: 2, number: 6, ..ROW }.notice(KEY);
        let newer = NoticeRow { count: 1, tries: 0, ..ROW };
        let dead = Outcome::Dead { why: String::new(), at: 90 };
        let after = |outcome: &Outcome| ROW.settled(&before, outcome, 80);
        assert_eq!(after(&Outcome::Sent { quiet_until: 99 }), Some(NoticeRow { due: 99, ..newer }));
        assert_eq!(after(&Outcome::Later { due: 95 }), Some(NoticeRow { due: 95, tries: 3, ..ROW }));
        assert_eq!([after(&Outcome::Dropped), after(&dead)], [Some(NoticeRow { due: 80, ..newer }); 2]);
    }

    #[test]
    fn a_notice_that_was_told_rests_and_one_with_nothing_left_to_tell_goes() {
        let taken = ROW.notice(KEY);
        assert_eq!(ROW.settled(&taken, &Outcome::Sent { quiet_until: 70 }, 60), Some(SENT));
        assert_eq!(ROW.settled(&taken, &Outcome::Dropped, 80), None);
        assert_eq!(SENT.settled(&taken, &Outcome::Dropped, 80), Some(SENT), "another sender has settled it");
    }

    #[test]
    fn a_dead_notice_is_due_at_once_unless_a_newer_one_is_still_to_be_told() {
        let dead = NoticeRow { number: 5, ..ROW }.notice(KEY);
        let revived = Some(NoticeRow { number: 5, tries: 0, due: 80, ..ROW });
        assert_eq!(NoticeRow::revived(None, &dead, 80), revived);
        assert_eq!(NoticeRow::revived(Some(SENT), &dead, 80), revived);
        assert_eq!(NoticeRow::revived(Some(ROW), &dead, 80), None);
    }
}
