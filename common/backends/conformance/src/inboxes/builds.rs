//! Tests of records that are pushed while an inbox is built.

use std::sync::Arc;

use feedgate_common::archive::Recipient;
use feedgate_common::inboxes::{Advance, Advanced, Build, KEEP, NOTES_MAX};
use feedgate_common::{Entry, Inboxes, Position, Progress, UserNo};

use super::{
    AUTHOR, InboxesExt as _, KEY, READER, add, begun, build, built, entries, follower, key_of, life, record, step,
};

/// A step that brings the records `from..=upto` of an author at once.
fn batch(store: &Arc<dyn Inboxes>, author: u32, from: u64, upto: u64, to: Vec<Recipient>) -> Advance {
    let records = (from..=upto).map(record).collect();
    Advance { author: UserNo(author), next: Progress::at(upto), records, ..step(store, from, to) }
}

fn of(author: u32, seq: u64, generation: u64) -> Entry {
    Entry { author: UserNo(author), ..add(seq, generation) }
}

async fn begin(store: &Arc<dyn Inboxes>, placeholder: u64) {
    assert_eq!(store.begin_build(KEY, life(placeholder)).await.unwrap(), begun(placeholder, 0));
}

/// The build has read every edge up to generation 10. Of authors 20 and 21 it holds more than push had brought, of the
/// others as much.
pub(super) async fn i4_what_is_pushed_while_an_inbox_is_built_stands_in_it_once(store: Arc<dyn Inboxes>) {
    let second = UserNo(READER.0 + u32::from(store.buckets()));
    build(&store, second, 1, vec![]).await;
    begin(&store, 2).await;
    let to = |generation, from, counter| vec![Recipient { from, counter, ..follower(READER, generation) }];
    let pushed = [
        batch(&store, 20, 1, 3, to(5, 0, 1000)),
        batch(&store, 21, 1, 1, to(5, 0, 1000)),
        batch(&store, 22, 1, 4, to(6, 2, 10)),
        batch(&store, 23, 1, 1, to(11, 0, 1000)),
        batch(&store, 24, 1, 1, to(5, 0, 9)),
        batch(&store, 25, 1, 1, vec![follower(READER, 5), follower(second, 5)]),
        batch(&store, 20, 4, 5, to(5, 0, 1000)),
    ];
    for step in pushed {
        let grows = u32::from(step.author == UserNo(25));
        let Advanced::Moved(grown) = store.advance(step.clone()).await.unwrap() else { panic!("{step:?}") };
        assert_eq!(grown.len() as u32, grows, "{step:?}");
    }
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [None], "nothing is served before the swap");
    let ahead = vec![(UserNo(20), 2), (UserNo(21), 1)];
    let brought = vec![of(20, 1, 5), of(20, 2, 5), of(21, 1, 5)];
    assert!(store.finish_build(Build { ahead, ..built(READER, 2, brought.clone()) }).await.unwrap());
    let mut wanted = brought;
    wanted.extend([of(20, 3, 5), of(22, 3, 6), of(22, 4, 6), of(25, 1, 5), of(20, 4, 5), of(20, 5, 5)]);
    assert_eq!(entries(&store, READER).await, wanted);
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [Some(Position { epoch: life(2), offset: wanted.len() as u64 })]);
    for (author, seq) in [(20, 6), (21, 2)] {
        store.advance(batch(&store, author, seq, seq, to(5, 0, 1000))).await.unwrap();
        wanted.push(of(author, seq, 5));
    }
    assert_eq!(entries(&store, READER).await, wanted, "and push goes on");
    let kept = (wanted.len() + entries(&store, second).await.len()) as u64;
    assert_eq!(store.counts().await.unwrap().entries, kept);
}

pub(super) async fn i3_a_builder_that_joins_takes_in_what_is_pushed_from_then_on(store: Arc<dyn Inboxes>) {
    begin(&store, 1).await;
    store.advance(batch(&store, AUTHOR.0, 1, 2, vec![follower(READER, 5)])).await.unwrap();
    assert_eq!(store.begin_build(KEY, life(2)).await.unwrap(), begun(1, 2));
    store.advance(step(&store, 3, vec![follower(READER, 5)])).await.unwrap();
    assert_eq!(store.begin_build(KEY, life(3)).await.unwrap(), begun(1, 3));
    let joined = Build { notes_from: 2, ..built(READER, 1, vec![add(1, 5), add(2, 5)]) };
    assert!(store.finish_build(joined).await.unwrap());
    assert!(!store.finish_build(built(READER, 1, vec![])).await.unwrap(), "the first comes too late");
    assert_eq!(entries(&store, READER).await, [add(1, 5), add(2, 5), add(3, 5)]);
}

/// A build that takes too long starts over. The notes that it loses are in the next snapshot.
pub(super) async fn i18_a_build_keeps_so_many_notes_and_no_more(store: Arc<dyn Inboxes>) {
    for over in [0, 1] {
        let (placeholder, author) = (1 + over, 30 + over as u32);
        begin(&store, placeholder).await;
        for from in (1..=NOTES_MAX as u64).step_by(1024) {
            store.advance(batch(&store, author, from, from + 1023, vec![follower(READER, 5)])).await.unwrap();
        }
        let last = NOTES_MAX as u64 + 1;
        store
            .advance(batch(&store, author, last, last, vec![Recipient { from: last - over, ..follower(READER, 5) }]))
            .await
            .unwrap();
        assert_eq!(store.present(&[KEY]).await.unwrap().len() as u64, 1 - over);
        assert_eq!(store.finish_build(built(READER, placeholder, vec![])).await.unwrap(), over == 0);
        if over == 0 {
            let head = store.heads(&[KEY]).await.unwrap()[0].unwrap();
            assert_eq!(head, Position { epoch: life(placeholder), offset: NOTES_MAX as u64 });
        }
        store.discard(KEY).await.unwrap();
    }
}

/// The build has read the counter 10. A step whose counters may be older than its records would leave a note that seems
/// to be of before the build.
pub(super) async fn i4_a_step_of_kept_followers_is_stale_while_an_inbox_is_built(store: Arc<dyn Inboxes>) {
    begin(&store, 1).await;
    let old = || vec![Recipient { counter: 9, ..follower(READER, 5) }];
    let kept = Advance { kept: true, ..step(&store, 1, old()) };
    assert_eq!(store.advance(kept).await.unwrap(), Advanced::Stale);
    assert_eq!(store.progress(&[(AUTHOR, READER.bucket(store.buckets()))]).await.unwrap(), [Progress::default()]);
    assert_eq!(store.advance(step(&store, 1, vec![follower(READER, 5)])).await.unwrap(), Advanced::Moved(vec![]));
    assert!(store.finish_build(built(READER, 1, vec![])).await.unwrap());
    assert_eq!(entries(&store, READER).await, [add(1, 5)]);
}

/// The cut counts the build's own adds too: the floor covers what is cut of either.
pub(super) async fn i10_what_was_noted_is_cut_as_what_is_pushed(store: Arc<dyn Inboxes>) {
    begin(&store, 1).await;
    store.advance(batch(&store, 30, 1, 900, vec![follower(READER, 5)])).await.unwrap();
    let high = Entry { key: key_of(700_000), ..of(31, 1, 5) };
    let brought: Vec<_> = std::iter::once(high).chain((2..=900).map(|seq| of(31, seq, 5))).collect();
    assert!(store.finish_build(built(READER, 1, brought)).await.unwrap());
    let log = store.log(KEY).await.unwrap().unwrap();
    assert_eq!((log.head.offset, log.floor), (1800, Some(high.key)));
    assert!((KEEP..1800).contains(&log.entries.len()), "{} are kept", log.entries.len());
    assert_eq!(log.entries.last().unwrap().entry, of(30, 900, 5));
}
