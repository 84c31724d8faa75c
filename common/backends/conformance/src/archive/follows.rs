//! Tests of users and follow edges.

use std::collections::HashMap;
use std::sync::Arc;

use feedgate_common::archive::{Archive, Edge, Follow, Recipient, Refused};
use feedgate_common::{Bucket, Generation, UserNo};

use super::{NOW, OneEdge, accept, change, follow, number, post, unfollow, user, write, write_at};

pub(super) async fn users_keep_their_numbers(archive: Arc<dyn Archive>) {
    let names = ["ann", "ben", "ann", "cleo"].map(user);
    assert_eq!(archive.user_nos(&names).await.unwrap(), [None; 4]);
    let numbers = archive.intern(&names).await.unwrap();
    assert_eq!(numbers, [UserNo(1), UserNo(2), UserNo(1), UserNo(3)], "dense from 1, in the order asked");
    assert_eq!(archive.intern(&names[1..2]).await.unwrap(), [UserNo(2)]);
    let known = archive.user_nos(&[user("cleo"), user("dan")]).await.unwrap();
    assert_eq!(known, [Some(UserNo(3)), None]);
    assert_eq!(archive.user_ids(&numbers).await.unwrap(), names);
    assert_eq!(archive.counts().await.unwrap().users, 3);

    let racers = (0..8).map(|_| {
        let archive = archive.clone();
        tokio::spawn(async move { number(&*archive, "new").await })
    });
    for racer in racers.collect::<Vec<_>>() {
        assert_eq!(racer.await.expect("no racer panics"), UserNo(4));
    }
}

pub(super) async fn an_edge_changes_only_when_asked_for_something_else(archive: Arc<dyn Archive>) {
    accept(&*archive, post("ann", "1"), NOW).await;
    let (reader, author, never, fresh) = change(&*archive, unfollow("rea", "ann")).await;
    assert_eq!((never, fresh), (Edge::default(), false));
    let (.., on, fresh) = change(&*archive, follow("rea", "ann")).await;
    assert!(fresh && on.on && on.from == 1 && on.generation > 0);
    accept(&*archive, post("ann", "2"), NOW).await;
    assert_eq!(change(&*archive, follow("rea", "ann")).await, (reader, author, on, false), "from stays");
    assert_eq!(archive.followees(reader).await.unwrap(), [author]);
    let (.., off, fresh) = change(&*archive, unfollow("rea", "ann")).await;
    assert!(fresh && !off.on && off.generation > on.generation);
    assert_eq!(change(&*archive, unfollow("rea", "ann")).await, (reader, author, off, false));
    assert_eq!(archive.edge(reader, author).await.unwrap(), off);
    assert_eq!(archive.followees(reader).await.unwrap(), []);
    let (.., again, fresh) = change(&*archive, follow("rea", "ann")).await;
    assert!(fresh && again.from == 2 && again.generation > off.generation);
    assert_eq!(archive.edge(author, reader).await.unwrap(), Edge::default(), "an edge has a direction");
    let own = Err(Refused::FollowsItself(user("ann")));
    assert_eq!(write(&*archive, follow("ann", "ann")).await, own, "no edge leads back to its reader");
    assert_eq!(archive.edge(author, author).await.unwrap(), Edge::default());
}

pub(super) async fn i10_generations_only_grow_and_the_counter_covers_them(archive: Arc<dyn Archive>) {
    let mut last: HashMap<(UserNo, UserNo), Generation> = HashMap::new();
    for n in 0..24 {
        let (reader, author) = (format!("r{}", n % 3), format!("a{}", n % 2));
        let ask = if n % 5 > 2 { unfollow(&reader, &author) } else { follow(&reader, &author) };
        let (reader, author, edge, fresh) = change(&*archive, ask).await;
        let before = last.insert((reader, author), edge.generation).unwrap_or(0);
        assert!(if fresh { edge.generation > before } else { edge.generation == before });
        let bucket = reader.bucket(16);
        for recipient in archive.recipients(author, bucket, 16, None, 100).await.unwrap() {
            let edge = archive.edge(recipient.reader, author).await.unwrap();
            assert_eq!((recipient.generation, recipient.from), (edge.generation, edge.from));
            assert!(recipient.counter >= recipient.generation, "the counter is read with the edge");
        }
    }
}

async fn whole_list(archive: &dyn Archive, of: UserNo, following: bool, limit: usize) -> Vec<Follow> {
    let (mut all, mut cursor) = (vec![], None);
    loop {
        let page = match following {
            true => archive.following(of, cursor, limit).await.unwrap(),
            false => archive.followers(of, cursor, limit).await.unwrap(),
        };
        all.extend(page.iter().cloned());
        if page.len() < limit {
            return all;
        }
        cursor = page.last().map(|follow| follow.cursor);
    }
}

pub(super) async fn lists_show_the_newest_edge_first_and_go_on_at_the_cursor(archive: Arc<dyn Archive>) {
    let names: Vec<String> = (0..7).map(|n| format!("u{n}")).collect();
    for (name, at) in names.iter().zip(0..) {
        write_at(&*archive, follow("rea", name), NOW + at).await.unwrap();
        write_at(&*archive, follow(name, "star"), NOW + at).await.unwrap();
    }
    for ask in [unfollow("rea", "u3"), unfollow("u3", "star"), follow("rea", "u1"), unfollow("rea", "u0")] {
        write_at(&*archive, ask, NOW + 50).await.unwrap();
    }
    for ask in [follow("rea", "u0"), follow("u3", "star")] {
        write_at(&*archive, ask, NOW + 60).await.unwrap();
    }
    let (rea, star) = (number(&*archive, "rea").await, number(&*archive, "star").await);
    let wants_following = [("u0", 60), ("u6", 6), ("u5", 5), ("u4", 4), ("u2", 2), ("u1", 1)];
    let wants_followers = [("u3", 60), ("u6", 6), ("u5", 5), ("u4", 4), ("u2", 2), ("u1", 1), ("u0", 0)];
    for limit in [1, 2, 3, 100] {
        for (of, following, wants) in [(rea, true, &wants_following[..]), (star, false, &wants_followers[..])] {
            let list = whole_list(&*archive, of, following, limit).await;
            let shown: Vec<(&str, i64)> = list.iter().map(|f| (f.user.as_str(), f.since - NOW)).collect();
            assert_eq!(shown, wants);
        }
    }
}

pub(super) async fn follows_of_one_call_are_listed_in_its_order(archive: Arc<dyn Archive>) {
    let mut call = vec![follow("rea", "ann")];
    call.extend((0..5).map(|n| follow("joe", &format!("u{n}"))));
    call.extend([follow("sue", "ben"), follow("rea", "ben")]);
    let answers = archive.write(call, NOW).await.unwrap();
    assert!(answers.iter().all(|answer| answer.as_ref().unwrap().is_fresh()), "{answers:?}");
    let (rea, ben) = (number(&*archive, "rea").await, number(&*archive, "ben").await);
    for (of, following, wants) in [(ben, false, ["rea", "sue"]), (rea, true, ["ben", "ann"])] {
        let list = whole_list(&*archive, of, following, 10).await;
        assert_eq!(list.iter().map(|line| line.user.as_str()).collect::<Vec<_>>(), wants, "the last one first");
    }
}

pub(super) async fn recipients_come_by_number_within_their_bucket(archive: Arc<dyn Archive>) {
    let names: Vec<_> = (0..70).map(|n| user(&format!("r{n}"))).collect();
    let mut readers = archive.intern(&names).await.unwrap();
    for name in names.iter().rev() {
        change(&*archive, follow(name.as_str(), "star")).await;
        change(&*archive, follow(name.as_str(), "other")).await;
    }
    for gone in [3, 20, 69] {
        change(&*archive, unfollow(&format!("r{gone}"), "star")).await;
    }
    readers.retain(|reader| ![3, 20, 69].contains(&(reader.0 - 1)));
    let star = number(&*archive, "star").await;
    for buckets in [1, 4, 16, 48] {
        for bucket in (0..buckets).map(Bucket) {
            let wants: Vec<UserNo> = readers.iter().copied().filter(|r| r.bucket(buckets) == bucket).collect();
            assert_eq!(share(&*archive, star, bucket, buckets).await, wants, "bucket {bucket:?} of {buckets}");
        }
    }
    let mut all = archive.all_recipients(star, 68).await.unwrap();
    all.sort_unstable_by_key(|recipient| recipient.reader);
    assert!(all.iter().map(|recipient| recipient.reader).eq(readers.iter().copied()), "all of them, once");
    for recipient in all {
        let edge = archive.edge(recipient.reader, star).await.unwrap();
        assert_eq!((recipient.generation, recipient.from), (edge.generation, edge.from));
        assert!(recipient.counter >= recipient.generation, "the counter is read with the edge");
    }
    assert_eq!(archive.all_recipients(star, 9).await.unwrap().len(), 9);
    assert_eq!(archive.all_recipients(readers[0], 9).await.unwrap(), []);
}

/// All followers in one bucket, read in pages of three.
async fn share(archive: &dyn Archive, author: UserNo, bucket: Bucket, buckets: u16) -> Vec<UserNo> {
    let (mut all, mut after) = (vec![], None);
    loop {
        let page: Vec<Recipient> = archive.recipients(author, bucket, buckets, after, 3).await.unwrap();
        all.extend(page.iter().map(|recipient| recipient.reader));
        if page.len() < 3 {
            return all;
        }
        after = page.last().map(|recipient| recipient.reader);
    }
}
