//! What each step does, as tables; and any schedule of steps against a store that is naive.

use feedgate_common::archive::Recipient;
use feedgate_common::change::Route;
use feedgate_common::inboxes::KEEP;
use feedgate_common::{DisplayKey, FeedId, ItemId, Op, Record, Watermarks};

use super::*;

const AUTHOR: UserNo = UserNo(50);

fn key(reader: u32) -> InboxKey {
    InboxKey::main(UserNo(reader))
}

fn record(seq: u64) -> Record {
    Record {
        seq,
        op: Op::Add,
        route: Route::Push,
        feed: FeedId::MAIN,
        key: DisplayKey { rank: seq as i64, item: ItemId(seq) },
    }
}

fn add(seq: u64, generation: u64) -> Entry {
    Entry::of(&record(seq), AUTHOR, generation)
}

/// A bucket in which each of these readers has an empty inbox, built at generation 10.
fn with_inboxes(readers: &[u32]) -> Bucket {
    let mut bucket = Bucket::default();
    for &reader in readers {
        build(&mut bucket, reader, 1, vec![]);
    }
    bucket
}

fn build(bucket: &mut Bucket, reader: u32, epoch: u64, entries: Vec<Entry>) -> Answer {
    begin(bucket, reader, epoch);
    finish(bucket, reader, epoch, entries)
}

fn begin(bucket: &mut Bucket, reader: u32, placeholder: u64) -> Answer {
    bucket.apply(Step::Begin { key: key(reader), placeholder: Epoch(placeholder) })
}

/// The answer to a build that has begun.
fn begun(placeholder: u64, notes: u64) -> Answer {
    Answer::Begun(Some(Begun { placeholder: Epoch(placeholder), notes }))
}

fn finish(bucket: &mut Bucket, reader: u32, epoch: u64, entries: Vec<Entry>) -> Answer {
    finish_joined(bucket, reader, epoch, entries, 0)
}

fn finish_joined(bucket: &mut Bucket, reader: u32, epoch: u64, entries: Vec<Entry>, notes_from: u64) -> Answer {
    let (key, epoch, taken) = (key(reader), Epoch(epoch), Watermarks { pull: 7, direct: 2 });
    let (floor, ahead, until) = (None, vec![], 60_000);
    bucket.apply(Step::Finish(Build { key, epoch, built_at: 10, entries, floor, taken, ahead, notes_from, until }))
}

fn push(bucket: &mut Bucket, seq: u64, to: &[(u32, u64)]) -> Advanced {
    push_read_at(bucket, seq, to, 99)
}

fn push_read_at(bucket: &mut Bucket, seq: u64, to: &[(u32, u64)], counter: u64) -> Advanced {
    let recipients = to.iter().map(|&(reader, generation)| Recipient {
        reader: UserNo(reader),
        generation,
        from: 0,
        counter,
        listens: false,
    });
    let step = Advance {
        author: AUTHOR,
        bucket: feedgate_common::Bucket(0),
        feed: FeedId::MAIN,
        expected: Progress::at(seq - 1),
        next: Progress::at(seq),
        records: vec![record(seq)],
        recipients: recipients.collect(),
        kept: false,
    };
    match bucket.apply(Step::Advance(step)) {
        Answer::Advanced(advanced) => advanced,
        other => panic!("{other:?}"),
    }
}

fn edge(bucket: &mut Bucket, reader: u32, generation: u64, on: bool, done: u64, adds: &[u64]) -> Answer {
    let adds = adds.iter().map(|&seq| add(seq, generation)).collect();
    bucket.apply(Step::Edges(vec![EdgeStep {
        key: key(reader),
        author: AUTHOR,
        generation,
        on,
        expected: Cut { progress: Progress::at(done), pull: 7 },
        adds,
        floor: None,
    }]))
}

/// The growth of `reader`'s inbox by one record, as a step reports it.
fn grown(bucket: &Bucket, reader: u32, generation: u64) -> Grown {
    Grown { key: key(reader), head: bucket.inboxes[&key(reader)].head(), appended: 1, generation }
}

/// A position in a log of epoch 1.
fn at(offset: u64) -> Position {
    Position { epoch: Epoch(1), offset }
}

fn entries(bucket: &Bucket, reader: u32) -> Vec<Entry> {
    bucket.inboxes[&key(reader)].log().entries.iter().map(|n| n.entry).collect()
}

#[test]
fn a_push_reaches_inboxes_that_took_the_edge_in_and_moves_the_progress() {
    let mut bucket = with_inboxes(&[1, 2, 3]);
    assert_eq!(push(&mut bucket, 1, &[(1, 5), (2, 11), (9, 5)]), Advanced::Moved(vec![grown(&bucket, 1, 5)]));
    assert_eq!(entries(&bucket, 1), [add(1, 5)]);
    assert!(entries(&bucket, 2).is_empty() && entries(&bucket, 3).is_empty());
    assert_eq!(bucket.progress(AUTHOR), Progress::at(1));
    assert_eq!(bucket.entries, 1);
}

#[test]
fn i3_a_push_repeated_is_overtaken_and_appends_nothing() {
    let mut bucket = with_inboxes(&[1]);
    push(&mut bucket, 1, &[(1, 5)]);
    assert_eq!(push(&mut bucket, 1, &[(1, 5)]), Advanced::Overtaken(Progress::at(1)));
    assert_eq!(entries(&bucket, 1), [add(1, 5)]);
}

#[test]
fn a_stale_recipient_stops_the_whole_step() {
    let mut bucket = with_inboxes(&[1, 2]);
    edge(&mut bucket, 1, 12, true, 0, &[]);
    assert_eq!(push_read_at(&mut bucket, 1, &[(1, 12), (2, 5)], 9), Advanced::Stale);
    assert_eq!(bucket.progress(AUTHOR), Progress::default());
    assert_eq!(entries(&bucket, 1), [Entry::forget(AUTHOR, 12, None)]);
}

#[test]
fn a_reader_gets_only_records_after_its_edge_began() {
    let mut bucket = with_inboxes(&[1, 2]);
    let to = |reader, from| Recipient { reader: UserNo(reader), generation: 5, from, counter: 99, listens: false };
    let answer = bucket.apply(Step::Advance(Advance {
        author: AUTHOR,
        bucket: feedgate_common::Bucket(0),
        feed: FeedId::MAIN,
        expected: Progress::at(0),
        next: Progress::at(3),
        records: vec![record(1), record(2), record(3)],
        recipients: vec![to(1, 2), to(2, 3)],
        kept: false,
    }));
    assert_eq!(answer, Answer::Advanced(Advanced::Moved(vec![grown(&bucket, 1, 5)])));
    assert_eq!(entries(&bucket, 1), [add(3, 5)]);
}

#[test]
fn a_follow_step_forgets_first_and_then_push_continues_its_generation() {
    let mut bucket = with_inboxes(&[1]);
    push(&mut bucket, 1, &[(1, 5)]);
    assert_eq!(edge(&mut bucket, 1, 12, true, 1, &[1]), Answer::EdgesStepped(vec![EdgeStepped::Applied(at(3))]));
    push(&mut bucket, 2, &[(1, 5)]);
    push(&mut bucket, 3, &[(1, 12)]);
    assert_eq!(entries(&bucket, 1), [add(1, 5), Entry::forget(AUTHOR, 12, None), add(1, 12), add(3, 12)]);
}

#[test]
fn i10_an_older_edge_step_does_nothing_and_a_moved_progress_overtakes_a_follow_but_no_unfollow() {
    let mut bucket = with_inboxes(&[1]);
    push(&mut bucket, 1, &[]);
    let cases = [
        (10, true, 1, EdgeStepped::Nothing),
        (12, true, 0, EdgeStepped::Overtaken),
        (12, false, 0, EdgeStepped::Applied(at(1))),
        (12, true, 1, EdgeStepped::Nothing),
        (11, true, 1, EdgeStepped::Nothing),
        (13, true, 1, EdgeStepped::Applied(at(2))),
    ];
    for (generation, on, done, wants) in cases {
        let answer = edge(&mut bucket, 1, generation, on, done, &[]);
        assert_eq!(answer, Answer::EdgesStepped(vec![wants]), "{generation} {on} {done}");
    }
}

#[test]
fn a_swap_needs_its_own_placeholder_which_no_push_and_no_edge_step_takes_away() {
    let mut bucket = Bucket::default();
    assert_eq!(finish(&mut bucket, 1, 1, vec![]), Answer::Finished(false), "never begun");
    assert_eq!(begin(&mut bucket, 1, 2), begun(2, 0));
    assert_eq!(begin(&mut bucket, 1, 3), begun(2, 0), "the one that stands is everybody's");
    assert_eq!(finish(&mut bucket, 1, 3, vec![]), Answer::Finished(false), "a placeholder that does not stand");
    push(&mut bucket, 1, &[(1, 5)]);
    assert_eq!(edge(&mut bucket, 1, 20, true, 1, &[1]), Answer::EdgesStepped(vec![EdgeStepped::Building]));
    assert_eq!(take(&mut bucket, 7, 99, vec![]), Answer::Taken(Taken::Building));
    assert_eq!(finish(&mut bucket, 1, 2, vec![]), Answer::Finished(true));
    assert_eq!(begin(&mut bucket, 1, 5), Answer::Begun(None), "the inbox exists");
    assert_eq!(entries(&bucket, 1), [add(1, 5)], "the push that went by");
}

#[test]
fn a_builder_that_joins_takes_in_what_was_noted_since_it_did() {
    let mut bucket = Bucket::default();
    begin(&mut bucket, 1, 2);
    push(&mut bucket, 1, &[(1, 5)]);
    push(&mut bucket, 2, &[(1, 5)]);
    assert_eq!(begin(&mut bucket, 1, 3), begun(2, 2));
    push(&mut bucket, 3, &[(1, 5)]);
    assert_eq!(finish_joined(&mut bucket, 1, 2, vec![add(1, 5), add(2, 5)], 2), Answer::Finished(true));
    assert_eq!(entries(&bucket, 1), [add(1, 5), add(2, 5), add(3, 5)]);
    assert_eq!(bucket.entries, 3);
}

#[test]
fn a_discarded_inbox_is_missing_and_so_is_its_placeholder() {
    let mut bucket = with_inboxes(&[1]);
    push(&mut bucket, 1, &[(1, 5)]);
    bucket.apply(Step::Discard(key(1)));
    assert!(bucket.inboxes.is_empty());
    assert_eq!(bucket.entries, 0);
    begin(&mut bucket, 1, 2);
    bucket.apply(Step::Discard(key(1)));
    assert_eq!(finish(&mut bucket, 1, 2, vec![]), Answer::Finished(false));
}

/// Takes in `entries` of both kinds that no push brings, from where a build of these tests has come to.
fn take(bucket: &mut Bucket, pull: u64, counter: u64, entries: Vec<Entry>) -> Answer {
    let next = Watermarks { pull: pull + 1, direct: 3 };
    let expected = Watermarks { pull, direct: 2 };
    bucket.apply(Step::Take(Take { key: key(1), epoch: Epoch(1), expected, next, entries, counter }))
}

#[test]
fn a_take_appends_by_the_marks_and_moves_the_watermarks_once() {
    let mut bucket = with_inboxes(&[1]);
    edge(&mut bucket, 1, 12, true, 0, &[]);
    let direct = Entry::direct(Op::Add, AUTHOR, record(4).key);
    let news = vec![add(1, 5), add(2, 12), direct];
    assert_eq!(take(&mut bucket, 6, 99, news.clone()), Answer::Taken(Taken::Overtaken));
    let moved = Taken::Moved { head: at(3), appended: 2 };
    assert_eq!(take(&mut bucket, 7, 99, news.clone()), Answer::Taken(moved));
    assert_eq!(take(&mut bucket, 7, 99, news), Answer::Taken(Taken::Overtaken));
    assert_eq!(entries(&bucket, 1), [Entry::forget(AUTHOR, 12, None), add(2, 12), direct]);
    assert_eq!((bucket.entries, bucket.inboxes[&key(1)].taken), (3, Watermarks { pull: 8, direct: 3 }));
}

#[test]
fn a_take_that_knows_of_fewer_edges_than_the_inbox_does_nothing() {
    let mut bucket = with_inboxes(&[1]);
    assert_eq!(take(&mut bucket, 7, 9, vec![add(1, 5)]), Answer::Taken(Taken::Overtaken));
    assert_eq!(bucket.inboxes[&key(1)].taken.pull, 7);
    assert_eq!(take(&mut bucket, 7, 10, vec![add(1, 5)]), Answer::Taken(Taken::Moved { head: at(1), appended: 1 }));
}

#[test]
fn a_follow_step_cut_at_another_watermark_is_overtaken() {
    let mut bucket = with_inboxes(&[1]);
    take(&mut bucket, 7, 99, vec![]);
    assert_eq!(edge(&mut bucket, 1, 12, true, 0, &[1]), Answer::EdgesStepped(vec![EdgeStepped::Overtaken]));
    assert_eq!(edge(&mut bucket, 1, 12, false, 0, &[]), Answer::EdgesStepped(vec![EdgeStepped::Applied(at(1))]));
}

#[test]
fn an_inbox_that_is_touched_after_it_was_found_past_its_time_stays() {
    let mut bucket = with_inboxes(&[1, 2, 3]);
    push(&mut bucket, 1, &[(2, 5)]);
    let (now, later) = (Until::at_most(60_000), Until::at_least(60_001));
    let found = || vec![key(1), key(2), key(9)];
    assert_eq!(bucket.apply(Step::Expire(found(), Until::at_most(59_999))), Answer::Expired(0));
    bucket.apply(Step::Touch(vec![key(1), key(9)], later));
    bucket.apply(Step::Touch(vec![key(1)], now));
    assert_eq!(bucket.apply(Step::Expire(found(), now)), Answer::Expired(1));
    let left = [1, 2, 3, 9].map(|reader| bucket.inboxes.contains_key(&key(reader)));
    assert_eq!((left, bucket.entries), ([true, false, true, false], 0), "2 is dropped whole, 3 was not asked for");
}

#[test]
fn entries_are_counted_through_builds_pushes_and_cuts() {
    let mut bucket = Bucket::default();
    build(&mut bucket, 1, 1, (1..=2000).map(|seq| add(seq, 5)).collect());
    assert_eq!(bucket.entries, bucket.inboxes[&key(1)].changes.len() as u64);
    assert!((KEEP as u64..1100).contains(&bucket.entries));
    assert_eq!(bucket.inboxes[&key(1)].head().offset, 2000);
}
