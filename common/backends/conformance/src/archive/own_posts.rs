//! Tests of own posts in one's own feed, and of what a user has sent (S10).

use std::sync::Arc;

use feedgate_common::archive::{Archive, Below, Publish, Refused, Write, Written};
use feedgate_common::around::CommentWrite;
use feedgate_common::change::{Class, Route};
use feedgate_common::erase::Stage;
use feedgate_common::feed::{jobs_of, traces};
use feedgate_common::graph::Shield;
use feedgate_common::import::{Import, Place};
use feedgate_common::jobs::Job;
use feedgate_common::{Cut, DisplayKey, InboxKey, ItemId, Progress, UserId, UserNo, Watermarks};

use super::audiences::narrowed_to;
use super::erasures::erase;
use super::notifications::{comment, react, repost, rules, say};
use super::{
    NOW, OneEdge, accept, change, classify, delete, follow, move_to, number, post, shield, to_users, unfollow, user,
    write,
};

/// More adds than any feed here has.
const ALL: usize = 100;

async fn on(archive: &dyn Archive, user: UserNo) -> bool {
    archive.edge(user, user).await.unwrap().on
}

/// What the user's feed shows below everything, with nothing from before a follow.
async fn feed(archive: &dyn Archive, user: UserNo) -> Vec<ItemId> {
    let shown = archive.feed_below(InboxKey::main(user), Below::newest(ALL), 0).await.unwrap();
    shown.iter().map(|add| add.key.item).collect()
}

async fn own_posts(archive: &dyn Archive, author: &str, on: bool) -> (UserNo, bool) {
    let (reader, author, edge, fresh) = change(archive, Write::OwnPosts { author: user(author), on }).await;
    assert_eq!((reader, edge.on), (author, on));
    (author, fresh)
}

/// Gives all authors who have published their edge, as a worker does, `limit` at a time.
async fn walk(archive: &dyn Archive, on: bool, limit: usize) -> Vec<UserId> {
    let mut met = vec![];
    while let Some(due) = archive.own_posts_due(on, limit).await.unwrap() {
        assert!(due.is_sorted() && due.len() <= limit);
        let names: Vec<UserId> = due.iter().map(|(_, name)| name.clone()).collect();
        let writes = names.iter().map(|author| Write::OwnPosts { author: author.clone(), on }).collect();
        archive.write(writes, NOW).await.unwrap();
        archive.own_posts_done(on, due.last().filter(|_| due.len() == limit).map(|(author, _)| *author)).await.unwrap();
        met.extend(names);
    }
    met
}

pub(super) async fn s10_an_authors_own_items_stand_in_its_feed_by_every_door(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.set_own_posts(true).await.unwrap();
    for (class, route) in [(Class::Auto, Route::Push), (Class::Pull, Route::Pull), (Class::Everyone, Route::Pull)] {
        let name = format!("{class:?}").to_lowercase();
        write(archive, classify(&name, class)).await.unwrap();
        let author = number(archive, &name).await;
        assert!(!on(archive, author).await, "who has published nothing has no edge");
        let Ok(written) = write(archive, Write::Publish(post(&name, "first"))).await else { panic!() };
        let Written::Published { id: first, own_edge: true, .. } = written else { panic!("{written:?}") };
        let both = [Job::FanOut { author }, Job::Edge { reader: author, author }];
        assert_eq!(jobs_of(&[Ok(written)]), both, "the workers are told of both");
        let Ok(written) = write(archive, Write::Publish(post(&name, "second"))).await else { panic!() };
        let Written::Published { id: second, own_edge: false, .. } = written else { panic!("{written:?}") };

        let edge = archive.edge(author, author).await.unwrap();
        assert!(edge.on && edge.generation > 0 && edge.from == 0, "it begins before the first item: {edge:?}");
        assert_eq!(feed(archive, author).await, [second, first]);
        let key = InboxKey::main(author);
        let built = archive.build(key, &[], 0, ALL).await.unwrap();
        assert_eq!(built.adds.iter().map(|add| add.key.item).collect::<Vec<_>>(), [first, second]);
        assert_eq!(built.ahead, [(author, 2)], "push is to come up with it");
        let news = archive.news(key, Watermarks::default(), ALL).await.unwrap();
        let pulled: Vec<ItemId> = news.entries.iter().map(|entry| entry.key.item).collect();
        let recipients = archive.all_recipients(author, ALL).await.unwrap();
        assert_eq!(recipients.iter().map(|to| (to.reader, to.from)).collect::<Vec<_>>(), [(author, 0)]);
        assert_eq!(archive.recipients_among(author, &[author]).await.unwrap(), recipients);
        match route {
            Route::Pull => assert_eq!(pulled, [first, second]),
            Route::Push | Route::Narrow => assert_eq!(pulled, []),
        }
        let cut = Cut { progress: Progress::at(1), pull: news.upto.pull };
        let state = archive.edge_state(key, author, cut, 0).await.unwrap();
        assert_eq!(state.adds.len(), if route == Route::Pull { 2 } else { 1 }, "as far as its door has come");
        assert!(archive.followees(author).await.unwrap().contains(&author));
        assert_eq!(archive.followers_among(author, &[author]).await.unwrap(), [author], "who is online is woken");
    }
    let (only, _) = accept(archive, narrowed_to("auto", "for one", &["one"]), NOW + 1).await;
    let author = number(archive, "auto").await;
    assert_eq!(feed(archive, author).await[0], only, "an author has what is for others alone");
    let cut = Cut { progress: Progress::at(9), pull: 0 };
    assert_eq!(archive.edge_state(InboxKey::main(author), author, cut, 0).await.unwrap().adds.len(), 3);
    let (to_one, _) = accept(archive, to_users("auto", "to one", &["one"]), NOW + 2).await;
    assert!(!feed(archive, author).await.contains(&to_one), "what is sent is not in the sender's feed");
}

pub(super) async fn s10_whoever_only_sends_is_given_no_edge(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.set_own_posts(true).await.unwrap();
    accept(archive, to_users("ann", "to you", &["bob"]), NOW).await;
    write(archive, follow("ann", "bob")).await.unwrap();
    let ann = number(archive, "ann").await;
    assert!(!on(archive, ann).await);
    assert_eq!(archive.own_posts_due(true, ALL).await.unwrap(), Some(vec![]));
}

pub(super) async fn s10_no_list_count_or_mutual_shows_the_edge(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.set_own_posts(true).await.unwrap();
    let before = archive.counts().await.unwrap().edges;
    accept(archive, post("ann", "mine"), NOW).await;
    write(archive, follow("bob", "ann")).await.unwrap();
    write(archive, follow("ann", "bob")).await.unwrap();
    let [ann, bob] = [number(archive, "ann").await, number(archive, "bob").await];
    assert!(on(archive, ann).await);
    for limit in [1, 2, ALL] {
        let following = archive.following(ann, None, limit).await.unwrap();
        let followers = archive.followers(ann, None, limit).await.unwrap();
        let mutual = archive.mutual(ann, None, limit).await.unwrap();
        for list in [following, followers, mutual] {
            assert_eq!(list.iter().map(|line| line.user.as_str()).collect::<Vec<_>>(), ["bob"]);
        }
    }
    assert_eq!(archive.mutual_with(&[ann, bob], ALL).await.unwrap(), [[bob], [ann]]);
    assert_eq!(archive.mutual_with(&[ann], 1).await.unwrap(), [[bob]]);
    assert_eq!(archive.author(ann).await.unwrap().followers, 1);
    assert_eq!(archive.counts().await.unwrap().edges, before + 2);
    let page = traces(archive, ann, Stage::Followers, None).await.unwrap();
    assert_eq!(page.found.len(), 1);
    own_posts(archive, "ann", false).await;
    assert_eq!(archive.author(ann).await.unwrap().followers, 1, "nor is one counted less");
    assert_eq!(archive.counts().await.unwrap().edges, before + 2);
}

/// `archive` pulls an author with more than one follower.
pub(super) async fn s10_an_author_is_no_follower_of_its_own(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.set_own_posts(true).await.unwrap();
    let mut routes = vec![];
    for reader in ["bob", "cid", "dee"] {
        accept(archive, post("ann", "x"), NOW).await;
        write(archive, follow(reader, "ann")).await.unwrap();
        let ann = number(archive, "ann").await;
        routes.push(archive.outbox(ann, 0, ALL).await.unwrap().records.last().unwrap().route);
    }
    assert_eq!(routes, [Route::Push, Route::Push, Route::Pull], "of none, one and two followers");
    let writes = (0..3).map(|_| Write::Publish(post("eve", "x"))).collect();
    let written = archive.write(writes, NOW).await.unwrap();
    let edges = written.into_iter().map(|one| matches!(one, Ok(Written::Published { own_edge: true, .. })));
    assert_eq!(edges.collect::<Vec<_>>(), [true, false, false], "one call gives the edge once");
}

pub(super) async fn s10_who_has_published_before_is_given_the_edge_by_a_walk(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let before = open("own-walk").await;
    let archive = &*before;
    let names = ["ann", "bob", "cid", "dee", "eve"];
    let (mut users, mut items) = (vec![], vec![]);
    for (name, now) in names.iter().zip(NOW..) {
        items.push(accept(archive, post(name, "old"), now).await.0);
        users.push(number(archive, name).await);
    }
    number(archive, "silent").await;
    assert_eq!(archive.own_posts_due(false, ALL).await.unwrap(), None, "what was never told is done");
    archive.set_own_posts(false).await.unwrap();
    assert_eq!(archive.own_posts_due(false, ALL).await.unwrap(), None);
    archive.set_own_posts(true).await.unwrap();
    assert_eq!(archive.own_posts_due(false, ALL).await.unwrap(), None, "it was told otherwise");
    let (late, _) = accept(archive, post("late", "x"), NOW + 9).await;
    let late_no = number(archive, "late").await;
    assert_eq!(feed(archive, late_no).await, [late], "the first write gives the edge");

    let due = archive.own_posts_due(true, 2).await.unwrap().unwrap();
    assert_eq!(due, [(users[0], user("ann")), (users[1], user("bob"))]);
    archive.own_posts_done(true, Some(users[1])).await.unwrap();
    archive.own_posts_done(true, Some(users[0])).await.unwrap();
    archive.own_posts_done(false, None).await.unwrap();
    assert_eq!(archive.own_posts_due(true, 1).await.unwrap().unwrap(), [(users[2], user("cid"))], "it only goes on");
    archive.set_own_posts(true).await.unwrap();
    assert_eq!(walk(archive, true, 2).await, ["cid", "dee", "eve", "late"].map(user), "to be told again is no change");
    assert_eq!(archive.own_posts_due(true, ALL).await.unwrap(), None);
    for (nth, (user, item)) in users.iter().zip(&items).enumerate() {
        let wants: &[ItemId] = if nth < 2 { &[] } else { std::slice::from_ref(item) };
        assert_eq!(feed(archive, *user).await, wants, "{nth}: all of one's own, whatever a follow brings");
    }
    archive.set_own_posts(false).await.unwrap();
    accept(archive, post("ann", "new"), NOW + 20).await;
    assert!(!on(archive, users[0]).await, "a store that was told otherwise gives none");
    assert_eq!(walk(archive, false, 100).await.len(), 6);
    for user in &users {
        assert!(!on(archive, *user).await);
        assert_eq!(feed(archive, *user).await, []);
    }
    archive.set_own_posts(true).await.unwrap();
    drop(before);

    let archive = &*open("own-walk").await;
    assert_eq!(walk(archive, true, 3).await.len(), 6, "it outlives a restart");
    for user in users {
        assert!(on(archive, user).await);
    }
}

/// Each first item is accepted either before the store was told, and the walk meets its author, or after it.
pub(super) async fn s10_of_first_items_that_race_with_the_setting_each_gives_an_edge(archive: Arc<dyn Archive>) {
    let publishing = (0..40).map(|n| {
        let archive = archive.clone();
        tokio::spawn(async move { accept(&*archive, post(&format!("user-{n}"), "x"), NOW).await })
    });
    let publishing: Vec<_> = publishing.collect();
    archive.set_own_posts(true).await.unwrap();
    let walked = walk(&*archive, true, 7).await.len();
    for one in publishing {
        one.await.unwrap();
    }
    for n in 0..40 {
        let user = number(&*archive, &format!("user-{n}")).await;
        assert!(on(&*archive, user).await, "user {n}; the walk met {walked}");
    }
}

pub(super) async fn s10_the_edge_is_turned_off_and_on_with_all_that_was_published(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let (first, _) = accept(archive, post("ann", "first"), NOW).await;
    let (ann, fresh) = own_posts(archive, "ann", true).await;
    assert!(fresh && feed(archive, ann).await == [first]);
    assert_eq!(own_posts(archive, "ann", true).await, (ann, false), "to ask again changes nothing");
    assert_eq!(own_posts(archive, "ann", false).await, (ann, true));
    let (second, _) = accept(archive, post("ann", "second"), NOW + 1).await;
    assert_eq!(feed(archive, ann).await, []);
    assert_eq!(archive.all_recipients(ann, ALL).await.unwrap(), []);
    own_posts(archive, "ann", true).await;
    assert_eq!(feed(archive, ann).await, [second, first]);
    let due = archive.edges_due(ann, ALL).await.unwrap();
    assert_eq!(due, [ann], "it is outstanding, as any other edge");
    let told = archive.announced(0, ALL).await.unwrap();
    assert_eq!(told.iter().filter(|(_, one)| one.other.is_some()).count(), 0, "nobody is told of an edge");
}

pub(super) async fn s10_a_user_neither_follows_nor_unfollows_itself(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.set_own_posts(true).await.unwrap();
    let (mine, _) = accept(archive, post("ann", "mine"), NOW).await;
    let (reader, author) = (user("ann"), user("ann"));
    let imported = Import::Follow { reader: reader.clone(), author: author.clone(), since: NOW, from: Place::Head };
    let writes = vec![
        follow("ann", "ann"),
        unfollow("ann", "ann"),
        follow("bob", "ann"),
        Write::Import(imported),
        Write::Import(Import::Unfollow { reader, author }),
        follow("new", "new"),
    ];
    let answers = archive.write(writes, NOW).await.unwrap();
    let refused = |name| Err(Refused::FollowsItself(user(name)));
    for (nth, answer) in answers.iter().enumerate() {
        match nth {
            2 => assert!(answer.is_ok()),
            5 => assert_eq!(*answer, refused("new")),
            _ => assert_eq!(*answer, refused("ann"), "{nth}"),
        }
    }
    let text = answers[0].as_ref().unwrap_err().to_string();
    assert!(text.contains("ann cannot follow itself") && text.contains("own_posts = true"), "{text}");
    let ann = number(archive, "ann").await;
    assert_eq!(feed(archive, ann).await, [mine], "and the edge is as it was");
    assert_eq!(archive.user_nos(&[user("new")]).await.unwrap(), [None], "who is refused gets no number");
}

pub(super) async fn s10_an_imported_item_gives_the_edge_and_wakes_nobody(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.set_own_posts(true).await.unwrap();
    let publish = Publish { id: Some(ItemId(7)), published_at: Some(5), ..post("ann", "then") };
    let line = Write::Import(Import::Item { publish, version: 1, deleted: false });
    let written = write(archive, line.clone()).await;
    assert!(matches!(written, Ok(Written::Published { own_edge: true, .. })), "{written:?}");
    let again = write(archive, line).await;
    assert!(matches!(again, Ok(Written::Published { own_edge: false, fresh: false, .. })), "{again:?}");
    let ann = number(archive, "ann").await;
    assert_eq!(feed(archive, ann).await, [ItemId(7)]);
    let cut = Cut { progress: Progress::at(1), pull: 0 };
    assert!(archive.edge_state(InboxKey::main(ann), ann, cut, 0).await.unwrap().quiet);
}

async fn sent(archive: &dyn Archive, user: UserNo, limit: usize) -> Vec<ItemId> {
    let (mut all, mut before): (Vec<DisplayKey>, _) = (vec![], None);
    loop {
        let page = archive.sent(user, before, limit).await.unwrap();
        all.extend(&page);
        if page.len() < limit {
            assert!(all.is_sorted_by(|one, next| one > next), "newest first, each once: {all:?}");
            return all.into_iter().map(|key| key.item).collect();
        }
        before = page.last().copied();
    }
}

pub(super) async fn s10_what_a_user_has_sent_is_listed_until_it_is_deleted(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.notify_by(rules(archive).await);
    write(archive, shield("bob", Shield::Block, "ann", true)).await.unwrap();
    let (public, _) = accept(archive, post("ann", "for all"), NOW).await;
    let mut letters = vec![];
    for (nth, readers) in [&["bob"][..], &["cid", "dee"], &["cid"], &["ann"], &["cid", "cid"]].iter().enumerate() {
        let letter = Publish { rank: Some(nth as i64), ..to_users("ann", "to you", readers) };
        letters.push(accept(archive, letter, NOW).await.0);
    }
    accept(archive, to_users("cid", "to you", &["ann"]), NOW).await;
    let [ann, cid] = [number(archive, "ann").await, number(archive, "cid").await];
    // Notifications have an author, too, who has sent nothing.
    react(archive, public, cid, true).await;
    say(archive, CommentWrite::Make(comment(public, cid, None))).await;
    repost(archive, "cid", public).await;
    write(archive, follow("cid", "ann")).await.unwrap();
    let [to_blocked, to_two, to_one, to_self, twice] = letters[..] else { panic!() };
    for limit in [1, 2, 5, ALL] {
        let all = [twice, to_self, to_one, to_two, to_blocked];
        assert_eq!(sent(archive, ann, limit).await, all, "who reached nobody has sent all the same; by {limit}");
        assert_eq!(sent(archive, cid, limit).await.len(), 1);
    }
    write(archive, move_to(to_two, 99)).await.unwrap();
    write(archive, delete(to_one)).await.unwrap();
    assert_eq!(sent(archive, ann, 2).await, [to_two, twice, to_self, to_blocked]);
    write(archive, move_to(to_self, i64::MIN + 1)).await.unwrap();
    write(archive, delete(to_two)).await.unwrap();
    assert_eq!(sent(archive, ann, 3).await, [twice, to_blocked, to_self]);
    let told = archive.news(InboxKey::main(ann), Watermarks::default(), ALL).await.unwrap().entries;
    assert_eq!(told.iter().filter(|entry| entry.author == cid).count(), 3, "one was sent, and two are told");
}

pub(super) async fn s10_what_an_erased_user_had_of_its_own_is_gone(archive: Arc<dyn Archive>) {
    archive.set_own_posts(true).await.unwrap();
    accept(&*archive, post("ann", "mine"), NOW).await;
    accept(&*archive, to_users("ann", "to you", &["bob"]), NOW).await;
    write(&*archive, follow("ann", "bob")).await.unwrap();
    let ann = number(&*archive, "ann").await;
    let removed = erase(&archive, ann).await.state.removed;
    assert_eq!((removed.following, removed.followers, removed.items, removed.direct_items), (1, 0, 1, 1));
    assert!(!on(&*archive, ann).await);
    assert_eq!(sent(&*archive, ann, 2).await, []);
    let (new, _) = accept(&*archive, post("ann", "anew"), NOW + 1).await;
    assert_eq!(feed(&*archive, ann).await, [new], "who begins anew is given it again");
}
