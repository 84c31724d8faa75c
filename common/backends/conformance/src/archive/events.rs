//! Tests of events, epochs and counts.

use std::sync::Arc;

use feedgate_common::archive::{Archive, ArchiveCounts, Event};
use feedgate_common::{OutboxSeq, UserNo};

use super::{NOW, OneEdge, accept, change, delete, edit, follow, number, post, unfollow, write, write_at};

async fn due(archive: &dyn Archive, not_after: i64) -> Vec<Event> {
    let lines = archive.outstanding(None, not_after, 100).await.expect("the archive works");
    lines.into_iter().map(|line| line.event).collect()
}

/// An event of all records up to `seq`, which were gone through once.
fn outbox(author: UserNo, seq: OutboxSeq) -> Event {
    Event::Outbox { author, seq, redo: 0 }
}

/// How far the author's outstanding events go, however many there are; `None` if there is none.
async fn due_outbox(archive: &dyn Archive, author: UserNo, not_after: i64) -> Option<OutboxSeq> {
    let of_author = |event: Event| match event {
        Event::Outbox { author: whose, seq, .. } => (whose == author).then_some(seq),
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
    let (of_ann, of_ben) = (outbox(author, 1), outbox(ben, 1));
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
    let ahead = outbox(UserNo(999), 5);
    archive.finish(&[ahead]).await.expect("an author without records has nothing to finish");
}

pub(super) async fn finishing_short_of_the_head_leaves_the_rest_outstanding(archive: Arc<dyn Archive>) {
    let (id, _) = accept(&*archive, post("ann", "1"), NOW + 1).await;
    write_at(&*archive, edit(id, "2"), NOW + 2).await.unwrap();
    write_at(&*archive, delete(id), NOW + 3).await.unwrap();
    let author = number(&*archive, "ann").await;
    archive.finish(&[outbox(author, 2)]).await.unwrap();
    assert_eq!(due_outbox(&*archive, author, NOW + 3).await, Some(3));
    assert_eq!(due_outbox(&*archive, author, NOW + 2).await, None, "what is left was accepted later");
    archive.finish(&[outbox(author, 1)]).await.unwrap();
    assert_eq!(due_outbox(&*archive, author, NOW + 2).await, None, "a late finish brings nothing back");
    assert_eq!(due_outbox(&*archive, author, NOW + 3).await, Some(3));
    archive.finish(&[outbox(author, 3)]).await.unwrap();
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

pub(super) async fn outstanding_edges_are_told_by_their_reader(archive: Arc<dyn Archive>) {
    let mut of = vec![];
    for author in ["ann", "ben", "cat", "dan"] {
        of.push(change(&*archive, follow("rea", author)).await);
        accept(&*archive, post(author, "1"), NOW).await;
    }
    let (other, ann, ..) = change(&*archive, follow("other", "ann")).await;
    let reader = of[0].0;
    let mut authors: Vec<UserNo> = of.iter().map(|(_, author, ..)| *author).collect();
    authors.sort_unstable();
    let due = async |reader, limit| archive.edges_due(reader, limit).await.expect("the archive works");
    assert_eq!(due(reader, 100).await, authors);
    assert_eq!(due(reader, 3).await, authors[..3], "the first of them");
    assert_eq!(due(other, 3).await, [ann]);
    assert_eq!(due(ann, 3).await, []);
    let event = |n: usize| Event::Edge { reader, author: of[n].1, generation: of[n].2.generation };
    change(&*archive, unfollow("rea", "ben")).await;
    archive.finish(&[event(0), event(1), event(3)]).await.unwrap();
    let left: Vec<UserNo> = authors.iter().copied().filter(|author| [of[1].1, of[2].1].contains(author)).collect();
    assert_eq!(due(reader, 100).await, left, "one has changed again");
    assert_eq!(due(other, 100).await, [ann], "the other reader's stays");
    for line in archive.outstanding(None, i64::MAX, 100).await.unwrap() {
        archive.finish(&[line.event]).await.unwrap();
    }
    assert_eq!((due(reader, 100).await, due(other, 100).await), (vec![], vec![]));
    change(&*archive, follow("rea", "ben")).await;
    assert_eq!(due(reader, 100).await, [of[1].1]);
}

/// Finishes one outbox event, and answers the number under which it is to be gone through again.
async fn told(archive: &dyn Archive, author: UserNo, seq: OutboxSeq, redo: u64) -> Option<u64> {
    let stay = archive.finish(&[Event::Outbox { author, seq, redo }]).await.expect("the archive works");
    match stay[..] {
        [] => None,
        [Event::Outbox { author: whose, redo, .. }] if whose == author => Some(redo),
        _ => panic!("another event stays: {stay:?}"),
    }
}

pub(super) async fn reopened_work_is_due_at_once(archive: Arc<dyn Archive>) {
    for n in 1..=3 {
        accept(&*archive, post("ann", &n.to_string()), NOW).await;
    }
    accept(&*archive, post("ben", "1"), NOW).await;
    let (ann, ben) = (number(&*archive, "ann").await, number(&*archive, "ben").await);
    assert_eq!(told(&*archive, ann, 3, 0).await, None, "nobody has reopened it");
    archive.reopen(&[ann, ben]).await.unwrap();
    archive.reopen(&[ann]).await.unwrap();
    assert_eq!(due_outbox(&*archive, ann, 0).await, Some(3));
    assert_eq!(due_outbox(&*archive, ben, 0).await, Some(1), "what was outstanding is reopened too");
    assert_eq!(due(&*archive, i64::MAX).await.len(), 2, "and stands there once");
    let stay = archive.finish(&[outbox(ann, 3), outbox(ben, 1)]).await.unwrap();
    assert_eq!(stay.len(), 2, "who would finish it is told: {stay:?}");
    assert_eq!(due(&*archive, 0).await.len(), 2, "it is due all the same");
    archive.finish(&stay).await.unwrap();
    assert_eq!(due(&*archive, i64::MAX).await, []);
    assert_eq!(archive.finish(&stay).await.unwrap(), [], "there is nothing left to finish");
}

pub(super) async fn reopened_work_is_finished_by_whoever_has_gone_through_it_since(archive: Arc<dyn Archive>) {
    for n in 1..=3 {
        accept(&*archive, post("ann", &n.to_string()), NOW).await;
    }
    let ann = number(&*archive, "ann").await;
    archive.reopen(&[ann]).await.unwrap();
    let first = told(&*archive, ann, 3, 0).await;
    assert!(first.is_some(), "the first of two who looked before it was reopened is told");
    assert_eq!(told(&*archive, ann, 3, 0).await, first, "so is the other, whether the first goes on or not");
    assert_eq!(due_outbox(&*archive, ann, 0).await, Some(3));
    archive.reopen(&[ann]).await.unwrap();
    let second = told(&*archive, ann, 3, first.unwrap()).await;
    assert!(second > first, "who was told before it was reopened again is told again: {first:?}, {second:?}");
    assert_eq!(told(&*archive, ann, 3, first.unwrap()).await, second, "and is as late as any other");
    assert_eq!(told(&*archive, ann, 2, second.unwrap()).await, None);
    assert_eq!(due_outbox(&*archive, ann, 0).await, Some(3), "reopened work is finished as a whole");
    assert_eq!(told(&*archive, ann, 3, second.unwrap()).await, None);
    assert_eq!(due(&*archive, i64::MAX).await, []);
    archive.reopen(&[ann]).await.unwrap();
    assert!(told(&*archive, ann, 3, second.unwrap()).await > second, "no number is given twice");
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
