//! Tests of imports: history takes its own place and time, wakes nobody, and a second run changes nothing.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Audience, Below, Event, Publish, PullHead, Refused, Write, Written};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::import::{Import, Place};
use feedgate_common::{Cut, InboxKey, ItemId, Millis, Progress, UserNo, Watermarks};

use super::{NOW, OneEdge, follow, number, post, to_users, user};

fn item(id: u64, author: &str, deleted: bool) -> Import {
    let publish = Publish { id: Some(ItemId(id)), published_at: Some(id as i64), ..post(author, "then") };
    Import::Item { publish, version: 3, deleted }
}

fn followed(reader: &str, since: Millis, from: Place) -> Import {
    Import::Follow { reader: user(reader), author: user("ann"), since, from }
}

/// Items 1 to 4, of which 2 was deleted after 3 was published. Readers followed after 3, after that delete, and before
/// everything.
fn lines() -> Vec<Import> {
    let named = Publish { audience: Audience::Users(vec![user("rea")]), id: Some(ItemId(9)), ..post("ann", "to you") };
    vec![
        item(1, "ann", false),
        item(2, "ann", true),
        item(3, "ann", false),
        Import::Delete { item: ItemId(2) },
        item(4, "ann", false),
        followed("rea", 50, Place::Add(ItemId(3))),
        followed("rob", 40, Place::Delete(ItemId(2))),
        followed("roy", 60, Place::Start),
        Import::Item { publish: named, version: 1, deleted: false },
        Import::Shield { user: user("rea"), other: user("ben"), shield: Shield::Mute, since: 7 },
        Import::Class { author: user("ann"), class: Class::Pull },
    ]
}

async fn import(archive: &dyn Archive, lines: Vec<Import>) -> Vec<Result<Written, Refused>> {
    archive.write(lines.into_iter().map(Write::Import).collect(), NOW).await.unwrap()
}

fn fresh(answer: &Result<Written, Refused>) -> bool {
    answer.as_ref().unwrap().is_fresh()
}

async fn adds(archive: &dyn Archive, reader: UserNo, author: UserNo, backfill: usize) -> (Vec<u64>, bool) {
    let cut = Cut { progress: Progress::at(100), pull: 100 };
    let state = archive.edge_state(InboxKey::main(reader), author, cut, backfill).await.unwrap();
    (state.adds.iter().map(|add| add.key.item.0).collect(), state.quiet)
}

pub(super) async fn history_takes_its_own_place_wakes_nobody_and_comes_once(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    archive.intern(&["ann", "ben", "rea", "rob", "roy"].map(user)).await.unwrap();
    // The result is the one of before, whether each line is a call or all lines are one call.
    for line in lines().into_iter().take(6) {
        assert!(import(archive, vec![line]).await.iter().all(fresh));
    }
    let fresh_ones = import(archive, lines()).await.iter().filter(|answer| fresh(answer)).count();
    assert_eq!(fresh_ones, lines().len() - 6);
    assert!(!import(archive, lines()).await.iter().any(fresh), "a second run changes nothing");

    let [ann, rea, rob, roy] = [1, 3, 4, 5].map(UserNo);
    let outbox = archive.outbox(ann, 0, 100).await.unwrap();
    assert_eq!((outbox.records.len(), outbox.head, outbox.live()), (5, 5, 0));
    // After item 3 the two newest items were 2 and 3; after the delete of 2 they were 1 and 3.
    assert_eq!(adds(archive, rea, ann, 2).await, (vec![3, 4], true));
    assert_eq!(adds(archive, rob, ann, 2).await, (vec![1, 3, 4], true));
    assert_eq!(adds(archive, roy, ann, 3).await, (vec![1, 3, 4], true));
    assert_eq!(adds(archive, roy, ann, 2).await, (vec![3, 4], true), "the newest of the past, and pages have the rest");
    let followers = archive.followers(ann, None, 10).await.unwrap();
    assert_eq!(followers.iter().map(|line| line.since).collect::<Vec<_>>(), [60, 50, 40], "by their own time");
    let news = archive.news(InboxKey::main(rea), Watermarks::default(), 10).await.unwrap();
    assert_eq!((news.entries.len(), news.quiet), (1, true));
    let read = archive.items(&[ItemId(2), ItemId(3)]).await.unwrap();
    assert_eq!((read[0].is_none(), read[1].as_ref().unwrap().version), (true, 3));

    archive.write(vec![Write::Publish(post("ann", "now")), follow("ben", "ann")], NOW).await.unwrap();
    assert_eq!(archive.pull_heads(0, 10).await.unwrap().len(), 1, "what comes now is told");
    assert!(!archive.edge_state(InboxKey::main(UserNo(2)), ann, Cut::default(), 2).await.unwrap().quiet);
    let outbox = archive.outbox(ann, 0, 100).await.unwrap();
    assert_eq!((outbox.live(), outbox.imported), (6, vec![1, 2, 3, 4, 5]), "what stands before it was imported too");

    assert_eq!(archive.users(Some(ann), 2).await.unwrap(), [(UserNo(2), user("ben")), (rea, user("rea"))]);
    let held = archive.held(rea, None, 10).await.unwrap();
    let held: Vec<_> = held.iter().map(|held| (held.author, held.follows, held.past, held.since)).collect();
    assert_eq!(held, [(ann, true, 3, 50), (UserNo(2), false, 0, 0)]);
    assert_eq!(archive.direct_items(None, 10).await.unwrap(), [(ItemId(9), vec![rea])]);
    assert_eq!(archive.direct_items(Some(ItemId(9)), 10).await.unwrap(), []);
}

/// A like that was taken back and given again before the import is so after it too, however often the lines are
/// imported.
pub(super) async fn a_foreign_id_goes_with_the_item_that_took_it_last(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let like = |id: Option<u64>, author: &str| {
        let keyed = Publish { foreign_id: Some("like:7".into()), ..post(author, "like") };
        let publish = Publish { id: id.map(ItemId), published_at: Some(1), ..keyed };
        Import::Item { publish, version: 1, deleted: false }
    };
    let end = |id| Import::Delete { item: ItemId(id) };
    let lines = [like(Some(1), "ann"), end(1), like(Some(2), "ann"), end(2), like(Some(3), "ben")];
    let (first, second) = lines.split_at(3);
    assert!(import(archive, first.to_vec()).await.iter().all(fresh), "in one call");
    for line in second {
        assert!(import(archive, vec![line.clone()]).await.iter().all(fresh), "in calls of their own");
    }
    assert!(!import(archive, lines.to_vec()).await.iter().any(fresh), "a second run changes nothing");
    assert_eq!(archive.item_by_foreign_id("like:7").await.unwrap(), Some(ItemId(3)));
    let taken = Refused::ForeignIdTaken("like:7".into(), ItemId(3));
    assert_eq!(import(archive, vec![like(Some(4), "ben"), like(None, "ann")]).await, [Err(taken.clone()), Err(taken)]);
    import(archive, vec![end(3)]).await[0].as_ref().unwrap();
    assert!(
        !fresh(&import(archive, vec![like(None, "ben")]).await[0]),
        "the same line of the same author is the same item"
    );
    assert!(fresh(&import(archive, vec![like(None, "ann")]).await[0]));
}

/// The lines are calls of their own or all in one call. No inbox takes in what is accepted here before the imported
/// lines that follow are there.
pub(super) async fn what_was_accepted_before_history_is_told_of_behind_it(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    for (id, at_once) in [(100, false), (200, true)] {
        let [ann, ben, rea] = ["ann", "ben", "rea"].map(|name| format!("{name}{id}"));
        let addressed = |id| {
            let publish = Publish { id: Some(ItemId(id)), published_at: Some(1), ..to_users(&ann, "then", &[&rea]) };
            Write::Import(Import::Item { publish, version: 1, deleted: false })
        };
        let writes = vec![
            super::classify(&ben, Class::Pull),
            Write::Publish(post(&ann, "now")),
            Write::Publish(post(&ben, "now")),
            Write::Publish(to_users(&ann, "now", &[&rea])),
            follow(&rea, &ann),
            Write::Import(item(id + 1, &ann, false)),
            Write::Import(item(id + 2, &ben, false)),
            addressed(id + 3),
            Write::Import(Import::Shield { user: user(&rea), other: user(&ann), shield: Shield::Mute, since: 7 }),
        ];
        let before = archive.pull_head().await.unwrap();
        let calls = if at_once { vec![writes] } else { writes.into_iter().map(|write| vec![write]).collect() };
        for writes in calls {
            assert!(archive.write(writes, NOW).await.unwrap().iter().all(fresh));
        }
        let [ann, ben, rea] = [number(archive, &ann).await, number(archive, &ben).await, number(archive, &rea).await];

        let live =
            async |after| archive.outbox(ann, after, 10).await.map(|outbox| (outbox.records.len(), outbox.live()));
        assert_eq!((live(0).await.unwrap(), live(1).await.unwrap()), ((2, 1), (1, 0)));
        let heads = archive.pull_heads(before, 10).await.unwrap();
        assert_eq!(heads, [PullHead { pull_seq: before + 1, author: ben }]);
        assert_eq!(archive.pull_head().await.unwrap(), before + 2);
        let news = async || archive.news(InboxKey::main(rea), Watermarks::default(), 10).await.unwrap();
        assert_eq!((news().await.entries.len(), news().await.quiet), (2, false));
        let edge = archive.edge_state(InboxKey::main(rea), ann, Cut::default(), 2).await.unwrap();
        assert_eq!((edge.edge.on, edge.quiet), (false, false));

        archive.finish(&[Event::Direct { reader: rea, seq: 2 }]).await.unwrap();
        assert!(fresh(&archive.write(vec![addressed(id + 4)], NOW).await.unwrap()[0]));
        assert!(news().await.quiet, "all that is outstanding now is history");
    }
}

pub(super) async fn history_that_says_otherwise_than_what_is_there_is_refused_or_passed_by(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    let unfollow = Write::Unfollow { reader: user("rea"), author: user("ann") };
    archive.write(vec![follow("rea", "ann"), unfollow], NOW).await.unwrap();
    let answers = import(archive, vec![item(1, "ann", false), item(1, "ben", false)]).await;
    assert_eq!(answers[1], Err(Refused::IdTaken(ItemId(1))));
    let answers = import(
        archive,
        vec![
            followed("rea", 5, Place::Start),
            followed("rob", 5, Place::Add(ItemId(7))),
            followed("rob", 5, Place::Delete(ItemId(1))),
            Import::Delete { item: ItemId(7) },
            Import::Unfollow { reader: user("rob"), author: user("ann") },
        ],
    )
    .await;
    assert!(!fresh(&answers[0]), "who has unfollowed stays so");
    assert_eq!(answers[1..3], [ItemId(7), ItemId(1)].map(|id| Err(Refused::NoSuchItem(id))));
    assert_eq!(answers[3], Err(Refused::NoSuchItem(ItemId(7))));
    assert!(!fresh(&answers[4]), "nobody follows ann but by an edge");

    // A place is a record of the author's own outbox.
    let named = Publish { id: Some(ItemId(3)), ..to_users("ann", "to you", &["rea"]) };
    let named = Import::Item { publish: named, version: 1, deleted: false };
    assert!(import(archive, vec![item(2, "ben", false), named]).await.iter().all(fresh));
    for place in [2, 3] {
        let answers = import(archive, vec![followed("rob", 5, Place::Add(ItemId(place)))]).await;
        assert_eq!(answers, [Err(Refused::NoSuchItem(ItemId(place)))]);
    }
}

pub(super) async fn an_imported_unfollow_leaves_a_reader_out_of_what_everyone_follows(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    super::write(archive, Write::Classify { author: user("ann"), class: Class::Everyone }).await.unwrap();
    let [ann, rob] = [number(archive, "ann").await, number(archive, "rob").await];
    assert!(archive.edge(rob, ann).await.unwrap().on);
    let unfollow = || vec![Import::Unfollow { reader: user("rob"), author: user("ann") }];
    assert!(fresh(&import(archive, unfollow()).await[0]));
    assert!(!archive.edge(rob, ann).await.unwrap().on);
    assert!(!fresh(&import(archive, unfollow()).await[0]), "it is so already");
}

/// Other steps may have read records between the imported place and the head. So for them the follow begins at the
/// head, as any follow does.
pub(super) async fn i3_an_imported_follow_is_past_the_head_for_every_door_but_its_own(archive: Arc<dyn Archive>) {
    let archive = &*archive;
    import(archive, vec![item(1, "ann", false), item(2, "ann", false), item(3, "ann", false)]).await;
    import(archive, vec![followed("rea", 5, Place::Add(ItemId(1)))]).await;
    let [ann, rea] = [number(archive, "ann").await, number(archive, "rea").await];
    assert_eq!(archive.edge(rea, ann).await.unwrap().from, 3);
    assert_eq!(archive.all_recipients(ann, 10).await.unwrap()[0].from, 3);
    let state = archive.edge_state(InboxKey::main(rea), ann, Cut::default(), 100).await.unwrap();
    assert_eq!(
        state.adds.iter().map(|add| add.key.item.0).collect::<Vec<_>>(),
        [1, 2, 3],
        "none of them comes by push"
    );
    let feed = archive.feed_below(InboxKey::main(rea), Below::newest(10), 0).await.unwrap();
    assert_eq!(
        feed.iter().map(|add| add.key.item.0).collect::<Vec<_>>(),
        [3, 2],
        "what came since, and nothing of before"
    );
}

pub(super) async fn a_class_that_was_given_is_not_changed(archive: Arc<dyn Archive>) {
    let class = |class| vec![Import::Class { author: user("ann"), class }];
    assert!(fresh(&import(&*archive, class(Class::Pull)).await[0]));
    super::write(&*archive, Write::Classify { author: user("ann"), class: Class::Push }).await.unwrap();
    for other in [Class::Pull, Class::Everyone, Class::Auto] {
        assert!(!fresh(&import(&*archive, class(other)).await[0]), "{other:?}");
    }
    let ann = number(&*archive, "ann").await;
    assert_eq!(archive.author(ann).await.unwrap().class, Class::Push);
}

pub(super) async fn what_was_addressed_and_had_its_end_is_in_no_feed(archive: Arc<dyn Archive>) {
    let publish = Publish { id: Some(ItemId(7)), published_at: Some(1), ..to_users("ann", "x", &["rea"]) };
    import(&*archive, vec![Import::Item { publish, version: 1, deleted: true }]).await;
    let rea = number(&*archive, "rea").await;
    let told = archive.news(InboxKey::main(rea), Watermarks::default(), 10).await.unwrap();
    assert!(told.quiet, "{told:?}");
    let feed = archive.build(InboxKey::main(rea), &[], 10, 10).await.unwrap();
    assert_eq!((feed.adds, feed.taken.direct), (vec![], told.upto.direct));
    assert_eq!(archive.feed_below(InboxKey::main(rea), Below::newest(10), 10).await.unwrap(), []);
}

pub(super) async fn who_is_named_by_a_refused_line_alone_gets_no_number(archive: Arc<dyn Archive>) {
    let taken = Publish { id: Some(ItemId(7)), ..to_users("joe", "not theirs", &["eve"]) };
    assert!(import(&*archive, vec![item(7, "ann", false)]).await.iter().all(fresh));
    let lines = vec![
        followed("rea", 50, Place::Add(ItemId(99))),
        Import::Item { publish: taken, version: 1, deleted: false },
        followed("rob", 50, Place::Add(ItemId(7))),
    ];
    let answers = import(&*archive, lines).await;
    assert_eq!(answers[0], Err(Refused::NoSuchItem(ItemId(99))));
    assert_eq!(answers[1], Err(Refused::IdTaken(ItemId(7))));
    assert!(fresh(&answers[2]));
    let names = ["ann", "rea", "joe", "eve", "rob"].map(user);
    let numbered = archive.user_nos(&names).await.unwrap().into_iter().map(|no| no.is_some()).collect::<Vec<_>>();
    assert_eq!(numbered, [true, false, false, false, true]);
}
