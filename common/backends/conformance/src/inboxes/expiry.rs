//! Tests of expiry: an inbox that nobody reads is dropped.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::inboxes::{Advanced, Build, EdgeStepped, Read, Take, Taken};
use feedgate_common::{Epoch, InboxKey, Inboxes, Position, Progress, UserNo, Watermarks};

use super::{
    AUTHOR, InboxesExt as _, KEY, READER, add, build, built, edge, entries, follower, grown, life, now, step, swap_in,
};

const MINUTE: i64 = 60_000;

/// A store may drop inboxes by itself or when it is asked to. Long after their time they are gone in each case.
pub(super) async fn an_inbox_whose_time_is_past_goes_whole_and_one_that_is_touched_stays(store: Arc<dyn Inboxes>) {
    let reader = |n: u32| UserNo(READER.0 + n * u32::from(store.buckets()));
    let [touched, forever] = [reader(1), reader(2)];
    let start = now();
    swap_in(&store, Build { until: start + MINUTE, ..built(touched, 1, vec![add(1, 5)]) }).await;
    store.touch(&[InboxKey::main(touched), InboxKey::main(reader(3))], start + 600 * MINUTE).await.unwrap();
    store.touch(&[InboxKey::main(touched)], start + 2 * MINUTE).await.unwrap();
    store.touch(&[InboxKey::main(touched)], start - MINUTE).await.unwrap();
    build(&store, forever, 2, vec![]).await;
    store.touch(&[InboxKey::main(forever)], start - MINUTE).await.unwrap();
    swap_in(&store, Build { until: start, ..built(READER, 3, vec![add(1, 5)]) }).await;

    let expired = async {
        while store.stand(KEY).await.unwrap().is_some() {
            assert!(store.discard_expired(start + 300 * MINUTE, 10).await.unwrap() <= 1, "only one is past its time");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    crate::in_time(expired).await.expect("an inbox past its time goes");

    assert_eq!(store.discard_expired(start + 300 * MINUTE, 10).await.unwrap(), 0);
    let after = Position { epoch: life(3), offset: 0 };
    assert_eq!(store.read(KEY, after, 10).await.unwrap(), Read::Missing);
    assert_eq!(store.log(KEY).await.unwrap(), None);
    let to = [READER, touched].map(|reader| follower(reader, 5)).to_vec();
    let pushed = store.advance(step(&store, 1, to)).await.unwrap();
    assert_eq!(pushed, Advanced::Moved(vec![grown(touched, 1, 2, 1)]), "push passes it by");
    assert_eq!(store.step_edge(edge(12, false, Progress::at(1), vec![])).await.unwrap(), EdgeStepped::Missing);
    let nothing = Watermarks::default();
    let take = Take { key: KEY, epoch: Epoch(0), expected: nothing, next: nothing, entries: vec![], counter: 99 };
    assert_eq!(store.take(take).await.unwrap(), Taken::Missing);
    assert_eq!(store.heads(&[InboxKey::main(forever)]).await.unwrap(), [Some(Position { epoch: life(2), offset: 0 })]);
    assert_eq!(store.heads(&[InboxKey::main(reader(3))]).await.unwrap(), [None], "a touch makes none");

    build(&store, READER, 4, vec![add(2, 5)]).await;
    assert_eq!(entries(&store, READER).await, [add(2, 5)]);
    assert_eq!(store.read(KEY, after, 10).await.unwrap(), Read::Gone { head: Position { epoch: life(4), offset: 1 } });
    let bucket = READER.bucket(store.buckets());
    assert_eq!(store.progress(&[(AUTHOR, bucket)]).await.unwrap(), [Progress::at(1)], "progress never expires");
}
