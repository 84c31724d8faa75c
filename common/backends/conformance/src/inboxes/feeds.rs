//! Tests of the inboxes that a reader has for each feed: they share the progress of push, and nothing else.

use std::sync::Arc;

use feedgate_common::archive::Recipient;
use feedgate_common::inboxes::{Advance, Advanced, Build, EdgeStep, EdgeStepped, Grown, Read, Take, Taken};
use feedgate_common::{Entry, FeedId, InboxKey, Inboxes, Op, Position, Progress, Record, UserNo, Watermarks};

use super::{
    AUTHOR, InboxesExt as _, KEY, READER, add, begun, built, edge, follower, grown, key_of, life, record, step, swap_in,
};

const NAMED: FeedId = FeedId(3);

fn named(reader: UserNo) -> InboxKey {
    InboxKey { reader, feed: NAMED }
}

/// A step like [`step`], but its record goes to the named feed.
fn named_step(store: &Arc<dyn Inboxes>, seq: u64, recipients: Vec<Recipient>) -> Advance {
    let records = vec![Record { feed: NAMED, ..record(seq) }];
    Advance { feed: NAMED, records, ..step(store, seq, recipients) }
}

fn named_built(reader: UserNo, epoch: u64, entries: Vec<Entry>) -> Build {
    Build { key: named(reader), ..built(reader, epoch, entries) }
}

async fn log(store: &Arc<dyn Inboxes>, key: InboxKey) -> Vec<Entry> {
    let log = store.log(key).await.unwrap().expect("the inbox exists");
    log.entries.iter().map(|n| n.entry).collect()
}

pub(super) async fn a_push_grows_the_inboxes_of_its_feed_and_moves_the_progress_of_all(store: Arc<dyn Inboxes>) {
    let (second, bucket) = (UserNo(READER.0 + u32::from(store.buckets())), READER.bucket(store.buckets()));
    swap_in(&store, built(READER, 1, vec![])).await;
    swap_in(&store, named_built(READER, 2, vec![])).await;
    swap_in(&store, built(second, 3, vec![])).await;
    let both = || vec![follower(READER, 5), follower(second, 5)];
    let first = store.advance(named_step(&store, 1, both())).await.unwrap();
    let grown_named = |epoch, offset| Grown { key: named(READER), ..grown(READER, epoch, offset, 1) };
    assert_eq!(first, Advanced::Moved(vec![grown_named(2, 1)]), "who has no inbox of that feed is passed by");
    let again = store.advance(step(&store, 1, both())).await.unwrap();
    assert_eq!(again, Advanced::Overtaken(Progress::at(1)), "record 1 is done, whatever its feed");
    let next = store.advance(step(&store, 2, both())).await.unwrap();
    assert_eq!(next, Advanced::Moved(vec![grown(READER, 1, 1, 1), grown(second, 3, 1, 1)]));
    assert_eq!(store.progress(&[(AUTHOR, bucket)]).await.unwrap(), [Progress::at(2)]);
    assert_eq!((log(&store, KEY).await, log(&store, named(READER)).await), (vec![add(2, 5)], vec![add(1, 5)]));
    assert_eq!(store.log(named(second)).await.unwrap(), None);
}

/// A placeholder belongs to one feed, and so does what the inbox knows of edges.
pub(super) async fn a_push_of_one_feed_disturbs_no_inbox_of_another(store: Arc<dyn Inboxes>) {
    let begin = async |key, placeholder| store.begin_build(key, life(placeholder)).await.unwrap();
    begin(KEY, 1).await;
    begin(named(READER), 2).await;
    let pushed = store.advance(named_step(&store, 1, vec![follower(READER, 5)])).await.unwrap();
    assert_eq!(pushed, Advanced::Moved(vec![]));
    assert_eq!(begin(KEY, 9).await, begun(1, 0), "nothing of the main feed went by");
    assert_eq!(begin(named(READER), 9).await, begun(2, 1));
    assert!(store.finish_build(built(READER, 1, vec![])).await.unwrap());
    store.advance(step(&store, 2, vec![follower(READER, 5)])).await.unwrap();
    let younger = Build { built_at: 20, notes_from: 1, ..named_built(READER, 2, vec![]) };
    assert!(store.finish_build(younger).await.unwrap());

    let knows = |counter| vec![Recipient { counter, ..follower(READER, 5) }];
    assert_eq!(store.advance(named_step(&store, 3, knows(15))).await.unwrap(), Advanced::Stale);
    let moved = store.advance(step(&store, 3, knows(15))).await.unwrap();
    assert_eq!(moved, Advanced::Moved(vec![grown(READER, 1, 2, 1)]), "the main inbox knows no later edge");
    assert_eq!(log(&store, named(READER)).await, []);
}

pub(super) async fn i16_each_feed_of_a_reader_counts_forgets_takes_and_goes_by_itself(store: Arc<dyn Inboxes>) {
    swap_in(&store, built(READER, 1, vec![add(1, 5)])).await;
    swap_in(&store, named_built(READER, 2, vec![add(2, 5), add(3, 5)])).await;
    let head = |epoch, offset| Position { epoch: life(epoch), offset };
    let heads = async || store.heads(&[KEY, named(READER)]).await.unwrap();
    assert_eq!(heads().await, [Some(head(1, 1)), Some(head(2, 2))]);
    assert_eq!(store.read(KEY, head(2, 1), 10).await.unwrap(), Read::Gone { head: head(1, 1) }, "another's position");

    let follow = edge(12, true, Progress::default(), vec![add(1, 12)]);
    assert_eq!(store.step_edge(follow.clone()).await.unwrap(), EdgeStepped::Applied(head(1, 3)));
    let of_named = EdgeStep { key: named(READER), adds: vec![], ..follow };
    assert_eq!(store.step_edge(of_named.clone()).await.unwrap(), EdgeStepped::Applied(head(2, 3)), "it had not yet");
    assert_eq!(store.step_edge(of_named).await.unwrap(), EdgeStepped::Nothing);

    let (nothing, next) = (Watermarks::default(), Watermarks { pull: 4, direct: 2 });
    let entries = vec![Entry::direct(Op::Add, AUTHOR, key_of(8))];
    let take = Take { key: named(READER), epoch: life(2), expected: nothing, next, entries, counter: 1000 };
    assert_eq!(store.take(take).await.unwrap(), Taken::Moved { head: head(2, 4), appended: 1 });
    let stands = [store.stand(KEY).await.unwrap(), store.stand(named(READER)).await.unwrap()];
    assert_eq!(stands.map(|stand| stand.unwrap().taken), [nothing, next]);
    assert_eq!(log(&store, KEY).await, [add(1, 5), Entry::forget(AUTHOR, 12, None), add(1, 12)]);
    assert_eq!(store.counts().await.unwrap().inboxes, 2);

    store.discard(KEY).await.unwrap();
    assert_eq!(heads().await, [None, Some(head(2, 4))]);
    swap_in(&store, built(READER, 3, vec![])).await;
    store.discard(named(READER)).await.unwrap();
    assert_eq!(heads().await, [Some(head(3, 0)), None]);
}
