//! Tests of lines: notifications of one group that were not seen are one item, with a count and the last actors (S6).

use std::sync::Arc;

use feedgate_common::archive::{Archive, Audience, Publish, Write, Written};
use feedgate_common::around::{CommentWrite, Onlooker, Reaction};
use feedgate_common::erase::{Stage, Trace};
use feedgate_common::feed::traces;
use feedgate_common::graph::Shield;
use feedgate_common::import::{Import, PastMember};
use feedgate_common::notify::Rules;
use feedgate_common::{FeedId, Item, ItemId, Op, UserNo};

use super::erasures::erase;
use super::notifications::{comment, log, react, react_at, repost, rules, say, see, texts, told};
use super::{NOW, accept, delete, follow, number, post, shield, unfollow, user, write};

/// The rules of the tests of notifications, but deeds of these five sorts are grouped into lines.
async fn grouped(archive: &dyn Archive) -> Rules {
    let mut rules = rules(archive).await;
    let Rules { reaction, comment, reply, repost, follow, .. } = &mut rules;
    [reaction, comment, reply, repost, follow].into_iter().flatten().for_each(|way| way.grouped = true);
    rules
}

/// A post of ann, the numbers of ann and of these users, and the feed of reactions.
async fn world<const N: usize>(archive: &dyn Archive, names: [&str; N]) -> (ItemId, UserNo, [UserNo; N], FeedId) {
    let rules = grouped(archive).await;
    let feed = rules.reaction.as_ref().unwrap().feed;
    archive.notify_by(rules);
    let (item, _) = accept(archive, post("ann", "hers"), NOW).await;
    let ann = number(archive, "ann").await;
    let names: Vec<_> = names.iter().map(|name| user(name)).collect();
    (item, ann, archive.intern(&names).await.unwrap().try_into().unwrap(), feed)
}

/// The body of a line of likes, with the last actors, newest first.
fn likes(item: ItemId, count: u64, actors: &[&str]) -> String {
    let named = actors.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(",");
    let first = actors[0];
    format!(
        "{{\"actor\":\"{first}\",\"item\":\"{item}\",\"reaction\":\"heart\",\"actors\":[{named}],\"count\":{count}}}"
    )
}

/// The one line that a reader is told.
async fn only(archive: &dyn Archive, reader: UserNo) -> Arc<Item> {
    let mut all = told(archive, reader).await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

async fn member_count(archive: &dyn Archive) -> usize {
    archive.line_members(None, 9999).await.unwrap().len()
}

pub(super) async fn s6_what_was_not_seen_of_one_kind_and_item_is_one_line(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob, cid, dan, eve], feed) = world(archive, ["bob", "cid", "dan", "eve"]).await;
    assert_eq!(react(archive, item, bob, true).await, (true, vec![ann]));
    let first = only(archive, ann).await;
    assert_eq!(first.body.get(), likes(item, 1, &["bob"]));
    for (who, at) in [(cid, 1), (dan, 2), (eve, 3)] {
        assert_eq!(react_at(archive, item, who, true, NOW + at).await, (true, vec![ann]));
    }
    let line = only(archive, ann).await;
    assert_eq!(line.body.get(), likes(item, 4, &["eve", "dan", "cid"]));
    assert_eq!((line.author_no, line.published_at, line.rank), (eve, NOW + 3, NOW + 3), "it is that of the last one");
    assert_eq!((line.kind.as_deref(), line.direct, line.version), (Some("liked"), true, 1));
    let changes = log(archive, ann).await;
    let ops: Vec<Op> = changes.iter().map(|(op, _)| *op).collect();
    assert_eq!(ops, [Op::Add, Op::Delete, Op::Add, Op::Delete, Op::Add, Op::Delete, Op::Add]);
    for pair in changes.windows(2).filter(|pair| pair[1].0 == Op::Delete) {
        assert_eq!(pair[0].1, pair[1].1, "what is deleted is what came before");
    }
    let (other, _) = accept(archive, post("ann", "another"), NOW).await;
    react(archive, other, bob, true).await;
    assert_eq!(texts(archive, ann).await, [line.body.get(), &likes(other, 1, &["bob"])], "another item, another line");
    let announced = archive.announced(0, 99).await.unwrap();
    let of = |id| announced.iter().filter(|(_, told)| told.item == Some(id)).count();
    assert_eq!((of(first.id), of(line.id)), (2, 1), "programs hear of each item, and of its end");
    assert_eq!(told(archive, ann).await.len(), 2, "{feed:?}");
}

pub(super) async fn s6_a_line_that_was_seen_is_closed(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob, cid, dan], feed) = world(archive, ["bob", "cid", "dan"]).await;
    react(archive, item, bob, true).await;
    see(archive, ann, feed, NOW - 1).await;
    react(archive, item, cid, true).await;
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 2, &["cid", "bob"]), "it was not seen yet");
    see(archive, ann, feed, NOW).await;
    assert_eq!(react_at(archive, item, dan, true, NOW + 1).await, (true, vec![ann]));
    let both = [likes(item, 2, &["cid", "bob"]), likes(item, 1, &["dan"])];
    assert_eq!(texts(archive, ann).await, both, "the next like begins another line");
    for again in [false, true] {
        assert_eq!(react_at(archive, item, bob, again, NOW + 2).await, (true, vec![]), "what was seen stays, once");
    }
    assert_eq!(texts(archive, ann).await, both);
    assert_eq!(react_at(archive, item, dan, false, NOW + 3).await, (true, vec![ann]));
    assert_eq!(texts(archive, ann).await, both[..1], "what was not seen goes");
    assert_eq!(react_at(archive, item, dan, true, NOW + 4).await, (true, vec![ann]));
    assert_eq!(texts(archive, ann).await, both);
}

pub(super) async fn s6_who_takes_a_deed_back_leaves_the_line(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob, cid, dan, eve], _) = world(archive, ["bob", "cid", "dan", "eve"]).await;
    for (who, at) in [(bob, 0), (cid, 1), (dan, 2), (eve, 3)] {
        react_at(archive, item, who, true, NOW + at).await;
    }
    let before = only(archive, ann).await;
    assert_eq!(react_at(archive, item, cid, false, NOW + 9).await, (true, vec![ann]));
    let edited = only(archive, ann).await;
    assert_eq!(edited.body.get(), likes(item, 3, &["eve", "dan", "bob"]), "the next one is named in his place");
    assert_eq!((edited.id, edited.version), (before.id, 2), "the same item");
    assert_eq!(archive.versions(edited.id).await.unwrap(), [], "what it said before is kept for nobody");
    assert_eq!(log(archive, ann).await.last(), Some(&(Op::Update, before.id)));
    assert_eq!(react_at(archive, item, eve, false, NOW + 9).await, (true, vec![ann]));
    let replaced = only(archive, ann).await;
    assert_eq!(replaced.body.get(), likes(item, 2, &["dan", "bob"]));
    assert_eq!((replaced.author_no, replaced.rank, replaced.published_at), (dan, NOW + 3, NOW + 3), "in its place");
    assert_eq!(react_at(archive, item, cid, true, NOW + 10).await, (true, vec![ann]));
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 3, &["cid", "dan", "bob"]));
    for (who, left) in [(cid, 1), (bob, 1), (dan, 0)] {
        assert_eq!(react_at(archive, item, who, false, NOW + 11).await, (true, vec![ann]));
        assert_eq!(told(archive, ann).await.len(), left);
    }
    assert_eq!(member_count(archive).await, 0);
    react_at(archive, item, bob, true, NOW + 12).await;
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 1, &["bob"]), "a new line begins");
    assert_eq!(member_count(archive).await, 1);
}

pub(super) async fn s6_nothing_joins_a_line_through_a_shield_or_twice(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob, cid], _) = world(archive, ["bob", "cid"]).await;
    write(archive, shield("ann", Shield::Mute, "cid", true)).await.unwrap();
    assert_eq!(react(archive, item, ann, true).await, (true, vec![]), "nobody is told of a deed of one's own");
    assert_eq!(react(archive, item, cid, true).await, (true, vec![]));
    assert_eq!(react(archive, item, bob, true).await, (true, vec![ann]));
    assert_eq!(react(archive, item, bob, true).await, (false, vec![]));
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 1, &["bob"]));
    assert_eq!(react(archive, item, cid, false).await, (true, vec![]), "he was in no line");
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 1, &["bob"]));
    // What was told before the settings were changed is not told again.
    let kinds = rules(archive).await;
    archive.notify_by(kinds);
    let (other, _) = accept(archive, post("ann", "another"), NOW).await;
    react(archive, other, bob, true).await;
    archive.notify_by(grouped(archive).await);
    assert_eq!(react(archive, other, bob, false).await, (true, vec![ann]), "an item of its own goes as before");
    assert_eq!(told(archive, ann).await.len(), 1);
}

pub(super) async fn s6_a_line_that_changes_names_nobody_who_is_behind_a_shield_by_now(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob, cid, dan], _) = world(archive, ["bob", "cid", "dan"]).await;
    for (who, at) in [(bob, 0), (cid, 1)] {
        react_at(archive, item, who, true, NOW + at).await;
    }
    write(archive, shield("ann", Shield::Block, "cid", true)).await.unwrap();
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 2, &["cid", "bob"]), "what was told stays");
    react_at(archive, item, dan, true, NOW + 2).await;
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 3, &["dan", "bob"]), "all are counted");
    react_at(archive, item, dan, false, NOW + 3).await;
    let line = only(archive, ann).await;
    assert_eq!((line.body.get(), line.author_no), (&*likes(item, 2, &["bob"]), bob));
    write(archive, shield("ann", Shield::Block, "cid", false)).await.unwrap();
    react_at(archive, item, dan, true, NOW + 4).await;
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 3, &["dan", "cid", "bob"]));
}

pub(super) async fn s6_one_call_changes_a_line_once(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob], _) = world(archive, ["bob"]).await;
    let names: Vec<_> = (0..200).map(|n| user(&format!("liker-{n}"))).collect();
    let likers = archive.intern(&names).await.unwrap();
    let heart = |user| Reaction { item, kind: "heart".parse().unwrap(), user, at: NOW };
    react(archive, item, bob, true).await;
    let many: Vec<Reaction> = likers.iter().map(|user| heart(*user)).collect();
    let done = archive.react_and_notify(&many, true).await.unwrap();
    assert_eq!((done.answers.len(), done.told), (200, vec![ann; 200]), "each is told");
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 201, &["liker-199", "liker-198", "liker-197"]));
    assert_eq!(log(archive, ann).await.len(), 3, "by one delete and one add");
    archive.react_and_notify(&many[100..], false).await.unwrap();
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 101, &["liker-99", "liker-98", "liker-97"]));
    assert_eq!(log(archive, ann).await.len(), 5);
    archive.react_and_notify(&[&many[..100], &[heart(bob)]].concat(), false).await.unwrap();
    assert_eq!((told(archive, ann).await.len(), log(archive, ann).await.len(), member_count(archive).await), (0, 6, 0));
}

pub(super) async fn s6_a_line_that_was_deleted_is_begun_anew(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob, cid], _) = world(archive, ["bob", "cid"]).await;
    react(archive, item, bob, true).await;
    react(archive, item, cid, true).await;
    write(archive, delete(only(archive, ann).await.id)).await.unwrap();
    assert_eq!(react(archive, item, cid, false).await, (true, vec![]), "nobody sees it");
    assert_eq!(told(archive, ann).await.len(), 0, "the line stays deleted");
    assert_eq!(react(archive, item, cid, true).await, (true, vec![ann]));
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 1, &["cid"]));
    react(archive, item, bob, false).await;
    assert_eq!(react(archive, item, bob, true).await, (true, vec![ann]));
    assert_eq!(only(archive, ann).await.body.get(), likes(item, 2, &["bob", "cid"]));
}

pub(super) async fn s6_other_sorts_of_deeds_are_grouped_too(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, ann, [bob, cid], _) = world(archive, ["bob", "cid"]).await;
    let followers = |actors: &str, first: &str, count: u64| {
        format!("{{\"actor\":\"{first}\",\"actors\":[{actors}],\"count\":{count}}}")
    };
    let calls = vec![follow("bob", "ann"), follow("cid", "ann"), follow("cid", "bob")];
    let answers: Vec<Written> = archive.write(calls, NOW).await.unwrap().into_iter().map(Result::unwrap).collect();
    let who: Vec<&[UserNo]> = answers.iter().map(Written::told).collect();
    assert_eq!(who, [&[ann][..], &[ann], &[bob]]);
    assert_eq!(texts(archive, ann).await, [followers("\"cid\",\"bob\"", "cid", 2)]);
    assert_eq!(write(archive, unfollow("cid", "ann")).await.unwrap().told(), [ann]);
    assert_eq!(texts(archive, ann).await, [followers("\"bob\"", "bob", 1)]);
    write(archive, unfollow("bob", "ann")).await.unwrap();

    let (first, _) = repost(archive, "bob", item).await;
    let (copy, who) = repost(archive, "cid", item).await;
    assert_eq!(who, [ann]);
    let line = only(archive, ann).await;
    assert!(line.body.get().contains(&format!("\"repost\":\"{copy}\"")), "{line:?}");
    assert!(line.body.get().ends_with("\"actors\":[\"cid\",\"bob\"],\"count\":2}"), "{line:?}");
    for id in [first, copy] {
        assert_eq!(write(archive, delete(id)).await.unwrap().told(), [ann]);
    }
    assert_eq!(told(archive, ann).await.len(), 0);

    let (said, _) = say(archive, CommentWrite::Make(comment(item, bob, None))).await;
    let (next, _) = say(archive, CommentWrite::Make(comment(item, bob, None))).await;
    say(archive, CommentWrite::Make(comment(item, cid, Some(said.place.id)))).await;
    let line = only(archive, ann).await;
    assert!(line.body.get().ends_with("\"actors\":[\"cid\",\"bob\"],\"count\":3}"), "each actor once: {line:?}");
    let gone = CommentWrite::Delete { item, id: next.place.id, by: None, if_version: None };
    assert_eq!(say(archive, gone).await.1, [ann]);
    assert!(only(archive, ann).await.body.get().ends_with("\"count\":2}"));
    assert_eq!(told(archive, bob).await.len(), 2, "a follower and an answer");
}

/// Tasks give and take back the same few reactions at the same time. In the end the line counts the reactions that are
/// there.
pub(super) async fn s1_of_deeds_that_race_a_line_counts_each_once(archive: Arc<dyn Archive>) {
    let (item, ann, racers, _) = world(&*archive, ["racer-0", "racer-1", "racer-2", "racer-3"]).await;
    let tasks = (0..6usize).map(|task| {
        let archive = archive.clone();
        tokio::spawn(async move {
            for step in 0..10usize {
                let at = (task * 3 + step) % racers.len();
                react(&*archive, item, racers[at], (task + step) % 3 != 0).await;
            }
        })
    });
    for task in Vec::from_iter(tasks) {
        task.await.unwrap();
    }
    let mut given = 0;
    for racer in racers {
        given += archive.around(&[item], Onlooker::user(racer)).await.unwrap()[0].own.len();
    }
    let found = texts(&*archive, ann).await;
    assert_eq!(found.len(), usize::from(given > 0), "{found:?}");
    assert!(found.iter().all(|text| text.ends_with(&format!("\"count\":{given}}}"))), "{given} of {found:?}");
    assert_eq!(member_count(&*archive).await, given);
    let all = log(&*archive, ann).await;
    let of = |wanted: Op| all.iter().filter(|(op, _)| *op == wanted).count();
    assert_eq!(of(Op::Add) - of(Op::Delete), found.len(), "each that is gone had one delete");
}

pub(super) async fn s6_an_erased_user_is_in_no_line_and_has_none(archive: Arc<dyn Archive>) {
    let (item, ann, [bob, cid, dan], feed) = world(&*archive, ["bob", "cid", "dan"]).await;
    let (other, _) = accept(&*archive, post("ann", "another"), NOW).await;
    let (third, _) = accept(&*archive, post("ann", "a third"), NOW).await;
    for (item, who) in [(item, bob), (item, cid), (other, cid), (other, bob), (third, bob)] {
        react(&*archive, item, who, true).await;
    }
    see(&*archive, ann, feed, NOW).await;
    react_at(&*archive, item, dan, true, NOW + 1).await;
    let of_bob = traces(&*archive, bob, Stage::Lines, None).await.unwrap();
    assert_eq!(of_bob.found.len(), 3);
    assert!(of_bob.found.iter().all(|(_, trace)| matches!(trace, Trace::Member(_))), "{of_bob:?}");
    let seen = told(&*archive, ann).await[0].clone();
    erase(&archive, bob).await;
    let left = told(&*archive, ann).await;
    let bodies: Vec<&str> = left.iter().map(|item| item.body.get()).collect();
    let wanted = [likes(item, 1, &["cid"]), likes(item, 1, &["dan"]), likes(other, 1, &["cid"])];
    assert_eq!(bodies, wanted, "out of lines that were seen too, and a line of nobody is gone");
    assert_eq!((left[0].id, left[0].version), (seen.id, 2), "a line of which he was not the last stays where it is");
    assert_eq!((left[2].rank, left[2].published_at), (NOW, NOW), "another keeps its place");
    let told_of = archive.line_members(None, 99).await.unwrap();
    assert!(told_of.iter().all(|(_, _, member)| member.actor != bob && !member.told.get().contains("bob")));
    erase(&archive, ann).await;
    assert_eq!((told(&*archive, ann).await.len(), member_count(&*archive).await), (0, 0));
}

pub(super) async fn s6_members_are_taken_over_from_another_store(from: Arc<dyn Archive>, to: Arc<dyn Archive>) {
    let (item, ann, [bob, cid], _) = world(&*from, ["bob", "cid"]).await;
    react(&*from, item, bob, true).await;
    react_at(&*from, item, cid, true, NOW + 1).await;
    let line = only(&*from, ann).await;
    let members = from.line_members(None, 99).await.unwrap();
    assert_eq!(members.len(), 2);
    assert_eq!(from.line_members(Some((members[0].0, members[0].2.seq)), 99).await.unwrap(), members[1..]);

    to.notify_by(grouped(&*to).await);
    let feed = grouped(&*to).await.reaction.unwrap().feed;
    let import = async |publish| {
        let import = Import::Item { publish, version: 1, deleted: false };
        write(&*to, Write::Import(import)).await.unwrap()
    };
    import(Publish { id: Some(item), published_at: Some(NOW), ..post("ann", "hers") }).await;
    let kind = line.kind.clone();
    let publish = Publish { id: Some(line.id), published_at: Some(NOW + 1), kind, feed, ..post("cid", "x") };
    let audience = Audience::Users(vec![user("ann")]);
    import(Publish { body: line.body.clone(), foreign_id: line.foreign_id.clone(), audience, ..publish }).await;
    let past = |(id, line, member): &(ItemId, _, _), actor: &str| {
        let feedgate_common::notify::lines::Line { group, kind, item, .. } = line;
        let feedgate_common::notify::lines::Member { seq, key, told, .. } = member;
        let (reader, actor) = (user("ann"), user(actor));
        let (line, item, seq, told) = (*id, *item, *seq, told.clone());
        PastMember { line, item, reader, group: group.clone(), kind: kind.clone(), actor, seq, key: key.clone(), told }
    };
    let mut all: Vec<PastMember> =
        members.iter().zip(["bob", "cid"]).map(|(member, actor)| past(member, actor)).collect();
    // As if cid's place had been taken by a deed that has joined since.
    all[1].seq = all[0].seq;
    for fresh in [true, false] {
        for member in &all {
            let done = write(&*to, Write::Import(Import::Member(Box::new(member.clone())))).await.unwrap();
            assert_eq!(done.is_fresh(), fresh, "a line of a file twice is one member");
        }
    }
    let members = to.line_members(None, 99).await.unwrap();
    let places: Vec<u64> = members.iter().map(|(_, _, member)| member.seq).collect();
    assert_eq!(places, [1, 2], "a member whose place is taken comes behind it");
    let lost = PastMember { item: ItemId(12345), key: "feedgate:other".into(), ..all[0].clone() };
    assert!(write(&*to, Write::Import(Import::Member(Box::new(lost)))).await.is_err(), "its item is missing");
    let numbers = to.intern(&["ann", "cid", "dan"].map(user)).await.unwrap();
    let (ann, cid, dan) = (numbers[0], numbers[1], numbers[2]);
    assert_eq!(react_at(&*to, item, dan, true, NOW + 5).await, (true, vec![ann]));
    assert_eq!(only(&*to, ann).await.body.get(), likes(item, 3, &["dan", "cid", "bob"]));
    let like = Reaction { item, kind: "heart".parse().unwrap(), user: cid, at: NOW };
    to.react(&[like]).await.unwrap();
    assert_eq!(react_at(&*to, item, cid, false, NOW + 6).await, (true, vec![ann]));
    assert_eq!(only(&*to, ann).await.body.get(), likes(item, 2, &["dan", "bob"]));
}

pub(super) async fn i6_lines_outlive_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("lines-restart").await;
    let (item, ann, [bob, cid, dan], _) = world(&*archive, ["bob", "cid", "dan"]).await;
    react(&*archive, item, bob, true).await;
    react(&*archive, item, cid, true).await;
    drop(archive);
    let archive = open("lines-restart").await;
    archive.notify_by(grouped(&*archive).await);
    assert_eq!(only(&*archive, ann).await.body.get(), likes(item, 2, &["cid", "bob"]));
    react(&*archive, item, dan, true).await;
    react(&*archive, item, cid, false).await;
    assert_eq!(only(&*archive, ann).await.body.get(), likes(item, 2, &["dan", "bob"]));
}
