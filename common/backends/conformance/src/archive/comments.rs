//! Tests of comments: an order that pages both ways without a gap, a count that is exact whatever races, what a delete
//! leaves, and what a viewer sees (S1, S3).

use std::sync::Arc;

use feedgate_common::archive::Archive;
use feedgate_common::around::{
    COMMENTS_LOOKED_AT, CommentOrder, CommentPlace, CommentWrite, Commented, NewComment, Onlooker, PastComment,
    Uncommented, Viewer, Visible,
};
use feedgate_common::graph::Shield;
use feedgate_common::{ItemId, Millis, UserNo};

use super::{
    NOW, accept, body, change as change_edge, delete, follow, number, post, shield, unfollow, write, write_at,
};

use CommentOrder::{Newest, Oldest};

fn comment(item: ItemId, author: UserNo, text: &str) -> NewComment {
    NewComment { item, author, reply_to: None, body: body(text), id: None, key: None, past: None, mentions: vec![] }
}

async fn change(archive: &dyn Archive, write: CommentWrite) -> Result<Commented, Uncommented> {
    archive.comment(vec![write], NOW).await.unwrap().remove(0)
}

async fn make(archive: &dyn Archive, new: NewComment) -> Result<Commented, Uncommented> {
    change(archive, CommentWrite::Make(new)).await
}

async fn say(archive: &dyn Archive, item: ItemId, author: UserNo, text: &str) -> ItemId {
    make(archive, comment(item, author, text)).await.unwrap().place.id
}

async fn answer(archive: &dyn Archive, item: ItemId, author: UserNo, to: ItemId) -> ItemId {
    make(archive, NewComment { reply_to: Some(to), ..comment(item, author, "re") }).await.unwrap().place.id
}

async fn remove(archive: &dyn Archive, item: ItemId, id: ItemId) -> Result<Commented, Uncommented> {
    change(archive, CommentWrite::Delete { item, id, by: None, if_version: None }).await
}

async fn count(archive: &dyn Archive, item: ItemId) -> u64 {
    archive.around(&[item], Onlooker::BACKEND).await.unwrap()[0].comments
}

fn onlooker(viewer: Option<UserNo>) -> Onlooker {
    viewer.map_or(Onlooker::BACKEND, Onlooker::user)
}

/// What a viewer sees on one page, oldest first: ids, and whether each lives.
async fn seen(archive: &dyn Archive, item: ItemId, viewer: Option<UserNo>) -> Vec<(ItemId, bool)> {
    let page = archive.comments(item, onlooker(viewer), Oldest, None, 1000).await.unwrap();
    assert_eq!(page.next, None);
    page.comments.into_iter().map(|comment| (comment.place.id, comment.body.is_some())).collect()
}

async fn users(archive: &dyn Archive) -> [UserNo; 3] {
    [number(archive, "ann").await, number(archive, "bob").await, number(archive, "cid").await]
}

pub(super) async fn s3_comments_page_in_both_directions_without_gap_or_repeat_while_others_write(
    archive: Arc<dyn Archive>,
) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "talk"), NOW).await;
    let (other, _) = accept(archive, post("ann", "other"), NOW).await;
    let [_, bob, _] = users(archive).await;
    say(archive, other, bob, "elsewhere").await;
    let mut all = vec![];
    // A caller's own ids may go down, and clocks may stand still.
    for n in 0..7u64 {
        let id = (n % 2 == 0).then_some(ItemId(1000 - n));
        all.push(make(archive, NewComment { id, ..comment(item, bob, "x") }).await.unwrap().place);
    }
    assert!(all.is_sorted(), "{all:?}");
    for order in [Newest, Oldest] {
        let (mut walked, mut from): (Vec<CommentPlace>, Option<CommentPlace>) = (vec![], None);
        let before = all.clone();
        loop {
            let page = archive.comments(item, Onlooker::BACKEND, order, from, 3).await.unwrap();
            walked.extend(page.comments.iter().map(|comment| comment.place));
            let Some(next) = page.next else { break };
            assert_eq!(Some(next), walked.last().copied());
            from = Some(next);
            if all.len() < before.len() + 2 {
                all.push(make(archive, comment(item, bob, "late")).await.unwrap().place);
            }
        }
        let mut wanted = if order == Newest { before } else { all.clone() };
        if order == Newest {
            wanted.reverse();
        }
        assert_eq!(walked, wanted, "{order:?}");
    }
    let middle = Some(all[4]);
    let back = archive.comments(item, Onlooker::BACKEND, Newest, middle, 2).await.unwrap();
    assert_eq!(back.comments.iter().map(|comment| comment.place).collect::<Vec<_>>(), [all[3], all[2]]);
    let on = archive.comments(item, Onlooker::BACKEND, Oldest, middle, 2).await.unwrap();
    assert_eq!(on.comments.iter().map(|comment| comment.place).collect::<Vec<_>>(), [all[5], all[6]]);
    let end = archive.comments(item, Onlooker::BACKEND, Oldest, all.last().copied(), 2).await.unwrap();
    assert_eq!((end.comments.len(), end.next), (0, None), "whoever read to the end goes on from there");
    let new = make(archive, comment(item, bob, "new")).await.unwrap().place;
    let tail = archive.comments(item, Onlooker::BACKEND, Oldest, all.last().copied(), 2).await.unwrap();
    assert_eq!(tail.comments.iter().map(|comment| comment.place).collect::<Vec<_>>(), [new]);
    assert_eq!(archive.comments(ItemId(1), Onlooker::BACKEND, Oldest, None, 2).await.unwrap(), Default::default());
}

pub(super) async fn s3_a_comment_says_what_was_written_and_what_it_was_edited_to(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "said"), NOW).await;
    let [ann, bob, cid] = users(archive).await;
    let first = make(archive, NewComment { key: Some("k".into()), ..comment(item, bob, "one") }).await.unwrap();
    let reply = answer(archive, item, cid, first.place.id).await;
    let read = archive.comment_of(item, first.place.id, Onlooker::BACKEND).await.unwrap().unwrap();
    assert_eq!((read.place, read.author.as_str(), read.author_no), (first.place, "bob", bob));
    assert_eq!((read.reply_to, read.version, read.body), (None, 1, Some(body("one"))));
    let read = archive.comment_of(item, reply, Onlooker::BACKEND).await.unwrap().unwrap();
    assert_eq!((read.reply_to, read.author_no), (Some(first.place.id), cid));
    let id = first.place.id;
    let edit = |by, text, if_version| CommentWrite::Edit { item, id, by, body: body(text), mentions: None, if_version };
    assert_eq!(change(archive, edit(Some(ann), "two", None)).await, Err(Uncommented::NotOwn(id)));
    assert_eq!(change(archive, edit(Some(bob), "two", Some(1))).await.unwrap().version, 2);
    let wrong = Uncommented::VersionMismatch { id, wanted: 1, now: 2 };
    assert_eq!(change(archive, edit(None, "three", Some(1))).await, Err(wrong));
    let read = archive.comments(item, Onlooker::BACKEND, Oldest, None, 9).await.unwrap().comments.remove(0);
    assert_eq!((read.place, read.version, read.body), (first.place, 2, Some(body("two"))));
    let again = make(archive, NewComment { key: Some("k".into()), ..comment(item, bob, "one") }).await.unwrap();
    assert_eq!(again, Commented { place: first.place, version: 2, changed: false }, "a retry of what was edited since");
    assert_eq!(count(archive, item).await, 2);
    let (other, _) = accept(archive, post("ann", "another"), NOW).await;
    assert_eq!(archive.comment_of(other, id, Onlooker::BACKEND).await.unwrap(), None);
    assert_eq!(remove(archive, other, id).await, Err(Uncommented::NoSuchComment(id)));
    let delete = |if_version| CommentWrite::Delete { item, id, by: Some(bob), if_version };
    let wrong = Uncommented::VersionMismatch { id, wanted: 1, now: 2 };
    assert_eq!(change(archive, delete(Some(1))).await, Err(wrong));
    assert_eq!(count(archive, item).await, 2, "a delete of another version removes nothing");
    assert!(change(archive, delete(Some(2))).await.unwrap().changed);
    assert!(!change(archive, delete(Some(1))).await.unwrap().changed, "what is deleted already stays so");
}

pub(super) async fn s1_one_call_answers_each_comment_in_its_place(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "call"), NOW).await;
    let (other, _) = accept(archive, post("ann", "call 2"), NOW).await;
    let [_, bob, cid] = users(archive).await;
    let named = |item, author, id| NewComment { id: Some(ItemId(id)), ..comment(item, author, "x") };
    let re = |id, to| NewComment { reply_to: Some(ItemId(to)), ..named(item, bob, id) };
    let make = CommentWrite::Make;
    let asked = vec![
        make(named(item, bob, 10)),
        make(named(ItemId(1), bob, 11)),
        make(re(12, 10)),
        make(named(item, bob, 10)),
        make(named(item, cid, 10)),
        make(named(other, bob, 10)),
        make(re(13, 99)),
        make(named(ItemId(10), bob, 14)),
        CommentWrite::Delete { item, id: ItemId(10), by: None, if_version: None },
        make(NewComment { key: Some("k".into()), ..comment(other, cid, "y") }),
        make(NewComment { key: Some("k".into()), ..comment(other, cid, "z") }),
        make(comment(other, cid, "no key")),
        make(comment(other, cid, "no key")),
    ];
    let changed =
        |answer: &Result<Commented, Uncommented>| answer.as_ref().map(|done| done.changed).map_err(Clone::clone);
    let taken = || Err(Uncommented::IdTaken(ItemId(10)));
    let wanted = [
        Ok(true),
        Err(Uncommented::NoSuchItem(ItemId(1))),
        Ok(true),
        Ok(false),
        taken(),
        taken(),
        Err(Uncommented::NoSuchSibling(ItemId(99))),
        Err(Uncommented::IsComment(ItemId(10))),
        Ok(true),
        Ok(true),
        Err(Uncommented::KeyReused("k".into())),
        Ok(true),
        Ok(true),
    ];
    let answers = archive.comment(asked.clone(), NOW).await.unwrap();
    assert_eq!(answers.iter().map(changed).collect::<Vec<_>>(), wanted);
    assert_eq!(seen(archive, item, None).await, [(ItemId(10), false), (ItemId(12), true)]);
    assert_eq!([count(archive, item).await, count(archive, other).await], [1, 3]);
    // A repetition of the whole call changes nothing, except by comments without an id and a key.
    let again = archive.comment(asked, NOW).await.unwrap();
    assert_eq!(again.iter().filter(|answer| changed(answer) == Ok(true)).count(), 2);
    assert_eq!([count(archive, item).await, count(archive, other).await], [1, 5]);
}

pub(super) async fn s3_a_deleted_comment_leaves_a_placeholder_only_before_replies(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "thread"), NOW).await;
    let [_, bob, cid] = users(archive).await;
    let first = say(archive, item, bob, "first").await;
    let alone = say(archive, item, bob, "alone").await;
    let reply = answer(archive, item, cid, first).await;
    for (changed, of) in [(true, first), (true, alone), (false, first), (false, alone)] {
        assert_eq!(remove(archive, item, of).await.unwrap().changed, changed);
    }
    assert_eq!(seen(archive, item, None).await, [(first, false), (reply, true)]);
    assert_eq!(count(archive, item).await, 1, "a placeholder is not counted");
    let several = archive.comments_of(&[(item, alone), (ItemId(1), first), (item, first)]).await.unwrap();
    assert_eq!(several.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true]);
    let placeholder = archive.comment_of(item, first, Onlooker::user(cid)).await.unwrap().unwrap();
    assert_eq!(several[2], Some(placeholder.clone()));
    assert_eq!((placeholder.body, placeholder.place.id), (None, first));
    assert_eq!(archive.comment_of(item, alone, Onlooker::BACKEND).await.unwrap(), None);
    let to = |id| NewComment { reply_to: Some(id), ..comment(item, cid, "late") };
    assert_eq!(make(archive, to(first)).await, Err(Uncommented::NoSuchSibling(first)));
    remove(archive, item, reply).await.unwrap();
    assert_eq!(seen(archive, item, None).await, [(first, false)], "it stays as long as the item");
    assert_eq!(count(archive, item).await, 0);
}

pub(super) async fn s3_a_viewer_sees_no_comment_of_a_user_behind_a_block(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "blocks"), NOW).await;
    let [ann, bob, cid] = users(archive).await;
    let of_bob = say(archive, item, bob, "bob").await;
    let of_cid = answer(archive, item, cid, of_bob).await;
    let up = async |user: &str, kind, other: &str, on| write(archive, shield(user, kind, other, on)).await.unwrap();
    for kind in [Shield::Mute, Shield::Hide] {
        up("cid", kind, "bob", true).await;
        assert_eq!(seen(archive, item, Some(cid)).await.len(), 2, "{kind:?} is no block");
        assert_eq!(archive.blocked_with(&[cid, bob], 9).await.unwrap(), [vec![], vec![]]);
        up("cid", kind, "bob", false).await;
    }
    for (user, other) in [("cid", "bob"), ("bob", "cid")] {
        up(user, Shield::Block, other, true).await;
        assert_eq!(seen(archive, item, Some(cid)).await, [(of_cid, true)]);
        assert_eq!(seen(archive, item, Some(bob)).await, [(of_bob, true)]);
        assert_eq!(seen(archive, item, Some(ann)).await.len(), 2);
        assert_eq!(archive.comment_of(item, of_bob, Onlooker::user(cid)).await.unwrap(), None);
        assert!(archive.comment_of(item, of_bob, Onlooker::user(bob)).await.unwrap().is_some());
        let blocked = archive.blocked_with(&[ann, cid, bob], 9).await.unwrap();
        assert_eq!(blocked, [vec![], vec![bob], vec![cid]], "it lies between the two, whoever has put it up");
        up(user, Shield::Block, other, false).await;
    }
    up("cid", Shield::Block, "bob", true).await;
    up("cid", Shield::Block, "ann", true).await;
    assert_eq!(archive.blocked_with(&[cid], 9).await.unwrap()[0].len(), 2);
    assert_eq!(archive.blocked_with(&[cid], 1).await.unwrap()[0].len(), 1);
    remove(archive, item, of_bob).await.unwrap();
    assert_eq!(seen(archive, item, Some(cid)).await, [(of_bob, false), (of_cid, true)], "a placeholder names nobody");
}

pub(super) async fn s3_of_mutual_friends_alone_a_viewer_sees_theirs_and_the_authors(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "moment"), NOW).await;
    let [ann, bob, cid] = users(archive).await;
    let dan = number(archive, "dan").await;
    let edges = [("bob", "cid"), ("cid", "bob"), ("bob", "dan"), ("bob", "ann"), ("cid", "ann"), ("dan", "ann")];
    for (reader, author) in edges {
        change_edge(archive, follow(reader, author)).await;
    }
    let mut said = vec![];
    for author in [ann, bob, cid, dan] {
        said.push((author, say(archive, item, author, "x").await));
    }
    let seen_by = async |viewer: Viewer| {
        let onlooker = Onlooker { viewer, visible: Visible::Mutual };
        let mut of = vec![];
        for order in [Newest, Oldest] {
            of = archive.comments(item, onlooker, order, None, 9).await.unwrap().comments;
            for (author, id) in &said {
                let one = archive.comment_of(item, *id, onlooker).await.unwrap();
                assert_eq!(
                    one.is_some(),
                    of.iter().any(|comment| comment.author_no == *author),
                    "{viewer:?} {order:?}"
                );
            }
        }
        of.into_iter().map(|comment| comment.author_no).collect::<Vec<_>>()
    };
    let user = |user| Viewer::User(Some(user));
    assert_eq!(seen_by(Viewer::Backend).await, [ann, bob, cid, dan]);
    assert_eq!(seen_by(user(ann)).await, [ann, bob, cid, dan], "the author of the item sees all");
    assert_eq!(seen_by(user(bob)).await, [ann, bob, cid], "a follow of one side is no friendship");
    assert_eq!(seen_by(user(cid)).await, [ann, bob, cid]);
    assert_eq!(seen_by(user(dan)).await, [ann, dan]);
    assert_eq!(seen_by(Viewer::User(None)).await, [ann], "who was never named has no friends");

    write(archive, shield("bob", Shield::Mute, "cid", true)).await.unwrap();
    assert_eq!(seen_by(user(bob)).await, [ann, bob, cid], "a mute is about items");
    write(archive, shield("cid", Shield::Block, "bob", true)).await.unwrap();
    assert_eq!((seen_by(user(bob)).await, seen_by(user(cid)).await), (vec![ann, bob], vec![ann, cid]));
    write(archive, shield("ann", Shield::Block, "dan", true)).await.unwrap();
    assert_eq!((seen_by(user(ann)).await, seen_by(user(dan)).await), (vec![ann, bob, cid], vec![dan]));
    write(archive, shield("cid", Shield::Block, "bob", false)).await.unwrap();
    change_edge(archive, unfollow("cid", "bob")).await;
    assert_eq!((seen_by(user(bob)).await, seen_by(user(cid)).await), (vec![ann, bob], vec![ann, cid]));
}

pub(super) async fn s3_who_is_mutual_with_whom_is_read_for_many(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [ann, bob, cid] = users(archive).await;
    for (reader, author) in [("ann", "bob"), ("bob", "ann"), ("ann", "cid"), ("cid", "ann"), ("bob", "cid")] {
        change_edge(archive, follow(reader, author)).await;
    }
    let mutual = async |users: &[UserNo], limit| {
        let mut found = archive.mutual_with(users, limit).await.unwrap();
        found.iter_mut().for_each(|users| users.sort_unstable());
        found
    };
    assert_eq!(mutual(&[cid, ann, bob], 9).await, [vec![ann], vec![bob, cid], vec![ann]]);
    assert_eq!(mutual(&[ann], 1).await[0].len(), 1);
    write(archive, shield("bob", Shield::Block, "ann", true)).await.unwrap();
    assert_eq!(mutual(&[ann], 9).await, [[bob, cid]], "whatever shields are up");
    change_edge(archive, unfollow("cid", "ann")).await;
    assert_eq!(mutual(&[ann, cid], 9).await, [vec![bob], vec![]]);
}

pub(super) async fn s3_a_page_that_meets_too_many_unseen_comments_goes_on(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "flood"), NOW).await;
    let [_, bob, cid] = users(archive).await;
    let first = say(archive, item, cid, "first").await;
    let flood = (0..COMMENTS_LOOKED_AT + 1).map(|_| CommentWrite::Make(comment(item, bob, "flood"))).collect();
    archive.comment(flood, NOW).await.unwrap();
    let last = say(archive, item, cid, "last").await;
    write(archive, shield("cid", Shield::Block, "bob", true)).await.unwrap();
    for (order, wanted) in [(Newest, [last, first]), (Oldest, [first, last])] {
        let (mut found, mut from, mut pages) = (vec![], None, 0);
        loop {
            let page = archive.comments(item, Onlooker::user(cid), order, from, 1).await.unwrap();
            found.extend(page.comments.iter().map(|comment| comment.place.id));
            pages += 1;
            let Some(next) = page.next else { break };
            assert!(from != Some(next) && pages < 9, "it goes on");
            from = Some(next);
        }
        assert_eq!((found, pages), (wanted.to_vec(), 2), "{order:?}");
    }
}

pub(super) async fn s3_with_its_item_every_comment_is_gone_from_sight_at_once(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (kept, _) = accept(archive, post("ann", "kept"), NOW).await;
    let (item, _) = accept(archive, post("ann", "deleted"), NOW).await;
    let [_, bob, _] = users(archive).await;
    let (of_kept, id) = (say(archive, kept, bob, "kept").await, say(archive, item, bob, "gone").await);
    assert_eq!(archive.commented_item(None).await.unwrap(), Some(kept.min(item)));
    write(archive, delete(item)).await.unwrap();
    assert_eq!((seen(archive, item, None).await, count(archive, item).await), (vec![], 0));
    assert_eq!(archive.comment_of(item, id, Onlooker::BACKEND).await.unwrap(), None);
    assert_eq!(make(archive, comment(item, bob, "x")).await, Err(Uncommented::NoSuchItem(item)));
    assert_eq!(remove(archive, item, id).await, Err(Uncommented::NoSuchItem(item)));
    assert_eq!(archive.commented_item(None).await.unwrap(), Some(kept));
    assert_eq!(archive.commented_item(Some(kept)).await.unwrap(), None);
    // Later writes remove what is left.
    for hour in 1..4 {
        write_at(archive, super::follow("bob", "ann"), NOW + hour * 3_600_000).await.unwrap();
    }
    assert_eq!((seen(archive, kept, None).await, count(archive, kept).await), (vec![(of_kept, true)], 1));
}

/// Tasks write, retry and delete the same few comments at the same time; what each was answered must add up.
pub(super) async fn s1_the_count_of_comments_is_exact_after_any_race(archive: Arc<dyn Archive>) {
    let (item, _) = accept(&*archive, post("ann", "race"), NOW).await;
    let [_, bob, _] = users(&*archive).await;
    let tasks = (0..8usize).map(|task| {
        let archive = archive.clone();
        tokio::spawn(async move {
            let (mut made, mut removed) = (0u64, 0u64);
            for step in 0..12usize {
                let id = ItemId(100 + ((task + step) % 4) as u64);
                if (task * 7 + step) % 3 == 0 {
                    removed += u64::from(remove(&*archive, item, id).await.is_ok_and(|done| done.changed));
                } else {
                    let named = NewComment { id: Some(id), ..comment(item, bob, "x") };
                    made += u64::from(make(&*archive, named).await.unwrap().changed);
                    let key = Some(format!("key-{}", step % 4).into());
                    let keyed = NewComment { key, ..comment(item, bob, "y") };
                    made += u64::from(make(&*archive, keyed).await.unwrap().changed);
                }
            }
            (made, removed)
        })
    });
    let (mut made, mut removed) = (0, 0);
    for task in Vec::from_iter(tasks) {
        let (more, less) = task.await.unwrap();
        (made, removed) = (made + more, removed + less);
    }
    assert!(made <= 8, "no retry has made a second comment: {made}");
    let lives = seen(&*archive, item, None).await.into_iter().filter(|(_, lives)| *lives).count() as u64;
    assert_eq!((lives, count(&*archive, item).await), (made - removed, made - removed));
}

pub(super) async fn s3_an_imported_comment_takes_its_own_place(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "import"), NOW).await;
    let [_, bob, _] = users(archive).await;
    let now = say(archive, item, bob, "now").await;
    let past = |at: Millis, id, to: Option<u64>, deleted| {
        let past = PastComment { at, version: 2, deleted };
        let new = NewComment { id: Some(ItemId(id)), past: Some(past), ..comment(item, bob, "then") };
        CommentWrite::Make(NewComment { reply_to: to.map(ItemId), ..new })
    };
    let file = vec![past(5, 20, None, true), past(6, 21, Some(20), false), past(7, 22, None, false)];
    assert!(archive.comment(file.clone(), NOW).await.unwrap().iter().all(|done| done.as_ref().unwrap().changed));
    assert_eq!(
        archive.comment(file, NOW).await.unwrap().iter().filter(|done| done.as_ref().unwrap().changed).count(),
        0
    );
    let all = [(ItemId(20), false), (ItemId(21), true), (ItemId(22), true), (now, true)];
    assert_eq!((seen(archive, item, None).await, count(archive, item).await), (all.to_vec(), 3));
}

/// Each comment of the file comes in a call of its own, so the rows of those above it are loaded.
pub(super) async fn s3_an_imported_placeholder_is_an_answer_to_the_comment_above_it(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (item, _) = accept(archive, post("ann", "import"), NOW).await;
    let [_, bob, _] = users(archive).await;
    let past = |id, to: Option<u64>, deleted| {
        let past = PastComment { at: 5, version: 2, deleted };
        let new = NewComment { id: Some(ItemId(id)), past: Some(past), ..comment(item, bob, "then") };
        NewComment { reply_to: to.map(ItemId), ..new }
    };
    for (id, to, deleted) in [(20, None, false), (21, Some(20), true), (22, Some(21), true), (23, Some(22), false)] {
        make(archive, past(id, to, deleted)).await.unwrap();
    }
    change(archive, CommentWrite::Delete { item, id: ItemId(20), by: None, if_version: None }).await.unwrap();
    let all = [(ItemId(20), false), (ItemId(21), false), (ItemId(22), false), (ItemId(23), true)];
    assert_eq!(seen(archive, item, None).await, all, "the first is a placeholder too: a comment answers it");
}

pub(super) async fn s1_comments_outlive_a_restart(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("commented").await;
    let (item, _) = accept(&*archive, post("ann", "kept"), NOW).await;
    let [_, bob, _] = users(&*archive).await;
    let keyed = || NewComment { key: Some("k".into()), ..comment(item, bob, "one") };
    let first = make(&*archive, keyed()).await.unwrap();
    drop(archive);
    let archive = open("commented").await;
    assert_eq!(make(&*archive, keyed()).await.unwrap(), Commented { changed: false, ..first });
    let second = say(&*archive, item, bob, "two").await;
    assert_eq!(seen(&*archive, item, None).await, [(first.place.id, true), (second, true)]);
    assert_eq!(count(&*archive, item).await, 2);
}
