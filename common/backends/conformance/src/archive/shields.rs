//! Tests of mutes, hides and blocks, and of what they do to edges and lists.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Edge, Event, Written};
use feedgate_common::graph::Shield;
use feedgate_common::{Cut, InboxKey, ItemId, Progress, UserNo};

use super::{NOW, OneEdge, accept, change, follow, number, post, shield, unfollow, user, write, write_at};

async fn followed(archive: &dyn Archive, reader: UserNo) -> Vec<(String, i64)> {
    let lines = archive.following(reader, None, 100).await.expect("the archive works");
    lines.into_iter().map(|line| (line.user.to_string(), line.since - NOW)).collect()
}

pub(super) async fn a_mute_is_an_unfollow_and_its_end_a_follow_from_now(archive: Arc<dyn Archive>) {
    let (first, _) = accept(&*archive, post("ann", "1"), NOW).await;
    let (reader, ann, followed_then, _) = change(&*archive, follow("rea", "ann")).await;
    let muted = write_at(&*archive, shield("rea", Shield::Mute, "ann", true), NOW + 1).await;
    assert_eq!(muted, Ok(Written::Shielded { edges: vec![(reader, ann)], fresh: true }));
    let again = write(&*archive, shield("rea", Shield::Mute, "ann", true)).await;
    let repeated = Written::Shielded { edges: vec![(reader, ann)], fresh: false };
    assert_eq!(again, Ok(repeated), "asking again changes nothing, and names the edge to be relayed again");
    let off = archive.edge(reader, ann).await.unwrap();
    assert!(!off.on && off.generation > followed_then.generation);
    assert_eq!(archive.followees(reader).await.unwrap(), []);
    assert_eq!(archive.all_recipients(ann, 10).await.unwrap(), []);
    assert_eq!(archive.followers_among(ann, &[reader]).await.unwrap(), []);
    assert_eq!(followed(&*archive, reader).await, [("ann".to_owned(), 0)], "the list shows the follow");
    let event = Event::Edge { reader, author: ann, generation: off.generation };
    let due = archive.outstanding(None, i64::MAX, 10).await.unwrap();
    assert!(due.iter().any(|line| line.event == event), "taking it in is outstanding: {due:?}");

    let (second, _) = accept(&*archive, post("ann", "2"), NOW).await;
    let unmuted = write_at(&*archive, shield("rea", Shield::Mute, "ann", false), NOW + 2).await;
    assert_eq!(unmuted, Ok(Written::Shielded { edges: vec![(reader, ann)], fresh: true }));
    let on = archive.edge(reader, ann).await.unwrap();
    assert!(on.on && on.generation > off.generation && on.from == 2, "{on:?}");
    let cut = Cut { progress: Progress::at(2), pull: 0 };
    let adds = archive.edge_state(InboxKey::main(reader), ann, cut, 100).await.unwrap().adds;
    let items: Vec<ItemId> = adds.iter().map(|add| add.key.item).collect();
    assert_eq!(items, [first, second], "the newest come back");
    assert_eq!(followed(&*archive, reader).await, [("ann".to_owned(), 0)]);
    let recipients = archive.all_recipients(ann, 10).await.unwrap();
    let [to] = recipients[..] else { panic!("{recipients:?}") };
    assert_eq!((to.reader, to.generation, to.from), (reader, on.generation, on.from));
}

pub(super) async fn a_follow_under_a_shield_is_listed_and_stays_off(archive: Arc<dyn Archive>) {
    accept(&*archive, post("ann", "1"), NOW).await;
    let muted = write(&*archive, shield("rea", Shield::Mute, "ann", true)).await;
    assert!(muted.unwrap().is_fresh(), "there was no follow to end");
    let answer = write_at(&*archive, follow("rea", "ann"), NOW + 5).await;
    let Ok(Written::Edge { reader, author: ann, edge, fresh: true, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(edge, Edge::default(), "it never was in effect");
    assert_eq!(followed(&*archive, reader).await, [("ann".to_owned(), 5)]);
    assert_eq!(archive.followers(ann, None, 10).await.unwrap().len(), 1);
    assert_eq!(archive.followees(reader).await.unwrap(), []);
    assert_eq!(archive.author(ann).await.unwrap().followers, 0);
    write_at(&*archive, shield("rea", Shield::Mute, "ann", false), NOW + 6).await.unwrap();
    let edge = archive.edge(reader, ann).await.unwrap();
    assert!(edge.on && edge.from == 1);
    assert_eq!(followed(&*archive, reader).await, [("ann".to_owned(), 5)], "with the time of the follow");
    write(&*archive, shield("rea", Shield::Mute, "ann", true)).await.unwrap();
    let (.., edge, fresh) = change(&*archive, unfollow("rea", "ann")).await;
    assert!(fresh && !edge.on, "what is muted may be unfollowed");
    assert_eq!(followed(&*archive, reader).await, []);
    assert_eq!(archive.counts().await.unwrap().edges, 0);
}

/// A user who hides is not seen. A user who blocks neither sees nor is seen. Each shield counts by itself.
pub(super) async fn each_shield_stands_on_its_own_edges(archive: Arc<dyn Archive>) {
    let (ann, ben, ..) = change(&*archive, follow("ann", "ben")).await;
    change(&*archive, follow("ben", "ann")).await;
    let on = async || [archive.edge(ann, ben).await.unwrap().on, archive.edge(ben, ann).await.unwrap().on];
    let mutual = async || archive.mutual(ann, None, 10).await.unwrap().len();
    assert_eq!((on().await, mutual().await), ([true, true], 1));
    let steps = [
        (shield("ann", Shield::Hide, "ben", true), vec![(ben, ann)], [true, false]),
        (shield("ann", Shield::Block, "ben", true), vec![(ann, ben), (ben, ann)], [false, false]),
        (shield("ben", Shield::Block, "ann", true), vec![(ann, ben), (ben, ann)], [false, false]),
        (shield("ann", Shield::Block, "ben", false), vec![(ann, ben), (ben, ann)], [false, false]),
        (shield("ann", Shield::Hide, "ben", false), vec![(ben, ann)], [false, false]),
        (shield("ben", Shield::Block, "ann", false), vec![(ann, ben), (ben, ann)], [true, true]),
        (shield("ben", Shield::Mute, "ann", true), vec![(ben, ann)], [true, false]),
    ];
    for (ask, wants, now) in steps {
        let answer = write(&*archive, ask.clone()).await;
        let Ok(Written::Shielded { mut edges, fresh: true }) = answer else { panic!("{ask:?}: {answer:?}") };
        edges.sort_unstable();
        assert_eq!((edges, on().await), (wants, now), "{ask:?}");
        assert_eq!(mutual().await, 1, "lists show follows, whatever the shields");
    }
    change(&*archive, unfollow("ben", "ann")).await;
    assert_eq!(mutual().await, 0);
}

pub(super) async fn shields_are_listed_newest_first_by_who_put_them_up(archive: Arc<dyn Archive>) {
    let names = ["u0", "u1", "u2", "u3"];
    for (name, at) in names.iter().zip(0..) {
        write_at(&*archive, shield("rea", Shield::Mute, name, true), NOW + at).await.unwrap();
        write_at(&*archive, shield(name, Shield::Mute, "rea", true), NOW + at).await.unwrap();
    }
    write_at(&*archive, shield("rea", Shield::Block, "u2", true), NOW + 7).await.unwrap();
    write_at(&*archive, shield("rea", Shield::Mute, "u1", false), NOW + 8).await.unwrap();
    write_at(&*archive, shield("rea", Shield::Mute, "u1", true), NOW + 9).await.unwrap();
    let reader = number(&*archive, "rea").await;
    for limit in [1, 2, 5] {
        let (mut muted, mut cursor) = (vec![], None);
        loop {
            let page = archive.shielded(reader, Shield::Mute, cursor, limit).await.unwrap();
            cursor = page.last().map(|line| line.cursor);
            let last = page.len() < limit;
            muted.extend(page.into_iter().map(|line| (line.user, line.since - NOW)));
            if last {
                break;
            }
        }
        assert_eq!(muted, [("u1", 9), ("u3", 3), ("u2", 2), ("u0", 0)].map(|(name, at)| (user(name), at)));
    }
    let blocked = archive.shielded(reader, Shield::Block, None, 10).await.unwrap();
    assert_eq!(blocked.iter().map(|line| line.user.as_str()).collect::<Vec<_>>(), ["u2"]);
    assert_eq!(archive.shielded(reader, Shield::Hide, None, 10).await.unwrap(), []);
}
