//! A publish asked for twice is one item.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Publish, Refused, Write, Written};
use feedgate_common::{ItemId, Millis};

use super::{Answer, NOW, delete, edit, post, write, write_at};

const DAY: Millis = 24 * 3600 * 1000;

/// The same post, recognisable by each of the three keys.
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
        Ok(Written::Published { id, author, outbox_seq, published_at, readers, fresh: true }) => {
            Ok(Written::Published {
                id: *id,
                author: *author,
                outbox_seq: *outbox_seq,
                published_at: *published_at,
                readers: readers.clone(),
                fresh: false,
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
        assert_eq!(publish(&*archive, &wanted, NOW + 2).await, stale(&first));
        assert_eq!(archive.items(&[id]).await.unwrap(), [None], "a retry revives nothing");
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
    // Many keys end at once: none of them may take a living one with it.
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
