//! Marks: which generation of each edge an inbox has taken in, without a cost for each followee.
//!
//! Every change of an edge, follow *and* unfollow, takes the next number of a counter as the edge's generation. An
//! inbox keeps `built_at`, the counter as its rebuild read it, and a *mark* only for authors whose follow step has run
//! since then. So an inbox that was built and never changed by a follow stores one number, however many authors its
//! reader follows.
//!
//! A worker reads the counter together with the edges or before them, never after.
//!
//! A rebuild brings all that an author has published. If push had not come that far, because it is under way or because
//! the store lost its progress, the inbox remembers how far it is ahead of push, until push has passed the same record.

use crate::{Entry, Generation, OutboxSeq};

/// What an inbox remembers of one author. An inbox has no mark for most authors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A follow step has brought this generation of the edge after the build.
    Taken(Generation),
    /// The rebuild has brought the records up to this one, which push had not passed yet.
    Ahead(OutboxSeq),
}

/// The bit of a packed [`Mark`] that tells its two kinds apart. Generations and sequence numbers are less than 2^53.
const AHEAD: u64 = 1 << 55;

impl Mark {
    /// The mark as a number of 56 bits.
    pub fn packed(self) -> u64 {
        match self {
            Self::Taken(generation) => generation,
            Self::Ahead(seq) => AHEAD | seq,
        }
    }

    /// The mark that [`Self::packed`] made into this number.
    pub fn unpacked(packed: u64) -> Self {
        if packed & AHEAD == 0 { Self::Taken(packed) } else { Self::Ahead(packed & !AHEAD) }
    }
}

/// The record after which push begins to bring records to an inbox with this mark, under an edge that begins at `from`.
pub fn pushed_from(mark: Option<Mark>, from: OutboxSeq) -> OutboxSeq {
    match mark {
        Some(Mark::Ahead(seq)) => from.max(seq),
        Some(Mark::Taken(_)) | None => from,
    }
}

/// What a push step does for one recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The inbox has taken in exactly this edge: it gets the records.
    Append,
    /// The inbox has not taken in this edge yet, or has taken in a later one: a follow step brings or has brought the
    /// records.
    Skip,
    /// The inbox knows of later edges than the worker does. To skip the inbox could lose a record, and to append could
    /// show the record of an author who was unfollowed. So the whole step has to read edges and counter again.
    Stale,
}

/// Decides what a push step does for one recipient.
///
/// `mark` is the inbox's mark of the author, and `built_at` the counter that the inbox's rebuild read. `generation` and
/// `counter` are what the worker has read of the edge.
pub fn push_verdict(mark: Option<Mark>, built_at: Generation, generation: Generation, counter: Generation) -> Verdict {
    match mark {
        Some(Mark::Taken(taken)) if taken == generation => Verdict::Append,
        Some(Mark::Taken(_)) => Verdict::Skip,
        _ if generation > built_at => Verdict::Skip,
        _ if built_at <= counter => Verdict::Append,
        _ => Verdict::Stale,
    }
}

/// Whether a change that a push step noted while the inbox was built belongs into the inbox. `mark` is the inbox's mark
/// of the author.
///
/// A stale note does not belong there: its record was read before the snapshot of the build. So the build has brought
/// the record, or has seen that the edge has changed. A step whose counters may be older than its records leaves no
/// notes ([`Advance::kept`](crate::inboxes::Advance::kept)).
pub fn note_belongs(mark: Option<Mark>, built_at: Generation, noted: &Entry, counter: Generation) -> bool {
    noted.outbox_seq > pushed_from(mark, 0)
        && push_verdict(mark, built_at, noted.generation, counter) == Verdict::Append
}

/// Whether a follow or unfollow step of `generation` has anything to do: only if `generation` is newer than the one
/// that the inbox has taken in.
pub fn edge_step_acts(mark: Option<Mark>, built_at: Generation, generation: Generation) -> bool {
    match mark {
        Some(Mark::Taken(taken)) => generation > taken,
        Some(Mark::Ahead(_)) | None => generation > built_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserNo;

    #[test]
    fn a_push_step_appends_exactly_when_the_inbox_has_taken_in_this_edge() {
        let cases = [
            (Some(Mark::Taken(5)), 3, 5, 9, Verdict::Append),
            (Some(Mark::Taken(6)), 3, 5, 9, Verdict::Skip),
            (Some(Mark::Taken(4)), 3, 5, 9, Verdict::Skip),
            (Some(Mark::Taken(6)), 7, 5, 9, Verdict::Skip),
            (Some(Mark::Ahead(5)), 3, 5, 9, Verdict::Skip),
            (Some(Mark::Ahead(1)), 9, 5, 9, Verdict::Append),
            (Some(Mark::Ahead(5)), 10, 5, 9, Verdict::Stale),
            (None, 3, 5, 9, Verdict::Skip),
            (None, 5, 5, 9, Verdict::Append),
            (None, 7, 5, 9, Verdict::Append),
            (None, 9, 5, 9, Verdict::Append),
            (None, 10, 5, 9, Verdict::Stale),
        ];
        for (mark, built_at, generation, counter, wants) in cases {
            assert_eq!(
                push_verdict(mark, built_at, generation, counter),
                wants,
                "{mark:?} {built_at} {generation} {counter}"
            );
        }
    }

    #[test]
    fn what_was_noted_belongs_where_the_build_neither_has_it_nor_knows_better() {
        let noted = |outbox_seq, generation| Entry { outbox_seq, ..Entry::forget(UserNo(7), generation, None) };
        let cases = [
            (None, 5, 9, true),
            (Some(Mark::Ahead(6)), 5, 9, true),
            (Some(Mark::Ahead(7)), 5, 9, false),
            (None, 11, 12, false),
            (None, 5, 8, false),
        ];
        for (mark, generation, counter, wants) in cases {
            assert_eq!(note_belongs(mark, 9, &noted(7, generation), counter), wants, "{mark:?} {generation} {counter}");
        }
    }

    #[test]
    fn an_edge_step_acts_only_on_news() {
        assert!(edge_step_acts(None, 3, 4));
        assert!(!edge_step_acts(None, 4, 4));
        assert!(edge_step_acts(Some(Mark::Taken(4)), 9, 5));
        assert!(!edge_step_acts(Some(Mark::Taken(5)), 1, 5));
    }

    #[test]
    fn push_goes_on_where_the_rebuild_ended() {
        assert_eq!(pushed_from(Some(Mark::Ahead(7)), 3), 7);
        assert_eq!(pushed_from(Some(Mark::Ahead(3)), 7), 7);
        assert_eq!(pushed_from(Some(Mark::Taken(9)), 3), 3);
        assert_eq!(pushed_from(None, 3), 3);
        for mark in [Mark::Taken(0), Mark::Taken((1 << 53) - 1), Mark::Ahead(0), Mark::Ahead((1 << 53) - 1)] {
            assert_eq!(Mark::unpacked(mark.packed()), mark);
        }
    }
}
