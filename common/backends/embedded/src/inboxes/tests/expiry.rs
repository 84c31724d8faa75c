//! What it costs to keep inboxes, and how those that nobody touches are found.

use super::*;
use crate::inboxes::expiry::now;

const HOUR: Millis = 3_600_000;

async fn build_until(store: &EmbeddedInboxes, reader: u32, until: Millis) {
    let (key, epoch, taken) = (key(reader), Epoch(1), Watermarks::default());
    assert_eq!(store.begin_build(key, epoch).await.unwrap(), Some(Begun { placeholder: epoch, notes: 0 }));
    let entries = (1..=3).map(add).collect();
    let build = Build { key, epoch, built_at: 1, entries, floor: None, taken, ahead: vec![], notes_from: 0, until };
    assert!(store.finish_build(build).await.unwrap());
}

#[test]
fn a_touch_costs_a_step_only_when_an_eighth_of_the_time_has_passed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), None).unwrap();
    let (start, touched) = (now(), [key(1), key(2), key(3)]);
    for reader in 1..=2 {
        run(build_until(&store, reader, start + 80 * HOUR));
    }
    let logged = |until| {
        let before = store.written().bytes;
        run(store.touch(&touched, until)).unwrap();
        store.written().bytes - before
    };
    assert_eq!(logged(start + 81 * HOUR), 0, "one hour later it is kept long enough");
    assert_eq!(logged(start + 89 * HOUR), 0);
    let size = logged(start + 91 * HOUR);
    assert!((1..100).contains(&size), "a touch of both takes {size} bytes");
    assert_eq!(logged(start + 101 * HOUR), 0);
    assert_eq!(run(store.discard_expired(start + 101 * HOUR, 10)).unwrap(), 0, "what is promised is kept");
    assert_eq!(run(store.discard_expired(start + 104 * HOUR, 10)).unwrap(), 2);
}

#[test]
fn those_past_their_time_are_found_a_limited_number_at_a_time_and_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedInboxes::open(dir.path(), None, TINY).unwrap();
    run(futures_util::future::join_all(
        (0..600).map(|n| build_until(&store, n, if n % 3 == 0 { 9_000 } else { 1_000 })),
    ));
    let mut gone = vec![];
    while gone.last() != Some(&0) {
        gone.push(run(store.discard_expired(8_000, 90)).unwrap());
    }
    assert_eq!(gone, [90, 90, 90, 90, 40, 0]);
    let left = |store: &EmbeddedInboxes| run(store.counts()).unwrap();
    assert_eq!(left(&store), InboxCounts { inboxes: 200, entries: 600 });
    let remembered = store.incarnation();
    drop(store);
    let store = EmbeddedInboxes::open(dir.path(), Some(&remembered), TINY).unwrap();
    assert_eq!(left(&store).inboxes, 200);
    assert_eq!(run(store.discard_expired(8_999, 1000)).unwrap(), 0);
    assert_eq!(run(store.discard_expired(9_000, 1000)).unwrap(), 200);
}
