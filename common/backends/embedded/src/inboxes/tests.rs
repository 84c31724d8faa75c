//! The store on a real disk: the conformance suite, and what crashes, copies and damage do to it.

use std::path::PathBuf;

use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, Entry, FeedId, ItemId, Op, Record, Watermarks};
use feedgate_conformance::inboxes::{InboxesExt as _, Naive, Schedule, inboxes};
use proptest::prelude::*;

use super::*;

mod expiry;

/// Settings so small that every few steps begin a new segment and a snapshot.
const TINY: Settings = Settings { buckets: 4, segment_max: 2_000, snapshot_after: 4_000 };

fn open(dir: &Path, expected: Option<&str>) -> Result<EmbeddedInboxes> {
    EmbeddedInboxes::open(dir, expected, Settings::default())
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

fn key(reader: u32) -> InboxKey {
    InboxKey::main(UserNo(reader))
}

fn add(seq: u64) -> Entry {
    let key = DisplayKey { rank: seq as i64, item: ItemId(seq) };
    let record = Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key };
    Entry::of(&record, UserNo(9), 1)
}

async fn build(store: &EmbeddedInboxes, reader: u32, epoch: u64, entries: u64) -> Position {
    let (key, epoch) = (key(reader), Epoch(epoch));
    assert_eq!(store.begin_build(key, epoch).await.unwrap(), Some(Begun { placeholder: epoch, notes: 0 }));
    let entries = (1..=entries).map(add).collect();
    let (taken, until) = (Watermarks::default(), Millis::MAX);
    let build = Build { key, epoch, built_at: 1, entries, floor: None, taken, ahead: vec![], notes_from: 0, until };
    assert!(store.finish_build(build).await.unwrap());
    store.heads(&[key]).await.unwrap()[0].unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn newest_segment(dir: &Path) -> PathBuf {
    segment::list(dir).unwrap().pop().unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_home_conforms() {
    for settings in [Settings::default(), TINY] {
        let dir = tempfile::tempdir().unwrap();
        let opened = std::cell::Cell::new(0);
        inboxes(async || {
            opened.set(opened.get() + 1);
            let dir = dir.path().join(opened.get().to_string());
            Arc::new(EmbeddedInboxes::open(&dir, None, settings).unwrap()) as Arc<dyn Inboxes>
        })
        .await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn any_schedule_with_reopening_and_snapshots_ends_as_in_the_naive_store(
        seed: u64, runs in proptest::collection::vec((1..80_usize, any::<bool>()), 1..8),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let naive = Naive::new(TINY.buckets);
        let mut schedule = Schedule::expiring(seed);
        let mut remembered: Option<String> = None;
        for (steps, compacts) in runs {
            let store = EmbeddedInboxes::open(dir.path(), remembered.as_deref(), TINY).unwrap();
            remembered = Some(store.incarnation());
            run(async {
                schedule.compare(&store, &naive).await;
                schedule.run(&store, &naive, steps).await;
                schedule.compare(&store, &naive).await;
            });
            if compacts {
                store.compact().unwrap();
            }
        }
    }
}

/// Knows the state after each answered step, and cuts the log at every byte after it.
#[test]
fn i14_a_log_torn_anywhere_holds_every_answered_step_before_the_tear_and_no_half_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), None).unwrap();
    let mut known = vec![(fs::metadata(newest_segment(dir.path())).unwrap().len(), store.incarnation(), 0)];
    for n in 1..=4 {
        run(build(&store, n, n.into(), 3));
        let logged = segment::HEADER as u64 + store.written().bytes;
        known.push((logged, store.incarnation(), n));
    }
    drop(store);
    let (segment, whole) = (newest_segment(dir.path()), fs::read(newest_segment(dir.path())).unwrap());
    let life = life::next(dir.path(), dir.path(), Some(&known[0].1), 1).unwrap();
    for cut in segment::HEADER..=whole.len() {
        fs::write(&segment, &whole[..cut]).unwrap();
        let buckets = load::load(dir.path(), &life).unwrap().buckets;
        let answered = known.iter().rev().find(|(len, ..)| *len <= cut as u64).unwrap().2;
        let whole_inboxes = buckets.iter().flat_map(|b| b.inboxes.values());
        assert!(whole_inboxes.clone().all(|inbox| inbox.head().offset == 3), "cut at {cut}");
        assert_eq!(whole_inboxes.count() as u32, answered, "cut at {cut}");
        let sound = fs::metadata(&segment).unwrap().len();
        assert!(sound <= cut as u64, "what was torn is cut off");
    }
}

#[test]
fn a_store_opened_again_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), None).unwrap();
    let (first, head) = (store.incarnation(), run(build(&store, 1, 7, 5)));
    let log = run(store.log(key(1))).unwrap();
    drop(store);
    let store = open(dir.path(), Some(&first)).unwrap();
    assert_ne!(store.incarnation(), first);
    assert_eq!(run(store.log(key(1))).unwrap(), log);
    assert_eq!(run(store.heads(&[key(1)])).unwrap(), [Some(head)]);
}

#[test]
fn a_crash_before_the_archive_learned_the_incarnation_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), None).unwrap();
    let first = store.incarnation();
    run(build(&store, 1, 7, 5));
    drop(store);
    for _ in 0..3 {
        let store = open(dir.path(), Some(&first)).unwrap();
        assert_eq!(run(store.counts()).unwrap().entries, 5);
    }
    let store = open(dir.path(), Some(&first)).unwrap();
    let (later, _) = (store.incarnation(), run(build(&store, 2, 8, 1)));
    drop(store);
    assert_eq!(run(open(dir.path(), Some(&later)).unwrap().counts()).unwrap().inboxes, 2);
    assert_eq!(run(open(dir.path(), Some(&first)).unwrap().counts()).unwrap().inboxes, 0, "steps it cannot know of");
}

#[test]
fn i16_a_directory_put_back_from_a_copy_starts_empty_under_a_new_id() {
    let (dir, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = open(dir.path(), None).unwrap();
    let remembered = store.incarnation();
    run(build(&store, 1, 7, 5));
    copy(dir.path(), backup.path());
    run(build(&store, 2, 8, 5));
    drop(store);
    copy(backup.path(), dir.path());
    let store = open(dir.path(), Some(&remembered)).unwrap();
    assert_ne!(store.incarnation().split(':').next(), remembered.split(':').next());
    assert_eq!(run(store.counts()).unwrap(), InboxCounts::default());
    let again = store.incarnation();
    run(build(&store, 3, 9, 1));
    drop(store);
    assert_eq!(run(open(dir.path(), Some(&again)).unwrap().counts()).unwrap().inboxes, 1);
}

#[test]
fn i16_an_archive_that_knows_another_store_or_none_gets_an_empty_one() {
    for expected in [None, Some("00000000000000000000000000000abc:1"), Some("")] {
        let dir = tempfile::tempdir().unwrap();
        run(build(&open(dir.path(), None).unwrap(), 1, 7, 5));
        assert_eq!(run(open(dir.path(), expected).unwrap().counts()).unwrap(), InboxCounts::default());
    }
}

#[test]
fn a_snapshot_lets_the_log_before_it_go_and_tells_the_same() {
    let dir = tempfile::tempdir().unwrap();
    // No snapshot is made but the one that the test asks for.
    let settings = Settings { segment_max: 500, snapshot_after: u64::MAX, ..TINY };
    let store = EmbeddedInboxes::open(dir.path(), None, settings).unwrap();
    for reader in 0..20 {
        run(build(&store, reader, reader.into(), 100));
    }
    assert!(segment::list(dir.path()).unwrap().len() > 1);
    store.compact().unwrap();
    assert_eq!(segment::list(dir.path()).unwrap().len(), 1);
    run(build(&store, 20, 20, 100));
    let (remembered, logs) =
        (store.incarnation(), (0..21).map(|r| run(store.log(key(r))).unwrap()).collect::<Vec<_>>());
    drop(store);
    let store = EmbeddedInboxes::open(dir.path(), Some(&remembered), settings).unwrap();
    assert!((0..21).map(|r| run(store.log(key(r))).unwrap()).eq(logs));
}

#[test]
fn a_store_that_is_opened_often_and_used_little_is_compacted_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut remembered = None;
    for n in 0..80 {
        let store = EmbeddedInboxes::open(dir.path(), remembered.as_deref(), TINY).unwrap();
        remembered = Some(store.incarnation());
        assert_eq!(run(store.counts()).unwrap().inboxes, n);
        run(build(&store, n as u32, n, 1));
    }
    let log: u64 = segment::list(dir.path()).unwrap().iter().map(|(_, path)| fs::metadata(path).unwrap().len()).sum();
    assert!(log < 2 * TINY.snapshot_after, "the log has grown to {log} bytes");
}

/// On a full disk the empty segment could not be written again, and the store would have stopped for it.
#[test]
fn a_snapshot_leaves_a_segment_that_is_empty_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedInboxes::open(dir.path(), None, TINY).unwrap();
    run(build(&store, 1, 7, 50));
    store.compact().unwrap();
    let file = || std::os::unix::fs::MetadataExt::ino(&fs::metadata(newest_segment(dir.path())).unwrap());
    let before = file();
    store.compact().unwrap();
    assert_eq!(file(), before);
    run(build(&store, 2, 8, 1));
    let (remembered, logs) = (store.incarnation(), [1, 2].map(|reader| run(store.log(key(reader))).unwrap()));
    drop(store);
    let store = EmbeddedInboxes::open(dir.path(), Some(&remembered), TINY).unwrap();
    assert_eq!([1, 2].map(|reader| run(store.log(key(reader))).unwrap()), logs);
}

#[test]
fn damage_is_named_by_file_and_offset_and_nothing_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedInboxes::open(dir.path(), None, TINY).unwrap();
    run(build(&store, 1, 7, 50));
    store.compact().unwrap();
    run(build(&store, 2, 8, 1));
    run(build(&store, 3, 9, 1));
    let remembered = store.incarnation();
    drop(store);
    let (log, snapshot) = (newest_segment(dir.path()), snapshot::path(dir.path(), 1));
    for (path, at) in [(&log, segment::HEADER + 22), (&snapshot, 40)] {
        let sound = fs::read(path).unwrap();
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
        let error = EmbeddedInboxes::open(dir.path(), Some(&remembered), TINY).unwrap_err();
        assert!(
            matches!(&error, StoreError::Corrupt(what) if what.contains(&path.display().to_string())
            && what.contains("at byte")),
            "{error}"
        );
        fs::write(path, sound).unwrap();
    }
    fs::remove_file(&snapshot).unwrap();
    let error = EmbeddedInboxes::open(dir.path(), Some(&remembered), TINY).unwrap_err();
    assert!(
        matches!(&error, StoreError::Corrupt(what) if what.contains("bucket 1 is known up to record 0")),
        "{error}"
    );
}

#[test]
fn a_second_process_is_refused_while_the_first_has_the_store_open() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), None).unwrap();
    let error = open(dir.path(), Some(&store.incarnation())).unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(why) if why.contains("in use")), "{error}");
}

#[test]
fn a_store_keeps_the_buckets_it_was_made_with() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedInboxes::open(dir.path(), None, TINY).unwrap();
    let remembered = store.incarnation();
    drop(store);
    assert_eq!(open(dir.path(), Some(&remembered)).unwrap().buckets(), 4);
}

#[test]
fn steps_at_once_share_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), None).unwrap();
    run(futures_util::future::join_all((1..=200).map(|n| build(&store, n, n.into(), 1))));
    let syncs = store.written().syncs;
    assert!(syncs < 200, "400 steps took {syncs} syncs");
}

/// Runs steps while buckets are copied and segments removed, then opens the store again.
#[test]
fn i1_snapshots_while_steps_go_on_lose_and_repeat_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedInboxes::open(dir.path(), None, TINY).unwrap();
    for reader in 0..8 {
        run(build(&store, reader, reader.into(), 0));
    }
    let push = |seq| Advance {
        author: UserNo(9),
        bucket: Bucket(0),
        feed: FeedId::MAIN,
        expected: Progress::at(seq - 1),
        next: Progress::at(seq),
        records: vec![Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key: add(seq).key }],
        recipients: [0, 4]
            .map(|reader| feedgate_common::archive::Recipient {
                reader: UserNo(reader),
                generation: 1,
                from: 0,
                counter: 1,
                listens: false,
            })
            .to_vec(),
        kept: false,
    };
    std::thread::scope(|scope| {
        let compacting = scope.spawn(|| (0..10).for_each(|_| store.compact().unwrap()));
        run(async {
            for seq in 1..=600 {
                let moved = store.advance(push(seq)).await.unwrap();
                assert!(matches!(&moved, Advanced::Moved(grown) if grown.len() == 2), "{moved:?}");
            }
        });
        compacting.join().unwrap();
    });
    let (remembered, log) = (store.incarnation(), run(store.log(key(4))).unwrap().unwrap());
    assert!(log.entries.iter().map(|n| (n.seq, n.entry)).eq((1..=600).map(|seq| (seq, add(seq)))));
    drop(store);
    let store = EmbeddedInboxes::open(dir.path(), Some(&remembered), TINY).unwrap();
    assert_eq!(run(store.log(key(4))).unwrap().unwrap(), log);
}
