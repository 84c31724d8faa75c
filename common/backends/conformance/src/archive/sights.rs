//! Tests of what readers have seen: it outlives a restart, only moves forward, and no race of two devices loses any.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Write};
use feedgate_common::seen::Earlier;
use feedgate_common::{Epoch, FeedId, InboxKey, ItemId, Millis, Position, Seen, UserNo};

use super::{NOW, post, write};

const KEY: InboxKey = InboxKey { reader: UserNo(7), feed: FeedId(2) };

fn seen(epoch: u64, offset: u64, until: Millis) -> Seen {
    let position = Position { epoch: Epoch(epoch), offset };
    Seen { position, until, earlier: Earlier { until: Millis::MIN, upto: 0 } }
}

pub(super) async fn what_is_seen_only_moves_forward_and_outlives_a_restart(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("seen").await;
    let others = [InboxKey { feed: FeedId::MAIN, ..KEY }, InboxKey { reader: UserNo(8), ..KEY }];
    assert_eq!(archive.seen(KEY).await.unwrap(), None);
    let earlier = Earlier { until: NOW - 5, upto: 30 };
    let steps = [
        (seen(3, 0, Millis::MIN), true, seen(3, 0, Millis::MIN)),
        (seen(3, 9, NOW), true, seen(3, 9, NOW)),
        (seen(3, 9, NOW + 1), false, seen(3, 9, NOW)),
        (seen(3, 8, NOW + 1), false, seen(3, 9, NOW)),
        (seen(3, 12, NOW - 1), true, seen(3, 12, NOW)),
        (seen(2, 99, NOW + 9), false, seen(3, 12, NOW)),
        // The device knew less than another one had stored meanwhile.
        (Seen { earlier, ..seen(4, 20, NOW - 5) }, true, {
            Seen { earlier: Earlier { until: NOW, upto: 30 }, ..seen(4, 20, NOW) }
        }),
        (Seen { earlier, ..seen(4, 21, NOW + 2) }, true, {
            Seen { earlier: Earlier { until: NOW, upto: 30 }, ..seen(4, 21, NOW + 2) }
        }),
    ];
    for (next, moves, stored) in steps {
        assert_eq!(archive.see(KEY, next).await.unwrap(), moves, "{next:?}");
        assert_eq!(archive.seen(KEY).await.unwrap(), Some(stored), "{next:?}");
    }
    drop(archive);
    let archive = open("seen").await;
    assert_eq!(archive.seen(KEY).await.unwrap().unwrap().position, seen(4, 21, 0).position);
    for other in others {
        assert_eq!(archive.seen(other).await.unwrap(), None, "another reader, or another feed");
    }
}

pub(super) async fn of_devices_that_race_the_furthest_wins(archive: Arc<dyn Archive>) {
    let racing: Vec<_> = (0..4)
        .map(|device| {
            let archive = archive.clone();
            tokio::spawn(async move {
                let mut moved = vec![];
                for offset in (1..=25).map(|n| 4 * n - device) {
                    if archive.see(KEY, seen(1, offset, NOW)).await.unwrap() {
                        moved.push(offset);
                    }
                    let now = archive.seen(KEY).await.unwrap().unwrap();
                    assert!(now.position.offset >= offset, "a device reads what it has written, or later");
                }
                moved
            })
        })
        .collect();
    let mut moved = vec![];
    for one in racing {
        moved.extend(one.await.unwrap());
    }
    moved.sort_unstable();
    assert_eq!((moved.last(), archive.seen(KEY).await.unwrap()), (Some(&100), Some(seen(1, 100, NOW))));
    assert!(moved.is_sorted_by(|one, next| one < next), "no offset was reached twice: {moved:?}");
}

pub(super) async fn when_an_item_was_published_is_known_even_after_it_was_deleted(archive: Arc<dyn Archive>) {
    let mut ids = vec![];
    for time in [NOW - 500, NOW, NOW - 9] {
        let mut post = post("ann", "x");
        post.published_at = Some(time);
        let written = write(&*archive, Write::Publish(post)).await.unwrap();
        let feedgate_common::archive::Written::Published { id, .. } = written else { panic!("{written:?}") };
        ids.push(id);
    }
    write(&*archive, Write::Delete { item: ids[2], if_version: None }).await.unwrap();
    let asked = [ids[2], ItemId(1), ids[0], ids[1], ids[0]];
    let times = [Some(NOW - 9), None, Some(NOW - 500), Some(NOW), Some(NOW - 500)];
    let ann = archive.intern(&[super::user("ann")]).await.unwrap()[0];
    assert_eq!(archive.published(&asked).await.unwrap(), times.map(|time| time.map(|time| (ann, time))));
    assert_eq!(archive.published(&[]).await.unwrap(), []);
}
