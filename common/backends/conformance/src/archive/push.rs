//! Tests of push devices and of the notices for them.

use std::sync::Arc;

use feedgate_common::archive::{
    Archive, DeadNotice, Note, Notice, Outcome, PUSH_DEVICES_MAX, PushDevice, Settled, UNREAD_MAX,
};
use feedgate_common::{Bucket, DirectSeq, FeedId, InboxKey, ItemId, Millis, PullSeq, UserNo, Watermarks};

use super::{NOW, accept, change, follow, number, post, to_users};

/// The feeds of the suite besides the main one.
const LIKES: FeedId = FeedId(1);

fn device(name: &str, token: &str, feeds: &[FeedId]) -> PushDevice {
    PushDevice {
        device: name.parse().unwrap(),
        platform: "fcm".into(),
        token: token.into(),
        feeds: feeds.to_vec(),
        since: NOW,
    }
}

/// The numbers of users, each with one device for the main feed.
async fn listeners<const N: usize>(archive: &dyn Archive, names: [&str; N]) -> [UserNo; N] {
    let mut users = [UserNo(0); N];
    for (user, name) in users.iter_mut().zip(names) {
        *user = number(archive, name).await;
        assert!(archive.register(*user, device("d", name, &[FeedId::MAIN])).await.unwrap());
    }
    users
}

fn note(reader: UserNo, item: u64) -> Note {
    Note { key: InboxKey::main(reader), item: ItemId(item), count: 1 }
}

/// What is due at `now`, as (reader, item, count), leased for 100 ms.
async fn due(archive: &dyn Archive, now: Millis) -> Vec<Notice> {
    archive.take_due(now, now + 100, 10).await.unwrap()
}

async fn one_due(archive: &dyn Archive, now: Millis) -> Notice {
    let mut due = due(archive, now).await;
    assert_eq!(due.len(), 1, "{due:?}");
    due.remove(0)
}

async fn settle(archive: &dyn Archive, notice: Notice, outcome: Outcome, now: Millis) {
    archive.settle(&[Settled { notice, outcome }], now).await.unwrap();
}

fn told(notice: &Notice) -> (UserNo, u64, u32, u32) {
    (notice.key.reader, notice.item.0, notice.count, notice.tries)
}

pub(super) async fn a_registered_device_is_listed_until_it_is_taken_away(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("devices").await;
    let [ann, bob] = [number(&*archive, "ann").await, number(&*archive, "bob").await];
    let phone = device("phone", "t1", &[FeedId::MAIN]);
    assert!(archive.register(ann, device("web", "t2", &[FeedId::MAIN, LIKES])).await.unwrap());
    assert!(archive.register(ann, phone.clone()).await.unwrap());
    assert!(archive.register(ann, PushDevice { since: NOW + 1, ..phone.clone() }).await.unwrap());
    let listed = archive.push_devices(&[bob, ann]).await.unwrap();
    assert_eq!(listed, [vec![], vec![phone.clone(), device("web", "t2", &[FeedId::MAIN, LIKES])]]);

    let newer = PushDevice { token: "t3".into(), since: NOW + 2, ..phone };
    assert!(archive.register(ann, newer.clone()).await.unwrap());
    assert!(!archive.unregister(ann, &newer.device, Some("t1")).await.unwrap(), "it has another token by now");
    assert_eq!(archive.push_devices(&[ann]).await.unwrap()[0][0], newer);
    assert!(archive.unregister(ann, &newer.device, Some("t3")).await.unwrap());
    assert!(!archive.unregister(ann, &newer.device, None).await.unwrap(), "it is gone already");
    drop(archive);

    let archive = open("devices").await;
    assert_eq!(archive.push_devices(&[ann]).await.unwrap()[0].len(), 1);
    assert!(archive.unregister(ann, &"web".parse().unwrap(), None).await.unwrap());
    assert_eq!(archive.push_devices(&[ann]).await.unwrap(), [vec![]]);
}

pub(super) async fn a_user_has_so_many_devices_and_no_more(archive: Arc<dyn Archive>) {
    let ann = number(&*archive, "ann").await;
    for n in 0..PUSH_DEVICES_MAX {
        assert!(archive.register(ann, device(&format!("d{n}"), "t", &[FeedId::MAIN])).await.unwrap());
    }
    assert!(!archive.register(ann, device("one-more", "t", &[FeedId::MAIN])).await.unwrap());
    assert!(archive.register(ann, device("d0", "other", &[FeedId::MAIN])).await.unwrap(), "one of them again");
    assert_eq!(archive.push_devices(&[ann]).await.unwrap()[0].len(), PUSH_DEVICES_MAX);
}

pub(super) async fn a_push_step_is_told_who_listens(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("listens").await;
    let (bob, ann, ..) = change(&*archive, follow("bob", "ann")).await;
    let (eve, ..) = change(&*archive, follow("eve", "ann")).await;
    let listening = async |archive: &dyn Archive| {
        let mut all: Vec<UserNo> = vec![];
        for recipient in archive.all_recipients(ann, 10).await.unwrap() {
            let bucket = recipient.reader.bucket(16);
            let some = archive.recipients(ann, Bucket(bucket.0), 16, None, 10).await.unwrap();
            assert!(some.contains(&recipient), "both lists say the same");
            all.extend(recipient.listens.then_some(recipient.reader));
        }
        all
    };
    assert_eq!(listening(&*archive).await, []);
    archive.register(bob, device("d", "t", &[FeedId::MAIN])).await.unwrap();
    archive.register(eve, device("d", "t", &[FeedId::MAIN])).await.unwrap();
    archive.unregister(eve, &"d".parse().unwrap(), None).await.unwrap();
    assert_eq!(listening(&*archive).await, [bob]);
    drop(archive);
    assert_eq!(listening(&*open("listens").await).await, [bob], "after a restart too");
}

pub(super) async fn notes_of_one_reader_and_feed_are_one_notice(archive: Arc<dyn Archive>) {
    let [ann, bob] = listeners(&*archive, ["ann", "bob"]).await;
    let nobody = number(&*archive, "nobody").await;
    let likes = Note { key: InboxKey { reader: bob, feed: LIKES }, ..note(bob, 9) };
    archive.note(&[note(ann, 1), note(bob, 1), note(nobody, 1), likes], NOW, None).await.unwrap();
    for item in [2, 3, 3] {
        archive.note(&[note(ann, item)], NOW + 50, None).await.unwrap();
    }
    assert_eq!(due(&*archive, NOW - 1).await, []);
    let mut taken = due(&*archive, NOW).await;
    taken.sort_by_key(|notice| notice.key.reader);
    assert_eq!(taken.iter().map(told).collect::<Vec<_>>(), [(ann, 3, 3, 0), (bob, 1, 1, 0)], "and only wanted feeds");
    assert_ne!(taken[0].number, taken[1].number);

    archive.note(&[Note { count: 5000, ..note(ann, 4) }], NOW, None).await.unwrap();
    assert_eq!(due(&*archive, NOW + 99).await, [], "both are leased");
    let again = archive.take_due(NOW + 100, NOW + 200, 10).await.unwrap();
    let ann_again = again.iter().find(|notice| notice.key.reader == ann).unwrap();
    assert_eq!(told(ann_again), (ann, 4, UNREAD_MAX, 0));
    assert_ne!(ann_again.number, taken[0].number, "it tells something else");
    let bob_again = again.iter().find(|notice| notice.key.reader == bob).unwrap();
    assert_eq!(*bob_again, taken[1], "a lease that has run out gives the same notice again");
}

pub(super) async fn a_notice_that_was_sent_rests_and_a_newer_note_makes_it_due_again(archive: Arc<dyn Archive>) {
    let [ann] = listeners(&*archive, ["ann"]).await;
    archive.note(&[note(ann, 1)], NOW, None).await.unwrap();
    let first = one_due(&*archive, NOW).await;
    // A newer note comes while the first is on its way.
    archive.note(&[note(ann, 2)], NOW, None).await.unwrap();
    let quiet_until = NOW + 1000;
    settle(&*archive, first, Outcome::Sent { quiet_until }, NOW + 1).await;
    assert_eq!(due(&*archive, quiet_until - 1).await, []);
    let second = one_due(&*archive, quiet_until).await;
    assert_eq!(told(&second), (ann, 2, 1, 0));
    settle(&*archive, second, Outcome::Sent { quiet_until: quiet_until + 1000 }, quiet_until).await;
    settle(&*archive, second, Outcome::Dropped, quiet_until).await;
    archive.note(&[note(ann, 2)], NOW, None).await.unwrap();
    assert_eq!(due(&*archive, quiet_until + 999).await, [], "a repeated note is nothing");
    archive.note(&[note(ann, 3)], quiet_until + 5, None).await.unwrap();
    assert_eq!(due(&*archive, quiet_until + 999).await, [], "not sooner after the one before");
    let third = one_due(&*archive, quiet_until + 1000).await;
    assert_eq!(told(&third), (ann, 3, 1, 0));
    settle(&*archive, third, Outcome::Sent { quiet_until: 0 }, NOW).await;
    assert_eq!(due(&*archive, Millis::MAX - 1000).await, [], "what was sent is forgotten");
    archive.note(&[note(ann, 3)], NOW, None).await.unwrap();
    let fourth = one_due(&*archive, NOW).await;
    settle(&*archive, fourth, Outcome::Dropped, NOW).await;
    assert_eq!(due(&*archive, Millis::MAX - 1000).await, []);
}

pub(super) async fn a_notice_is_tried_again_until_it_is_dead(open: impl AsyncFn(&str) -> Arc<dyn Archive>) {
    let archive = open("dead").await;
    let [ann, bob] = listeners(&*archive, ["ann", "bob"]).await;
    archive.note(&[note(ann, 1), note(bob, 1)], NOW, None).await.unwrap();
    let mut taken = due(&*archive, NOW).await;
    taken.sort_by_key(|notice| notice.key.reader);
    settle(&*archive, taken[0], Outcome::Later { due: NOW + 500 }, NOW).await;
    settle(&*archive, taken[1], Outcome::Dead { why: "it was tired".to_owned(), at: NOW + 1 }, NOW).await;
    let again = one_due(&*archive, NOW + 500).await;
    assert_eq!(told(&again), (ann, 1, 1, 1));
    assert_eq!(again.number, taken[0].number, "it tells what it told before");
    settle(&*archive, again, Outcome::Dead { why: "no".to_owned(), at: NOW + 2 }, NOW).await;
    drop(archive);

    let archive = open("dead").await;
    let dead = archive.dead(None, 10).await.unwrap();
    assert_eq!(dead[1], DeadNotice { notice: taken[1], why: "it was tired".to_owned(), at: NOW + 1 });
    assert_eq!((told(&dead[0].notice), dead.len()), ((ann, 1, 1, 1), 2));
    assert_eq!(archive.dead(Some(dead[0].notice.key), 10).await.unwrap(), dead[1..]);
    assert_eq!(due(&*archive, Millis::MAX - 1000).await, []);
    assert_eq!(archive.retry_dead(Some(bob), NOW + 3, 10).await.unwrap(), 1);
    let revived = one_due(&*archive, NOW + 3).await;
    assert_eq!((told(&revived), revived.number), ((bob, 1, 1, 0), taken[1].number));
    assert_eq!(archive.forget_dead(Some(bob), 10).await.unwrap(), 0);
    assert_eq!(archive.forget_dead(None, 10).await.unwrap(), 1);
    assert_eq!(archive.dead(None, 10).await.unwrap(), []);
}

pub(super) async fn a_newer_note_outlives_the_end_of_the_one_before(archive: Arc<dyn Archive>) {
    let [ann, bob] = listeners(&*archive, ["ann", "bob"]).await;
    for (reader, outcome) in [(ann, Outcome::Dropped), (bob, Outcome::Dead { why: String::new(), at: NOW })] {
        archive.note(&[note(reader, 1)], NOW, None).await.unwrap();
        let first = one_due(&*archive, NOW).await;
        archive.note(&[note(reader, 2)], NOW, None).await.unwrap();
        settle(&*archive, first, outcome, NOW + 7).await;
        let second = one_due(&*archive, NOW + 7).await;
        assert_eq!(told(&second), (reader, 2, 1, 0));
        settle(&*archive, second, Outcome::Dropped, NOW).await;
    }
    assert_eq!(archive.dead(None, 10).await.unwrap(), []);
}

pub(super) async fn notes_that_come_at_the_same_time_are_all_counted(archive: Arc<dyn Archive>) {
    let users = listeners(&*archive, ["ann", "bob", "eve"]).await;
    let workers = (1..=6).map(|item| {
        let archive = archive.clone();
        tokio::spawn(async move {
            // Each worker names the readers in another order.
            let mut notes = users.map(|reader| note(reader, item)).to_vec();
            notes.rotate_left(item as usize % users.len());
            archive.note(&notes, NOW, None).await.expect("the archive works");
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.expect("no task panics");
    }
    let mut counts: Vec<_> = due(&*archive, NOW).await.iter().map(|notice| (notice.key.reader, notice.count)).collect();
    counts.sort_unstable();
    assert_eq!(counts, users.map(|reader| (reader, 6)));
}

pub(super) async fn due_notices_are_taken_by_one_each(archive: Arc<dyn Archive>) {
    let ann = number(&*archive, "ann").await;
    let feeds: Vec<FeedId> = (0..40).map(FeedId).collect();
    archive.register(ann, device("d", "t", &feeds)).await.unwrap();
    let notes: Vec<Note> =
        feeds.iter().map(|&feed| Note { key: InboxKey { reader: ann, feed }, ..note(ann, 1) }).collect();
    archive.note(&notes, NOW, None).await.unwrap();
    let takers = [(); 4].map(|()| {
        let archive = archive.clone();
        tokio::spawn(async move {
            let mut all = vec![];
            loop {
                let some = archive.take_due(NOW, NOW + 1000, 3).await.expect("the archive works");
                if some.is_empty() {
                    return all;
                }
                all.extend(some);
            }
        })
    });
    let mut all = vec![];
    for taker in takers {
        all.extend(taker.await.expect("no task panics").into_iter().map(|notice| notice.key.feed));
    }
    // A taker that skips notices which others have locked may end early; the notices that are left go to the next call.
    all.extend(archive.take_due(NOW, NOW + 1000, 40).await.unwrap().into_iter().map(|notice| notice.key.feed));
    all.sort_unstable();
    assert_eq!(all, feeds);
}

pub(super) async fn a_notice_that_is_due_is_taken_however_many_were_sent_before_it(archive: Arc<dyn Archive>) {
    let ann = number(&*archive, "ann").await;
    let feeds: Vec<FeedId> = (0..40).map(FeedId).collect();
    archive.register(ann, device("d", "t", &feeds)).await.unwrap();
    let of = |&feed: &FeedId| Note { key: InboxKey { reader: ann, feed }, ..note(ann, 1) };
    archive.note(&feeds.iter().map(of).collect::<Vec<_>>(), NOW, None).await.unwrap();
    let sent = |notice: Notice| Settled { notice, outcome: Outcome::Sent { quiet_until: NOW + 1 } };
    let taken = archive.take_due(NOW, NOW + 1000, 40).await.unwrap();
    archive.settle(&taken.into_iter().map(sent).collect::<Vec<_>>(), NOW).await.unwrap();
    let [bob, eve] = listeners(&*archive, ["bob", "eve"]).await;
    archive.note(&[note(bob, 2)], NOW + 2, None).await.unwrap();
    archive.note(&[note(eve, 3)], NOW + 3, None).await.unwrap();
    let mut due = archive.take_due(NOW + 9, NOW + 1000, 2).await.unwrap();
    due.sort_by_key(|notice| notice.item);
    assert_eq!(due.iter().map(told).collect::<Vec<_>>(), [(bob, 2, 1, 0), (eve, 3, 1, 0)]);
}

pub(super) async fn what_is_addressed_is_noted_from_the_first_device_on(archive: Arc<dyn Archive>) {
    let bob = number(&*archive, "bob").await;
    let noted = async || {
        let beyond = Watermarks { pull: PullSeq::MAX, direct: DirectSeq::MAX };
        archive.news(InboxKey::main(bob), beyond, 1).await.unwrap().noted
    };
    accept(&*archive, to_users("ann", "before", &["bob"]), NOW).await;
    accept(&*archive, post("ann", "to all"), NOW).await;
    assert_eq!(noted().await, None);
    archive.register(bob, device("d", "t", &[FeedId::MAIN])).await.unwrap();
    assert_eq!(noted().await, Some(1));
    accept(&*archive, to_users("ann", "after", &["bob"]), NOW).await;
    archive.note(&[], NOW, Some((bob, 2))).await.unwrap();
    archive.note(&[], NOW, Some((bob, 1))).await.unwrap();
    archive.register(bob, device("e", "t", &[FeedId::MAIN])).await.unwrap();
    assert_eq!(noted().await, Some(2), "it only moves forward");
    for name in ["d", "e"] {
        archive.unregister(bob, &name.parse().unwrap(), None).await.unwrap();
    }
    assert_eq!(noted().await, None);
}
