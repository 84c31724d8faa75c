//! Tests of takes, which bring what no push brings, and of what other steps do to such entries.

use std::sync::Arc;

use feedgate_common::inboxes::{Advanced, Build, EdgeStep, EdgeStepped, Read, Stand, Take, Taken};
use feedgate_common::{Cut, DirectSeq, Entry, InboxKey, Inboxes, Op, Position, Progress, PullSeq, Watermarks};
use futures_util::future::join;

use super::{
    AUTHOR, InboxesExt as _, KEY, READER, UserNo, add, build, built, edge, entries, follower, grown, key_of, life,
    step, steps, swap_in,
};

fn marks(pull: PullSeq, direct: DirectSeq) -> Watermarks {
    Watermarks { pull, direct }
}

fn direct(op: Op, n: u64) -> Entry {
    Entry::direct(op, AUTHOR, key_of(n))
}

/// A take for the suite's inbox of this epoch, by a caller that knows of every edge.
fn take(epoch: u64, expected: Watermarks, next: Watermarks, entries: Vec<Entry>) -> Take {
    Take { key: KEY, epoch: life(epoch), expected, next, entries, counter: 1000 }
}

fn moved(epoch: u64, offset: u64, appended: u32) -> Taken {
    Taken::Moved { head: Position { epoch: life(epoch), offset }, appended }
}

async fn taken(store: &Arc<dyn Inboxes>) -> Watermarks {
    let stand = store.stand(KEY).await.unwrap().expect("the inbox exists");
    let log = store.log(KEY).await.unwrap().expect("the inbox exists");
    let read = store.read(KEY, log.head, 1).await.unwrap();
    assert_eq!(stand, Stand { head: log.head, taken: log.taken });
    assert_eq!(read, Read::Entries { entries: vec![], head: log.head.offset, taken: log.taken });
    stand.taken
}

pub(super) async fn i10_watermarks_move_forward_whatever_is_appended_and_only_from_what_was_expected(
    store: Arc<dyn Inboxes>,
) {
    let before = Build { taken: marks(70, 3), ..built(READER, 1, vec![add(1, 5)]) };
    swap_in(&store, before).await;
    assert_eq!(taken(&store).await, marks(70, 3), "a build says how far it goes");
    for other in [marks(69, 3), marks(71, 3), marks(70, 2), marks(70, 4), marks(0, 0)] {
        let late = take(1, other, marks(90, 9), vec![add(2, 5), direct(Op::Add, 8)]);
        assert_eq!(store.take(late).await.unwrap(), Taken::Overtaken, "{other:?}");
    }
    assert_eq!((taken(&store).await, entries(&store, READER).await.len()), (marks(70, 3), 1));
    let nothing = take(1, marks(70, 3), marks(75, 3), vec![]);
    assert_eq!(store.take(nothing).await.unwrap(), moved(1, 1, 0));
    let skipped = take(1, marks(75, 3), marks(80, 3), vec![add(2, 11)]);
    assert_eq!(store.take(skipped).await.unwrap(), moved(1, 1, 0));
    let both = take(1, marks(80, 3), marks(81, 4), vec![add(3, 5), direct(Op::Add, 8)]);
    assert_eq!(store.take(both).await.unwrap(), moved(1, 3, 2));
    let same = take(1, marks(81, 4), marks(81, 4), vec![]);
    assert_eq!(store.take(same).await.unwrap(), moved(1, 3, 0));
    assert_eq!(taken(&store).await, marks(81, 4));
    assert_eq!(entries(&store, READER).await, [add(1, 5), add(3, 5), direct(Op::Add, 8)]);
    let (bucket, progress) = (READER.bucket(store.buckets()), Progress::default());
    assert_eq!(store.progress(&[(AUTHOR, bucket)]).await.unwrap(), [progress], "push has not moved");
    let pushed = store.advance(steps(&store, 2)).await.unwrap();
    assert_eq!((pushed, taken(&store).await), (Advanced::Moved(vec![grown(READER, 1, 5, 2)]), marks(81, 4)));
}

pub(super) async fn i3_of_two_equal_takes_at_once_one_appends(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![]).await;
    for n in 1..=20 {
        let once = || store.take(take(1, marks(n - 1, 0), marks(n, 0), vec![add(n, 5)]));
        let (a, b) = join(once(), once()).await;
        let mut answers = [a.unwrap(), b.unwrap()];
        answers.sort_by_key(|answer| *answer == Taken::Overtaken);
        assert_eq!(answers, [moved(1, n, 1), Taken::Overtaken]);
    }
    assert!(entries(&store, READER).await.iter().map(|e| e.outbox_seq).eq(1..=20));
}

/// The inbox was built again meanwhile, and has come as far as the one before.
pub(super) async fn i16_a_take_of_another_epoch_does_nothing(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![]).await;
    store.discard(KEY).await.unwrap();
    build(&store, READER, 2, vec![]).await;
    for epoch in [1, 3] {
        let late = take(epoch, marks(0, 0), marks(5, 1), vec![add(1, 5)]);
        assert_eq!(store.take(late).await.unwrap(), Taken::Overtaken, "{epoch}");
    }
    assert_eq!((taken(&store).await, entries(&store, READER).await), (marks(0, 0), vec![]));
}

/// The reader follows the suite's author under generation 12. Of two other authors it followed one before the build and
/// one after it.
pub(super) async fn a_take_appends_what_the_inbox_has_taken_the_edge_of_in_and_all_that_is_addressed(
    store: Arc<dyn Inboxes>,
) {
    build(&store, READER, 1, vec![]).await;
    let follow = store.step_edge(edge(12, true, Progress::default(), vec![])).await.unwrap();
    assert!(matches!(follow, EdgeStepped::Applied(_)), "{follow:?}");
    let of = |author, generation| Entry { author: UserNo(author), ..add(1, generation) };
    let wants = [add(1, 12), of(8, 10), of(8, 0), direct(Op::Add, 4), Entry::direct(Op::Delete, UserNo(9), key_of(4))];
    let mut news = wants.to_vec();
    for passed_by in [add(1, 5), add(1, 13), of(9, 11)] {
        news.insert(2, passed_by);
    }
    let step = take(1, marks(0, 0), marks(8, 2), news);
    assert_eq!(store.take(step).await.unwrap(), moved(1, 6, 5));
    assert_eq!(entries(&store, READER).await[1..], wants);
}

/// The caller has read the edges before a follow that the build of the inbox has seen. What the caller has pulled under
/// the old edge can neither be appended nor be left out.
pub(super) async fn a_take_that_knows_less_than_the_inbox_does_nothing(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![]).await;
    let news = vec![direct(Op::Add, 4), Entry { author: UserNo(8), ..add(1, 5) }];
    let stale = Take { counter: 9, ..take(1, marks(0, 0), marks(8, 2), news) };
    assert_eq!(store.take(stale.clone()).await.unwrap(), Taken::Overtaken);
    assert_eq!((taken(&store).await, entries(&store, READER).await), (marks(0, 0), vec![]));
    let addressed = Take { entries: vec![direct(Op::Add, 4)], ..stale.clone() };
    assert_eq!(store.take(addressed).await.unwrap(), moved(1, 1, 1), "no edge is needed for that");
    let again = Take { expected: marks(8, 2), next: marks(9, 2), counter: 10, ..stale };
    assert_eq!(store.take(again).await.unwrap(), moved(1, 3, 2));
}

pub(super) async fn a_take_at_a_missing_inbox_says_whether_it_is_being_built(store: Arc<dyn Inboxes>) {
    let missed = || take(0, marks(0, 0), marks(8, 2), vec![direct(Op::Add, 4)]);
    assert_eq!(store.stand(KEY).await.unwrap(), None);
    assert_eq!(store.take(missed()).await.unwrap(), Taken::Missing);
    store.begin_build(KEY, life(1)).await.unwrap();
    assert_eq!(store.take(missed()).await.unwrap(), Taken::Building);
    let other = InboxKey::main(UserNo(READER.0 + u32::from(store.buckets())));
    assert_eq!(store.take(Take { key: other, ..missed() }).await.unwrap(), Taken::Missing);
    assert!(store.finish_build(built(READER, 1, vec![])).await.unwrap(), "nobody took its placeholder");
    assert_eq!(store.take(missed()).await.unwrap(), Taken::Overtaken);
}

/// A follow step that was cut at an older watermark would leave a gap. A step that ends a follow brings nothing.
pub(super) async fn a_follow_step_needs_the_watermark_it_was_cut_at(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![]).await;
    store.take(take(1, marks(0, 0), marks(6, 1), vec![])).await.unwrap();
    let cut_at = |pull, generation, on| {
        let step = edge(generation, on, Progress::default(), if on { vec![add(1, generation)] } else { vec![] });
        EdgeStep { expected: Cut { pull, ..step.expected }, ..step }
    };
    let applied = |offset| EdgeStepped::Applied(Position { epoch: life(1), offset });
    let cases = [
        (cut_at(5, 11, true), EdgeStepped::Overtaken),
        (cut_at(7, 11, true), EdgeStepped::Overtaken),
        (cut_at(5, 10, true), EdgeStepped::Nothing),
        (cut_at(6, 11, true), applied(2)),
        (cut_at(0, 12, false), applied(3)),
    ];
    for (step, wants) in cases {
        assert_eq!(store.step_edge(step.clone()).await.unwrap(), wants, "{step:?}");
    }
    assert_eq!(taken(&store).await, marks(6, 1), "a follow step moves no watermark");
}

/// The log stays as it was reported. The floor counts what is addressed to the reader, though its author was forgotten
/// before the cut.
pub(super) async fn i10_a_forget_leaves_what_is_addressed_to_the_reader(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![add(900_000, 5)]).await;
    let addressed = [direct(Op::Add, 800_000), direct(Op::Add, 700_000), direct(Op::Delete, 800_000)];
    store.take(take(1, marks(0, 0), marks(0, 3), addressed.to_vec())).await.unwrap();
    store.step_edge(edge(12, false, Progress::default(), vec![])).await.unwrap();
    let [one, two, three] = addressed;
    let wants = [add(900_000, 5), one, two, three, Entry::forget(AUTHOR, 12, None)];
    assert_eq!(entries(&store, READER).await, wants);
    let other = (1..=2000).map(|n| Entry { author: UserNo(8), ..add(n, 5) }).collect();
    assert_eq!(store.take(take(1, marks(0, 3), marks(2000, 3), other)).await.unwrap(), moved(1, 2005, 2000));
    let log = store.log(KEY).await.unwrap().unwrap();
    assert!(log.entries[0].seq > 5, "what came first is cut");
    assert_eq!(log.floor, Some(key_of(700_000)));
}

pub(super) async fn an_empty_inbox_is_there_and_the_first_change_lands_in_it(store: Arc<dyn Inboxes>) {
    let second = UserNo(READER.0 + u32::from(store.buckets()));
    let head = |offset| Position { epoch: life(1), offset };
    let empty = Build { taken: marks(70, 3), ..built(READER, 1, vec![]) };
    swap_in(&store, empty).await;
    build(&store, second, 2, vec![]).await;
    assert_eq!(taken(&store).await, marks(70, 3));
    assert_eq!(store.heads(&[KEY]).await.unwrap(), [Some(head(0))]);
    assert_eq!(store.begin_build(KEY, life(3)).await.unwrap(), None, "there is nothing to rebuild");
    assert_eq!(store.read(KEY, head(1), 9).await.unwrap(), Read::Gone { head: head(0) });
    let pushed = store.advance(step(&store, 1, vec![follower(second, 5)])).await.unwrap();
    assert_eq!(pushed, Advanced::Moved(vec![grown(second, 2, 1, 1)]));
    let step = take(1, marks(70, 3), marks(70, 4), vec![direct(Op::Add, 4)]);
    assert_eq!(store.take(step).await.unwrap(), moved(1, 1, 1));
    assert_eq!(entries(&store, READER).await, [direct(Op::Add, 4)]);
    assert_eq!(taken(&store).await, marks(70, 4));
}
