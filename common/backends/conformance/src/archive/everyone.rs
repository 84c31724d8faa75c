//! Tests of authors whom everyone follows.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Below, Edge, Refused, Written};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::{Cut, InboxKey, ItemId, Progress, UserNo, Watermarks};

use super::{NOW, OneEdge, accept, change, classify, follow, number, post, shield, unfollow, user, write};

/// The author `all`, with one item from before everyone followed and one from after that.
async fn herald(archive: &dyn Archive) -> (UserNo, ItemId, ItemId) {
    let (before, _) = accept(archive, post("all", "before"), NOW).await;
    write(archive, classify("all", Class::Everyone)).await.expect("nothing stands against it");
    let (since, _) = accept(archive, post("all", "since"), NOW + 1).await;
    (number(archive, "all").await, before, since)
}

async fn feed(archive: &dyn Archive, reader: UserNo) -> Vec<ItemId> {
    let feed = archive.feed_below(InboxKey::main(reader), Below::newest(100), 100).await.expect("the archive works");
    feed.iter().map(|add| add.key.item).collect()
}

/// Also users who come later follow, and nobody needs a row for that.
pub(super) async fn everyone_follows_from_then_on(archive: Arc<dyn Archive>) {
    let (all, _, since) = herald(&*archive).await;
    let reader = number(&*archive, "rea").await;
    let edge = Edge { on: true, generation: 0, from: 1 };
    assert_eq!(archive.edge(reader, all).await.unwrap(), edge);
    assert_eq!(archive.followees(reader).await.unwrap(), [all]);
    assert_eq!(archive.followers_among(all, &[reader]).await.unwrap(), [reader]);
    assert_eq!(feed(&*archive, reader).await, [since], "nothing from before");
    let news = archive.news(InboxKey::main(reader), Watermarks::default(), 10).await.unwrap();
    assert_eq!(news.entries.iter().map(|entry| (entry.key.item, entry.generation)).collect::<Vec<_>>(), [(since, 0)]);
    for (pull, count) in [(0, 0), (1, 1)] {
        let state = archive
            .edge_state(InboxKey::main(reader), all, Cut { progress: Progress::at(9), pull }, 100)
            .await
            .unwrap();
        assert_eq!((state.edge, state.adds.len()), (edge, count));
    }
    let built = archive.build(InboxKey::main(reader), &[], 100, 100).await.unwrap();
    assert_eq!(built.adds.iter().map(|add| add.key.item).collect::<Vec<_>>(), [since]);
    assert_eq!((built.taken.pull, built.ahead), (1, vec![]));
    assert_eq!(archive.all_recipients(all, 10).await.unwrap(), [], "nobody is pushed to");
    assert_eq!(archive.following(reader, None, 10).await.unwrap(), [], "lists show who asked");
    assert_eq!(archive.author(all).await.unwrap().followers, 0);
}

pub(super) async fn who_is_followed_by_everyone_stays_so(archive: Arc<dyn Archive>) {
    let (all, ..) = herald(&*archive).await;
    for class in [Class::Auto, Class::Push, Class::Pull] {
        let answer = write(&*archive, classify("all", class)).await;
        assert_eq!(answer, Err(Refused::StaysEveryones(user("all"))));
    }
    let again = write(&*archive, classify("all", Class::Everyone)).await;
    assert_eq!(again, Ok(Written::Classified { author: all, fresh: false }));
    let reader = number(&*archive, "rea").await;
    assert_eq!(archive.edge(reader, all).await.unwrap().from, 1, "since the first time");
    assert_eq!(archive.author(all).await.unwrap().class, Class::Everyone);
}

pub(super) async fn a_reader_may_leave_whom_everyone_follows_and_come_back(archive: Arc<dyn Archive>) {
    let (all, before, since) = herald(&*archive).await;
    let (reader, _, off, fresh) = change(&*archive, unfollow("rea", "all")).await;
    assert!(fresh && !off.on && off.generation > 0, "{off:?}");
    assert_eq!(feed(&*archive, reader).await, []);
    assert_eq!(archive.news(InboxKey::main(reader), Watermarks::default(), 10).await.unwrap().entries, []);
    assert_eq!(archive.build(InboxKey::main(reader), &[], 100, 100).await.unwrap().adds, []);
    let (.., on, fresh) = change(&*archive, follow("rea", "all")).await;
    assert!(fresh && on.on && on.generation > off.generation && on.from == 2);
    assert_eq!(feed(&*archive, reader).await, [since, before], "a follow of one's own brings the newest");
    assert_eq!(archive.following(reader, None, 10).await.unwrap().len(), 1);

    let mute = async |up| write(&*archive, shield("mut", Shield::Mute, "all", up)).await;
    let muter = number(&*archive, "mut").await;
    assert_eq!(mute(true).await, Ok(Written::Shielded { edges: vec![(muter, all)], fresh: true }));
    assert_eq!((feed(&*archive, muter).await, archive.edge(muter, all).await.unwrap().on), (vec![], false));
    assert_eq!(mute(false).await, Ok(Written::Shielded { edges: vec![(muter, all)], fresh: true }));
    assert_eq!(feed(&*archive, muter).await, [since, before]);
    assert_eq!(archive.following(muter, None, 10).await.unwrap().len(), 1, "who mutes was following");
}

pub(super) async fn a_follow_beside_everyones_is_listed_and_changes_no_feed(archive: Arc<dyn Archive>) {
    let (all, _, since) = herald(&*archive).await;
    let reader = number(&*archive, "rea").await;
    let implied = archive.edge(reader, all).await.unwrap();
    assert_eq!(change(&*archive, follow("rea", "all")).await, (reader, all, implied, true));
    assert_eq!(change(&*archive, follow("rea", "all")).await, (reader, all, implied, false));
    assert_eq!(feed(&*archive, reader).await, [since]);
    assert_eq!(archive.following(reader, None, 10).await.unwrap().len(), 1);
    assert_eq!(archive.followers(all, None, 10).await.unwrap().len(), 1);
    assert_eq!(archive.author(all).await.unwrap().followers, 1);
    let (.., off, _) = change(&*archive, unfollow("rea", "all")).await;
    assert!(!off.on && off.generation > 0);
}

/// A reader's own follow or unfollow counts, also one from before everyone followed.
pub(super) async fn who_had_an_edge_before_keeps_it(archive: Arc<dyn Archive>) {
    let (fan, _, edge, _) = change(&*archive, follow("fan", "all")).await;
    change(&*archive, follow("left", "all")).await;
    let (left, _, off, _) = change(&*archive, unfollow("left", "all")).await;
    let (all, before, since) = herald(&*archive).await;
    assert_eq!(archive.edge(fan, all).await.unwrap(), edge);
    assert_eq!(archive.edge(left, all).await.unwrap(), off);
    assert_eq!((feed(&*archive, fan).await, feed(&*archive, left).await), (vec![since, before], vec![]));
    let other = number(&*archive, "other").await;
    let mut among = archive.followers_among(all, &[fan, left, all, other]).await.unwrap();
    among.sort_unstable();
    let mut wants = [fan, other];
    wants.sort_unstable();
    assert_eq!(among, wants, "everyone but for who left, and but for the author");
}
