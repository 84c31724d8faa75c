//! Tests of mentions: whom an item or a comment names is told of it, if he or she may see it (S5).

use std::sync::Arc;

use feedgate_common::archive::{Archive, Publish, Write, Written};
use feedgate_common::around::{CommentWrite, NewComment, Onlooker, PastComment, Visible, seen_by, who_sees};
use feedgate_common::graph::Shield;
use feedgate_common::import::Import;
use feedgate_common::mentions::Remention;
use feedgate_common::notify::Rules;
use feedgate_common::{FeedId, ItemId, UserId, UserNo};

use super::audiences::narrowed_to;
use super::erasures::erase;
use super::notifications::{comment, react, rules, say, see, texts, told};
use super::{NOW, accept, body, delete, edit, follow, number, post, shield, to_users, unfollow, user, write};

fn users(names: &[&str]) -> Vec<UserId> {
    names.iter().map(|name| user(name)).collect()
}

/// A post of ann that mentions these users.
fn naming(names: &[&str]) -> Publish {
    Publish { mentions: users(names), ..post("ann", "hello") }
}

/// Publishes an item, which must be new. Answers its id, and who is told of it, by number.
async fn publish(archive: &dyn Archive, publish: Publish) -> (ItemId, Vec<UserNo>) {
    match write(archive, Write::Publish(publish)).await {
        Ok(Written::Published { id, told, fresh: true, .. }) => (id, sorted(told)),
        other => panic!("a new item is accepted, not {other:?}"),
    }
}

fn sorted(mut users: Vec<UserNo>) -> Vec<UserNo> {
    users.sort_unstable();
    users
}

/// An edit that changes whom the item mentions.
fn rename(item: ItemId, names: &[&str]) -> Write {
    let Write::Edit { body, rank, if_version, .. } = edit(item, "again") else { panic!("an edit") };
    Write::Edit { item, body, rank, mentions: Some(users(names)), if_version }
}

/// Whom an item mentions now.
async fn named(archive: &dyn Archive, item: ItemId) -> Vec<UserId> {
    archive.items(&[item]).await.unwrap().remove(0).unwrap().mentions.clone()
}

/// What tells of a mention by ann.
fn mention(item: ItemId) -> String {
    format!("{{\"actor\":\"ann\",\"item\":\"{item}\"}}")
}

/// The numbers of ann, bob, cid and dan, in a store that tells of everything.
async fn world(archive: &dyn Archive) -> [UserNo; 4] {
    archive.notify_by(rules(archive).await);
    let numbers = archive.intern(&users(&["ann", "bob", "cid", "dan"])).await.unwrap();
    numbers.try_into().unwrap()
}

pub(super) async fn s5_whom_an_item_mentions_is_told_once_until_it_is_deleted(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [ann, bob, cid, _] = world(archive).await;
    write(archive, follow("bob", "ann")).await.unwrap();
    let keyed = Publish { idempotency_key: Some("k".into()), ..naming(&["bob", "ann", "cid", "new"]) };
    let (item, who) = publish(archive, keyed.clone()).await;
    let new = number(archive, "new").await;
    assert_eq!(who, sorted(vec![bob, cid, new]), "also who does not follow her, and who was never named before");
    assert_eq!(named(archive, item).await, users(&["bob", "ann", "cid", "new"]), "it is shown as it was written");
    let found = archive.items(&[item]).await.unwrap();
    for (reader, sees) in [(bob, true), (cid, true), (number(archive, "eve").await, false)] {
        let seen = seen_by(archive, Some(reader), found.clone()).await.unwrap();
        assert_eq!(seen[0].is_some(), sees, "whom it mentions may read it, also who does not follow her");
        let who = who_sees(archive, found[0].as_ref().unwrap(), &[reader]).await.unwrap();
        assert_eq!(who, if sees { vec![reader] } else { vec![] });
    }
    for reader in [bob, cid, new] {
        let all = told(archive, reader).await;
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].kind.as_deref(), all[0].body.get()), (Some("mentioned"), &*mention(item)));
        assert!(all[0].author_no == ann && all[0].mentions.is_empty());
    }
    let retry = write(archive, Write::Publish(keyed.clone())).await.unwrap();
    assert_eq!((retry.is_fresh(), retry.told()), (false, &[][..]), "a retry tells nobody");
    let other = Publish { mentions: users(&["bob"]), ..keyed };
    assert!(write(archive, Write::Publish(other)).await.is_err(), "another list is another payload");

    see(archive, cid, FeedId::MAIN, NOW).await;
    let gone = write(archive, delete(item)).await.unwrap();
    assert_eq!(sorted(gone.told().to_vec()), sorted(vec![bob, new]), "cid has seen it");
    assert_eq!((texts(archive, bob).await.len(), texts(archive, cid).await.len()), (0, 1));
    assert_eq!(texts(archive, ann).await, ["{\"actor\":\"bob\"}"], "her follower, and nothing of her own");
}

pub(super) async fn s5_without_a_kind_a_mention_is_shown_and_told_to_nobody(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [_, bob, ..] = world(archive).await;
    archive.notify_by(Rules { mention: None, ..rules(archive).await });
    let (item, who) = publish(archive, naming(&["bob"])).await;
    assert_eq!((who, named(archive, item).await), (vec![], users(&["bob"])));
    assert_eq!(write(archive, rename(item, &["bob", "cid"])).await.unwrap().told(), []);
    assert_eq!(write(archive, delete(item)).await.unwrap().told(), []);
    assert_eq!(texts(archive, bob).await, [""; 0]);
}

pub(super) async fn s5_of_a_mention_nobody_is_told_who_may_not_see_it(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [_, bob, cid, dan] = world(archive).await;
    let all = ["bob", "cid", "dan"];
    for (owner, kind, other) in [
        ("bob", Shield::Mute, "ann"),
        ("bob", Shield::Block, "ann"),
        ("ann", Shield::Block, "bob"),
        ("ann", Shield::Hide, "bob"),
    ] {
        write(archive, shield(owner, kind, other, true)).await.unwrap();
        assert_eq!(publish(archive, naming(&all)).await.1, sorted(vec![cid, dan]), "{owner} {kind:?} {other}");
        write(archive, shield(owner, kind, other, false)).await.unwrap();
    }
    let named = Publish { mentions: users(&all), ..to_users("ann", "for two", &["bob", "eve"]) };
    let (direct, who) = publish(archive, named).await;
    assert_eq!(who, [bob], "the others are no readers of it");
    assert_eq!(write(archive, rename(direct, &["cid", "bob"])).await.unwrap().told(), []);

    write(archive, follow("bob", "ann")).await.unwrap();
    write(archive, follow("cid", "ann")).await.unwrap();
    let narrowed = Publish { mentions: users(&all), ..narrowed_to("ann", "for some", &["cid", "dan"]) };
    let (narrow, who) = publish(archive, narrowed).await;
    assert_eq!(who, [cid], "dan is in the audience and does not follow, bob follows and is not in it");
    assert_eq!(write(archive, rename(narrow, &["bob", "dan"])).await.unwrap().told(), [cid], "cid is named no more");
    assert_eq!(write(archive, rename(narrow, &["cid"])).await.unwrap().told(), [cid]);

    let (open, _) = publish(archive, naming(&["dan"])).await;
    let opens = async |item, reader| {
        let found = archive.items(&[item]).await.unwrap();
        seen_by(archive, Some(reader), found).await.unwrap()[0].is_some()
    };
    assert!(opens(open, dan).await && !opens(narrow, dan).await && !opens(direct, dan).await);
    write(archive, shield("dan", Shield::Mute, "ann", true)).await.unwrap();
    assert!(!opens(open, dan).await, "a mention opens nothing behind a shield");
    write(archive, shield("dan", Shield::Mute, "ann", false)).await.unwrap();
    write(archive, Write::Private { author: user("ann"), private: true }).await.unwrap();
    assert!(!opens(open, dan).await, "nor what is of a private author");
    let (private, who) = publish(archive, naming(&all)).await;
    assert_eq!(who, sorted(vec![bob, cid]), "dan does not follow her, who is private");
    write(archive, unfollow("cid", "ann")).await.unwrap();
    assert_eq!(
        write(archive, rename(private, &["dan"])).await.unwrap().told().len(),
        2,
        "bob and cid are told no more"
    );
}

pub(super) async fn s5_an_edit_tells_whom_it_adds_and_takes_back_from_whom_it_removes(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [ann, bob, cid, dan] = world(archive).await;
    let (item, _) = publish(archive, naming(&["bob", "cid"])).await;
    match write(archive, rename(item, &["cid", "dan"])).await.unwrap() {
        Written::Edited { author, version: 2, mentions, told, .. } => {
            assert_eq!(mentions, Remention { added: users(&["dan"]), removed: users(&["bob"]) });
            assert_eq!((author, sorted(told)), (ann, sorted(vec![bob, dan])));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(named(archive, item).await, users(&["cid", "dan"]));
    let counts = async || {
        let mut counts = vec![];
        for reader in [bob, cid, dan] {
            counts.push(texts(archive, reader).await.len());
        }
        counts
    };
    assert_eq!(counts().await, [0, 1, 1]);
    assert_eq!(write(archive, edit(item, "as before")).await.unwrap().told(), [], "an edit of the body keeps the list");
    assert_eq!(named(archive, item).await, users(&["cid", "dan"]));
    see(archive, dan, FeedId::MAIN, NOW).await;
    assert_eq!(write(archive, rename(item, &[])).await.unwrap().told(), [cid], "dan has seen it");
    assert_eq!(counts().await, [0, 0, 1]);
    assert_eq!(sorted(write(archive, rename(item, &["bob", "dan"])).await.unwrap().told().to_vec()), [bob]);
    assert_eq!(counts().await, [1, 0, 1], "what dan has seen is told once");
    // A new rank in the same edit.
    let Write::Edit { body, mentions, .. } = rename(item, &["cid"]) else { panic!("an edit") };
    let moved = Write::Edit { item, body, rank: Some(7), mentions, if_version: None };
    assert_eq!(sorted(write(archive, moved).await.unwrap().told().to_vec()), sorted(vec![bob, cid]));
    assert_eq!(named(archive, item).await, users(&["cid"]));
    assert_eq!(write(archive, delete(item)).await.unwrap().told(), [cid]);
}

pub(super) async fn s5_whom_a_comment_mentions_is_told_once_until_it_is_deleted(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [ann, bob, cid, dan] = world(archive).await;
    let (item, _) = accept(archive, post("ann", "hers"), NOW).await;
    let make = async |author, reply_to, names: &[&str]| {
        let new = NewComment { mentions: users(names), ..comment(item, author, reply_to) };
        let (said, who) = say(archive, CommentWrite::Make(new)).await;
        (said.place.id, sorted(who))
    };
    let (first, who) = make(bob, None, &["ann", "bob", "cid", "nobody-yet"]).await;
    assert_eq!(who, sorted(vec![ann, cid]), "ann once, as the author of the item; who was never named has no feed");
    let kinds = async |reader| {
        told(archive, reader).await.iter().map(|item| item.kind.clone().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!((kinds(ann).await, kinds(cid).await), (vec!["commented".to_owned()], vec!["mentioned".to_owned()]));
    let of_bob = format!("{{\"actor\":\"bob\",\"item\":\"{item}\",\"comment\":\"{first}\"}}");
    assert_eq!(texts(archive, cid).await, [of_bob]);
    let shown = archive.comment_of(item, first, Onlooker::user(cid)).await.unwrap().unwrap();
    assert_eq!(shown.mentions, users(&["ann", "bob", "cid", "nobody-yet"]));

    let (answer, who) = make(cid, Some(first), &["bob", "dan"]).await;
    assert_eq!(who, sorted(vec![ann, bob, dan]), "bob once, as the one who is answered");
    let change = |id, names: Option<&[&str]>| CommentWrite::Edit {
        item,
        id,
        by: None,
        body: body("else"),
        mentions: names.map(users),
        if_version: None,
    };
    assert_eq!(say(archive, change(answer, None)).await.1, [], "an edit of the body keeps the list");
    let again = say(archive, change(answer, Some(&["bob", "dan"]))).await;
    assert_eq!((again.0.changed, again.1), (false, vec![]), "that is so already");
    assert_eq!(say(archive, change(answer, Some(&["bob"]))).await.1, [dan], "dan is named no more");
    assert_eq!(say(archive, change(answer, Some(&["ann", "dan"]))).await.1, [dan], "ann and bob are told already");
    let listed = archive.comments_of(&[(item, answer)]).await.unwrap().remove(0).unwrap();
    assert_eq!(listed.mentions, users(&["ann", "dan"]));

    let gone = |id| CommentWrite::Delete { item, id, by: None, if_version: None };
    assert_eq!(sorted(say(archive, gone(answer)).await.1), sorted(vec![ann, bob, dan]));
    see(archive, cid, FeedId::MAIN, NOW).await;
    assert_eq!(say(archive, gone(first)).await.1, [ann], "cid has seen it");
    assert_eq!(archive.comments_of(&[(item, answer)]).await.unwrap(), [None]);

    for (owner, kind, other) in
        [("dan", Shield::Mute, "bob"), ("bob", Shield::Block, "dan"), ("ann", Shield::Hide, "dan")]
    {
        write(archive, shield(owner, kind, other, true)).await.unwrap();
        assert_eq!(make(bob, None, &["dan"]).await.1, [ann], "{owner} {kind:?} {other}");
        write(archive, shield(owner, kind, other, false)).await.unwrap();
    }
    write(archive, Write::Private { author: user("ann"), private: true }).await.unwrap();
    assert_eq!(make(bob, None, &["dan"]).await.1, [ann], "dan does not follow ann, whose item it is");
    write(archive, Write::Private { author: user("ann"), private: false }).await.unwrap();
    let (letter, _) = accept(archive, to_users("ann", "a letter", &["bob", "cid"]), NOW).await;
    let in_letter = NewComment { mentions: users(&["cid", "dan"]), ..comment(letter, bob, None) };
    assert_eq!(sorted(say(archive, CommentWrite::Make(in_letter)).await.1), sorted(vec![ann, cid]));
    write(archive, follow("cid", "ann")).await.unwrap();
    write(archive, follow("dan", "ann")).await.unwrap();
    let (narrow, _) = accept(archive, narrowed_to("ann", "for some", &["bob", "cid"]), NOW).await;
    let in_narrow = NewComment { mentions: users(&["cid", "dan"]), ..comment(narrow, bob, None) };
    assert_eq!(sorted(say(archive, CommentWrite::Make(in_narrow)).await.1), sorted(vec![ann, cid]));
}

pub(super) async fn s3_of_mutual_friends_alone_a_mention_is_told_to_who_sees_the_comment(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [ann, bob, cid, dan] = world(archive).await;
    archive.notify_by(rules(archive).await.with_visible(Visible::Mutual));
    let (item, _) = accept(archive, post("ann", "hers"), NOW).await;
    for (reader, author) in [("cid", "bob"), ("bob", "cid"), ("dan", "bob")] {
        write(archive, follow(reader, author)).await.unwrap();
    }
    let by = async |author| {
        let mentions = users(&["cid", "dan"]);
        let new = NewComment { mentions, ..comment(item, author, None) };
        sorted(say(archive, CommentWrite::Make(new)).await.1)
    };
    assert_eq!(by(bob).await, sorted(vec![ann, cid]), "dan does not see what bob says");
    assert_eq!(by(ann).await, sorted(vec![cid, dan]), "everybody sees what the author of the item says");
    assert_eq!(publish(archive, naming(&["dan"])).await.1, [dan], "an item is no comment");
}

pub(super) async fn s6_mentions_in_comments_on_one_item_are_one_line(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [_, bob, cid, dan] = world(archive).await;
    let mut rules = rules(archive).await;
    rules.mention.as_mut().unwrap().grouped = true;
    archive.notify_by(rules);
    let (item, who) = publish(archive, naming(&["dan"])).await;
    assert_eq!(who, [dan]);
    let by = async |author| {
        let new = NewComment { mentions: users(&["dan"]), ..comment(item, author, None) };
        let (said, who) = say(archive, CommentWrite::Make(new)).await;
        assert!(who.contains(&dan));
        said.place.id
    };
    let (_, last) = (by(bob).await, by(cid).await);
    let line = |actor: &str, comment: Option<ItemId>, actors: &str, count: u32| {
        let comment = comment.map(|id| format!(",\"comment\":\"{id}\"")).unwrap_or_default();
        format!("{{\"actor\":\"{actor}\",\"item\":\"{item}\"{comment},\"actors\":[{actors}],\"count\":{count}}}")
    };
    assert_eq!(texts(archive, dan).await, [line("cid", Some(last), "\"cid\",\"bob\",\"ann\"", 3)]);
    write(archive, rename(item, &[])).await.unwrap();
    assert_eq!(texts(archive, dan).await, [line("cid", Some(last), "\"cid\",\"bob\"", 2)], "ann has taken it back");
    write(archive, rename(item, &["dan"])).await.unwrap();
    assert_eq!(texts(archive, dan).await, [line("ann", None, "\"ann\",\"cid\",\"bob\"", 3)]);
}

pub(super) async fn s5_one_call_tells_of_its_mentions_as_they_are_at_its_end(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let [ann, bob, cid, dan] = world(archive).await;
    let (one, two) = (ItemId(700), ItemId(701));
    let calls = vec![
        Write::Publish(Publish { id: Some(one), ..naming(&["bob", "cid"]) }),
        Write::Publish(Publish { id: Some(two), ..naming(&["dan"]) }),
        rename(one, &["cid", "dan"]),
        rename(one, &["cid", "eve"]),
        delete(two),
    ];
    let answers = archive.write(calls, NOW).await.unwrap();
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(named(archive, one).await, users(&["cid", "eve"]));
    let eve = number(archive, "eve").await;
    for (reader, wanted) in [(ann, 0), (bob, 0), (cid, 1), (dan, 0), (eve, 1)] {
        assert_eq!(texts(archive, reader).await.len(), wanted, "user {}", reader.0);
    }
    // Of a repost, the author of the original is told once.
    let copy = Publish { repost_of: Some(one), mentions: users(&["ann", "dan"]), ..post("bob", "see") };
    let (copy, who) = publish(archive, copy).await;
    assert_eq!(who, sorted(vec![ann, dan]));
    assert_eq!(told(archive, ann).await[0].kind.as_deref(), Some("reposted"));
    assert_eq!(sorted(write(archive, delete(copy)).await.unwrap().told().to_vec()), sorted(vec![ann, dan]));
    assert!(react(archive, one, bob, true).await.0, "nothing of all that stands in the way of others");
}

/// Tasks change whom one item mentions at the same time. At rest those are told whom it mentions.
pub(super) async fn i3_of_edits_that_race_those_are_told_whom_the_item_mentions(archive: Arc<dyn Archive>) {
    let [_, bob, cid, dan] = world(&*archive).await;
    let (item, _) = publish(&*archive, naming(&["bob"])).await;
    let lists: [&[&str]; 4] = [&["bob", "cid"], &["cid", "dan"], &[], &["dan", "bob"]];
    let tasks = (0..4usize).map(|task| {
        let archive = archive.clone();
        tokio::spawn(async move {
            for step in 0..6usize {
                write(&*archive, rename(item, lists[(task + step) % lists.len()])).await.unwrap();
            }
        })
    });
    for task in Vec::from_iter(tasks) {
        task.await.unwrap();
    }
    let now = named(&*archive, item).await;
    for (reader, name) in [(bob, "bob"), (cid, "cid"), (dan, "dan")] {
        let wanted = usize::from(now.contains(&user(name)));
        assert_eq!(texts(&*archive, reader).await.len(), wanted, "{name} of {now:?}");
    }
}

pub(super) async fn i6_mentions_outlive_a_restart_and_history_tells_nobody(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("mentions-restart").await;
    let [_, bob, cid, _] = world(&*archive).await;
    let (item, _) = publish(&*archive, naming(&["bob", "cid"])).await;
    let past = Publish { id: Some(ItemId(78)), mentions: users(&["bob", "stranger"]), ..post("ann", "then") };
    write(&*archive, Write::Import(Import::Item { publish: past, version: 3, deleted: false })).await.unwrap();
    let then = Some(PastComment { at: NOW, version: 1, deleted: false });
    let new = comment(item, bob, None);
    let new = NewComment { id: Some(ItemId(79)), past: then, mentions: users(&["cid"]), ..new };
    assert_eq!(say(&*archive, CommentWrite::Make(new)).await.1, []);
    drop(archive);
    let archive = open("mentions-restart").await;
    archive.notify_by(rules(&*archive).await);
    assert_eq!(named(&*archive, item).await, users(&["bob", "cid"]));
    assert_eq!(named(&*archive, ItemId(78)).await, users(&["bob", "stranger"]));
    assert_eq!(archive.user_nos(&users(&["stranger"])).await.unwrap(), [None], "history gives no number for it");
    let listed = archive.comments_of(&[(item, ItemId(79))]).await.unwrap().remove(0).unwrap();
    assert_eq!(listed.mentions, users(&["cid"]));
    assert_eq!((texts(&*archive, bob).await.len(), texts(&*archive, cid).await.len()), (1, 1));
    assert_eq!(write(&*archive, delete(item)).await.unwrap().told().len(), 2);
}

pub(super) async fn an_erasure_takes_what_a_mention_told_and_leaves_the_lists_of_others(archive: Arc<dyn Archive>) {
    let [ann, bob, cid, _] = world(&*archive).await;
    let (of_ann, _) = publish(&*archive, naming(&["bob", "cid"])).await;
    let (of_bob, _) = publish(&*archive, Publish { mentions: users(&["cid"]), ..post("bob", "his") }).await;
    let new = comment(of_ann, bob, None);
    let new = NewComment { mentions: users(&["cid"]), ..new };
    say(&*archive, CommentWrite::Make(new)).await;
    assert_eq!((texts(&*archive, bob).await.len(), texts(&*archive, cid).await.len()), (1, 3));
    erase(&archive, bob).await;
    assert_eq!(texts(&*archive, bob).await, [""; 0]);
    assert_eq!(texts(&*archive, cid).await, [mention(of_ann)], "what bob has done is told no more");
    assert_eq!(named(&*archive, of_ann).await, users(&["bob", "cid"]), "what ann has written is hers");
    assert_eq!(archive.items(&[of_bob]).await.unwrap(), [None]);
    assert_eq!(texts(&*archive, ann).await, [""; 0]);
}
