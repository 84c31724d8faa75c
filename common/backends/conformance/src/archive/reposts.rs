//! Tests of reposts: what they may name, and what a viewer sees of their originals.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Audience, Publish, Refused, Write, Written};
use feedgate_common::around::{Onlooker, Viewer};
use feedgate_common::audience::Narrowed;
use feedgate_common::graph::Shield;
use feedgate_common::import::Import;
use feedgate_common::{ItemId, UserNo};

use super::erasures::erase;
use super::{NOW, accept, delete, edit, follow, move_to, number, post, shield, to_users, user, write, write_at};

fn repost(author: &str, of: ItemId) -> Publish {
    Publish { repost_of: Some(of), ..post(author, "look") }
}

/// The item as `viewer` sees it as an original: its version, `None` if it is gone.
async fn seen(archive: &dyn Archive, item: ItemId, viewer: Viewer) -> Option<u32> {
    let found = archive.originals(&[item], viewer).await.unwrap().remove(0);
    found.map(|item| item.version)
}

/// How many reposts the item has, and which are listed.
async fn reposts(archive: &dyn Archive, item: ItemId) -> (u64, Vec<ItemId>) {
    let counted = archive.around(&[item], Onlooker::BACKEND).await.unwrap()[0].reposts;
    (counted, archive.reposts(item, None, 1000).await.unwrap())
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

pub(super) async fn s1_the_number_of_reposts_is_that_of_those_that_live<A: AsyncFn(&str) -> Arc<dyn Archive>>(
    open: &A,
) {
    let archive = open("reposts-counted").await;
    let (original, _) = accept(&*archive, post("ann", "news"), NOW).await;
    let (other, _) = accept(&*archive, post("ann", "other"), NOW).await;
    assert_eq!(reposts(&*archive, original).await, (0, vec![]));
    let (first, _) = accept(&*archive, repost("bob", original), NOW + 1).await;
    let (again, _) = accept(&*archive, repost("bob", original), NOW + 2).await;
    let (chain, _) = accept(&*archive, repost("eve", first), NOW + 3).await;
    let addressed = Publish { repost_of: Some(original), ..to_users("cid", "psst", &["bob"]) };
    let (direct, _) = accept(&*archive, addressed, NOW + 4).await;
    write(&*archive, follow("bob", "dan")).await.unwrap();
    let audience = Audience::Narrowed(Narrowed::to(vec![user("bob")]));
    let (narrowed, _) = accept(&*archive, Publish { audience, ..repost("dan", original) }, NOW + 5).await;
    assert_eq!(reposts(&*archive, original).await, (4, vec![narrowed, direct, again, first]), "each, for whomever");
    assert_eq!(reposts(&*archive, first).await, (1, vec![chain]), "a repost of a repost is one of that");
    write(&*archive, edit(again, "newer")).await.unwrap();
    write(&*archive, move_to(again, 5)).await.unwrap();
    assert_eq!(reposts(&*archive, original).await.0, 4, "an edit and a move change no number");
    for fresh in [true, false] {
        let Ok(Written::Deleted { fresh: was, repost_of, .. }) = write(&*archive, delete(direct)).await else {
            panic!()
        };
        assert_eq!((was, repost_of), (fresh, fresh.then_some(original)), "the answer says which item has one less");
        assert_eq!(reposts(&*archive, original).await, (3, vec![narrowed, again, first]));
    }
    let around = archive.around(&[other, original, first], Onlooker::BACKEND).await.unwrap();
    assert_eq!(around.iter().map(|around| around.reposts).collect::<Vec<_>>(), [0, 3, 1]);
    drop(archive);
    let archive = open("reposts-counted").await;
    assert_eq!(reposts(&*archive, original).await, (3, vec![narrowed, again, first]));
    write(&*archive, delete(original)).await.unwrap();
    assert_eq!(reposts(&*archive, original).await, (0, vec![narrowed, again, first]), "they stay, without a number");
    write(&*archive, delete(again)).await.unwrap();
    assert_eq!(reposts(&*archive, original).await.1, [narrowed, first]);
}

pub(super) async fn s1_whatever_is_asked_twice_a_repost_counts_once(archive: Arc<dyn Archive>) {
    let (original, _) = accept(&*archive, post("ann", "news"), NOW).await;
    let keyed = Publish { idempotency_key: Some("once".into()), ..repost("bob", original) };
    let named = Publish { id: Some(ItemId(77)), foreign_id: Some("theirs".into()), ..repost("bob", original) };
    for publish in [keyed.clone(), keyed, named.clone(), named] {
        write(&*archive, Write::Publish(publish)).await.unwrap();
    }
    assert_eq!(reposts(&*archive, original).await.0, 2);
    let writes = vec![
        Write::Publish(Publish { id: Some(ItemId(70)), ..post("ann", "more") }),
        Write::Publish(Publish { id: Some(ItemId(71)), ..repost("bob", ItemId(70)) }),
        Write::Publish(Publish { id: Some(ItemId(72)), ..repost("eve", ItemId(70)) }),
        edit(ItemId(71), "newer"),
        delete(ItemId(71)),
        delete(ItemId(71)),
        delete(ItemId(77)),
        Write::Publish(Publish { id: Some(ItemId(73)), ..repost("eve", ItemId(1)) }),
    ];
    let refused = archive.write(writes, NOW).await.unwrap().into_iter().filter(Result::is_err).count();
    assert_eq!(refused, 1, "what does not live is not reposted, and not counted");
    assert_eq!(reposts(&*archive, ItemId(70)).await, (1, vec![ItemId(72)]), "made, reposted and deleted by one call");
    assert_eq!(reposts(&*archive, original).await.0, 1);
}

pub(super) async fn s1_an_imported_repost_counts_with_or_without_its_original(archive: Arc<dyn Archive>) {
    let line = |publish: Publish, id, deleted| {
        let publish = Publish { id: Some(ItemId(id)), published_at: Some(NOW - 5), ..publish };
        Write::Import(Import::Item { publish, version: 1, deleted })
    };
    for _ in 0..2 {
        for (id, deleted) in [(71, false), (72, true), (73, false)] {
            write(&*archive, line(repost("bob", ItemId(70)), id, deleted)).await.unwrap();
        }
        assert_eq!(reposts(&*archive, ItemId(70)).await, (0, vec![ItemId(73), ItemId(71)]), "no original, no number");
    }
    write(&*archive, line(post("ann", "news"), 70, false)).await.unwrap();
    assert_eq!(reposts(&*archive, ItemId(70)).await.0, 2, "the original came behind them");
    for item in [72, 73] {
        write(&*archive, Write::Import(Import::Delete { item: ItemId(item) })).await.unwrap();
    }
    assert_eq!(reposts(&*archive, ItemId(70)).await, (1, vec![ItemId(71)]));
}

pub(super) async fn s1_the_number_of_reposts_is_exact_after_any_race(archive: Arc<dyn Archive>) {
    let mut originals = vec![];
    for text in ["a", "b"] {
        originals.push(accept(&*archive, post("ann", text), NOW).await.0);
    }
    let mut tasks = vec![];
    for task in 0..8_u64 {
        let (archive, originals) = (archive.clone(), originals.clone());
        tasks.push(tokio::spawn(async move {
            for nth in 0..12 {
                // Pairs of tasks make and delete the same reposts, of both originals in either order.
                let (id, of) = (ItemId(1000 + 100 * (task / 2) + nth), originals[((nth + task / 2) % 2) as usize]);
                let publish = Publish { id: Some(id), ..repost(&format!("user-{}", task / 2), of) };
                let mut writes = vec![Write::Publish(publish)];
                if nth % 3 == 0 {
                    writes.push(delete(id));
                }
                let answers = archive.write(writes, NOW).await.expect("the archive works");
                assert!(answers.iter().all(Result::is_ok), "{answers:?}");
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    for original in originals {
        let (counted, listed) = reposts(&*archive, original).await;
        assert_eq!((counted, listed.len()), (16, 16), "four users each have made six, and deleted two");
    }
}

pub(super) async fn s8_reposts_are_listed_newest_first_and_without_a_gap(archive: Arc<dyn Archive>) {
    let (original, _) = accept(&*archive, post("ann", "news"), NOW).await;
    let id = |nth| ItemId(u64::MAX - 10 + nth);
    for nth in [4, 1, 3, 10, 2] {
        accept(&*archive, Publish { id: Some(id(nth)), ..repost("bob", original) }, NOW).await;
    }
    assert_eq!(archive.reposts(original, None, 3).await.unwrap(), [10, 4, 3].map(id));
    write(&*archive, delete(id(3))).await.unwrap();
    accept(&*archive, Publish { id: Some(id(5)), ..repost("bob", original) }, NOW).await;
    assert_eq!(archive.reposts(original, Some(id(3)), 3).await.unwrap(), [2, 1].map(id), "a deleted one leads on");
    assert_eq!(archive.reposts(original, Some(id(1)), 3).await.unwrap(), []);
    assert_eq!(archive.reposts(original, Some(ItemId(0)), 3).await.unwrap(), []);
}

pub(super) async fn an_erasure_takes_reposts_out_of_the_number(archive: Arc<dyn Archive>) {
    let (original, _) = accept(&*archive, post("ann", "news"), NOW).await;
    let (of_bob, _) = accept(&*archive, repost("bob", original), NOW).await;
    let (of_eve, _) = accept(&*archive, repost("eve", original), NOW).await;
    let (of_ann, _) = accept(&*archive, repost("ann", of_bob), NOW).await;
    let bob = number(&*archive, "bob").await;
    erase(&archive, bob).await;
    assert_eq!(reposts(&*archive, original).await, (1, vec![of_eve]));
    assert_eq!(reposts(&*archive, of_bob).await, (0, vec![of_ann]), "what others have made of it stays theirs");
    write(&*archive, delete(of_ann)).await.unwrap();
    assert_eq!(reposts(&*archive, of_bob).await, (0, vec![]));
}
