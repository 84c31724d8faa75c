//! Follow and unfollow steps.

use std::sync::Arc;

use feedgate_common::inboxes::EdgeStepped;
use feedgate_common::{Entry, Inboxes, Position, Progress};

use super::{AUTHOR, READER, add, build, edge, entries, follower, life, step};

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
    let wanted = [add(1, 5), Entry::forget(AUTHOR, 11), add(1, 11), add(3, 11)];
    assert_eq!(entries(&store, READER).await, wanted);
}

pub(super) async fn an_unfollow_step_keeps_its_mark(store: Arc<dyn Inboxes>) {
    build(&store, READER, 1, vec![add(1, 5)]).await;
    let unfollow = edge(12, false, Progress::at(99), vec![]);
    assert_eq!(store.step_edge(unfollow).await.unwrap(), EdgeStepped::Applied(Position { epoch: life(1), offset: 2 }));
    let late = edge(11, true, Progress::default(), vec![add(1, 11)]);
    assert_eq!(store.step_edge(late).await.unwrap(), EdgeStepped::Nothing);
    store.advance(step(&store, 1, vec![follower(READER, 11)])).await.unwrap();
    assert_eq!(entries(&store, READER).await, [add(1, 5), Entry::forget(AUTHOR, 12)]);
}
