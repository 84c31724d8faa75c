//! Tests of notifications: the transaction of a deed notifies the user whom the deed concerns, once, and a deed that is
//! taken back takes its notification back (S5).

use std::sync::Arc;

use feedgate_common::archive::{Archive, Publish, Write, Written};
use feedgate_common::around::{
    CommentWrite, Commented, NewComment, Onlooker, PastComment, Reaction, Unreacted, Visible,
};
use feedgate_common::graph::Shield;
use feedgate_common::import::{Import, Place};
use feedgate_common::notify::{KEY_PREFIX, Notified, Rules, Way};
use feedgate_common::seen::Earlier;
use feedgate_common::{Epoch, FeedId, InboxKey, Item, ItemId, Millis, Op, Position, Seen, UserNo, Watermarks};

use super::erasures::erase;
use super::{NOW, accept, body, delete, follow, number, post, shield, to_users, unfollow, user, write};

/// Rules with a kind for each sort of deed. The kinds of reactions, comments and answers go to a named feed.
pub(super) async fn rules(archive: &dyn Archive) -> Rules {
    let feed = archive.intern_feeds(&["notifications".into()]).await.unwrap()[0];
    let way = |kind: &str, feed| Some(Way { kind: kind.into(), feed, grouped: false });
    Rules {
        reaction: way("liked", feed),
        comment: way("commented", feed),
        reply: way("answered", feed),
        repost: way("reposted", FeedId::MAIN),
        follow: way("followed", FeedId::MAIN),
        request: way("asked", FeedId::MAIN),
        accept: way("accepted", FeedId::MAIN),
        mention: way("mentioned", FeedId::MAIN),
        visible: Visible::All,
    }
}

pub(super) async fn react(archive: &dyn Archive, item: ItemId, who: UserNo, on: bool) -> (bool, Vec<UserNo>) {
    react_at(archive, item, who, on, NOW).await
}

pub(super) async fn react_at(
    archive: &dyn Archive,
    item: ItemId,
    who: UserNo,
    on: bool,
    at: Millis,
) -> (bool, Vec<UserNo>) {
    let reaction = Reaction { item, kind: "heart".parse().unwrap(), user: who, at };
    let Notified { mut answers, told } = archive.react_and_notify(&[reaction], on).await.unwrap();
    assert_eq!(answers.len(), 1, "one answer for each reaction");
    (answers.remove(0).unwrap(), told)
}

pub(super) fn comment(item: ItemId, author: UserNo, reply_to: Option<ItemId>) -> NewComment {
    NewComment { item, author, reply_to, body: body("hi"), id: None, key: None, past: None, mentions: vec![] }
}

pub(super) async fn say(archive: &dyn Archive, write: CommentWrite) -> (Commented, Vec<UserNo>) {
    let Notified { mut answers, told } = archive.comment_and_notify(vec![write], NOW).await.unwrap();
    (answers.remove(0).unwrap(), told)
}

pub(super) async fn repost(archive: &dyn Archive, author: &str, item: ItemId) -> (ItemId, Vec<UserNo>) {
    match write(archive, Write::Publish(Publish { repost_of: Some(item), ..post(author, "see") })).await {
        Ok(Written::Published { id, told, fresh: true, .. }) => (id, told),
        other => panic!("a repost is an item, not {other:?}"),
    }
}

/// Everything that was addressed to a reader, over all feeds in the order of each.
pub(super) async fn log(archive: &dyn Archive, reader: UserNo) -> Vec<(Op, ItemId)> {
    let mut all = vec![];
    for feed in archive.feeds().await.unwrap() {
        let news = archive.news(InboxKey { reader, feed }, Watermarks::default(), 1000).await.unwrap();
        all.extend(news.entries.iter().map(|entry| (entry.op, entry.key.item)));
    }
    all
}

/// What a reader is told now: the living items that are addressed to it, in the order in which they came into each
/// feed.
pub(super) async fn told(archive: &dyn Archive, reader: UserNo) -> Vec<Arc<Item>> {
    let adds = log(archive, reader).await.into_iter().filter(|(op, _)| *op == Op::Add);
    let ids: Vec<ItemId> = adds.map(|(_, id)| id).collect();
    archive.items(&ids).await.unwrap().into_iter().flatten().collect()
}

pub(super) async fn texts(archive: &dyn Archive, reader: UserNo) -> Vec<String> {
    told(archive, reader).await.iter().map(|item| item.body.get().to_owned()).collect()
}

/// A post of ann, and the numbers of ann, bob and cid.
async fn world(archive: &dyn Archive) -> (ItemId, UserNo, UserNo, UserNo) {
    archive.notify_by(rules(archive).await);
    let (item, _) = accept(archive, post("ann", "hers"), NOW).await;
    (item, number(archive, "ann").await, number(archive, "bob").await, number(archive, "cid").await)
}

/// The reader has seen a feed in which the newest item was published at `until`.
pub(super) async fn see(archive: &dyn Archive, reader: UserNo, feed: FeedId, until: Millis) {
    let position = Position { epoch: Epoch(1), offset: until.cast_unsigned() };
    let seen = Seen { position, until, earlier: Earlier { until: Millis::MIN, upto: 0 } };
    assert!(archive.see(InboxKey { reader, feed }, seen).await.unwrap());
}

pub(super) async fn s5_each_sort_of_deed_tells_whom_it_concerns_once(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, _) = world(archive).await;
    assert_eq!(react(archive, item, bob, true).await, (true, vec![ann]));
    assert_eq!(react(archive, item, bob, true).await, (false, vec![]), "what is so already is not told again");
    let first = NewComment { key: Some("k".into()), ..comment(item, bob, None) };
    let (said, who) = say(archive, CommentWrite::Make(first.clone())).await;
    assert_eq!(who, [ann]);
    assert_eq!(say(archive, CommentWrite::Make(first)).await.1, [], "a retry is no second comment");
    let (copy, who) = repost(archive, "bob", item).await;
    assert_eq!(who, [ann]);
    for (fresh, who) in [(true, vec![ann]), (false, vec![])] {
        match write(archive, follow("bob", "ann")).await {
            Ok(Written::Edge { told, fresh: changed, .. }) => assert_eq!((changed, told), (fresh, who)),
            other => panic!("{other:?}"),
        }
    }
    let id = said.place.id;
    let wanted = [
        ("reposted", format!("{{\"actor\":\"bob\",\"item\":\"{item}\",\"repost\":\"{copy}\"}}")),
        ("followed", "{\"actor\":\"bob\"}".to_owned()),
        ("liked", format!("{{\"actor\":\"bob\",\"item\":\"{item}\",\"reaction\":\"heart\"}}")),
        ("commented", format!("{{\"actor\":\"bob\",\"item\":\"{item}\",\"comment\":\"{id}\"}}")),
    ];
    let all = told(archive, ann).await;
    let found: Vec<_> = all.iter().map(|item| (item.kind.as_deref().unwrap(), item.body.get().to_owned())).collect();
    assert_eq!(found, wanted, "the feed of their kind has them");
    for item in &all {
        assert!(item.direct && item.author_no == bob && item.published_at == NOW && item.rank == NOW, "{item:?}");
        assert!(item.foreign_id.as_ref().unwrap().starts_with(KEY_PREFIX));
    }
    let due = archive.outstanding(None, NOW, 99).await.unwrap();
    let is_owed = |event: &feedgate_common::archive::Outstanding| format!("{event:?}").contains("Direct");
    assert!(due.iter().any(is_owed), "it is brought like everything that is addressed: {due:?}");
    let announced = archive.announced(0, 99).await.unwrap();
    let of = |id| announced.iter().filter(|(_, told)| told.item == Some(id)).count();
    assert_eq!(all.iter().map(|item| of(item.id)).collect::<Vec<_>>(), [1; 4], "programs hear of it as of any item");
}

pub(super) async fn s5_without_a_kind_nobody_is_told(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "hers"), NOW).await;
    let (ann, bob) = (number(archive, "ann").await, number(archive, "bob").await);
    let all = async || {
        assert_eq!(react(archive, item, bob, true).await, (true, vec![]));
        let (said, who) = say(archive, CommentWrite::Make(comment(item, bob, None))).await;
        assert_eq!(who, []);
        assert_eq!(repost(archive, "bob", item).await.1, []);
        assert_eq!(write(archive, follow("bob", "ann")).await.unwrap().told(), []);
        assert_eq!(write(archive, unfollow("bob", "ann")).await.unwrap().told(), []);
        let delete = CommentWrite::Delete { item, id: said.place.id, by: None, if_version: None };
        assert_eq!(say(archive, delete).await.1, []);
        assert_eq!(react(archive, item, bob, false).await, (true, vec![]));
    };
    all().await;
    let reply = rules(archive).await.reply;
    archive.notify_by(Rules { reply, ..Rules::default() });
    all().await;
    assert_eq!(log(archive, ann).await, []);
}

pub(super) async fn s5_nobody_is_told_of_a_deed_of_ones_own(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, ..) = world(archive).await;
    assert_eq!(react(archive, item, ann, true).await, (true, vec![]));
    let (said, who) = say(archive, CommentWrite::Make(comment(item, ann, None))).await;
    assert_eq!(who, []);
    assert_eq!(say(archive, CommentWrite::Make(comment(item, ann, Some(said.place.id)))).await.1, []);
    assert_eq!(repost(archive, "ann", item).await.1, []);
    assert!(write(archive, follow("ann", "ann")).await.is_err(), "nobody follows themself");
    assert_eq!(log(archive, ann).await, []);
}

pub(super) async fn s5_nothing_passes_a_shield(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, _) = world(archive).await;
    let walls = [
        ("ann", Shield::Mute, "bob"),
        ("ann", Shield::Block, "bob"),
        ("bob", Shield::Block, "ann"),
        ("bob", Shield::Hide, "ann"),
    ];
    for (owner, kind, other) in walls {
        write(archive, shield(owner, kind, other, true)).await.unwrap();
        assert_eq!(react(archive, item, bob, true).await, (true, vec![]), "{owner} {kind:?}");
        assert_eq!(say(archive, CommentWrite::Make(comment(item, bob, None))).await.1, []);
        assert_eq!(repost(archive, "bob", item).await.1, []);
        assert_eq!(write(archive, follow("bob", "ann")).await.unwrap().told(), []);
        write(archive, unfollow("bob", "ann")).await.unwrap();
        assert_eq!(react(archive, item, bob, false).await, (true, vec![]));
        write(archive, shield(owner, kind, other, false)).await.unwrap();
    }
    assert_eq!(log(archive, ann).await, []);
    for (owner, kind, other) in [("ann", Shield::Hide, "bob"), ("bob", Shield::Mute, "ann")] {
        write(archive, shield(owner, kind, other, true)).await.unwrap();
    }
    assert_eq!(react(archive, item, bob, true).await, (true, vec![ann]), "these keep from bob what ann does");
}

pub(super) async fn s3_of_mutual_friends_alone_an_answer_is_told_to_who_sees_it(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, cid) = world(archive).await;
    archive.notify_by(rules(archive).await.with_visible(Visible::Mutual));
    let answer = async |to: ItemId, author| say(archive, CommentWrite::Make(comment(item, author, Some(to)))).await;
    let (of_ann, _) = say(archive, CommentWrite::Make(comment(item, ann, None))).await;
    let (of_bob, who) = say(archive, CommentWrite::Make(comment(item, bob, None))).await;
    assert_eq!(who, [ann], "the author of the item sees all comments");
    assert_eq!(answer(of_bob.place.id, cid).await.1, [ann], "bob does not see what cid says");
    assert_eq!(answer(of_bob.place.id, ann).await.1, [bob], "everybody sees what the author of the item says");
    assert_eq!(answer(of_ann.place.id, cid).await.1, [ann]);
    for (reader, author) in [("bob", "cid"), ("cid", "bob")] {
        assert_eq!(answer(of_bob.place.id, cid).await.1, [ann], "not yet both");
        write(archive, follow(reader, author)).await.unwrap();
    }
    let (said, mut who) = answer(of_bob.place.id, cid).await;
    who.sort_unstable();
    let mut both = vec![ann, bob];
    both.sort_unstable();
    assert_eq!(who, both, "they follow each other");
    let gone = CommentWrite::Delete { item, id: said.place.id, by: None, if_version: None };
    assert_eq!(say(archive, gone).await.1.len(), 2, "and it is taken back from both");
    write(archive, shield("bob", Shield::Mute, "cid", true)).await.unwrap();
    assert_eq!(answer(of_bob.place.id, cid).await.1, [ann], "nothing passes a mute");
}

pub(super) async fn s3_of_mutual_friends_alone_a_line_grows_by_what_is_seen(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, cid) = world(archive).await;
    let mut rules = rules(archive).await.with_visible(Visible::Mutual);
    rules.reply.as_mut().unwrap().grouped = true;
    archive.notify_by(rules);
    let (of_bob, _) = say(archive, CommentWrite::Make(comment(item, bob, None))).await;
    let answer = async || say(archive, CommentWrite::Make(comment(item, cid, Some(of_bob.place.id)))).await.1;
    assert_eq!(answer().await, [ann]);
    for (reader, author) in [("bob", "cid"), ("cid", "bob")] {
        write(archive, follow(reader, author)).await.unwrap();
    }
    assert!(answer().await.contains(&bob));
}

pub(super) async fn s5_what_is_taken_back_is_told_no_more_unless_it_was_seen(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, _) = world(archive).await;
    let feed = rules(archive).await.reaction.unwrap().feed;
    let (said, _) = say(archive, CommentWrite::Make(comment(item, bob, None))).await;
    let (copy, _) = repost(archive, "bob", item).await;
    write(archive, follow("bob", "ann")).await.unwrap();
    react(archive, item, bob, true).await;
    let all = told(archive, ann).await;
    assert_eq!(all.len(), 4);

    assert_eq!(react(archive, item, bob, false).await, (true, vec![ann]));
    let gone = CommentWrite::Delete { item, id: said.place.id, by: None, if_version: None };
    assert_eq!(say(archive, gone.clone()).await.1, [ann]);
    assert_eq!(say(archive, gone).await.1, [], "it is gone already");
    assert_eq!(write(archive, unfollow("bob", "ann")).await.unwrap().told(), [ann]);
    assert_eq!(write(archive, delete(copy)).await.unwrap().told(), [ann]);
    assert_eq!(texts(archive, ann).await, [""; 0]);
    let deletes: Vec<ItemId> =
        log(archive, ann).await.into_iter().filter(|(op, _)| *op == Op::Delete).map(|(_, id)| id).collect();
    let ids: Vec<ItemId> = all.iter().map(|item| item.id).collect();
    let sorted = |mut ids: Vec<ItemId>| {
        ids.sort_unstable();
        ids
    };
    assert_eq!(sorted(deletes), sorted(ids.clone()), "devices are told of each end");

    // What is done again is told again, by another item.
    assert_eq!(react(archive, item, bob, true).await, (true, vec![ann]));
    assert_eq!(write(archive, follow("bob", "ann")).await.unwrap().told(), [ann]);
    let again = told(archive, ann).await;
    assert!(again.len() == 2 && again.iter().all(|item| !ids.contains(&item.id)));

    // The feed of reactions is seen up to now, and the main feed up to the moment before.
    see(archive, ann, feed, NOW).await;
    see(archive, ann, FeedId::MAIN, NOW - 1).await;
    assert_eq!(react(archive, item, bob, false).await, (true, vec![]), "it was seen and stays");
    assert_eq!(write(archive, unfollow("bob", "ann")).await.unwrap().told(), [ann], "it was not seen");
    assert_eq!(texts(archive, ann).await.len(), 1);
    assert_eq!(react(archive, item, bob, true).await, (true, vec![]), "what was seen is told once");
    assert_eq!(react_at(archive, item, bob, false, NOW + 9).await, (true, vec![]));
    let kept = told(archive, ann).await.remove(0);
    write(archive, delete(kept.id)).await.unwrap();
    assert_eq!(react_at(archive, item, bob, true, NOW + 9).await, (true, vec![ann]), "it is there no more");
    assert_eq!(react_at(archive, item, bob, false, NOW + 10).await, (true, vec![ann]), "it came after what was seen");
}

pub(super) async fn s5_an_answer_is_told_once_to_each_whom_it_concerns(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, cid) = world(archive).await;
    let make = async |author, to| {
        let (said, mut who) = say(archive, CommentWrite::Make(comment(item, author, to))).await;
        who.sort_unstable();
        (said.place.id, who)
    };
    let (of_bob, _) = make(bob, None).await;
    let (of_ann, who) = make(ann, Some(of_bob)).await;
    assert_eq!(who, [bob]);
    let (of_cid, who) = make(cid, Some(of_bob)).await;
    assert_eq!(who, [ann.min(bob), ann.max(bob)], "bob is answered, and it is on ann's item");
    let (_, who) = make(bob, Some(of_ann)).await;
    assert_eq!(who, [ann], "once, as an answer");
    let answer = |actor: &str, id, to| {
        format!("{{\"actor\":\"{actor}\",\"item\":\"{item}\",\"comment\":\"{id}\",\"reply_to\":\"{to}\"}}")
    };
    let kinds: Vec<_> = told(archive, ann).await.iter().map(|item| item.kind.clone().unwrap()).collect();
    assert_eq!(kinds, ["commented", "commented", "answered"]);
    assert_eq!(texts(archive, bob).await, [answer("ann", of_ann, of_bob), answer("cid", of_cid, of_bob)]);
    let gone = CommentWrite::Delete { item, id: of_cid, by: None, if_version: None };
    assert_eq!(say(archive, gone).await.1.len(), 2, "both are told no more");
    assert_eq!((told(archive, ann).await.len(), told(archive, bob).await.len()), (2, 1));

    let reply = None;
    archive.notify_by(Rules { reply, ..rules(archive).await });
    let (_, who) = make(cid, Some(of_ann)).await;
    assert_eq!(who, [ann], "without a kind for answers it is a comment on her item");
}

pub(super) async fn s5_history_tells_nobody(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, _) = world(archive).await;
    let like = Reaction { item, kind: "heart".parse().unwrap(), user: bob, at: NOW };
    assert_eq!(archive.react(&[like]).await.unwrap(), [Ok(true)]);
    let past = Some(PastComment { at: NOW, version: 1, deleted: false });
    let then = NewComment { id: Some(ItemId(77)), past, ..comment(item, bob, None) };
    assert_eq!(say(archive, CommentWrite::Make(then)).await.1, []);
    let (reader, author) = (user("bob"), user("ann"));
    write(archive, Write::Import(Import::Follow { reader, author, since: NOW, from: Place::Head })).await.unwrap();
    let publish = Publish { repost_of: Some(item), id: Some(ItemId(78)), ..post("bob", "then") };
    write(archive, Write::Import(Import::Item { publish, version: 1, deleted: false })).await.unwrap();
    assert_eq!(log(archive, ann).await, []);
    let addressed = Publish { repost_of: Some(item), ..to_users("bob", "for cid", &["cid"]) };
    assert_eq!(write(archive, Write::Publish(addressed)).await.unwrap().told(), [], "ann may not see that repost");
    assert_eq!(react(archive, item, bob, false).await, (true, vec![]), "there is nothing to take back");
}

pub(super) async fn s5_one_call_tells_of_all_that_it_changes(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, bob, cid) = world(archive).await;
    let heart = |item, user| Reaction { item, kind: "heart".parse().unwrap(), user, at: NOW };
    let asked = [heart(item, bob), heart(ItemId(1), bob), heart(item, cid), heart(item, bob)];
    let done = archive.react_and_notify(&asked, true).await.unwrap();
    assert_eq!(done.answers, [Ok(true), Err(Unreacted::NoSuchItem(ItemId(1))), Ok(true), Ok(false)]);
    assert_eq!((done.told, told(archive, ann).await.len()), (vec![ann, ann], 2));
    let done = archive.react_and_notify(&asked, false).await.unwrap();
    assert_eq!((done.told, told(archive, ann).await.len()), (vec![ann, ann], 0));

    let copy = Publish { id: Some(ItemId(500)), repost_of: Some(item), ..post("bob", "see") };
    let hers = Publish { id: Some(ItemId(600)), ..post("cid", "mine") };
    let of_hers = Publish { repost_of: Some(ItemId(600)), ..post("dan", "see") };
    let calls = vec![
        Write::Publish(copy),
        follow("bob", "ann"),
        follow("ann", "bob"),
        Write::Publish(hers),
        Write::Publish(of_hers),
        delete(ItemId(500)),
        unfollow("ann", "bob"),
    ];
    let answers: Vec<Written> =
        archive.write(calls, NOW).await.unwrap().into_iter().map(|answer| answer.unwrap()).collect();
    let who: Vec<&[UserNo]> = answers.iter().map(Written::told).collect();
    let wanted: [&[UserNo]; 7] = [&[ann], &[ann], &[bob], &[], &[cid], &[ann], &[bob]];
    assert_eq!(who, wanted);
    assert_eq!(texts(archive, ann).await, ["{\"actor\":\"bob\"}"], "the repost is gone");
    assert_eq!((told(archive, bob).await.len(), told(archive, cid).await.len()), (0, 1));
}

/// Tasks give and take back the same few reactions at the same time. In the end one notification lives for each
/// reaction and each follow that is there.
pub(super) async fn i3_of_deeds_that_race_each_is_told_once(archive: Arc<dyn Archive>) {
    let (item, ann, ..) = world(&*archive).await;
    let names: Vec<_> = (0..3).map(|n| user(&format!("racer-{n}"))).collect();
    let racers = archive.intern(&names).await.unwrap();
    let tasks = (0..6usize).map(|task| {
        let (archive, racers, names) = (archive.clone(), racers.clone(), names.clone());
        tokio::spawn(async move {
            for step in 0..8usize {
                let at = (task + step) % racers.len();
                react(&*archive, item, racers[at], (task + step) % 5 != 0).await;
                let edge = (names[at].clone(), user("ann"));
                let (reader, author) = edge;
                let change = if (task + step) % 3 == 0 {
                    Write::Unfollow { reader, author }
                } else {
                    Write::Follow { reader, author }
                };
                write(&*archive, change).await.unwrap();
            }
        })
    });
    for task in Vec::from_iter(tasks) {
        task.await.unwrap();
    }
    let mut wanted = vec![];
    for (racer, name) in racers.iter().zip(&names) {
        if archive.followees_among(*racer, &[ann]).await.unwrap() == [ann] {
            wanted.push(format!("{{\"actor\":\"{name}\"}}"));
        }
        if !archive.around(&[item], Onlooker::user(*racer)).await.unwrap()[0].own.is_empty() {
            wanted.push(format!("{{\"actor\":\"{name}\",\"item\":\"{item}\",\"reaction\":\"heart\"}}"));
        }
    }
    let mut found = texts(&*archive, ann).await;
    wanted.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, wanted);
    let all = log(&*archive, ann).await;
    let adds = all.iter().filter(|(op, _)| *op == Op::Add).count();
    assert_eq!(all.len() - adds, adds - found.len(), "each that is gone had one delete");
}

pub(super) async fn i6_what_was_told_outlives_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("notified-restart").await;
    let (item, ann, bob, _) = world(&*archive).await;
    react(&*archive, item, bob, true).await;
    drop(archive);
    let archive = open("notified-restart").await;
    let before = told(&*archive, ann).await;
    assert_eq!(before.len(), 1);
    archive.notify_by(rules(&*archive).await);
    assert_eq!(react(&*archive, item, bob, true).await, (false, vec![]));
    assert_eq!(react(&*archive, item, bob, false).await, (true, vec![ann]));
    assert_eq!(told(&*archive, ann).await, []);
}

pub(super) async fn what_was_told_to_and_of_an_erased_user_is_gone(archive: Arc<dyn Archive>) {
    let (item, ann, bob, cid) = world(&*archive).await;
    react(&*archive, item, bob, true).await;
    react(&*archive, item, cid, true).await;
    write(&*archive, follow("bob", "ann")).await.unwrap();
    write(&*archive, follow("ann", "cid")).await.unwrap();
    write(&*archive, follow("bob", "cid")).await.unwrap();
    let (letter, _) = accept(&*archive, to_users("bob", "a letter", &["ann"]), NOW).await;
    let (of_ann, of_cid) = (told(&*archive, ann).await, told(&*archive, cid).await);
    assert_eq!((of_ann.len(), of_cid.len()), (4, 2));
    let removed = erase(&archive, ann).await.state.removed;
    assert_eq!((removed.addressed, removed.direct_items), (4, 1), "what she was told, and what told of her");
    let ids: Vec<ItemId> = of_ann.iter().chain(&of_cid).map(|item| item.id).collect();
    let left: Vec<ItemId> = archive.items(&ids).await.unwrap().iter().flatten().map(|item| item.id).collect();
    let of_bob = of_cid.iter().find(|item| item.author_no == bob).unwrap().id;
    assert_eq!(left, [letter, of_bob], "a letter is an item of bob; what is for her alone is none");
    assert_eq!(told(&*archive, cid).await.len(), 1);
}
