//! Tests of reposts: what they may name, and what a viewer sees of their originals.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Publish, Refused, Write, Written};
use feedgate_common::around::Viewer;
use feedgate_common::graph::Shield;
use feedgate_common::import::Import;
use feedgate_common::{ItemId, UserNo};

use super::{NOW, accept, delete, edit, follow, number, post, shield, to_users, write, write_at};

fn repost(author: &str, of: ItemId) -> Publish {
    Publish { repost_of: Some(of), ..post(author, "look") }
}

/// The item as `viewer` sees it as an original: its version, `None` if it is gone.
async fn seen(archive: &dyn Archive, item: ItemId, viewer: Viewer) -> Option<u32> {
    let found = archive.originals(&[item], viewer).await.unwrap().remove(0);
    found.map(|item| item.version)
}

async fn users(archive: &dyn Archive, names: [&str; 3]) -> [Viewer; 3] {
    let mut numbers = [UserNo(0); 3];
    for (number, name) in numbers.iter_mut().zip(names) {
        *number = self::number(archive, name).await;
    }
    numbers.map(|number| Viewer::User(Some(number)))
}

pub(super) async fn s8_a_repost_keeps_what_it_names_through_edits_and_a_restart<
    A: AsyncFn(&str) -> Arc<dyn Archive>,
>(
    open: &A,
) {
    let archive = open("repost").await;
    let (original, _) = accept(&*archive, post("ann", "news"), NOW).await;
    let (first, _) = accept(&*archive, repost("bob", original), NOW).await;
    let (second, _) = accept(&*archive, repost("eve", first), NOW).await;
    write(&*archive, edit(first, "look at this")).await.unwrap();
    write(&*archive, delete(original)).await.unwrap();
    drop(archive);
    let archive = open("repost").await;
    let found = archive.items(&[first, second]).await.unwrap();
    let named: Vec<_> = found.into_iter().map(|item| item.unwrap().repost_of).collect();
    assert_eq!(named, [Some(original), Some(first)], "a repost of a repost names the repost");
}

pub(super) async fn s8_what_does_not_live_is_not_reposted(archive: Arc<dyn Archive>) {
    let (original, _) = accept(&*archive, post("ann", "news"), NOW).await;
    let repeated = Publish { idempotency_key: Some("once".into()), ..repost("bob", original) };
    let (reposted, _) = accept(&*archive, repeated.clone(), NOW).await;
    let other = Publish { repost_of: Some(reposted), ..repeated.clone() };
    assert_eq!(write(&*archive, Write::Publish(other)).await, Err(Refused::KeyReused("once".into())));
    write(&*archive, delete(original)).await.unwrap();
    for gone in [original, ItemId(1)] {
        assert_eq!(write(&*archive, Write::Publish(repost("joe", gone))).await, Err(Refused::NoSuchRef(gone)));
    }
    assert_eq!(archive.user_nos(&["joe".parse().unwrap()]).await.unwrap(), [None], "a refused one changes nothing");
    let again = write(&*archive, Write::Publish(repeated)).await;
    assert!(
        matches!(again, Ok(Written::Published { id, fresh: false, .. }) if id == reposted),
        "a retry gets the first answer, also once the original is deleted: {again:?}"
    );
    let itself = Publish { id: Some(ItemId(77)), ..repost("bob", ItemId(77)) };
    assert_eq!(write(&*archive, Write::Publish(itself)).await, Err(Refused::NoSuchRef(ItemId(77))));
}

pub(super) async fn s8_one_call_may_publish_an_item_and_repost_it(archive: Arc<dyn Archive>) {
    let original = Publish { id: Some(ItemId(70)), ..post("ann", "news") };
    let writes = vec![
        Write::Publish(original),
        Write::Publish(repost("bob", ItemId(70))),
        delete(ItemId(70)),
        Write::Publish(repost("eve", ItemId(70))),
    ];
    let answers = archive.write(writes, NOW).await.unwrap();
    assert!(answers[..3].iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(answers[3], Err(Refused::NoSuchRef(ItemId(70))));
}

pub(super) async fn s8_history_may_bring_a_repost_before_its_original(archive: Arc<dyn Archive>) {
    let line = |publish: Publish, id| {
        let publish = Publish { id: Some(ItemId(id)), published_at: Some(NOW - 5), ..publish };
        Write::Import(Import::Item { publish, version: 1, deleted: false })
    };
    write(&*archive, line(repost("bob", ItemId(70)), 71)).await.unwrap();
    assert_eq!(seen(&*archive, ItemId(70), Viewer::Backend).await, None);
    write(&*archive, line(post("ann", "news"), 70)).await.unwrap();
    assert_eq!(seen(&*archive, ItemId(70), Viewer::Backend).await, Some(1));
    assert_eq!(archive.items(&[ItemId(71)]).await.unwrap()[0].as_ref().unwrap().repost_of, Some(ItemId(70)));
}

pub(super) async fn s8_an_original_is_shown_as_it_is_now_to_who_may_see_it(archive: Arc<dyn Archive>) {
    let (original, _) = accept(&*archive, post("ann", "news"), NOW).await;
    let [ann, bob, eve] = users(&*archive, ["ann", "bob", "eve"]).await;
    let all = [Viewer::Backend, Viewer::User(None), ann, bob, eve];
    for viewer in all {
        assert_eq!(seen(&*archive, original, viewer).await, Some(1), "nobody has to follow its author: {viewer:?}");
    }
    write(&*archive, edit(original, "newer")).await.unwrap();
    assert_eq!(seen(&*archive, original, bob).await, Some(2));
    for (from, kind, against) in [
        ("bob", Shield::Mute, "ann"),
        ("ann", Shield::Hide, "bob"),
        ("bob", Shield::Block, "ann"),
        ("ann", Shield::Block, "bob"),
    ] {
        write(&*archive, shield(from, kind, against, true)).await.unwrap();
        assert_eq!(seen(&*archive, original, bob).await, None, "{from} {kind:?} {against}");
        for other in [Viewer::Backend, ann, eve] {
            assert_eq!(seen(&*archive, original, other).await, Some(2), "{other:?}");
        }
        write(&*archive, shield(from, kind, against, false)).await.unwrap();
        assert_eq!(seen(&*archive, original, bob).await, Some(2), "{from} {kind:?} {against} was taken down");
    }
    for (from, kind) in [("bob", Shield::Hide), ("ann", Shield::Mute)] {
        let other = if from == "bob" { "ann" } else { "bob" };
        write(&*archive, shield(from, kind, other, true)).await.unwrap();
        assert_eq!(seen(&*archive, original, bob).await, Some(2), "{kind:?} of {from} hides nothing of ann from bob");
    }
    write(&*archive, follow("eve", "ann")).await.unwrap();
    write(&*archive, delete(original)).await.unwrap();
    for viewer in all {
        assert_eq!(seen(&*archive, original, viewer).await, None, "{viewer:?}");
    }
}

pub(super) async fn s8_an_original_for_named_readers_stays_theirs(archive: Arc<dyn Archive>) {
    let (original, _) = accept(&*archive, to_users("ann", "for bob", &["bob"]), NOW).await;
    let [ann, bob, eve] = users(&*archive, ["ann", "bob", "eve"]).await;
    write(&*archive, follow("eve", "ann")).await.unwrap();
    for (viewer, sees) in [(Viewer::Backend, true), (ann, true), (bob, true), (eve, false), (Viewer::User(None), false)]
    {
        assert_eq!(seen(&*archive, original, viewer).await.is_some(), sees, "{viewer:?}");
    }
    write(&*archive, shield("bob", Shield::Mute, "ann", true)).await.unwrap();
    assert_eq!(seen(&*archive, original, bob).await, Some(1), "what is addressed to bob arrives under a mute");
    write(&*archive, shield("ann", Shield::Block, "bob", true)).await.unwrap();
    assert_eq!(seen(&*archive, original, bob).await, None);
}

pub(super) async fn s8_originals_answer_in_the_order_asked(archive: Arc<dyn Archive>) {
    let (a, _) = accept(&*archive, post("ann", "a"), NOW).await;
    let (b, _) = accept(&*archive, post("ben", "b"), NOW).await;
    let bob = Viewer::User(Some(number(&*archive, "bob").await));
    write_at(&*archive, shield("bob", Shield::Mute, "ann", true), NOW).await.unwrap();
    let found = archive.originals(&[b, ItemId(1), a, b], bob).await.unwrap();
    let ids: Vec<Option<ItemId>> = found.iter().map(|item| item.as_ref().map(|item| item.id)).collect();
    assert_eq!(ids, [Some(b), None, None, Some(b)]);
    assert_eq!(archive.originals(&[], bob).await.unwrap(), []);
}
