//! What a feed shows of one outbox, over plain slices.
//!
//! ```text
//!   outbox    1 2 3 4 5 │ 6 7 8 9 10
//!                  past ┘        └ cut
//!             newest K, that  │  adds that the cut is past,
//!             stood at `past` │  each by its own door
//!                     and nothing deleted since
//! ```
//!
//! `past` is where the records from before the follow end. It lies below `from` if the follow was imported, and is 0 if
//! the follow shows all from the first record on. The records from before the follow that a step does not bring lie at
//! or below the [floor](brought).
//!
//! [`shown`] is the whole rule, and reads a whole outbox. So no home of the Archive calls it: a home reads its indexes,
//! and calls the small rules below. The conformance suite and the model compare homes and steps with [`shown`].

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::archive::Edge;
use crate::change::{Op, Route};
use crate::{Cut, DisplayKey, Generation, OutboxSeq, Progress, PullSeq, Record, UserNo};

/// The adds of one author that a reader under `edge` sees, in outbox order.
///
/// `outbox` has the author's records from the first on, as far as they were read. The answer has:
///
/// - Up to `past`: the newest `backfill` adds that no record up to there deletes. A reader who never followed
///   (generation 0, an author whom everyone follows) gets none of them.
/// - After `past` up to `edge.from`: all adds. There are none unless the follow was imported, or shows the whole past.
/// - After `edge.from`: the adds that `reached` accepts.
///
/// Adds that a later record of `outbox` deletes are left out at the end, so that a deleted item counts among the newest
/// only if it was deleted after the follow. An item whose rank has changed has an add for each rank that it had.
pub fn shown(
    outbox: &[Record],
    (edge, past): (Edge, OutboxSeq),
    backfill: usize,
    reached: impl Fn(&Record) -> bool,
) -> Vec<Record> {
    if !edge.on {
        return vec![];
    }
    let adds = || outbox.iter().filter(|record| record.op == Op::Add);
    let deleted = |add: &Record, upto| {
        let mut later = outbox.iter().filter(|other| other.seq > add.seq && other.seq <= upto);
        later.any(|other| other.op == Op::Delete && other.key.item == add.key.item)
    };
    let before: Vec<&Record> = adds().filter(|add| add.seq <= past && !deleted(add, past)).collect();
    let newest = &before[before.len().saturating_sub(backfill_of(edge.generation, backfill))..];
    let since = adds().filter(|add| add.seq > past && (add.seq <= edge.from || reached(add)));
    newest.iter().copied().chain(since).filter(|add| !deleted(add, u64::MAX)).copied().collect()
}

/// What a follow step brings of the adds that an edge [shows](shown), in outbox order, and the floor that it raises:
/// the greatest key that it leaves to pages.
///
/// An edge may show all from a place `past` in the outbox on, for example from the first record. There may be any
/// number of these, so a step brings the newest `backfill` of them in display order.
pub fn brought(
    shown: Vec<Record>,
    (edge, past): (Edge, OutboxSeq),
    backfill: usize,
) -> (Vec<Record>, Option<DisplayKey>) {
    let is_old = |add: &Record| add.seq > past && add.seq <= edge.from;
    let mut old: Vec<DisplayKey> = shown.iter().filter(|add| is_old(add)).map(|add| add.key).collect();
    old.sort_unstable_by_key(|key| Reverse(*key));
    let floor = old.get(backfill).copied();
    let is_brought = |add: &Record| !is_old(add) || floor.is_none_or(|floor| add.key > floor);
    (shown.into_iter().filter(is_brought).collect(), floor)
}

/// How many adds from before the follow an edge of this generation shows: none if the reader follows only because
/// everyone does, and so never followed.
pub fn backfill_of(generation: Generation, backfill: usize) -> usize {
    if generation == 0 { 0 } else { backfill }
}

/// The authors whose outbox goes beyond where push has come, each with its head; for
/// [`FeedState::ahead`](crate::archive::FeedState::ahead). Each of `outboxes` is an author whom the reader follows, the
/// generation of the edge, and the outbox head. A reader who never followed is not pushed to.
pub fn ahead_of_push(
    outboxes: impl Iterator<Item = (UserNo, Generation, OutboxSeq)>,
    progress: &[(UserNo, Progress)],
) -> Vec<(UserNo, OutboxSeq)> {
    let progress: HashMap<UserNo, Progress> = progress.iter().copied().collect();
    let done = |author| progress.get(&author).map_or(0, |progress| progress.done);
    let ahead = outboxes.filter(|&(author, generation, head)| generation > 0 && head > done(author));
    ahead.map(|(author, _, head)| (author, head)).collect()
}

/// Whether push or pull, by whichever the record travels, has already passed the record for `reader`. If so, a step
/// that reads the Archive for that inbox has to bring the record; else it must not. `pull_seq` is the record's pull
/// number, which only counts for route pull.
pub fn is_past(cut: Cut, reader: UserNo, record: &Record, pull_seq: PullSeq) -> bool {
    match record.route {
        Route::Push | Route::Narrow => record.seq <= cut.progress.cut_for(reader),
        Route::Pull => pull_seq <= cut.pull,
    }
}

/// Whether a record of this route is for a reader at all. `own` says that the reader is the author, who is not bound by
/// the audience. `in_audience` says whether the audience of the item has the reader; it is called only if the item has
/// an audience.
pub fn is_for<E>(route: Route, own: bool, in_audience: impl FnOnce() -> Result<bool, E>) -> Result<bool, E> {
    if route == Route::Narrow && !own { in_audience() } else { Ok(true) }
}

/// Whether the record is news for a reader under `edge` whose inbox has pulled up to `after`.
pub fn is_news(record: &Record, pull_seq: PullSeq, edge: Edge, after: PullSeq) -> bool {
    record.route == Route::Pull && pull_seq > after && edge.on && record.seq > edge.from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FeedId, ItemId};

    /// The n-th is record n; a delete names the record that added its item.
    fn outbox(ops: &[(Op, u64)]) -> Vec<Record> {
        let record = |(&(op, item), seq)| {
            let key = DisplayKey { rank: 0, item: ItemId(item) };
            Record { seq, op, route: Route::Push, feed: FeedId::MAIN, key }
        };
        ops.iter().zip(1..).map(record).collect()
    }

    fn seqs(outbox: &[Record], edge: Edge, backfill: usize) -> Vec<u64> {
        shown(outbox, (edge, edge.from), backfill, |_| true).iter().map(|add| add.seq).collect()
    }

    #[test]
    fn a_follow_brings_the_newest_that_stood_then_and_all_since_but_for_what_is_deleted() {
        use Op::{Add, Delete, Update};
        let outbox = outbox(&[(Add, 1), (Add, 2), (Delete, 2), (Add, 4), (Update, 1), (Add, 6), (Delete, 4), (Add, 8)]);
        let edge = |from| Edge { on: true, generation: 1, from };
        assert_eq!(seqs(&outbox, edge(5), 2), [1, 6, 8], "2 was gone before, so 1 is of the newest two; 4 went later");
        assert_eq!(seqs(&outbox, edge(5), 1), [6, 8], "nothing moves up for 4");
        assert_eq!(seqs(&outbox, edge(0), 9), [1, 6, 8]);
        assert_eq!(seqs(&outbox, Edge { on: false, ..edge(5) }, 9), [0; 0]);
        assert_eq!(seqs(&outbox, Edge { generation: 0, ..edge(5) }, 9), [6, 8], "who never followed gets no past");
    }

    #[test]
    fn s11_an_item_that_moves_gives_way_to_itself() {
        use Op::{Add, Delete};
        let outbox = outbox(&[(Add, 1), (Add, 2), (Add, 3), (Delete, 3), (Add, 3), (Delete, 1), (Add, 1)]);
        let edge = |from| Edge { on: true, generation: 1, from };
        assert_eq!(seqs(&outbox, edge(3), 2), [2, 5, 7], "3 was of the newest two then, and 1 comes by its move");
        assert_eq!(seqs(&outbox, edge(7), 2), [5, 7]);
    }

    #[test]
    fn beyond_the_follow_only_what_was_reached_is_shown() {
        let outbox = outbox(&[(Op::Add, 1), (Op::Add, 2), (Op::Add, 3)]);
        let edge = Edge { on: true, generation: 1, from: 1 };
        let shown = shown(&outbox, (edge, 1), 9, |add| add.seq <= 2);
        assert_eq!(shown.iter().map(|add| add.seq).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn an_imported_follow_brings_all_from_its_place_to_its_head_and_the_newest_from_before_its_place() {
        let outbox = outbox(&[(Op::Add, 1), (Op::Add, 2), (Op::Add, 3), (Op::Add, 4), (Op::Add, 5)]);
        let edge = Edge { on: true, generation: 1, from: 4 };
        let shown = shown(&outbox, (edge, 2), 1, |_| false);
        assert_eq!(shown.iter().map(|add| add.seq).collect::<Vec<_>>(), [2, 3, 4]);
    }

    #[test]
    fn s12_a_step_brings_the_newest_of_the_whole_past_in_display_order_and_leaves_the_rest_below_the_floor() {
        let mut outbox = outbox(&[(Op::Add, 1), (Op::Add, 2), (Op::Add, 3), (Op::Add, 4), (Op::Add, 5)]);
        outbox[1].key.rank = 9;
        let edge = Edge { on: true, generation: 1, from: 4 };
        let brought = |past, backfill| {
            let all = shown(&outbox, (edge, past), backfill, |_| true);
            let (adds, floor) = brought(all, (edge, past), backfill);
            (adds.iter().map(|add| add.seq).collect::<Vec<_>>(), floor.map(|floor| floor.item.0))
        };
        assert_eq!(brought(0, 2), (vec![2, 4, 5], Some(3)), "2 stands highest, and 5 came after the follow");
        assert_eq!(brought(0, 4), (vec![1, 2, 3, 4, 5], None));
        assert_eq!(brought(0, 0), (vec![5], Some(2)));
        assert_eq!(brought(4, 2), (vec![3, 4, 5], None), "an ordinary follow leaves nothing below");
        assert_eq!(brought(2, 1), (vec![2, 4, 5], Some(3)), "the newest from before its place come in any case");
    }

    #[test]
    fn an_outbox_is_ahead_of_push_if_the_reader_is_pushed_to_and_push_has_not_come_to_its_head() {
        let outboxes = [(1, 4, 7), (2, 4, 7), (3, 4, 7), (4, 0, 7)];
        let progress = [(UserNo(1), Progress::at(7)), (UserNo(2), Progress::at(6)), (UserNo(4), Progress::at(6))];
        let outboxes = outboxes.map(|(author, generation, head)| (UserNo(author), generation, head));
        assert_eq!(ahead_of_push(outboxes.into_iter(), &progress), [(UserNo(2), 7), (UserNo(3), 7)]);
    }

    #[test]
    fn a_cut_is_past_a_record_by_the_records_own_door() {
        let [first, second] = *outbox(&[(Op::Add, 1), (Op::Add, 2)]) else { panic!() };
        let pulled = Record { route: Route::Pull, ..second };
        let cut = Cut { progress: Progress { done: 0, last: Some(UserNo(5)) }, pull: 7 };
        assert!(is_past(cut, UserNo(5), &first, 0) && !is_past(cut, UserNo(6), &first, 0));
        assert!(!is_past(cut, UserNo(5), &second, 0));
        assert!(is_past(cut, UserNo(6), &pulled, 7) && !is_past(cut, UserNo(6), &pulled, 8));
    }

    #[test]
    fn s9_only_a_narrowed_record_asks_for_the_audience() {
        let narrowed = |found: bool| is_for(Route::Narrow, false, || Ok::<_, ()>(found));
        assert_eq!([narrowed(true), narrowed(false)], [Ok(true), Ok(false)]);
        for route in [Route::Push, Route::Pull] {
            assert_eq!(is_for(route, false, || Err(())), Ok(true), "{route:?}");
        }
        assert_eq!(is_for(Route::Narrow, true, || Err(())), Ok(true), "s10: its author has it too");
        let [first, _] = *outbox(&[(Op::Add, 1), (Op::Add, 2)]) else { panic!() };
        let cut = Cut { progress: Progress::at(1), pull: 0 };
        assert!(is_past(cut, UserNo(5), &Record { route: Route::Narrow, ..first }, 0), "push brings it");
    }

    #[test]
    fn news_is_what_is_pulled_beyond_the_watermark_and_the_follow() {
        let [first, second] = *outbox(&[(Op::Add, 1), (Op::Delete, 1)]) else { panic!() };
        let [first, second] = [first, second].map(|record| Record { route: Route::Pull, ..record });
        let edge = Edge { on: true, generation: 3, from: 1 };
        assert!(is_news(&second, 9, edge, 8), "a delete of what the follow brought too");
        assert!(!is_news(&second, 9, edge, 9) && !is_news(&first, 9, edge, 8));
        assert!(!is_news(&second, 9, Edge { on: false, ..edge }, 8));
        assert!(!is_news(&Record { route: Route::Push, ..second }, 0, edge, 0));
    }
}
