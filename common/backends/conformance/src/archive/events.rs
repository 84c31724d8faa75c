//! Events, epochs and counts.

use std::sync::Arc;

use feedgate_common::archive::{Archive, ArchiveCounts, Event};
use feedgate_common::{OutboxSeq, UserNo};

use super::{NOW, accept, change, delete, edit, follow, number, post, unfollow, write, write_at};

async fn due(archive: &dyn Archive, not_after: i64) -> Vec<Event> {
    let lines = archive.outstanding(None, not_after, 100).await.expect("the archive works");
    lines.into_iter().map(|line| line.event).collect()
}

/// How far the author's outstanding events go, however many there are.
async fn due_outbox(archive: &dyn Archive, author: UserNo, not_after: i64) -> Option<OutboxSeq> {
    let of_author = |event: Event| match event {
        Event::Outbox { author: whose, seq } => (whose == author).then_some(seq),
        Event::Edge { .. } | Event::Direct { .. } => None,
    };
    due(archive, not_after).await.into_iter().filter_map(of_author).max()
}

pub(super) async fn an_event_is_outstanding_until_it_is_finished(archive: Arc<dyn Archive>) {
    accept(&*archive, post("ann", "1"), NOW + 10).await;
    let (reader, author, edge, _) = change(&*archive, follow("rea", "ann")).await;
    accept(&*archive, post("ben", "1"), NOW + 20).await;
    let ben = number(&*archive, "ben").await;

    let of_edge = Event::Edge { reader, author, generation: edge.generation };
    let (of_ann, of_ben) = (Event::Outbox { author, seq: 1 }, Event::Outbox { author: ben, seq: 1 });
    assert_eq!(due(&*archive, NOW - 1).await, []);
    assert_eq!(due(&*archive, NOW).await, [of_edge], "what was accepted at the limit counts");
    assert_eq!(due(&*archive, NOW + 19).await, [of_edge, of_ann]);
    assert_eq!(due(&*archive, i64::MAX).await, [of_edge, of_ann, of_ben], "oldest first");
    let first = archive.outstanding(None, i64::MAX, 2).await.unwrap();
    assert_eq!(first.iter().map(|line| line.event).collect::<Vec<_>>(), [of_edge, of_ann]);
    assert_eq!(first.iter().map(|line| line.since).collect::<Vec<_>>(), [NOW, NOW + 10]);

    archive.finish(&[of_ann, of_edge]).await.unwrap();
    assert_eq!(due(&*archive, i64::MAX).await, [of_ben]);
    let behind = archive.outstanding(first.last().copied(), i64::MAX, 2).await.unwrap();
    assert_eq!(behind.iter().map(|line| line.event).collect::<Vec<_>>(), [of_ben], "behind a line that is gone");
    assert_eq!(archive.outstanding(behind.last().copied(), i64::MAX, 2).await.unwrap(), []);
    assert_eq!(archive.outstanding(behind.last().copied(), NOW, 2).await.unwrap(), []);
    archive.finish(&[of_ann, of_edge, of_ben, of_ben]).await.unwrap();
    assert_eq!(due(&*archive, i64::MAX).await, []);
    let ahead = Event::Outbox { author: UserNo(999), seq: 5 };
    archive.finish(&[ahead]).await.expect("an author without records has nothing to finish");
}

pub(super) async fn finishing_short_of_the_head_leaves_the_rest_outstanding(archive: Arc<dyn Archive>) {
    let (id, _) = accept(&*archive, post("ann", "1"), NOW + 1).await;
    write_at(&*archive, edit(id, "2"), NOW + 2).await.unwrap();
    write_at(&*archive, delete(id), NOW + 3).await.unwrap();
    let author = number(&*archive, "ann").await;
    archive.finish(&[Event::Outbox { author, seq: 2 }]).await.unwrap();
    assert_eq!(due_outbox(&*archive, author, NOW + 3).await, Some(3));
    assert_eq!(due_outbox(&*archive, author, NOW + 2).await, None, "what is left was accepted later");
    archive.finish(&[Event::Outbox { author, seq: 1 }]).await.unwrap();
    assert_eq!(due_outbox(&*archive, author, NOW + 2).await, None, "a late finish brings nothing back");
    assert_eq!(due_outbox(&*archive, author, NOW + 3).await, Some(3));
    archive.finish(&[Event::Outbox { author, seq: 3 }]).await.unwrap();
    assert_eq!(due(&*archive, i64::MAX).await, []);
    accept(&*archive, post("ann", "again"), NOW + 9).await;
    assert_eq!(due_outbox(&*archive, author, NOW + 9).await, Some(4));
}

pub(super) async fn an_edge_that_changed_again_stays_outstanding(archive: Arc<dyn Archive>) {
    let (reader, author, on, _) = change(&*archive, follow("rea", "ann")).await;
    let (.., off, _) = change(&*archive, unfollow("rea", "ann")).await;
    archive.finish(&[Event::Edge { reader, author, generation: on.generation }]).await.unwrap();
    let left = due(&*archive, i64::MAX).await;
    assert_eq!(left, [Event::Edge { reader, author, generation: off.generation }]);
    archive.finish(&left).await.unwrap();
    assert_eq!(due(&*archive, i64::MAX).await, []);
    change(&*archive, unfollow("rea", "ann")).await;
    assert_eq!(due(&*archive, i64::MAX).await, [], "what changed nothing leaves nothing to do");
}

pub(super) async fn reopened_work_is_due_at_once(archive: Arc<dyn Archive>) {
    for n in 1..=3 {
        accept(&*archive, post("ann", &n.to_string()), NOW).await;
    }
    accept(&*archive, post("ben", "1"), NOW).await;
    let (ann, ben) = (number(&*archive, "ann").await, number(&*archive, "ben").await);
    let (of_ann, of_ben) = (Event::Outbox { author: ann, seq: 3 }, Event::Outbox { author: ben, seq: 1 });
    assert!(!archive.finish(&[of_ann]).await.unwrap(), "nobody has reopened it");
    archive.reopen(&[ann, ben]).await.unwrap();
    archive.reopen(&[ann]).await.unwrap();
    assert_eq!(due_outbox(&*archive, ann, 0).await, Some(3));
    assert_eq!(due_outbox(&*archive, ben, 0).await, Some(1), "what was outstanding is reopened too");
    assert_eq!(due(&*archive, i64::MAX).await.len(), 2, "and stands there once");
    assert!(!archive.finish(&[Event::Outbox { author: ann, seq: 2 }]).await.unwrap());
    assert_eq!(due_outbox(&*archive, ann, 0).await, Some(3), "reopened work is finished as a whole");
    assert!(archive.finish(&[of_ann]).await.unwrap(), "who finishes it is told");
    assert_eq!(due_outbox(&*archive, ann, i64::MAX).await, None);
    assert!(!archive.finish(&[of_ann]).await.unwrap(), "once");
    assert!(archive.finish(&[of_ann, of_ben]).await.unwrap(), "it was outstanding and reopened");
    assert_eq!(due(&*archive, i64::MAX).await, []);
}

pub(super) async fn epochs_only_grow(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let mut last = None;
    for _life in 0..3 {
        let archive = open("epochs").await;
        for _ in 0..1500 {
            let next = archive.next_epoch().await.unwrap();
            assert!(Some(next) > last, "{next:?} after {last:?}");
            last = Some(next);
        }
        let askers = (0..8).map(|_| {
            let archive = archive.clone();
            tokio::spawn(async move {
                let mut given = vec![];
                for _ in 0..300 {
                    given.push(archive.next_epoch().await.unwrap());
                }
                given
            })
        });
        let mut all = vec![];
        for asker in askers.collect::<Vec<_>>() {
            let given = asker.await.expect("no asker panics");
            assert!(given.is_sorted() && given.first().copied() > last);
            all.extend(given);
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "no epoch is given twice");
        last = all.last().copied();
    }
}

pub(super) async fn counts_follow_what_happens(archive: Arc<dyn Archive>) {
    assert_eq!(archive.counts().await.unwrap(), ArchiveCounts::default());
    let (first, _) = accept(&*archive, post("ann", "1"), NOW).await;
    accept(&*archive, post("ann", "2"), NOW).await;
    let (reader, author, ..) = change(&*archive, follow("rea", "ann")).await;
    change(&*archive, follow("ben", "ann")).await;
    write(&*archive, edit(first, "edited")).await.unwrap();
    let counts = archive.counts().await.unwrap();
    assert_eq!((counts.users, counts.items, counts.edges), (3, 2, 2));
    assert!(counts.events >= 3, "one author and two edges at least: {counts:?}");
    write(&*archive, delete(first)).await.unwrap();
    let (.., edge, _) = change(&*archive, unfollow("rea", "ann")).await;
    let finished = due(&*archive, i64::MAX).await;
    archive.finish(&finished).await.unwrap();
    let wants = ArchiveCounts { users: 3, items: 1, edges: 1, events: 0 };
    assert_eq!(archive.counts().await.unwrap(), wants);
    assert_eq!(archive.edge(reader, author).await.unwrap(), edge);
}
