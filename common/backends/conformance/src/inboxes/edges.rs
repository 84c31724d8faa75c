//! Tests of follow and unfollow steps.

use std::sync::Arc;

use feedgate_common::inboxes::{Build, EdgeStep, EdgeStepped, MARKS_MAX};
use feedgate_common::{DisplayKey, Entry, FeedId, InboxKey, Inboxes, ItemId, Position, Progress, UserNo};

use super::{AUTHOR, InboxesExt as _, KEY, READER, add, build, built, edge, entries, follower, life, step, swap_in};

pub(super) async fn a_follow_step_forgets_then_adds_and_later_pushes_go_on(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![add(1, 5)]).await;
    store.advance(step(&store, 1, vec![])).await.unwrap();
    let follow = |generation, done| edge(generation, true, Progress::at(done), vec![add(1, generation)]);
    let cases = [
        (follow(10, 1), EdgeStepped::Nothing),
        (follow(11, 0), EdgeStepped::Overtaken),
        (follow(11, 1), EdgeStepped::Applied(Position { epoch: life(1), offset: 3 })),
        (follow(11, 1), EdgeStepped::Nothing),
    ];
    for (step, wants) in cases {
        assert_eq!(store.step_edge(step.clone()).await.unwrap(), wants, "{step:?}");
    }
    store.advance(step(&store, 2, vec![follower(READER, 5)])).await.unwrap();
    store.advance(step(&store, 3, vec![follower(READER, 11)])).await.unwrap();
    let wanted = [add(1, 5), Entry::forget(AUTHOR, 11, None), add(1, 11), add(3, 11)];
    assert_eq!(entries(&store, READER).await, wanted);
}

pub(super) async fn s12_a_follow_step_raises_the_floor_and_tells_it(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![add(1, 5)]).await;
    let key = |rank, item| DisplayKey { rank, item: ItemId(item) };
    let floor = async || store.log(KEY).await.unwrap().unwrap().floor;
    let follow = |generation, on, floor| EdgeStep { floor, ..edge(generation, on, Progress::default(), vec![]) };
    let mut wanted = vec![add(1, 5)];
    // Each with whether the floor is above all before it.
    let floors = [
        (key(-(1 << 53) + 1, u64::MAX), true),
        (key(-7, u64::MAX), true),
        (key(-8, 1), false),
        (key(0, 0), true),
        (key(5, 1 << 32), true),
        (key(5, (1 << 32) + 1), true),
        (key(5, 1 << 31), false),
        (key(5, 1 << 63), true),
        (key(4, u64::MAX), false),
        (key((1 << 53) - 1, 0), true),
    ];
    let mut highest = None;
    for ((told, rises), generation) in floors.into_iter().zip(11..) {
        store.step_edge(follow(generation, true, Some(told))).await.unwrap();
        wanted.push(Entry::forget(AUTHOR, generation, Some(told)));
        assert_eq!(wanted.last().unwrap().floor() > highest, rises, "{told:?}");
        highest = highest.max(wanted.last().unwrap().floor());
        assert_eq!(floor().await, highest, "after {told:?}");
    }
    store.step_edge(follow(99, false, Some(key((1 << 53) - 1, 9)))).await.unwrap();
    wanted.push(Entry::forget(AUTHOR, 99, None));
    assert_eq!((entries(&store, READER).await, floor().await), (wanted, highest), "one that is off has no floor");
}

pub(super) async fn an_unfollow_step_keeps_its_mark(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![add(1, 5)]).await;
    let unfollow = edge(12, false, Progress::at(99), vec![]);
    assert_eq!(store.step_edge(unfollow).await.unwrap(), EdgeStepped::Applied(Position { epoch: life(1), offset: 2 }));
    let late = edge(11, true, Progress::default(), vec![add(1, 11)]);
    assert_eq!(store.step_edge(late).await.unwrap(), EdgeStepped::Nothing);
    store.advance(step(&store, 1, vec![follower(READER, 11)])).await.unwrap();
    assert_eq!(entries(&store, READER).await, [add(1, 5), Entry::forget(AUTHOR, 12, None)]);
}

pub(super) async fn each_of_several_follow_steps_at_once_acts_or_not_by_itself(store: Arc<dyn Inboxes>) {
    let [ann, ben, cat, dan] = [21, 22, 23, 24].map(UserNo);
    let of = |author, step: EdgeStep| EdgeStep { author, ..step };
    let post = |author, seq| Entry { author, ..add(seq, 11) };
    let follow = |author, done, seqs: &[u64]| {
        of(author, edge(11, true, Progress::at(done), seqs.iter().map(|&seq| post(author, seq)).collect()))
    };
    let steps = vec![
        follow(ann, 0, &[1, 2]),
        follow(AUTHOR, 0, &[1]),
        of(ben, edge(10, true, Progress::default(), vec![])),
        of(cat, edge(12, false, Progress::at(99), vec![])),
        follow(dan, 0, &[]),
    ];
    assert_eq!(store.step_edges(steps.clone()).await.unwrap(), [EdgeStepped::Missing; 5]);
    build(&store, READER, 1, vec![add(1, 5)]).await;
    store.advance(step(&store, 1, vec![])).await.unwrap();
    let at = |offset| EdgeStepped::Applied(Position { epoch: life(1), offset });
    let wants = [at(4), EdgeStepped::Overtaken, EdgeStepped::Nothing, at(5), at(6)];
    assert_eq!(store.step_edges(steps.clone()).await.unwrap(), wants);
    let forget = |author, generation| Entry::forget(author, generation, None);
    let mut wanted = vec![add(1, 5), forget(ann, 11), post(ann, 1), post(ann, 2), forget(cat, 12), forget(dan, 11)];
    assert_eq!(entries(&store, READER).await, wanted);
    // The step that was overtaken is read again, and comes alone.
    let again = [steps[0].clone(), follow(AUTHOR, 1, &[1]), steps[3].clone()];
    assert_eq!(store.step_edges(again.to_vec()).await.unwrap(), [EdgeStepped::Nothing, at(8), EdgeStepped::Nothing]);
    wanted.extend([forget(AUTHOR, 11), post(AUTHOR, 1)]);
    assert_eq!(entries(&store, READER).await, wanted);
    // A change of an author whom the inbox remembers already needs no further place.
    let changed = vec![of(ann, edge(13, false, Progress::default(), vec![])), follow(cat, 0, &[])];
    assert_eq!(store.step_edges(changed).await.unwrap(), [at(9), EdgeStepped::Nothing]);
}

pub(super) async fn i18_an_inbox_remembers_so_many_follow_steps_and_no_more(store: Arc<dyn Inboxes>) {
    let ahead = vec![(UserNo(5_000), 7), (UserNo(6_000), 7)];
    swap_in(&store, Build { ahead, ..built(READER, 1, vec![]) }).await;
    let follow = async |author, generation| {
        let step = EdgeStep { author: UserNo(author), ..edge(generation, true, Progress::default(), vec![]) };
        store.step_edge(step).await.unwrap()
    };
    let of =
        |author, generation| EdgeStep { author: UserNo(author), ..edge(generation, true, Progress::default(), vec![]) };
    for author in 0..MARKS_MAX as u32 - 2 {
        assert!(matches!(follow(author, 11).await, EdgeStepped::Applied(_)), "{author}");
    }
    let last = [MARKS_MAX as u32 - 2, 1, 5_000, MARKS_MAX as u32 - 1, 4_000].map(|author| of(author, 11));
    let stepped = store.step_edges(last.to_vec()).await.unwrap();
    let applied = stepped.iter().map(|stepped| matches!(stepped, EdgeStepped::Applied(_)));
    assert_eq!(applied.collect::<Vec<_>>(), [true, false, true, false, false], "{stepped:?}");
    assert_eq!(stepped[3..], [EdgeStepped::Full; 2]);
    let head = store.stand(KEY).await.unwrap();
    assert_eq!(follow(4_000, 12).await, EdgeStepped::Full);
    assert_eq!(follow(6_000, 12).await, EdgeStepped::Full, "what it is ahead with is no follow step");
    assert_eq!(store.stand(KEY).await.unwrap(), head, "nothing was done");
    assert!(matches!(follow(3, 13).await, EdgeStepped::Applied(_)), "one that it remembers may change");
    assert_eq!(follow(3, 13).await, EdgeStepped::Nothing);
}

pub(super) async fn present_is_what_is_there_and_what_is_being_built(store: Arc<dyn Inboxes>) {
    let [there, nothing] = [2, 3].map(|n| UserNo(READER.0 + n * u32::from(store.buckets())));
    let elsewhere = UserNo(READER.0 + 1);
    build(&store, there, 1, vec![add(1, 5)]).await;
    let of_another_feed = InboxKey { feed: FeedId(1), ..KEY };
    for (placeholder, key) in [(2, KEY), (3, InboxKey::main(elsewhere)), (4, of_another_feed)] {
        store.begin_build(key, life(placeholder)).await.unwrap();
    }
    let keys = [KEY, InboxKey::main(there), InboxKey::main(nothing), InboxKey::main(elsewhere)];
    let present = async || {
        let mut present = store.present(&keys).await.unwrap();
        present.sort_unstable_by_key(|key| keys.iter().position(|of| of == key));
        present
    };
    assert_eq!(present().await, [KEY, InboxKey::main(there), InboxKey::main(elsewhere)]);
    assert_eq!(store.present(&[]).await.unwrap(), []);
    assert!(store.finish_build(built(READER, 2, vec![])).await.unwrap(), "nobody took the placeholder");
    store.discard(InboxKey::main(elsewhere)).await.unwrap();
    assert_eq!(present().await, [KEY, InboxKey::main(there)]);
    assert!(store.finish_build(Build { key: of_another_feed, ..built(READER, 4, vec![]) }).await.unwrap());
    assert_eq!(entries(&store, there).await, [add(1, 5)]);
}
