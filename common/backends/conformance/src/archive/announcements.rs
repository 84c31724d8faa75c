//! Tests of what is announced: each accepted write once, in the order of its user, and nothing else.

use std::sync::Arc;

use feedgate_common::announce::{self, Act, Announcement, Numbered};
use feedgate_common::archive::{Archive, Publish, Write};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::import::{Import, Place};
use feedgate_common::{ItemId, UserNo};

use super::{NOW, body, classify, follow, move_to, number, post, shield, unfollow, user, write};

const ITEM: ItemId = ItemId(77);

fn item(text: &str) -> Write {
    Write::Publish(Publish { id: Some(ITEM), foreign_id: Some("post/1".into()), ..post("ann", text) })
}

fn edit(if_version: Option<u32>) -> Write {
    Write::Edit { item: ITEM, body: Some(body("new")), rank: None, mentions: None, if_version }
}

const DELETE: Write = Write::Delete { item: ITEM, if_version: None };

async fn announced(archive: &dyn Archive) -> Vec<Numbered> {
    let all = archive.announced(0, 1000).await.unwrap();
    assert!(all.is_sorted_by(|one, next| one.0 < next.0), "{all:?}");
    all
}

async fn acts(archive: &dyn Archive) -> Vec<Act> {
    announced(archive).await.into_iter().map(|(_, told)| told.act).collect()
}

pub(super) async fn an_accepted_write_is_announced_with_what_it_did(archive: Arc<dyn Archive>) {
    let writes = [
        item("x"),
        edit(None),
        DELETE,
        follow("bob", "ann"),
        unfollow("bob", "ann"),
        shield("bob", Shield::Block, "ann", true),
        shield("bob", Shield::Hide, "ann", false),
        shield("bob", Shield::Block, "ann", false),
        classify("ann", Class::Pull),
    ];
    for answer in archive.write(writes.to_vec(), NOW).await.unwrap() {
        answer.unwrap();
    }
    let [ann, bob] = [number(&*archive, "ann").await, number(&*archive, "bob").await];
    let of = |act, user| Announcement { act, user, other: None, item: None, version: None, at: NOW, detail: None };
    let edge = |act| Announcement { other: Some(ann), ..of(act, bob) };
    let wanted = [
        Announcement { item: Some(ITEM), version: Some(1), detail: Some("post/1".into()), ..of(Act::Publish, ann) },
        Announcement { item: Some(ITEM), version: Some(2), ..of(Act::Edit, ann) },
        Announcement { item: Some(ITEM), ..of(Act::Delete, ann) },
        edge(Act::Follow),
        edge(Act::Unfollow),
        edge(Act::Block),
        edge(Act::Unblock),
        Announcement { detail: Some("pull".into()), ..of(Act::Classify, ann) },
    ];
    let all = announced(&*archive).await;
    assert_eq!(all.iter().map(|(_, told)| told.clone()).collect::<Vec<_>>(), wanted, "in the order of the call");
    assert_eq!(archive.announced(all[0].0, 2).await.unwrap(), all[1..3], "beyond a number, no more than asked for");
    let events = announce::with_names(&*archive, all).await.unwrap();
    let owners: Vec<_> = events.iter().map(|event| event.owner.as_str()).collect();
    assert_eq!(owners, ["ann", "ann", "ann", "bob", "bob", "bob", "bob", "ann"]);
}

pub(super) async fn what_is_refused_or_repeated_or_changes_nothing_is_not_announced(archive: Arc<dyn Archive>) {
    let keyed = || Write::Publish(Publish { idempotency_key: Some("key".into()), ..post("ann", "keyed") });
    for accepted in [item("x"), keyed(), follow("bob", "ann"), shield("bob", Shield::Mute, "ann", true)] {
        write(&*archive, accepted).await.unwrap();
    }
    let first = [Act::Publish, Act::Publish, Act::Follow, Act::Mute];
    assert_eq!(acts(&*archive).await, first);
    let repeated = [item("x"), keyed(), follow("bob", "ann"), shield("bob", Shield::Mute, "ann", true)];
    let so_already = [unfollow("cem", "ann"), classify("ann", Class::Auto), move_to(ITEM, NOW)];
    for again in repeated.into_iter().chain(so_already) {
        write(&*archive, again).await.unwrap();
    }
    for refused in [item("another"), edit(Some(7)), Write::Delete { item: ItemId(404), if_version: None }] {
        write(&*archive, refused).await.unwrap_err();
    }
    let old = Import::Item { publish: post("ann", "old"), version: 1, deleted: false };
    let follows = Import::Follow { reader: user("dan"), author: user("ann"), since: NOW - 5, from: Place::Head };
    for history in [old, follows] {
        write(&*archive, Write::Import(history)).await.unwrap();
    }
    assert_eq!(acts(&*archive).await, first);
    write(&*archive, DELETE).await.unwrap();
    write(&*archive, DELETE).await.unwrap();
    assert_eq!(acts(&*archive).await[4..], [Act::Delete], "the second delete has changed nothing");
}

pub(super) async fn i6_announcements_outlive_a_restart_until_they_are_forgotten(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("announced-kept").await;
    for text in ["a", "b", "c"] {
        write(&*archive, Write::Publish(post("ann", text))).await.unwrap();
    }
    let all = announced(&*archive).await;
    drop(archive);

    let archive = open("announced-kept").await;
    assert_eq!(announced(&*archive).await, all);
    for _ in 0..2 {
        archive.forget_announced(&[all[0].0, all[2].0]).await.unwrap();
        assert_eq!(announced(&*archive).await, all[1..2], "exactly those, and again changes nothing");
    }
    drop(archive);

    let archive = open("announced-kept").await;
    write(&*archive, Write::Publish(post("ann", "d"))).await.unwrap();
    let later = announced(&*archive).await;
    assert!(later.len() == 2 && later[0] == all[1] && later[1].0 > all[2].0, "no number is given twice: {later:?}");
}

pub(super) async fn what_one_user_does_is_announced_in_its_order(archive: Arc<dyn Archive>) {
    for name in ["ann", "bob"] {
        write(&*archive, Write::Publish(post(name, "first"))).await.unwrap();
    }
    let writing = ["ann", "bob"].map(|name| {
        let archive = archive.clone();
        tokio::spawn(async move {
            for nth in 0..50 {
                write(&*archive, Write::Publish(post(name, &nth.to_string()))).await.unwrap();
            }
        })
    });
    let users = [number(&*archive, "ann").await, number(&*archive, "bob").await];
    let mut read: [Vec<u64>; 2] = Default::default();
    let of = |user: UserNo| users.iter().position(|known| *known == user).expect("one of the two");
    while read.iter().map(Vec::len).sum::<usize>() < 102 {
        // A relay reads from the start, and forgets what it has read.
        let some = archive.announced(0, 7).await.unwrap();
        for (number, told) in &some {
            let before = &mut read[of(told.user)];
            assert!(before.last().is_none_or(|last| last < number), "{number} comes behind a later one");
            before.push(*number);
        }
        archive.forget_announced(&some.iter().map(|(number, _)| *number).collect::<Vec<_>>()).await.unwrap();
    }
    for one in writing {
        one.await.unwrap();
    }
    assert_eq!(announced(&*archive).await, []);
}
