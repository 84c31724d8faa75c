//! The tests that every implementation ("home") of [`Inboxes`] must pass, one function for each promise.
//!
//! `open` gives a store that is new and empty. [`inboxes`] runs all tests. [`Schedule`] takes equal random steps in a
//! store and in a [`Naive`] one and compares the two; the tests of a store itself use it to compare them after the
//! store was opened again.

#![expect(clippy::unwrap_used, reason = "a suite is a test: a store that fails, fails it")]

mod builds;
mod edges;
mod expiry;
mod feeds;
pub(crate) mod naive;
mod news;
mod schedule;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use async_trait::async_trait;
use feedgate_common::archive::Recipient;
use feedgate_common::change::Route;
use feedgate_common::inboxes::{Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, Grown, KEEP, Numbered, Read};
use feedgate_common::{
    Cut, DisplayKey, Entry, Epoch, FeedId, InboxKey, Inboxes, ItemId, Millis, Op, Position, Progress, Record, UserNo,
    Watermarks, error,
};
use futures_util::future::{join, join_all};

pub use naive::Naive;
pub use schedule::Schedule;

const AUTHOR: UserNo = UserNo(7);
const READER: UserNo = UserNo(1);
/// The first epoch that this suite uses.
const FIRST: u64 = 1 << 20;
const KEY: InboxKey = InboxKey { reader: READER, feed: FeedId::MAIN };

/// Shorter calls for tests: for one inbox, or for the heads of logs. Both fail if the method of [`Inboxes`] that they
/// call fails.
#[async_trait]
pub trait InboxesExt: Inboxes {
    /// Takes one follow step.
    async fn step_edge(&self, step: EdgeStep) -> error::Result<EdgeStepped> {
        Ok(self.step_edges(vec![step]).await?.remove(0))
    }

    /// Where logs stand; `None` where there is no inbox.
    async fn heads(&self, keys: &[InboxKey]) -> error::Result<Vec<Option<Position>>> {
        Ok(self.stands(keys).await?.into_iter().map(|stand| stand.map(|stand| stand.head)).collect())
    }
}

impl<T: Inboxes + ?Sized> InboxesExt for T {}

/// Runs all tests of the store of inboxes.
pub async fn inboxes(open: impl AsyncFn() -> Arc<dyn Inboxes>) {
    i1_sequence_ids_are_dense_from_1_and_records_come_in_order(open().await).await;
    i2_nothing_appears_at_or_below_a_served_head_later(open().await).await;
    i3_of_two_equal_steps_at_once_one_appends(open().await).await;
    i9_a_read_goes_on_from_the_position_or_says_gone(open().await).await;
    i10_progress_only_moves_forward_and_only_from_what_was_expected(open().await).await;
    i10_cutting_raises_the_floor_to_what_still_lived(open().await).await;
    i16_an_inbox_built_again_counts_in_another_epoch(open().await).await;
    a_stale_step_does_nothing_to_anyone(open().await).await;
    each_of_several_steps_at_once_is_taken_or_not_by_itself(open().await).await;
    a_reader_gets_records_beyond_its_edge_alone(open().await).await;
    edges::a_follow_step_forgets_then_adds_and_later_pushes_go_on(open().await).await;
    edges::an_unfollow_step_keeps_its_mark(open().await).await;
    edges::s12_a_follow_step_raises_the_floor_and_tells_it(open().await).await;
    edges::each_of_several_follow_steps_at_once_acts_or_not_by_itself(open().await).await;
    edges::i18_an_inbox_remembers_so_many_follow_steps_and_no_more(open().await).await;
    edges::present_is_what_is_there_and_what_is_being_built(open().await).await;
    builds::i4_what_is_pushed_while_an_inbox_is_built_stands_in_it_once(open().await).await;
    builds::i3_a_builder_that_joins_takes_in_what_is_pushed_from_then_on(open().await).await;
    builds::i4_a_step_of_kept_followers_is_stale_while_an_inbox_is_built(open().await).await;
    builds::i18_a_build_keeps_so_many_notes_and_no_more(open().await).await;
    builds::i10_what_was_noted_is_cut_as_what_is_pushed(open().await).await;
    a_swap_needs_its_own_placeholder(open().await).await;
    i3_what_a_rebuild_was_ahead_of_push_with_is_not_pushed_again(open().await).await;
    a_missing_inbox_says_so_everywhere(open().await).await;
    counts_follow_what_is_kept(open().await).await;
    news::i10_watermarks_move_forward_whatever_is_appended_and_only_from_what_was_expected(open().await).await;
    news::i3_of_two_equal_takes_at_once_one_appends(open().await).await;
    news::i16_a_take_of_another_epoch_does_nothing(open().await).await;
    news::a_take_appends_what_the_inbox_has_taken_the_edge_of_in_and_all_that_is_addressed(open().await).await;
    news::a_take_that_knows_less_than_the_inbox_does_nothing(open().await).await;
    news::a_take_at_a_missing_inbox_says_whether_it_is_being_built(open().await).await;
    news::a_follow_step_needs_the_watermark_it_was_cut_at(open().await).await;
    news::i10_a_forget_leaves_what_is_addressed_to_the_reader(open().await).await;
    news::an_empty_inbox_is_there_and_the_first_change_lands_in_it(open().await).await;
    expiry::an_inbox_whose_time_is_past_goes_whole_and_one_that_is_touched_stays(open().await).await;
    feeds::a_push_grows_the_inboxes_of_its_feed_and_moves_the_progress_of_all(open().await).await;
    feeds::a_push_of_one_feed_disturbs_no_inbox_of_another(open().await).await;
    feeds::i16_each_feed_of_a_reader_counts_forgets_takes_and_goes_by_itself(open().await).await;
    for seed in 0..4 {
        any_schedule_ends_as_in_the_naive_store(open().await, seed).await;
    }
}

/// The `n`th epoch of the suite. A store may have taken epochs for itself when it was opened; those are smaller.
fn life(n: u64) -> Epoch {
    Epoch(FIRST + n)
}

fn key_of(n: u64) -> DisplayKey {
    DisplayKey { rank: 1_764_000_000_000 + n as i64, item: ItemId((1_764_000_000_000 + n) << 22) }
}

fn record(seq: u64) -> Record {
    Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key: key_of(seq) }
}

fn add(seq: u64, generation: u64) -> Entry {
    Entry::of(&record(seq), AUTHOR, generation)
}

fn follower(reader: UserNo, generation: u64) -> Recipient {
    Recipient { reader, generation, from: 0, counter: 1000, listens: false }
}

/// A step of `AUTHOR` in `READER`'s bucket that brings record `seq` alone.
fn step(store: &Arc<dyn Inboxes>, seq: u64, recipients: Vec<Recipient>) -> Advance {
    Advance {
        author: AUTHOR,
        bucket: READER.bucket(store.buckets()),
        feed: FeedId::MAIN,
        expected: Progress::at(seq - 1),
        next: Progress::at(seq),
        records: vec![record(seq)],
        recipients,
        kept: false,
    }
}

/// A step that brings `AUTHOR`'s records `1..=n` to `READER` at once.
fn steps(store: &Arc<dyn Inboxes>, n: u64) -> Advance {
    let one = step(store, 1, vec![follower(READER, 5)]);
    Advance { next: Progress::at(n), records: (1..=n).map(record).collect(), ..one }
}

fn edge(generation: u64, on: bool, progress: Progress, adds: Vec<Entry>) -> EdgeStep {
    EdgeStep { key: KEY, author: AUTHOR, generation, on, expected: Cut { progress, pull: 0 }, adds, floor: None }
}

/// The time of the machine's clock, in Unix ms. A store that drops inboxes by itself uses this clock too.
#[expect(clippy::disallowed_methods, reason = "the store under test reads the same clock")]
fn now() -> Millis {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as Millis
}

/// A build of an inbox that has taken in every edge up to generation 10, nothing that is pulled and nothing direct.
fn built(reader: UserNo, epoch: u64, entries: Vec<Entry>) -> Build {
    let (key, epoch, taken) = (InboxKey::main(reader), life(epoch), Watermarks::default());
    let (ahead, until) = (vec![], Millis::MAX);
    Build { key, epoch, built_at: 10, entries, floor: None, taken, ahead, notes_from: 0, until }
}

/// Gives the reader an inbox with these entries, as [`built`] describes it.
async fn build(store: &Arc<dyn Inboxes>, reader: UserNo, epoch: u64, entries: Vec<Entry>) {
    swap_in(store, built(reader, epoch, entries)).await;
}

/// The answer to a call that begins a build or joins it.
fn begun(placeholder: u64, notes: u64) -> Option<Begun> {
    Some(Begun { placeholder: life(placeholder), notes })
}

async fn swap_in(store: &Arc<dyn Inboxes>, build: Build) {
    let begun = Begun { placeholder: build.epoch, notes: 0 };
    assert_eq!(store.begin_build(build.key, build.epoch).await.unwrap(), Some(begun));
    assert!(store.finish_build(build).await.unwrap());
}

/// How a step reports the growth of `reader`'s inbox, whose edge has generation 5.
fn grown(reader: UserNo, epoch: u64, offset: u64, appended: u32) -> Grown {
    let head = Position { epoch: life(epoch), offset };
    Grown { key: InboxKey::main(reader), head, appended, generation: 5 }
}

async fn entries(store: &Arc<dyn Inboxes>, reader: UserNo) -> Vec<Entry> {
    let log = store.log(InboxKey::main(reader)).await.unwrap().expect("the inbox exists");
    log.entries.iter().map(|n| n.entry).collect()
}

/// Sequence ids are dense from 1, and records come in order. One of the tests that [`inboxes`] runs.
pub async fn i1_sequence_ids_are_dense_from_1_and_records_come_in_order(store: Arc<dyn Inboxes>) {
    build(&store, READER, 3, vec![]).await;
    assert_eq!(store.advance(steps(&store, 5)).await.unwrap(), Advanced::Moved(vec![grown(READER, 3, 5, 5)]));
    let log = store.log(KEY).await.unwrap().unwrap();
    let wanted: Vec<_> = (1..=5).map(|seq| Numbered { seq, entry: add(seq, 5) }).collect();
    assert_eq!((log.entries, log.floor), (wanted.clone(), None));
    assert_eq!(log.head, Position { epoch: life(3), offset: 5 });
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [Some(log.head)]);
    let read = store.read(KEY, Position { epoch: life(3), offset: 2 }, 2).await.unwrap();
    assert_eq!(read, Read::Entries { entries: wanted[2..4].to_vec(), head: 5, taken: Watermarks::default() });
}

/// Four authors push to one reader, who reads on from its position without a pause.
pub async fn i2_nothing_appears_at_or_below_a_served_head_later(store: Arc<dyn Inboxes>) {
    const RECORDS: u64 = 40;
    build(&store, READER, 1, vec![]).await;
    let written = AtomicBool::new(false);
    let write = async {
        let authors = (20..24).map(|author| push_all(&store, UserNo(author), RECORDS));
        join_all(authors).await;
        written.store(true, Ordering::SeqCst);
    };
    let read = async {
        let (mut seen, mut all_written) = (Vec::new(), false);
        loop {
            let after = Position { epoch: life(1), offset: seen.len() as u64 };
            match store.read(KEY, after, 3).await.unwrap() {
                Read::Entries { entries, .. } if entries.is_empty() && all_written => return seen,
                Read::Entries { entries, head, .. } => {
                    assert!(entries.last().is_none_or(|last| last.seq <= head));
                    seen.extend(entries);
                }
                other => panic!("{other:?}"),
            }
            all_written = written.load(Ordering::SeqCst);
            tokio::task::yield_now().await;
        }
    };
    let ((), seen) = join(write, read).await;
    assert!(seen.iter().map(|n| n.seq).eq(1..=4 * RECORDS));
    assert_eq!(store.log(KEY).await.unwrap().unwrap().entries, seen);
}

async fn push_all(store: &Arc<dyn Inboxes>, author: UserNo, records: u64) {
    for seq in 1..=records {
        let step = Advance { author, ..step(store, seq, vec![follower(READER, 5)]) };
        assert!(matches!(store.advance(step).await.unwrap(), Advanced::Moved(_)));
    }
}

/// Of two equal steps at once only one appends. One of the tests that [`inboxes`] runs.
pub async fn i3_of_two_equal_steps_at_once_one_appends(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![]).await;
    for seq in 1..=20 {
        let once = || store.advance(step(&store, seq, vec![follower(READER, 5)]));
        let (a, b) = join(once(), once()).await;
        let mut answers = [a.unwrap(), b.unwrap()];
        answers.sort_by_key(|answer| matches!(answer, Advanced::Overtaken(_)));
        assert_eq!(answers, [Advanced::Moved(vec![grown(READER, 1, seq, 1)]), Advanced::Overtaken(Progress::at(seq))]);
    }
    assert!(entries(&store, READER).await.iter().map(|e| e.outbox_seq).eq(1..=20));
}

/// A read goes on from the position, or says that the log does not hold it. One of the tests that [`inboxes`] runs.
pub async fn i9_a_read_goes_on_from_the_position_or_says_gone(store: Arc<dyn Inboxes>) {
    build(&store, READER, 4, (1..=3000).map(|seq| add(seq, 5)).collect()).await;
    let log = store.log(KEY).await.unwrap().unwrap();
    let (base, head) = (log.entries[0].seq - 1, log.head);
    assert!((KEEP..=2 * KEEP).contains(&log.entries.len()), "{} are kept", log.entries.len());
    assert_eq!(head, Position { epoch: life(4), offset: 3000 });
    for (epoch, offset) in [(4, base - 1), (4, 0), (4, 3001), (4, u64::MAX), (3, 3000), (5, 3000), (5, 0)] {
        let read = store.read(KEY, Position { epoch: life(epoch), offset }, 10).await.unwrap();
        assert_eq!(read, Read::Gone { head }, "{epoch}:{offset}");
    }
    for offset in [base, base + 1, 2500, 2999, 3000] {
        for limit in [1, 100, 5000] {
            let read = store.read(KEY, Position { epoch: life(4), offset }, limit).await.unwrap();
            let Read::Entries { entries, head, .. } = read else { panic!("{read:?} at {offset}") };
            let wanted: Vec<_> = log.entries.iter().filter(|n| n.seq > offset).take(limit).copied().collect();
            assert_eq!((entries, head), (wanted, 3000), "{limit} after {offset}");
        }
    }
}

/// Progress only moves forward, and only from the expected value. One of the tests that [`inboxes`] runs.
pub async fn i10_progress_only_moves_forward_and_only_from_what_was_expected(store: Arc<dyn Inboxes>) {
    let bucket = READER.bucket(store.buckets());
    let progress = async || store.progress(&[(AUTHOR, bucket)]).await.unwrap()[0];
    assert_eq!(progress().await, Progress::default());
    store.advance(steps(&store, 3)).await.unwrap();
    assert_eq!(progress().await, Progress::at(3));
    for seq in [1, 3] {
        let late = step(&store, seq, vec![]);
        assert_eq!(store.advance(late).await.unwrap(), Advanced::Overtaken(Progress::at(3)));
    }
    let inside = Progress { done: 3, last: Some(READER) };
    let half = Advance { next: inside, ..step(&store, 4, vec![]) };
    assert_eq!(store.advance(half).await.unwrap(), Advanced::Moved(vec![]));
    assert_eq!(progress().await, inside);
    let whole = step(&store, 4, vec![]);
    assert_eq!(store.advance(whole.clone()).await.unwrap(), Advanced::Overtaken(inside));
    assert_eq!(store.advance(Advance { expected: inside, ..whole }).await.unwrap(), Advanced::Moved(vec![]));
    assert_eq!(progress().await, Progress::at(4));
    let other = store.progress(&[(UserNo(8), bucket), (AUTHOR, bucket)]).await.unwrap();
    assert_eq!(other, [Progress::default(), Progress::at(4)]);
}

/// The greatest key is deleted and the second one forgotten before they are cut, so the floor must not count them.
pub async fn i10_cutting_raises_the_floor_to_what_still_lived(store: Arc<dyn Inboxes>) {
    let other = UserNo(8);
    let at = |op, author, n: u64| Entry { op, author, outbox_seq: n, generation: 5, key: key_of(n) };
    let mut log = vec![
        at(Op::Add, AUTHOR, 900_000),
        at(Op::Add, other, 800_000),
        at(Op::Add, AUTHOR, 700_000),
        at(Op::Delete, AUTHOR, 900_000),
    ];
    log.extend((1..=600).map(|n| at(Op::Add, AUTHOR, n)));
    log.push(Entry::forget(other, 6, None));
    log.extend((601..=1500).map(|n| at(Op::Add, AUTHOR, n)));
    build(&store, READER, 1, log).await;
    assert_eq!(store.log(KEY).await.unwrap().unwrap().floor, Some(key_of(700_000)));
    store.advance(steps(&store, 2000)).await.unwrap();
    let log = store.log(KEY).await.unwrap().unwrap();
    assert!(log.entries[0].seq > 1500 && log.head.offset == 3505);
    assert_eq!(log.floor, Some(key_of(700_000)), "a floor never sinks");
}

/// An inbox that is built again counts in another epoch. One of the tests that [`inboxes`] runs.
pub async fn i16_an_inbox_built_again_counts_in_another_epoch(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![add(1, 5), add(2, 5)]).await;
    store.discard(KEY).await.unwrap();
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [None]);
    build(&store, READER, 2, vec![add(2, 5)]).await;
    let head = Position { epoch: life(2), offset: 1 };
    for offset in 0..=2 {
        let old = Position { epoch: life(1), offset };
        assert_eq!(store.read(KEY, old, 10).await.unwrap(), Read::Gone { head });
    }
    assert_eq!(entries(&store, READER).await, [add(2, 5)]);
}

/// One recipient's inbox knows of a later edge than the worker. The other recipient's inbox must not grow either.
pub async fn a_stale_step_does_nothing_to_anyone(store: Arc<dyn Inboxes>) {
    let second = UserNo(READER.0 + u32::from(store.buckets()));
    build(&store, READER, 1, vec![]).await;
    build(&store, second, 2, vec![]).await;
    let old = Recipient { counter: 9, ..follower(second, 5) };
    assert_eq!(store.advance(step(&store, 1, vec![follower(READER, 5), old])).await.unwrap(), Advanced::Stale);
    assert!(entries(&store, READER).await.is_empty());
    let moved = store.advance(step(&store, 1, vec![follower(READER, 5), follower(second, 5)])).await.unwrap();
    assert_eq!(moved, Advanced::Moved(vec![grown(READER, 1, 1, 1), grown(second, 2, 1, 1)]));
}

/// Steps in different buckets at once: one is taken, one is overtaken, one finds neither an inbox nor
/// anything else in its bucket, and one is stale. One of the tests that [`inboxes`] runs.
pub async fn each_of_several_steps_at_once_is_taken_or_not_by_itself(store: Arc<dyn Inboxes>) {
    let place = |n: u32| UserNo(READER.0 + n);
    let buckets = store.buckets();
    let of = |n: u32, edge: Recipient| {
        let recipients = vec![Recipient { reader: place(n), ..edge }];
        Advance { bucket: place(n).bucket(buckets), recipients, ..steps(&store, 2) }
    };
    let edge = follower(READER, 5);
    let all = || vec![of(0, edge), of(1, edge), of(2, edge), of(3, Recipient { counter: 9, ..edge })];
    for n in [0, 1, 3] {
        build(&store, place(n), u64::from(n) + 1, vec![]).await;
    }
    store.advance(Advance { next: Progress::at(1), records: vec![record(1)], ..of(1, edge) }).await.unwrap();
    let taken: Vec<Advanced> = store.advance_all(all()).await.into_iter().map(|taken| taken.unwrap()).collect();
    let moved = Advanced::Moved(vec![grown(place(0), 1, 2, 2)]);
    assert_eq!(taken, [moved, Advanced::Overtaken(Progress::at(1)), Advanced::Moved(vec![]), Advanced::Stale]);
    let progress: Vec<_> = (0..4).map(|n| (AUTHOR, place(n).bucket(buckets))).collect();
    let progress = store.progress(&progress).await.unwrap();
    assert_eq!(progress, [2, 1, 2, 0].map(Progress::at));
    assert_eq!(entries(&store, place(0)).await, [add(1, 5), add(2, 5)]);
    assert_eq!((entries(&store, place(1)).await, entries(&store, place(3)).await), (vec![add(1, 5)], vec![]));
    assert_eq!(store.advance_all(vec![]).await.len(), 0);

    // The notes beside a placeholder, and what a rebuild was ahead of push with, are kept apart by bucket too.
    store.begin_build(InboxKey::main(place(2)), life(9)).await.unwrap();
    let ahead = Build { ahead: vec![(AUTHOR, 3)], ..built(place(0), 10, vec![add(1, 5), add(2, 5), add(3, 5)]) };
    store.discard(InboxKey::main(place(0))).await.unwrap();
    swap_in(&store, ahead).await;
    let next = |n| Advance {
        expected: Progress::at(2),
        next: Progress::at(4),
        records: vec![record(3), record(4)],
        ..of(n, edge)
    };
    let taken: Vec<Advanced> =
        store.advance_all(vec![next(2), next(0)]).await.into_iter().map(|taken| taken.unwrap()).collect();
    assert_eq!(taken, [Advanced::Moved(vec![]), Advanced::Moved(vec![grown(place(0), 10, 4, 1)])]);
    assert!(store.finish_build(built(place(2), 9, vec![add(2, 5)])).await.unwrap());
    assert_eq!(entries(&store, place(2)).await, [add(2, 5), add(3, 5), add(4, 5)]);
}

/// A reader gets only records after the start of its edge. One of the tests that [`inboxes`] runs.
pub async fn a_reader_gets_records_beyond_its_edge_alone(store: Arc<dyn Inboxes>) {
    let epoch = |n: u32| u64::from(n) + 1;
    let place = |n: u32| UserNo(READER.0 + n * u32::from(store.buckets()));
    for n in 0..3 {
        build(&store, place(n), epoch(n), vec![]).await;
    }
    let from = |n, from| Recipient { from, ..follower(place(n), 5) };
    let step = Advance { recipients: vec![from(0, 0), from(1, 2), from(2, 3)], ..steps(&store, 3) };
    let grown = vec![grown(READER, epoch(0), 3, 3), grown(place(1), epoch(1), 1, 1)];
    assert_eq!(store.advance(step).await.unwrap(), Advanced::Moved(grown));
    assert_eq!(entries(&store, place(1)).await, [add(3, 5)]);
    assert!(entries(&store, place(2)).await.is_empty());
}

/// Neither a push that passes the reader nor a step of an edge takes the placeholder away.
pub async fn a_swap_needs_its_own_placeholder(store: Arc<dyn Inboxes>) {
    let begin =
        async |placeholder| assert_eq!(store.begin_build(KEY, life(placeholder)).await.unwrap(), begun(placeholder, 0));
    let finish = async |placeholder| store.finish_build(built(READER, placeholder, vec![add(1, 5)])).await.unwrap();
    assert!(!finish(1).await, "never begun");
    begin(2).await;
    assert_eq!(store.begin_build(KEY, life(3)).await.unwrap(), begun(2, 0), "the one that stands is everybody's");
    assert!(!finish(3).await, "a placeholder that does not stand");
    store.advance(step(&store, 1, vec![follower(READER, 11)])).await.unwrap();
    let follow = edge(12, true, Progress::at(1), vec![]);
    assert_eq!(store.step_edge(follow).await.unwrap(), EdgeStepped::Building);
    assert!(finish(2).await, "nobody took it");
    assert_eq!(entries(&store, READER).await, [add(1, 5)]);
    store.discard(KEY).await.unwrap();
    begin(4).await;
    store.discard(KEY).await.unwrap();
    assert!(!finish(4).await, "discarded");
    begin(5).await;
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [None], "nothing is served before the swap");
    assert!(finish(5).await);
    assert!(!finish(5).await, "a placeholder is good for one swap");
    assert_eq!(store.begin_build(KEY, life(6)).await.unwrap(), None, "the inbox exists");
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [Some(Position { epoch: life(5), offset: 1 })]);
}

/// Push starts over after its progress was lost. It skips records that the rebuilt inbox holds already, and then goes
/// on. A follow step of an author ends the skipping for that author.
pub async fn i3_what_a_rebuild_was_ahead_of_push_with_is_not_pushed_again(store: Arc<dyn Inboxes>) {
    let place = |n: u32| UserNo(READER.0 + n * u32::from(store.buckets()));
    for (n, upto) in [(0, 3), (1, 1)] {
        let entries = (1..=upto).map(|seq| add(seq, 5)).collect();
        let ahead = vec![(UserNo(99), 7), (AUTHOR, upto)];
        swap_in(&store, Build { ahead, ..built(place(n), u64::from(n) + 1, entries) }).await;
    }
    let to = || vec![follower(place(0), 5), follower(place(1), 5)];
    assert_eq!(store.advance(step(&store, 1, to())).await.unwrap(), Advanced::Moved(vec![]));
    let two = Advance { next: Progress::at(4), records: (2..=4).map(record).collect(), ..step(&store, 2, to()) };
    let grew = vec![grown(place(0), 1, 4, 1), grown(place(1), 2, 4, 3)];
    assert_eq!(store.advance(two).await.unwrap(), Advanced::Moved(grew));
    let grew = vec![grown(place(0), 1, 5, 1), grown(place(1), 2, 5, 1)];
    assert_eq!(store.advance(step(&store, 5, to())).await.unwrap(), Advanced::Moved(grew));
    for n in 0..2 {
        assert_eq!(entries(&store, place(n)).await, (1..=5).map(|seq| add(seq, 5)).collect::<Vec<_>>());
    }
    let other = UserNo(99);
    let follow = EdgeStep { author: other, ..edge(11, true, Progress::default(), vec![]) };
    assert!(matches!(store.step_edge(follow).await.unwrap(), EdgeStepped::Applied(_)));
    let of_other = Advance { author: other, ..step(&store, 1, vec![follower(READER, 11)]) };
    let grew = vec![Grown { generation: 11, ..grown(READER, 1, 7, 1) }];
    assert_eq!(store.advance(of_other).await.unwrap(), Advanced::Moved(grew), "under another edge");
}

/// Every call says that the inbox is missing. One of the tests that [`inboxes`] runs.
pub async fn a_missing_inbox_says_so_everywhere(store: Arc<dyn Inboxes>) {
    let after = Position { epoch: life(1), offset: 0 };
    assert_eq!(store.read(KEY, after, 10).await.unwrap(), Read::Missing);
    assert_eq!(store.log(KEY).await.unwrap(), None);
    assert_eq!(store.heads(&[KEY, KEY]).await.unwrap(), [None, None]);
    assert_eq!(store.step_edge(edge(12, false, Progress::default(), vec![])).await.unwrap(), EdgeStepped::Missing);
    let pushed = store.advance(step(&store, 1, vec![follower(READER, 5)])).await.unwrap();
    assert_eq!(pushed, Advanced::Moved(vec![]));
    store.discard(KEY).await.unwrap();
    assert_eq!(store.log(KEY).await.unwrap(), None);
}

/// The counts follow what is stored. One of the tests that [`inboxes`] runs.
pub async fn counts_follow_what_is_kept(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, (1..=3000).map(|seq| add(seq, 5)).collect()).await;
    build(&store, UserNo(2), 2, vec![add(1, 5)]).await;
    store.advance(steps(&store, 10)).await.unwrap();
    let kept = entries(&store, READER).await.len() as u64;
    let counts = store.counts().await.unwrap();
    assert_eq!((counts.inboxes, counts.entries), (2, kept + 1));
    store.discard(KEY).await.unwrap();
    let counts = store.counts().await.unwrap();
    assert_eq!((counts.inboxes, counts.entries), (1, 1));
}

/// A store and a simple one end with equal logs after random steps of a [`Schedule`].
pub async fn any_schedule_ends_as_in_the_naive_store(store: Arc<dyn Inboxes>, seed: u64) {
    let naive = Naive::new(store.buckets());
    let mut schedule = Schedule::new(seed);
    for _ in 0..6 {
        schedule.run(&*store, &naive, 100).await;
        schedule.compare(&*store, &naive).await;
    }
}
