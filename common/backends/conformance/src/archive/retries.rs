//! Tests of retries: an item that is published twice is one item.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Publish, Refused, Write, Written};
use feedgate_common::{ItemId, Millis};

use super::{Answer, NOW, delete, edit, post, write, write_at};

const DAY: Millis = 24 * 3600 * 1000;

/// Three items, each recognised by another key: idempotency key, id and foreign id.
fn keyed() -> [Publish; 3] {
    let mut by_key = post("ann", "by key");
    by_key.idempotency_key = Some("key".into());
    let mut by_id = post("ann", "by id");
    by_id.id = Some(ItemId(42));
    let mut by_foreign_id = post("ann", "by foreign id");
    by_foreign_id.foreign_id = Some("theirs".into());
    [by_key, by_id, by_foreign_id]
}

async fn publish(archive: &dyn Archive, publish: &Publish, now: Millis) -> Answer {
    write_at(archive, Write::Publish(publish.clone()), now).await
}

fn stale(answer: &Answer) -> Answer {
    match answer {
        Ok(Written::Published { id, author, outbox_seq, published_at, readers, fresh: true, own_edge, told }) => {
            Ok(Written::Published {
                id: *id,
                author: *author,
                outbox_seq: *outbox_seq,
                published_at: *published_at,
                readers: readers.clone(),
                fresh: false,
                own_edge: *own_edge,
                told: told.clone(),
            })
        }
        other => panic!("the first answer is a new item, not {other:?}"),
    }
}

pub(super) async fn i6_the_same_key_gives_the_first_answer_again(archive: Arc<dyn Archive>) {
    for wanted in keyed() {
        let first = publish(&*archive, &wanted, NOW).await;
        let counts = archive.counts().await.unwrap();
        for later in [0, 1, DAY - 1] {
            assert_eq!(publish(&*archive, &wanted, NOW + later).await, stale(&first));
        }
        assert_eq!(archive.counts().await.unwrap(), counts);
    }
    let both = vec![Write::Publish(post("ben", "x")); 2];
    let answers = archive.write(both, NOW).await.unwrap();
    assert!(
        answers.iter().all(|a| matches!(a, Ok(Written::Published { fresh: true, .. }))),
        "without a key, equal posts are two items: {answers:?}"
    );
}

pub(super) async fn i6_a_retry_after_edit_and_delete_gives_the_first_answer(archive: Arc<dyn Archive>) {
    for wanted in keyed() {
        let first = publish(&*archive, &wanted, NOW).await;
        let Ok(Written::Published { id, .. }) = first else { panic!("{first:?}") };
        write(&*archive, edit(id, "edited")).await.unwrap();
        assert_eq!(publish(&*archive, &wanted, NOW + 1).await, stale(&first));
        write(&*archive, delete(id)).await.unwrap();
        if wanted.foreign_id.is_none() {
            assert_eq!(publish(&*archive, &wanted, NOW + 2).await, stale(&first));
            assert_eq!(archive.items(&[id]).await.unwrap(), [None], "a retry revives nothing");
        }
    }
}

/// A like is taken back and given again, by the same reader and then by another one.
pub(super) async fn a_foreign_id_is_free_again_once_its_item_is_deleted(archive: Arc<dyn Archive>) {
    let mut like = post("ann", "like");
    like.foreign_id = Some("like:7".into());
    let mut ids: Vec<ItemId> = vec![];
    for author in ["ann", "ann", "ben", "cleo"] {
        like.author = super::user(author);
        let (id, _) = super::accept(&*archive, like.clone(), NOW).await;
        assert!(!ids.contains(&id), "a new item has a new id");
        assert_eq!(archive.item_by_foreign_id("like:7").await.unwrap(), Some(id));
        assert!(
            matches!(publish(&*archive, &like, NOW).await, Ok(Written::Published { id: same, fresh: false, .. }) if same == id)
        );
        let other = Publish { rank: Some(1), ..like.clone() };
        assert_eq!(publish(&*archive, &other, NOW).await, Err(Refused::ForeignIdTaken("like:7".into(), id)));
        write(&*archive, delete(id)).await.unwrap();
        assert!(matches!(write(&*archive, delete(id)).await, Ok(Written::Deleted { fresh: false, .. })));
        ids.push(id);
    }
    assert_eq!(archive.items(&ids).await.unwrap(), vec![None; ids.len()], "those before stay deleted");
    assert_eq!(archive.counts().await.unwrap().items, 0);

    let Ok(Written::Published { id, .. }) = publish(&*archive, &like, NOW).await else { panic!("it is new") };
    let again = vec![delete(id), Write::Publish(like.clone()), Write::Publish(like)];
    let answers = archive.write(again, NOW).await.unwrap();
    let [
        Ok(_),
        Ok(Written::Published { id: new, fresh: true, .. }),
        Ok(Written::Published { id: same, fresh: false, .. }),
    ] = answers[..]
    else {
        panic!("in one call as in three, not {answers:?}")
    };
    assert!(new == same && new != id);
}

/// The idempotency key and the id of an item outlive it, so a late retry makes no second item.
pub(super) async fn a_delete_frees_neither_an_idempotency_key_nor_an_id(archive: Arc<dyn Archive>) {
    let mut by_id = post("ann", "by id");
    (by_id.id, by_id.foreign_id) = (Some(ItemId(42)), Some("a".into()));
    let mut by_key = post("ann", "by key");
    (by_key.idempotency_key, by_key.foreign_id) = (Some("key".into()), Some("b".into()));
    for wanted in [by_id, by_key] {
        let first = publish(&*archive, &wanted, NOW).await;
        let Ok(Written::Published { id, .. }) = first else { panic!("{first:?}") };
        write(&*archive, delete(id)).await.unwrap();
        assert_eq!(publish(&*archive, &wanted, NOW + 1).await, stale(&first));
        assert_eq!(archive.items(&[id]).await.unwrap(), [None]);
    }
}

pub(super) async fn a_foreign_id_that_many_take_at_once_goes_to_one(archive: Arc<dyn Archive>) {
    let mut like = post("ann", "like");
    like.foreign_id = Some("like:7".into());
    for round in 0..8 {
        let (id, _) = super::accept(&*archive, like.clone(), NOW).await;
        write(&*archive, delete(id)).await.unwrap();
        let tries = (0..8).map(|n| {
            let (archive, wanted) =
                (archive.clone(), Publish { author: super::user(&format!("u{n}")), ..like.clone() });
            tokio::spawn(async move { publish(&*archive, &wanted, NOW).await })
        });
        let mut taken = vec![];
        for attempt in tries.collect::<Vec<_>>() {
            match attempt.await.expect("no try panics") {
                Ok(Written::Published { id, fresh: true, .. }) => taken.push(id),
                Err(Refused::ForeignIdTaken(..)) => {}
                other => panic!("round {round}: {other:?}"),
            }
        }
        assert_eq!((taken.len(), archive.item_by_foreign_id("like:7").await.unwrap()), (1, Some(taken[0])));
        write(&*archive, delete(taken[0])).await.unwrap();
    }
}

pub(super) async fn a_key_used_for_another_payload_is_refused(archive: Arc<dyn Archive>) {
    let [by_key, by_id, by_foreign_id] = keyed();
    let mut ids = vec![];
    for wanted in [&by_key, &by_id, &by_foreign_id] {
        let Ok(Written::Published { id, .. }) = publish(&*archive, wanted, NOW).await else { panic!("it is new") };
        ids.push(id);
    }
    let refusals = [
        (by_key.clone(), Refused::KeyReused("key".into())),
        (by_id, Refused::IdTaken(ids[1])),
        (by_foreign_id, Refused::ForeignIdTaken("theirs".into(), ids[2])),
    ];
    let counts = archive.counts().await.unwrap();
    for (mut other, refused) in refusals {
        other.rank = Some(1);
        assert_eq!(publish(&*archive, &other, NOW).await, Err(refused));
    }
    assert_eq!(archive.counts().await.unwrap(), counts);

    let mut of_another_author = by_key;
    of_another_author.author = super::user("ben");
    let answer = publish(&*archive, &of_another_author, NOW).await;
    assert!(matches!(answer, Ok(Written::Published { fresh: true, .. })), "keys belong to their author: {answer:?}");
}

pub(super) async fn an_idempotency_key_is_free_again_after_a_day(archive: Arc<dyn Archive>) {
    let [wanted, ..] = keyed();
    let first = publish(&*archive, &wanted, NOW).await;
    assert_eq!(publish(&*archive, &wanted, NOW + DAY - 1).await, stale(&first));
    let second = publish(&*archive, &wanted, NOW + DAY).await;
    let Ok(Written::Published { outbox_seq: 2, .. }) = second else { panic!("a new item, not {second:?}") };
    assert_eq!(publish(&*archive, &wanted, NOW + DAY + 1).await, stale(&second));
    // The time of many keys ends at once. Their removal must not remove a key whose time is not over.
    for n in 0..50 {
        let mut other = post("ann", &n.to_string());
        other.idempotency_key = Some(n.to_string().into());
        publish(&*archive, &other, NOW + DAY / 2).await.unwrap();
    }
    publish(&*archive, &post("ben", "later"), NOW + 2 * DAY - 1).await.unwrap();
    assert_eq!(publish(&*archive, &wanted, NOW + 2 * DAY - 1).await, stale(&second));
}

pub(super) async fn i6_retries_at_the_same_time_become_one_item(archive: Arc<dyn Archive>) {
    for wanted in keyed() {
        let tries = (0..16).map(|_| {
            let (archive, wanted) = (archive.clone(), wanted.clone());
            tokio::spawn(async move { publish(&*archive, &wanted, NOW).await })
        });
        let mut answers = vec![];
        for attempt in tries.collect::<Vec<_>>() {
            answers.push(attempt.await.expect("no try panics"));
        }
        let (fresh, again): (Vec<_>, Vec<_>) =
            answers.into_iter().partition(|a| matches!(a, Ok(Written::Published { fresh: true, .. })));
        assert_eq!(fresh.len(), 1);
        assert!(again.iter().all(|answer| *answer == stale(&fresh[0])));
    }
}
