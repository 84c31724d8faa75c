//! Tests of items: they are accepted, read, edited and deleted.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Refused, Write, Written};
use feedgate_common::{DisplayKey, FeedId, Item, ItemId, UserNo};

use super::{NOW, OneEdge, accept, body, delete, edit, edited, number, post, write, write_at};

async fn read(archive: &dyn Archive, id: ItemId) -> Option<Arc<Item>> {
    archive.items(&[id]).await.expect("the archive works").remove(0)
}

pub(super) async fn an_accepted_item_reads_back_as_it_was_published(archive: Arc<dyn Archive>) {
    let mut publish = post("ann", "hello");
    publish.kind = Some("post".into());
    publish.foreign_id = Some("theirs/1 ü".into());
    publish.published_at = Some(NOW - 5);
    publish.rank = Some(-7);
    let (id, seq) = accept(&*archive, publish.clone(), NOW).await;
    let author_no = number(&*archive, "ann").await;
    let wants = Item {
        id,
        author: publish.author,
        author_no,
        kind: publish.kind,
        foreign_id: publish.foreign_id,
        repost_of: None,
        mentions: vec![],
        body: publish.body,
        published_at: NOW - 5,
        rank: -7,
        version: 1,
        outbox_seq: seq,
        direct: false,
        narrowed: false,
    };
    assert_eq!(read(&*archive, id).await.as_deref(), Some(&wants));
    assert_eq!(archive.item_by_foreign_id("theirs/1 ü").await.unwrap(), Some(id));
    for none in ["theirs/1", "", "\0", "theirs/1 ü\0", "\u{1}\u{7f}\u{2028}", &"x".repeat(100_000)] {
        assert_eq!(archive.item_by_foreign_id(none).await.unwrap(), None, "{none:?}");
    }

    let (plain, _) = accept(&*archive, post("ann", "plain"), NOW).await;
    let item = read(&*archive, plain).await.expect("it was accepted");
    assert_eq!((item.published_at, item.rank), (NOW, NOW), "without a time of its own it has the clock's");
}

pub(super) async fn items_answer_in_the_order_asked(archive: Arc<dyn Archive>) {
    let (a, _) = accept(&*archive, post("ann", "a"), NOW).await;
    let (b, _) = accept(&*archive, post("ben", "b"), NOW).await;
    for _again in 0..2 {
        let found = archive.items(&[b, ItemId(1), a, b]).await.unwrap();
        let ids: Vec<Option<ItemId>> = found.iter().map(|item| item.as_ref().map(|item| item.id)).collect();
        assert_eq!(ids, [Some(b), None, Some(a), Some(b)]);
    }
    assert_eq!(archive.items(&[]).await.unwrap(), []);
}

pub(super) async fn an_edit_gives_the_next_version(archive: Arc<dyn Archive>) {
    let (id, seq) = accept(&*archive, post("ann", "one"), NOW).await;
    let author = number(&*archive, "ann").await;
    assert_eq!(write(&*archive, edit(id, "two")).await, edited(author, 2, &[]));
    assert_eq!(write(&*archive, edit(id, "three")).await, edited(author, 3, &[]));
    let item = read(&*archive, id).await.expect("it lives");
    assert_eq!((item.version, &item.body, item.outbox_seq), (3, &body("three"), seq));
    assert_eq!(write(&*archive, edit(ItemId(1), "x")).await, Err(Refused::NoSuchItem(ItemId(1))));
}

pub(super) async fn a_deleted_item_is_gone_and_stays_gone(archive: Arc<dyn Archive>) {
    let mut publish = post("ann", "hello");
    publish.foreign_id = Some("theirs".into());
    let (id, _) = accept(&*archive, publish, NOW).await;
    let author = number(&*archive, "ann").await;
    assert!(read(&*archive, id).await.is_some());
    assert_eq!(
        write(&*archive, delete(id)).await,
        Ok(Written::Deleted { author, readers: vec![], fresh: true, repost_of: None, mentions: vec![], told: vec![] })
    );
    assert_eq!(read(&*archive, id).await, None);
    assert_eq!(
        write(&*archive, delete(id)).await,
        Ok(Written::Deleted { author, readers: vec![], fresh: false, repost_of: None, mentions: vec![], told: vec![] })
    );
    assert_eq!(write(&*archive, edit(id, "again")).await, Err(Refused::NoSuchItem(id)));
    assert_eq!(write(&*archive, delete(ItemId(1))).await, Err(Refused::NoSuchItem(ItemId(1))));
    assert_eq!(
        archive.item_by_foreign_id("theirs").await.unwrap(),
        Some(id),
        "the key leads to the last item that had it"
    );
    assert_eq!(archive.outbox(author, 0, 10).await.unwrap().head, 2, "only the first delete is a record");
}

pub(super) async fn a_version_that_has_passed_is_refused(archive: Arc<dyn Archive>) {
    let (item, _) = accept(&*archive, post("ann", "one"), NOW).await;
    let author = number(&*archive, "ann").await;
    let edit_if =
        |version| Write::Edit { item, body: Some(body("new")), rank: None, mentions: None, if_version: Some(version) };
    let delete_if = |version| Write::Delete { item, if_version: Some(version) };
    assert_eq!(write(&*archive, edit_if(1)).await, edited(author, 2, &[]));
    assert_eq!(write(&*archive, edit_if(1)).await, Err(Refused::VersionMismatch { item, version: 2 }));
    assert_eq!(write(&*archive, delete_if(1)).await, Err(Refused::VersionMismatch { item, version: 2 }));
    assert!(read(&*archive, item).await.is_some());
    assert_eq!(
        write(&*archive, delete_if(2)).await,
        Ok(Written::Deleted { author, readers: vec![], fresh: true, repost_of: None, mentions: vec![], told: vec![] })
    );
}

pub(super) async fn a_refused_operation_changes_nothing_and_stops_no_other(archive: Arc<dyn Archive>) {
    let mut taken = post("ann", "first");
    taken.id = Some(ItemId(7));
    accept(&*archive, taken, NOW).await;
    let before = archive.counts().await.unwrap();

    let mut conflict = post("new-author", "other");
    conflict.id = Some(ItemId(7));
    assert_eq!(write(&*archive, Write::Publish(conflict.clone())).await, Err(Refused::IdTaken(ItemId(7))));
    assert_eq!(archive.counts().await.unwrap(), before);
    assert_eq!(archive.user_nos(&[super::user("new-author")]).await.unwrap(), [None]);

    let calls = vec![Write::Publish(conflict), delete(ItemId(1)), Write::Publish(post("ann", "second"))];
    let answers = archive.write(calls, NOW).await.unwrap();
    assert!(matches!(
        answers[..],
        [Err(Refused::IdTaken(_)), Err(Refused::NoSuchItem(_)), Ok(Written::Published { outbox_seq: 2, .. })]
    ));
}

/// Readers read an item again and again while it changes. A read that begins after a change was answered must show that
/// change.
pub(super) async fn no_reader_gets_an_old_item_once_its_change_is_answered(archive: Arc<dyn Archive>) {
    let (id, _) = accept(&*archive, post("ann", "v1"), NOW).await;
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let hammer = |archive: Arc<dyn Archive>, done: Arc<std::sync::atomic::AtomicBool>| async move {
        while !done.load(std::sync::atomic::Ordering::Relaxed) {
            read(&*archive, id).await;
            tokio::task::yield_now().await;
        }
    };
    let readers: Vec<_> = (0..3).map(|_| tokio::spawn(hammer(archive.clone(), done.clone()))).collect();
    for version in 2..=60 {
        write(&*archive, edit(id, &format!("v{version}"))).await.unwrap();
        for _ in 0..20 {
            assert_eq!(read(&*archive, id).await.expect("it lives").version, version);
        }
    }
    write(&*archive, delete(id)).await.unwrap();
    for _ in 0..20 {
        assert_eq!(read(&*archive, id).await, None);
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("a reader panics only if reading fails");
    }
}

pub(super) async fn given_ids_are_ordered_by_time_and_never_taken_ones(archive: Arc<dyn Archive>) {
    let (first, _) = accept(&*archive, post("ann", "1"), NOW).await;
    for ahead in 1..=3 {
        let mut given = post("ben", &format!("given {ahead}"));
        given.id = Some(ItemId(first.0 + ahead));
        accept(&*archive, given, NOW).await;
    }
    let mut last = first;
    for (n, now) in [NOW, NOW - 60_000, NOW, NOW + 1, NOW + 1].into_iter().enumerate() {
        let (id, _) = accept(&*archive, post("ann", &format!("next {n}")), now).await;
        assert!(id > last && !(first.0 + 1..=first.0 + 3).contains(&id.0), "{id} after {last}");
        last = id;
    }
}

pub(super) async fn a_profile_shows_living_items_in_display_order(archive: Arc<dyn Archive>) {
    let mut keys = vec![];
    for (n, rank) in [5, 1, i64::MAX, -3, 5, i64::MIN, 9].into_iter().enumerate() {
        let mut publish = post("ann", &n.to_string());
        publish.rank = Some(rank);
        let (item, _) = accept(&*archive, publish, NOW).await;
        keys.push(DisplayKey { rank, item });
    }
    for n in 0..5 {
        let (item, _) = accept(&*archive, post("ann", &format!("timed {n}")), NOW + n).await;
        keys.push(DisplayKey { rank: NOW + n, item });
    }
    let gone = keys.remove(3);
    write(&*archive, delete(gone.item)).await.unwrap();
    accept(&*archive, post("ben", "of another author"), NOW).await;
    keys.sort_unstable_by(|a, b| b.cmp(a));

    let author = number(&*archive, "ann").await;
    let (mut shown, mut before) = (vec![], None);
    loop {
        let page = archive.profile(author, FeedId::MAIN, before, 2).await.unwrap();
        shown.extend(page.iter().copied());
        if page.len() < 2 {
            break;
        }
        before = page.last().copied();
    }
    assert_eq!(shown, keys);
    assert_eq!(
        archive.profile(UserNo(9999), FeedId::MAIN, None, 2).await.unwrap(),
        [],
        "an unseen author has shown nothing"
    );
}

pub(super) async fn i6_what_was_accepted_survives_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("restart").await;
    let mut publish = post("ann", "kept");
    publish.idempotency_key = Some("key".into());
    let (id, seq) = accept(&*archive, publish.clone(), NOW).await;
    let (reader, author, edge, _) = super::change(&*archive, super::follow("rea", "ann")).await;
    let (counts, due) = (archive.counts().await.unwrap(), archive.outstanding(None, NOW, 10).await.unwrap());
    drop(archive);

    let archive = open("restart").await;
    assert_eq!(read(&*archive, id).await.expect("it lives").body, publish.body);
    let again = write_at(&*archive, Write::Publish(publish), NOW + 1).await;
    let published_at = NOW;
    assert_eq!(
        again,
        Ok(Written::Published {
            id,
            author,
            outbox_seq: seq,
            published_at,
            readers: vec![],
            fresh: false,
            own_edge: false,
            told: vec![]
        })
    );
    assert_eq!(archive.edge(reader, author).await.unwrap(), edge);
    assert_eq!((archive.counts().await.unwrap(), archive.outstanding(None, NOW, 10).await.unwrap()), (counts, due));
    let (next, _) = accept(&*archive, post("ann", "after"), NOW).await;
    assert!(next > id, "ids go on where they were");
}
