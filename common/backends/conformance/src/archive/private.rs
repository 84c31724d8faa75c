//! Tests of private authors: a follow is a request until it is accepted, and nothing is shown before that (S9).

use std::sync::Arc;

use feedgate_common::archive::{Answer, Archive, Below, Publish, Refused, Write, Written};
use feedgate_common::around::{Viewer, seen_by, who_sees};
use feedgate_common::change::Class;
use feedgate_common::erase::{Stage, Trace};
use feedgate_common::feed::traces;
use feedgate_common::graph::Shield;
use feedgate_common::import::{Import, Place};
use feedgate_common::{DisplayKey, FeedId, InboxKey, ItemId, Millis};

use super::audiences::narrowed_to;
use super::erasures::erase;
use super::notifications::{rules, told};
use super::{
    NOW, OneEdge as _, accept, change, classify, follow, number, post, shield, to_users, unfollow, user, write,
    write_at,
};

fn private(author: &str, private: bool) -> Write {
    Write::Private { author: user(author), private }
}

fn answer(reader: &str, author: &str, answer: Answer) -> Write {
    Write::Answer { reader: user(reader), author: user(author), answer }
}

/// Asks to follow at some time. Answers whether the follow is a request, whether that is new, and whether it is in
/// effect.
async fn ask_at(archive: &dyn Archive, reader: &str, author: &str, now: Millis) -> (bool, bool, bool) {
    match write_at(archive, follow(reader, author), now).await {
        Ok(Written::Edge { edge, pending, fresh, told, .. }) if told.is_empty() => (pending, fresh, edge.on),
        other => panic!("{other:?}"),
    }
}

async fn ask(archive: &dyn Archive, reader: &str, author: &str) -> (bool, bool, bool) {
    ask_at(archive, reader, author, NOW).await
}

/// The users who have asked to follow, newest first, each with the time.
async fn requests(archive: &dyn Archive, author: &str) -> Vec<(String, Millis)> {
    let author = number(archive, author).await;
    let listed = archive.requests(author, None, 99).await.unwrap();
    listed.into_iter().map(|line| (line.user.to_string(), line.since)).collect()
}

async fn askers(archive: &dyn Archive, author: &str) -> Vec<String> {
    requests(archive, author).await.into_iter().map(|(reader, _)| reader).collect()
}

/// What a reader's feed shows according to the Archive alone, newest first.
async fn feed(archive: &dyn Archive, reader: &str) -> Vec<ItemId> {
    let key = InboxKey::main(number(archive, reader).await);
    archive.feed_below(key, Below::newest(99), 100).await.unwrap().into_iter().map(|add| add.key.item).collect()
}

fn none(reader: &str, author: &str) -> Result<Written, Refused> {
    Err(Refused::NoSuchRequest { reader: user(reader), author: user(author) })
}

pub(super) async fn s9_a_follow_of_a_private_author_is_a_request(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    change(archive, follow("old", "ann")).await;
    let (item, _) = accept(archive, post("ann", "before"), NOW).await;
    assert!(write(archive, private("ann", true)).await.unwrap().is_fresh());
    assert!(!write(archive, private("ann", true)).await.unwrap().is_fresh());
    let [ann, bob, old] = [number(archive, "ann").await, number(archive, "bob").await, number(archive, "old").await];
    assert!(archive.author(ann).await.unwrap().private && !archive.author(bob).await.unwrap().private);
    assert_eq!(ask(archive, "old", "ann").await, (false, false, true), "who follows already stays");
    change(archive, follow("ann", "bob")).await;
    let outstanding = archive.counts().await.unwrap().events;

    assert_eq!(ask(archive, "bob", "ann").await, (true, true, false));
    assert_eq!(ask(archive, "bob", "ann").await, (true, false, false), "it is asked already");
    assert_eq!(askers(archive, "ann").await, ["bob"]);
    assert!(!archive.edge(bob, ann).await.unwrap().on);
    assert_eq!(archive.following(bob, None, 9).await.unwrap(), []);
    assert_eq!(archive.followers(ann, None, 9).await.unwrap().len(), 1);
    assert_eq!(
        (archive.mutual(bob, None, 9).await.unwrap(), archive.mutual(ann, None, 9).await.unwrap()),
        (vec![], vec![])
    );
    assert_eq!(archive.mutual_with(&[ann, bob], 9).await.unwrap(), [vec![], vec![]]);
    assert_eq!((archive.author(ann).await.unwrap().followers, archive.counts().await.unwrap().edges), (1, 2));
    assert_eq!(archive.followees(bob).await.unwrap(), []);
    assert_eq!(archive.followers_among(ann, &[bob, old]).await.unwrap(), [old]);
    assert_eq!(archive.followees_among(bob, &[ann]).await.unwrap(), []);
    let recipients = archive.all_recipients(ann, 9).await.unwrap();
    assert_eq!(recipients.iter().map(|recipient| recipient.reader).collect::<Vec<_>>(), [old]);
    assert_eq!(archive.recipients_among(ann, &[bob]).await.unwrap(), []);
    assert_eq!((feed(archive, "bob").await, feed(archive, "old").await), (vec![], vec![item]));
    assert_eq!(archive.counts().await.unwrap().events, outstanding, "there is nothing to bring");

    assert!(write(archive, answer("bob", "ann", Answer::Accept)).await.unwrap().is_fresh());
    assert!(!write(archive, answer("bob", "ann", Answer::Accept)).await.unwrap().is_fresh());
    assert_eq!(askers(archive, "ann").await, [""; 0]);
    let edge = archive.edge(bob, ann).await.unwrap();
    assert_eq!((edge.on, edge.from), (true, 1), "it begins when it is accepted");
    assert!(edge.generation > 0);
    assert_eq!(feed(archive, "bob").await, [item], "with what was there before");
    assert_eq!(archive.followers(ann, None, 9).await.unwrap()[0].user, user("bob"));
    assert_eq!(archive.mutual(bob, None, 9).await.unwrap()[0].user, user("ann"));
    assert_eq!((archive.author(ann).await.unwrap().followers, archive.counts().await.unwrap().edges), (2, 3));
    assert_eq!(ask(archive, "bob", "ann").await, (false, false, true));
    write(archive, answer("bob", "ann", Answer::Refuse)).await.unwrap_err();
    assert!(archive.edge(bob, ann).await.unwrap().on, "who follows is refused no more");

    change(archive, unfollow("bob", "ann")).await;
    assert_eq!(ask(archive, "bob", "ann").await, (true, true, false), "who has left asks again");
    assert_eq!((feed(archive, "bob").await, archive.author(ann).await.unwrap().followers), (vec![], 1));
}

pub(super) async fn s9_a_request_is_listed_until_it_is_answered_or_taken_back(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("requests").await;
    write(&*archive, private("ann", true)).await.unwrap();
    write(&*archive, private("ben", true)).await.unwrap();
    for (nth, reader) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        assert_eq!(ask_at(&*archive, reader, "ann", NOW + nth as i64).await, (true, true, false));
    }
    assert_eq!(ask(&*archive, "a", "ben").await, (true, true, false));
    assert_eq!(write(&*archive, answer("x", "ann", Answer::Accept)).await, none("x", "ann"));
    drop(archive);
    let archive = open("requests").await;
    let ann = number(&*archive, "ann").await;
    let first = archive.requests(ann, None, 2).await.unwrap();
    assert_eq!(
        first.iter().map(|line| (line.user.as_str(), line.since)).collect::<Vec<_>>(),
        [("e", NOW + 4), ("d", NOW + 3)]
    );
    let rest = archive.requests(ann, Some(first[1].cursor), 9).await.unwrap();
    assert_eq!(rest.iter().map(|line| line.user.as_str()).collect::<Vec<_>>(), ["c", "b", "a"]);

    assert!(write(&*archive, answer("d", "ann", Answer::Refuse)).await.unwrap().is_fresh());
    assert_eq!(write(&*archive, answer("d", "ann", Answer::Refuse)).await, none("d", "ann"));
    assert_eq!(write(&*archive, answer("d", "ann", Answer::Accept)).await, none("d", "ann"));
    let (.., fresh) = change(&*archive, unfollow("c", "ann")).await;
    assert!(fresh, "the reader takes it back");
    let (.., fresh) = change(&*archive, unfollow("c", "ann")).await;
    assert!(!fresh);
    write(&*archive, answer("b", "ann", Answer::Accept)).await.unwrap();
    assert_eq!(askers(&*archive, "ann").await, ["e", "a"]);
    assert_eq!(askers(&*archive, "ben").await, ["a"]);
    let d = number(&*archive, "d").await;
    assert_eq!(archive.held(d, None, 9).await.unwrap(), []);
    assert_eq!(ask_at(&*archive, "c", "ann", NOW + 9).await, (true, true, false));
    assert_eq!(requests(&*archive, "ann").await[0], ("c".to_owned(), NOW + 9), "asked anew");
}

pub(super) async fn s9_whoever_is_let_in_follows_once_the_author_is_not_private(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    write(archive, private("ann", true)).await.unwrap();
    for reader in ["bob", "cid"] {
        ask(archive, reader, "ann").await;
    }
    assert_eq!(write(archive, answer("bob", "ann", Answer::LetIn)).await, none("bob", "ann"), "she is private");
    write(archive, private("ann", false)).await.unwrap();
    assert_eq!(askers(archive, "ann").await, ["cid", "bob"], "nobody is let in by that alone");
    assert!(write(archive, answer("bob", "ann", Answer::LetIn)).await.unwrap().is_fresh());
    assert_eq!(ask(archive, "cid", "ann").await, (false, true, true), "a follow needs no answer");
    assert_eq!(ask(archive, "dan", "ann").await, (false, true, true));
    assert_eq!(askers(archive, "ann").await, [""; 0]);
    let ann = number(archive, "ann").await;
    assert_eq!(archive.author(ann).await.unwrap().followers, 3);
}

pub(super) async fn s9_a_block_ends_a_request_and_lets_none_begin(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    write(archive, private("ann", true)).await.unwrap();
    for (owner, other) in [("ann", "bob"), ("bob", "ann")] {
        assert_eq!(ask(archive, "bob", "ann").await, (true, true, false));
        write(archive, shield(owner, Shield::Block, other, true)).await.unwrap();
        assert_eq!(askers(archive, "ann").await, [""; 0], "{owner}");
        assert_eq!(ask(archive, "bob", "ann").await, (true, false, false), "who is blocked is not told");
        assert_eq!(askers(archive, "ann").await, [""; 0], "{owner}");
        assert_eq!(write(archive, answer("bob", "ann", Answer::Accept)).await, none("bob", "ann"));
        write(archive, shield(owner, Shield::Block, other, false)).await.unwrap();
        assert_eq!(askers(archive, "ann").await, [""; 0], "its end brings no request back");
    }
    write(archive, private("bob", true)).await.unwrap();
    ask(archive, "ann", "bob").await;
    ask(archive, "bob", "ann").await;
    write(archive, shield("ann", Shield::Block, "bob", true)).await.unwrap();
    assert_eq!((askers(archive, "ann").await, askers(archive, "bob").await), (vec![], vec![]), "both ways");
    ask(archive, "cid", "ann").await;
    write(archive, shield("cid", Shield::Mute, "ann", true)).await.unwrap();
    write(archive, shield("ann", Shield::Hide, "cid", true)).await.unwrap();
    assert_eq!(askers(archive, "ann").await, ["cid"], "other shields leave it");
    write(archive, answer("cid", "ann", Answer::Accept)).await.unwrap();
    let [ann, cid] = [number(archive, "ann").await, number(archive, "cid").await];
    assert!(!archive.edge(cid, ann).await.unwrap().on, "and hold the follow back");
    for (owner, kind, other) in [("cid", Shield::Mute, "ann"), ("ann", Shield::Hide, "cid")] {
        write(archive, shield(owner, kind, other, false)).await.unwrap();
    }
    assert!(archive.edge(cid, ann).await.unwrap().on);
}

pub(super) async fn s9_a_private_author_is_shown_to_followers_alone(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for reader in ["fan", "muting"] {
        change(archive, follow(reader, "ann")).await;
    }
    let (open, _) = accept(archive, post("ann", "for all"), NOW).await;
    let (narrowed, _) = accept(archive, narrowed_to("ann", "for some", &["fan"]), NOW).await;
    let (letter, _) = accept(archive, to_users("ann", "for one", &["stranger"]), NOW).await;
    let (other, _) = accept(archive, post("ben", "of another"), NOW).await;
    let (repost, _) = accept(archive, Publish { repost_of: Some(open), ..post("fan", "look") }, NOW).await;
    write(archive, shield("muting", Shield::Mute, "ann", true)).await.unwrap();
    let feeds = archive.intern_feeds(&["picks".into()]).await.unwrap();
    let names = ["ann", "fan", "asking", "muting", "stranger"];
    for name in names {
        let key = InboxKey { reader: number(archive, name).await, feed: feeds[0] };
        let ranking = [open, narrowed, other].map(|item| DisplayKey { rank: 1, item });
        archive.rank(key, &ranking, NOW).await.unwrap().unwrap();
    }
    let items = [open, narrowed, letter, other, repost];
    let originals = async |viewer| {
        let found = archive.originals(&items, viewer).await.unwrap();
        found.into_iter().flatten().map(|item| item.id).collect::<Vec<_>>()
    };
    let before = originals(Viewer::User(Some(number(archive, "asking").await))).await;
    assert_eq!(before, [open, other, repost]);

    write(archive, private("ann", true)).await.unwrap();
    assert_eq!(ask(archive, "asking", "ann").await, (true, true, false));
    let all = vec![open, narrowed, letter, other, repost];
    let shown = [
        ("ann", all, vec![open, narrowed, letter, other]),
        ("fan", vec![open, narrowed, other, repost], vec![open, narrowed, other, repost]),
        ("asking", vec![other, repost], vec![other]),
        ("muting", vec![other, repost], vec![other]),
        ("stranger", vec![letter, other, repost], vec![letter, other]),
    ];
    for (name, by_key, by_token) in &shown {
        let me = number(archive, name).await;
        assert_eq!(originals(Viewer::User(Some(me))).await, *by_key, "{name} by reposts, rankings, profiles, searches");
        let found = archive.items(&items).await.unwrap();
        let seen = seen_by(archive, Some(me), found.clone()).await.unwrap();
        let seen: Vec<ItemId> = seen.into_iter().flatten().map(|item| item.id).collect();
        assert_eq!(seen, *by_token, "{name} by items, comments, reactions and watches");
        for item in found.into_iter().flatten() {
            let who = who_sees(archive, &item, &[me]).await.unwrap();
            assert_eq!(who.len(), usize::from(by_token.contains(&item.id)), "{name}: item {}", item.id);
        }
        let held = archive.profile(number(archive, "ann").await, FeedId::MAIN, None, 9).await.unwrap();
        assert_eq!(held.len(), 2, "a backend reads all");
    }
    assert_eq!(originals(Viewer::User(None)).await, [other, repost], "who was never named");
    assert_eq!(originals(Viewer::Backend).await, items);

    write(archive, answer("asking", "ann", Answer::Accept)).await.unwrap();
    assert_eq!(originals(Viewer::User(Some(number(archive, "asking").await))).await, [open, other, repost]);
    write(archive, unfollow("asking", "ann")).await.unwrap();
    assert_eq!(originals(Viewer::User(Some(number(archive, "asking").await))).await, [other, repost]);
    write(archive, private("ann", false)).await.unwrap();
    assert_eq!(originals(Viewer::User(Some(number(archive, "asking").await))).await, before);
}

pub(super) async fn s9_who_is_private_is_not_followed_by_everyone(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let refused = |name| Err(Refused::PrivateEveryones(user(name)));
    write(archive, private("ann", true)).await.unwrap();
    assert_eq!(write(archive, classify("ann", Class::Everyone)).await, refused("ann"));
    write(archive, classify("ann", Class::Pull)).await.unwrap();
    write(archive, classify("all", Class::Everyone)).await.unwrap();
    assert_eq!(write(archive, private("all", true)).await, refused("all"));
    assert!(!write(archive, private("all", false)).await.unwrap().is_fresh());
    let in_one = vec![
        private("cid", true),
        classify("cid", Class::Everyone),
        private("cid", false),
        classify("cid", Class::Everyone),
    ];
    let done = archive.write(in_one, NOW).await.unwrap();
    assert_eq!(done.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true]);
}

pub(super) async fn s9_history_tells_who_is_private_and_who_has_asked(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let request =
        |reader: &str, since| Write::Import(Import::Request { reader: user(reader), author: user("ann"), since });
    change(archive, follow("fan", "ann")).await;
    change(archive, follow("gone", "ann")).await;
    change(archive, unfollow("gone", "ann")).await;
    write(archive, shield("ann", Shield::Block, "foe", true)).await.unwrap();
    let imports = vec![
        Write::Import(Import::Private { author: user("ann") }),
        Write::Import(Import::Private { author: user("ann") }),
        request("bob", 7),
        request("bob", 8),
        request("fan", 7),
        request("gone", 7),
        request("foe", 7),
        request("cid", 5),
    ];
    let done = archive.write(imports, NOW).await.unwrap();
    let fresh: Vec<bool> = done.into_iter().map(|done| done.unwrap().is_fresh()).collect();
    assert_eq!(fresh, [true, false, true, false, false, false, false, true]);
    assert_eq!(requests(archive, "ann").await, [("bob".to_owned(), 7), ("cid".to_owned(), 5)]);
    let bob = number(archive, "bob").await;
    let held = archive.held(bob, None, 9).await.unwrap();
    assert_eq!(held.iter().map(|edge| (edge.asked, edge.follows, edge.since)).collect::<Vec<_>>(), [(true, false, 7)]);
    let (reader, author) = (user("bob"), user("ann"));
    write(archive, Write::Import(Import::Follow { reader, author, since: 6, from: Place::Head })).await.unwrap();
    assert_eq!(askers(archive, "ann").await, ["cid"], "a follow that was accepted elsewhere");
    assert!(archive.edge(bob, number(archive, "ann").await).await.unwrap().on);
}

pub(super) async fn s9_a_request_that_has_ended_is_not_imported_again(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let lines = || {
        let request = |reader: &str| Import::Request { reader: user(reader), author: user("ann"), since: 7 };
        let readers = ["refused", "left", "blocked", "waits", "mutes"].into_iter().map(request);
        [Import::Private { author: user("ann") }].into_iter().chain(readers).map(Write::Import).collect::<Vec<_>>()
    };
    let import = async || {
        let done = archive.write(lines(), NOW).await.unwrap();
        done.into_iter().map(|done| done.unwrap().is_fresh()).collect::<Vec<_>>()
    };
    write(archive, shield("mutes", Shield::Mute, "ann", true)).await.unwrap();
    assert_eq!(import().await, [true; 6]);
    write(archive, answer("refused", "ann", Answer::Refuse)).await.unwrap();
    assert!(change(archive, unfollow("left", "ann")).await.3);
    for up in [true, false] {
        write(archive, shield("ann", Shield::Block, "blocked", up)).await.unwrap();
    }
    assert_eq!(import().await, [false; 6]);
    assert_eq!(askers(archive, "ann").await, ["mutes", "waits"]);
    assert_eq!(ask(archive, "left", "ann").await, (true, true, false), "the reader may ask again");
}

pub(super) async fn s9_an_erasure_takes_requests_and_counts_them(archive: Arc<dyn Archive>) {
    let reader = &*archive;
    for author in ["ann", "ben"] {
        write(reader, private(author, true)).await.unwrap();
    }
    ask(reader, "bob", "ann").await;
    ask(reader, "cid", "ann").await;
    ask(reader, "ann", "ben").await;
    ask(reader, "cid", "ben").await;
    let ann = number(reader, "ann").await;
    let page = traces(reader, ann, Stage::Requests, None).await.unwrap();
    let found: Vec<Trace> = page.found.into_iter().map(|(_, trace)| trace).collect();
    let [bob, cid] = [number(reader, "bob").await, number(reader, "cid").await];
    assert_eq!(found, [Trace::Asker(cid), Trace::Asker(bob), Trace::Private]);
    let removed = erase(&archive, ann).await.state.removed;
    assert_eq!((removed.requests, removed.following), (3, 0));
    assert_eq!((askers(reader, "ann").await, askers(reader, "ben").await), (vec![], vec!["cid".to_owned()]));
    assert!(!reader.author(ann).await.unwrap().private);
    assert_eq!(reader.held(ann, None, 9).await.unwrap(), []);
}

pub(super) async fn s9_requests_and_their_acceptance_are_told_and_taken_back(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.notify_by(rules(archive).await);
    write(archive, private("ann", true)).await.unwrap();
    let [ann, bob] = [number(archive, "ann").await, number(archive, "bob").await];
    let kinds = async |reader| {
        let told = told(archive, reader).await;
        told.iter().map(|item| (item.kind.as_deref().unwrap().to_owned(), item.author.to_string())).collect::<Vec<_>>()
    };
    let of = |kind: &str, actor: &str| vec![(kind.to_owned(), actor.to_owned())];
    let who_is_told = async |asked| write(archive, asked).await.unwrap().told().to_vec();
    assert_eq!(who_is_told(follow("bob", "ann")).await, [ann]);
    assert_eq!(who_is_told(follow("bob", "ann")).await, [], "once");
    assert_eq!(kinds(ann).await, of("asked", "bob"));
    assert_eq!(who_is_told(unfollow("bob", "ann")).await, [ann], "it is taken back");
    assert_eq!(kinds(ann).await, []);
    assert_eq!(who_is_told(follow("bob", "ann")).await, [ann]);
    assert_eq!(who_is_told(answer("bob", "ann", Answer::Refuse)).await, [ann]);
    assert_eq!(kinds(ann).await, [], "who has refused it need not read of it");
    assert_eq!(who_is_told(follow("bob", "ann")).await, [ann]);
    assert_eq!(who_is_told(answer("bob", "ann", Answer::Accept)).await, [bob]);
    assert_eq!((kinds(ann).await, kinds(bob).await), (of("asked", "bob"), of("accepted", "ann")));
    write(archive, shield("ann", Shield::Block, "cid", true)).await.unwrap();
    assert_eq!(who_is_told(follow("cid", "ann")).await, [], "nothing passes a block");
}
