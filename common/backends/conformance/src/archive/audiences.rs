//! Tests of lists, and of items that are narrowed to an audience.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Audience, Below, Publish, Refused, Write, Written};
use feedgate_common::around::{Viewer, seen_by, who_sees};
use feedgate_common::audience::{AUDIENCE_MAX, LISTS_MAX, ListChange, ListRefused, MEMBERS_MAX, Narrowed, Narrowing};
use feedgate_common::change::{Class, Route};
use feedgate_common::feed::resolve_audience;
use feedgate_common::graph::Shield;
use feedgate_common::ids::ListName;
use feedgate_common::{Cut, FeedId, InboxKey, ItemId, Op, Progress, UserId, UserNo};

use super::{
    NOW, OneEdge, accept, change, classify, delete, edit, follow, number, post, shield, unfollow, user, write,
};

fn list(name: &str) -> ListName {
    name.parse().expect("a list")
}

/// An item that is for these followers of its author alone.
pub(super) fn narrowed_to(author: &str, text: &str, readers: &[&str]) -> Publish {
    let readers = readers.iter().map(|name| user(name)).collect();
    Publish { audience: Audience::Narrowed(Narrowed::to(readers)), ..post(author, text) }
}

async fn put(archive: &dyn Archive, owner: &str, name: &str, members: &[&str], on: bool) {
    let owner = number(archive, owner).await;
    let mut changes = vec![];
    for member in members {
        changes.push(ListChange { owner, list: list(name), member: number(archive, member).await, on, at: NOW });
    }
    assert!(archive.change_lists(changes).await.unwrap().iter().all(|done| *done == Ok(true)));
}

async fn members(archive: &dyn Archive, owner: &str, name: &str) -> Vec<UserId> {
    let owner = number(archive, owner).await;
    let found = archive.members(owner, &list(name), None, 1000).await.unwrap();
    found.into_iter().map(|line| line.user).collect()
}

pub(super) async fn s9_a_list_is_its_members(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [ann, bob, cid] = [number(archive, "ann").await, number(archive, "bob").await, number(archive, "cid").await];
    let one = |name: &str, member, on, at| ListChange { owner: ann, list: list(name), member, on, at };
    let changes = vec![
        one("close", bob, true, 5),
        one("close", bob, true, 6),
        one("close", cid, true, 7),
        one("z", cid, true, 8),
        one("z", bob, false, 9),
    ];
    let done = archive.change_lists(changes).await.unwrap();
    assert_eq!(done, [true, false, true, true, false].map(Ok), "what is so already is no change");
    assert_eq!(archive.lists(ann).await.unwrap(), [(list("close"), 2), (list("z"), 1)]);
    let first = archive.members(ann, &list("close"), None, 1).await.unwrap();
    assert_eq!((&first[0].user, first[0].since), (&user("bob"), 5), "who is on it keeps the time");
    let second = archive.members(ann, &list("close"), Some(first[0].cursor), 1).await.unwrap();
    assert_eq!((&second[0].user, second[0].since), (&user("cid"), 7));
    assert_eq!(archive.members(ann, &list("close"), Some(second[0].cursor), 1).await.unwrap(), []);
    let asked = [list("z"), list("none"), list("close")];
    assert_eq!(archive.member_nos(ann, &asked).await.unwrap(), [vec![cid], vec![], vec![bob, cid]]);
    let of_cid = archive.listing(cid, None, 9).await.unwrap();
    assert_eq!(of_cid.iter().map(|line| line.list.clone()).collect::<Vec<_>>(), [list("close"), list("z")]);
    assert_eq!(archive.listing(cid, None, 1).await.unwrap(), of_cid[..1]);
    assert_eq!(archive.listing(cid, Some((ann, list("close"))), 9).await.unwrap(), of_cid[1..]);
    assert_eq!(archive.listing(cid, Some((ann, list("z"))), 9).await.unwrap(), []);
    let (mut all, mut after) = (vec![], None);
    while let Some(last) = archive.listed(after.clone(), 1).await.unwrap().pop() {
        after = Some((last.owner, last.list.clone(), last.member));
        all.push(last);
    }
    assert_eq!(all.len(), 3, "one at a time, each once: {all:?}");
    assert_eq!(archive.listed(None, 9).await.unwrap(), all);
    put(archive, "ann", "z", &["cid"], false).await;
    assert_eq!(archive.lists(ann).await.unwrap(), [(list("close"), 2)], "with its last member a list is gone");
    assert_eq!(archive.listing(cid, None, 9).await.unwrap().len(), 1);
    assert_eq!(archive.lists(bob).await.unwrap(), []);
}

pub(super) async fn s9_lists_outlive_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("lists").await;
    put(&*archive, "ann", "close", &["bob"], true).await;
    let (item, _) = accept(&*archive, narrowed_to("ann", "x", &["bob"]), NOW).await;
    drop(archive);
    let archive = open("lists").await;
    assert_eq!(members(&*archive, "ann", "close").await, [user("bob")]);
    assert_eq!(archive.audience(item).await.unwrap(), [number(&*archive, "bob").await]);
}

pub(super) async fn s9_lists_are_bounded(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let ann = number(archive, "ann").await;
    let names: Vec<UserId> = (0..=MEMBERS_MAX).map(|n| user(&format!("m{n}"))).collect();
    let all = archive.intern(&names).await.unwrap();
    let on = |name: &str, member: UserNo| ListChange { owner: ann, list: list(name), member, on: true, at: NOW };
    for some in all[..MEMBERS_MAX].chunks(1000) {
        let done = archive.change_lists(some.iter().map(|member| on("big", *member)).collect()).await.unwrap();
        assert!(done.iter().all(|done| *done == Ok(true)));
    }
    let more = vec![on("big", all[MEMBERS_MAX]), on("big", all[0]), on("small", all[MEMBERS_MAX])];
    let done = archive.change_lists(more).await.unwrap();
    assert_eq!(done, [Err(ListRefused::TooManyMembers), Ok(false), Ok(true)], "a refusal stops no other");
    let lists = (2..LISTS_MAX).map(|n| on(&format!("list-{n}"), all[0])).collect();
    assert!(archive.change_lists(lists).await.unwrap().iter().all(|done| *done == Ok(true)));
    let done = archive.change_lists(vec![on("more", all[0]), on("small", all[0])]).await.unwrap();
    assert_eq!(done, [Err(ListRefused::TooManyLists), Ok(true)]);
}

/// Whom an item by ann would be for.
async fn resolved(archive: &dyn Archive, by: Narrowing) -> Result<Vec<UserId>, Refused> {
    let mut readers = resolve_audience(archive, &user("ann"), by).await.unwrap().readers.map_err(|refused| *refused)?;
    readers.sort_unstable();
    Ok(readers)
}

fn by(lists: &[&str], except_lists: &[&str], mutual: bool) -> Narrowing {
    let names = |names: &[&str]| names.iter().map(|name| list(name)).collect();
    Narrowing { lists: names(lists), except_lists: names(except_lists), mutual }
}

pub(super) async fn s9_an_audience_is_some_of_the_followers(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for reader in ["bob", "cid", "dan", "eve"] {
        change(archive, follow(reader, "ann")).await;
    }
    change(archive, follow("ann", "cid")).await;
    change(archive, follow("ann", "fay")).await;
    write(archive, shield("ann", Shield::Hide, "eve", true)).await.unwrap();
    write(archive, shield("ann", Shield::Mute, "cid", true)).await.unwrap();
    put(archive, "ann", "close", &["bob", "cid", "eve", "fay"], true).await;
    put(archive, "ann", "work", &["dan"], true).await;
    let users = |names: &[&str]| Ok(names.iter().map(|name| user(name)).collect::<Vec<_>>());
    for (asked, wants) in [
        (by(&["close"], &[], false), users(&["bob", "cid"])),
        (by(&["close", "work"], &[], false), users(&["bob", "cid", "dan"])),
        (by(&[], &["close"], false), users(&["dan"])),
        (by(&[], &[], true), users(&["cid"])),
        (by(&["work"], &[], true), users(&[])),
        (by(&["close"], &["work"], true), users(&["cid"])),
    ] {
        assert_eq!(resolved(archive, asked.clone()).await, wants, "{asked:?}");
    }
    for asked in [by(&["none"], &[], false), by(&["close"], &["none"], false)] {
        let refused = Refused::NoSuchList { author: user("ann"), list: list("none") };
        assert_eq!(resolved(archive, asked).await, Err(refused), "a name that was misspelt must not show it to others");
    }
}

pub(super) async fn s9_an_audience_is_bounded(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for some in (0..=AUDIENCE_MAX).collect::<Vec<_>>().chunks(500) {
        let follows = some.iter().map(|n| follow(&format!("f{n}"), "ann")).collect();
        assert!(archive.write(follows, NOW).await.unwrap().iter().all(Result::is_ok));
    }
    put(archive, "ann", "out", &["somebody"], true).await;
    let all = by(&[], &["out"], false);
    assert_eq!(resolved(archive, all.clone()).await, Err(Refused::AudienceTooLarge));
    put(archive, "ann", "out", &["f0"], true).await;
    assert_eq!(resolved(archive, all).await.map(|readers| readers.len()), Ok(AUDIENCE_MAX));
}

/// What a reader's feed shows according to the Archive alone, newest first.
async fn feed(archive: &dyn Archive, reader: UserNo) -> Vec<ItemId> {
    let adds = archive.feed_below(InboxKey::main(reader), Below::newest(99), 100).await.unwrap();
    adds.into_iter().map(|add| add.key.item).collect()
}

/// Which of `items` a reader sees, asked about each by itself.
async fn sees(archive: &dyn Archive, reader: UserNo, items: &[ItemId]) -> Vec<ItemId> {
    let seen = seen_by(archive, Some(reader), archive.items(items).await.unwrap()).await.unwrap();
    seen.into_iter().flatten().map(|item| item.id).collect()
}

pub(super) async fn s9_a_narrowed_item_is_in_the_feeds_of_followers_in_its_audience_alone(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for reader in ["in", "out"] {
        change(archive, follow(reader, "ann")).await;
    }
    let [ann, inside, out] = [number(archive, "ann").await, number(archive, "in").await, number(archive, "out").await];
    let late = number(archive, "late").await;
    let (all, _) = accept(archive, post("ann", "for all"), NOW).await;
    let (some, seq) = accept(archive, narrowed_to("ann", "for some", &["in", "late", "ann"]), NOW + 1).await;
    let (nobodys, _) = accept(archive, narrowed_to("ann", "for nobody", &[]), NOW + 2).await;
    let items = [all, some, nobodys];
    for (reader, shown) in [(inside, vec![some, all]), (out, vec![all]), (late, vec![])] {
        assert_eq!(feed(archive, reader).await, shown);
        let mut seen = sees(archive, reader, &items).await;
        seen.reverse();
        assert_eq!(seen, shown, "items by themselves");
    }
    assert_eq!(sees(archive, ann, &items).await, items, "its author sees it");
    let item = archive.items(&[some]).await.unwrap().remove(0).unwrap();
    assert!(item.narrowed && !item.direct && item.outbox_seq == seq);
    let mut seeing = who_sees(archive, &item, &[ann, inside, out, late]).await.unwrap();
    seeing.sort_unstable();
    let mut wants = vec![ann, inside];
    wants.sort_unstable();
    assert_eq!(seeing, wants);
    let profile = archive.profile(ann, FeedId::MAIN, None, 9).await.unwrap();
    assert_eq!(profile.iter().map(|key| key.item).collect::<Vec<_>>(), [nobodys, some, all], "a backend reads all");
    let outbox = archive.outbox(ann, 0, 9).await.unwrap();
    let routes = outbox.records.iter().map(|record| (record.op, record.route)).collect::<Vec<_>>();
    assert_eq!(routes, [(Op::Add, Route::Push), (Op::Add, Route::Narrow), (Op::Add, Route::Narrow)]);

    change(archive, unfollow("in", "ann")).await;
    assert_eq!((feed(archive, inside).await, sees(archive, inside, &items).await), (vec![], vec![]));
    change(archive, follow("in", "ann")).await;
    assert_eq!(feed(archive, inside).await, [some, all], "a follow brings it back");
    change(archive, follow("late", "ann")).await;
    for (reader, shown) in [("late", vec![all, some]), ("out", vec![all])] {
        let reader = number(archive, reader).await;
        let cut = Cut { progress: Progress::at(3), pull: 0 };
        let adds = archive.edge_state(InboxKey::main(reader), ann, cut, 100).await.unwrap().adds;
        let items: Vec<_> = adds.iter().map(|add| add.key.item).collect();
        assert_eq!(items, shown, "what a follow step brings");
    }
    write(archive, shield("ann", Shield::Block, "in", true)).await.unwrap();
    assert_eq!(archive.addressed(inside, &items).await.unwrap(), [], "nothing passes a block");
    assert_eq!(sees(archive, inside, &items).await, []);

    write(archive, edit(some, "new")).await.unwrap();
    let Ok(Written::Deleted { readers, .. }) = write(archive, delete(some)).await else { panic!() };
    assert_eq!(readers, [], "it is in the outbox, and addressed to nobody");
    let outbox = archive.outbox(ann, 3, 9).await.unwrap();
    let later = outbox.records.iter().map(|record| (record.op, record.route)).collect::<Vec<_>>();
    assert_eq!(later, [(Op::Update, Route::Narrow), (Op::Delete, Route::Narrow)], "what follows takes its route");
    assert!(archive.audience(some).await.unwrap().contains(&late), "for whom the delete is");
    assert_eq!(feed(archive, late).await, [all]);
}

pub(super) async fn s9_a_change_of_a_list_changes_no_audience(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for reader in ["bob", "cid"] {
        change(archive, follow(reader, "ann")).await;
    }
    put(archive, "ann", "close", &["bob"], true).await;
    let narrowed = resolve_audience(archive, &user("ann"), by(&["close"], &[], false)).await.unwrap();
    let publish = Publish {
        audience: Audience::Narrowed(narrowed),
        idempotency_key: Some("k".into()),
        ..post("ann", "for close friends")
    };
    let (item, _) = accept(archive, publish.clone(), NOW).await;
    put(archive, "ann", "close", &["cid"], true).await;
    put(archive, "ann", "close", &["bob"], false).await;
    assert_eq!(archive.audience(item).await.unwrap(), [number(archive, "bob").await]);
    // The list has changed, and even gone, since the first request: a retry gets its answer all the same.
    put(archive, "ann", "close", &["cid"], false).await;
    let again = resolve_audience(archive, &user("ann"), by(&["close"], &[], false)).await.unwrap();
    assert!(again.readers.is_err());
    let retry = Publish { audience: Audience::Narrowed(again), ..publish.clone() };
    let answer = write(archive, Write::Publish(retry.clone())).await;
    assert!(matches!(answer, Ok(Written::Published { id, fresh: false, .. }) if id == item), "{answer:?}");
    let fresh = Publish { idempotency_key: None, ..retry };
    let refused = Refused::NoSuchList { author: user("ann"), list: list("close") };
    assert_eq!(write(archive, Write::Publish(fresh)).await, Err(refused));
    let other = Publish { audience: Audience::Followers, ..publish };
    let answer = write(archive, Write::Publish(other)).await;
    assert_eq!(answer, Err(Refused::KeyReused("k".into())), "another audience is another payload");
}

pub(super) async fn s9_who_is_followed_by_everyone_narrows_nothing(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    write(archive, classify("ann", Class::Everyone)).await.unwrap();
    let answer = write(archive, Write::Publish(narrowed_to("ann", "x", &["bob"]))).await;
    assert_eq!(answer, Err(Refused::NarrowedEveryones(user("ann"))));
}

pub(super) async fn s9_a_narrowed_item_of_a_big_account_goes_to_its_audience(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    write(archive, classify("ann", Class::Pull)).await.unwrap();
    for reader in ["in", "out", "left"] {
        change(archive, follow(reader, "ann")).await;
    }
    change(archive, unfollow("left", "ann")).await;
    let (item, _) = accept(archive, narrowed_to("ann", "x", &["in", "left"]), NOW).await;
    let [ann, inside, out, left] = [
        number(archive, "ann").await,
        number(archive, "in").await,
        number(archive, "out").await,
        number(archive, "left").await,
    ];
    let audience = archive.audience(item).await.unwrap();
    let mut wants = vec![inside, left];
    wants.sort_unstable();
    assert_eq!(audience, wants);
    let recipients = archive.recipients_among(ann, &[left, inside]).await.unwrap();
    assert_eq!(recipients.iter().map(|recipient| recipient.reader).collect::<Vec<_>>(), [inside]);
    let all = archive.all_recipients(ann, 9).await.unwrap();
    let same = all.iter().find(|recipient| recipient.reader == inside).unwrap();
    assert_eq!((recipients[0].generation, recipients[0].from), (same.generation, same.from));
    assert_eq!(archive.pull_head().await.unwrap(), 0, "nobody pulls it");
    assert_eq!((feed(archive, inside).await, feed(archive, out).await), (vec![item], vec![]));
}

pub(super) async fn s9_an_original_is_shown_to_followers_in_its_audience(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for reader in ["in", "out"] {
        change(archive, follow(reader, "ann")).await;
    }
    let (item, _) = accept(archive, narrowed_to("ann", "x", &["in", "stranger"]), NOW).await;
    for (name, shown) in [("ann", true), ("in", true), ("out", false), ("stranger", false)] {
        let viewer = Viewer::User(Some(number(archive, name).await));
        let found = archive.originals(&[item], viewer).await.unwrap();
        assert_eq!(found[0].is_some(), shown, "{name}");
    }
    for (viewer, shown) in [(Viewer::User(None), false), (Viewer::Backend, true)] {
        assert_eq!(archive.originals(&[item], viewer).await.unwrap()[0].is_some(), shown, "{viewer:?}");
    }
}

pub(super) async fn s9_an_original_is_shown_in_its_audience_to_who_follows_because_everyone_does(
    archive: Arc<dyn Archive>,
) {
    let archive = &*archive;
    let (item, _) = accept(archive, narrowed_to("ann", "x", &["new", "left"]), NOW).await;
    change(archive, follow("left", "ann")).await;
    change(archive, unfollow("left", "ann")).await;
    write(archive, classify("ann", Class::Everyone)).await.unwrap();
    for (name, shown) in [("ann", true), ("new", true), ("left", false), ("other", false)] {
        let viewer = Viewer::User(Some(number(archive, name).await));
        let found = archive.originals(&[item], viewer).await.unwrap();
        assert_eq!(found[0].is_some(), shown, "{name}");
    }
    assert_eq!(archive.originals(&[item], Viewer::User(None)).await.unwrap()[0], None);
}
