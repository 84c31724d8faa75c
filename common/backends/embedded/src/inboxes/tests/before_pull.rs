//! A store of the version before there were watermarks: its bytes, as that version wrote them.

use feedgate_common::inboxes::Numbered;

use super::*;
use crate::inboxes::expiry::untold;
use crate::inboxes::life::Life;
use crate::inboxes::segment::{Batch, Segment};

/// Ten steps of bucket 0 of 4: inboxes of readers 0 and 4 are built, author 7 pushes records 1 and 2 to both, reader 4
/// follows anew, reader 0 unfollows, a build of reader 8 is begun and discarded, one of reader 12 is begun.
const STEPS: [&str; 10] = [
    "0003000004",
    "0004000004080192a0bfe9d66680808092a0bfe9d666010504070182a0bfe9d66600",
    "0003040005",
    "0004040005080000",
    "00010700000200020004000182a0bfe9d6660000040002020002010a01120202",
    "000204000709010200010904070284a0bfe9d66600",
    "0003080006",
    "00020000070a00000000",
    "00050800",
    "00030c0007",
];

/// Bucket 0 after them, of store 0.
const SNAPSHOT: &str = "6667736e61705f31000000000000000000000000000000000a01070200010c000702000004080192a0bfe9d66680808092a0\
    bfe9d6660101070a0000140504070182a0bfe9d666000504070202000a0b0704000508000101070900001a0604070182a0bf\
    e9d66600060407020200090b07090407020000ba34baa5";

const ID: &str = "00000000000000000000000000000000";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// The directory as a process of that version leaves it.
fn leave_behind(dir: &Path, with_snapshot: bool) {
    let meta = dir.join("meta");
    fs::write(&meta, format!(r#"{{"format":2,"id":"{ID}","buckets":4}}"#)).unwrap();
    let life = Life { id: 0, buckets: 4, opens: 1, used: 0, meta: life::fingerprint(&meta).unwrap() };
    let mut batch = Batch::new();
    STEPS.iter().for_each(|step| batch.push(&bytes(step)));
    Segment::create(dir, &life.header(1)).unwrap().append(batch.seal(1)).unwrap();
    if with_snapshot {
        fs::write(snapshot::path(dir, 0), bytes(SNAPSHOT)).unwrap();
    }
}

fn wanted(reader: u32) -> Vec<Entry> {
    let at = |seq: i64| 1_764_000_000_000 + seq;
    let key = |seq| DisplayKey { rank: at(seq), item: ItemId((at(seq) as u64) << 22) };
    let add = |seq: i64, generation| Entry {
        op: Op::Add,
        author: UserNo(7),
        outbox_seq: seq as u64,
        generation,
        key: key(seq),
    };
    let forget = |generation| Entry::forget(UserNo(7), generation);
    match reader {
        0 => vec![add(1, 5), add(2, 5), forget(10)],
        _ => vec![add(1, 6), add(2, 6), forget(9), add(2, 9)],
    }
}

#[test]
fn a_store_of_the_version_before_opens_with_all_it_held_and_goes_on() {
    for with_snapshot in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        leave_behind(dir.path(), with_snapshot);
        let store = open(dir.path(), Some(&format!("{ID}:1"))).unwrap();
        for (reader, epoch) in [(0, 4), (4, 5)] {
            let log = run(store.log(key(reader))).unwrap().unwrap();
            let entries = wanted(reader).into_iter().zip(1..).map(|(entry, seq)| Numbered { seq, entry });
            assert_eq!((log.entries, log.taken), (entries.collect::<Vec<_>>(), Watermarks::default()));
            assert_eq!(log.head.epoch, Epoch(epoch));
        }
        assert_eq!(run(store.log(key(0))).unwrap().unwrap().floor.unwrap().rank, 1_764_000_000_009);
        assert_eq!(run(store.progress(&[(UserNo(7), Bucket(0))])).unwrap(), [Progress::at(2)]);
        assert!(!finish(&store, 8, 6) && finish(&store, 12, 7), "build tokens stand as they were left");

        let next = Watermarks { pull: 3, direct: 1 };
        let entries = vec![Entry::direct(Op::Add, UserNo(9), add(5).key)];
        let (expected, epoch) = (Watermarks::default(), Epoch(4));
        let step = Take { key: key(0), epoch, expected, next, entries, counter: 9 };
        let head = Position { epoch, offset: 4 };
        assert_eq!(run(store.take(step)).unwrap(), Taken::Moved { head, appended: 1 });
        let remembered = store.incarnation();
        drop(store);
        let store = open(dir.path(), Some(&remembered)).unwrap();
        assert_eq!(run(store.stand(key(0))).unwrap(), Some(Stand { head, taken: next }));
    }
}

fn finish(store: &EmbeddedInboxes, reader: u32, token: u64) -> bool {
    let (key, epoch, taken) = (key(reader), Epoch(token), Watermarks::default());
    let (entries, ahead, until) = (vec![], vec![], Millis::MAX);
    let build = Build { key, epoch, built_at: 8, entries, floor: None, taken, ahead, notes_from: 0, until };
    run(store.finish_build(build)).unwrap()
}

#[test]
fn its_inboxes_count_as_touched_when_it_is_first_opened_and_a_snapshot_keeps_that() {
    let dir = tempfile::tempdir().unwrap();
    leave_behind(dir.path(), true);
    let store = open(dir.path(), Some(&format!("{ID}:1"))).unwrap();
    let (first, until) = (store.incarnation(), untold().millis());
    let before = until - 60_000;
    assert_eq!(run(store.discard_expired(before, 10)).unwrap(), 0, "none is dropped before");
    drop(store);
    for bucket in 0..4 {
        assert!(fs::read(snapshot::path(dir.path(), bucket)).unwrap().starts_with(b"fgsnap_3"));
    }
    let store = open(dir.path(), Some(&first)).unwrap();
    assert_eq!(run(store.discard_expired(before, 10)).unwrap(), 0);
    assert_eq!(run(store.discard_expired(until, 10)).unwrap(), 2, "none is kept for good");
}
