//! Tests of revocations: they outlive a restart, only move forward, and no node that follows the list misses one.

use std::sync::Arc;

use feedgate_common::archive::{Archive, Revocation, Write};
use feedgate_common::{Millis, UserNo};

use super::{NOW, number, post, write};

/// The numbers of users who exist because each has published.
async fn users(archive: &dyn Archive, names: [&str; 2]) -> [UserNo; 2] {
    for name in names {
        write(archive, Write::Publish(post(name, "x"))).await.expect("a new item is accepted");
    }
    [number(archive, names[0]).await, number(archive, names[1]).await]
}

/// The user and the time of each revocation beyond `after`.
async fn listed(archive: &dyn Archive, after: u64) -> Vec<(UserNo, Millis)> {
    let list: Vec<Revocation> = archive.revocations(after, 100).await.expect("the archive works");
    assert!(list.is_sorted_by(|one, next| one.number < next.number) && list.iter().all(|one| one.number > after));
    list.into_iter().map(|one| (one.user, one.before)).collect()
}

pub(super) async fn a_revocation_only_moves_forward_and_outlives_a_restart(
    open: impl AsyncFn(&str) -> Arc<dyn Archive>,
) {
    let archive = open("revoked").await;
    let [ann, bob] = users(&*archive, ["ann", "bob"]).await;
    assert_eq!((archive.revoked(ann).await.unwrap(), archive.last_revocation().await.unwrap()), (None, 0));
    for (user, before) in [(ann, NOW), (bob, NOW + 1), (ann, NOW - 1)] {
        archive.revoke(user, before).await.unwrap();
    }
    assert_eq!(archive.revoked(ann).await.unwrap(), Some(NOW), "an earlier time changes nothing");
    assert_eq!(listed(&*archive, 0).await, [(bob, NOW + 1), (ann, NOW)], "each user once, by the newest");
    let last = archive.last_revocation().await.unwrap();
    drop(archive);

    let archive = open("revoked").await;
    assert_eq!(archive.revoked(bob).await.unwrap(), Some(NOW + 1));
    assert_eq!(archive.last_revocation().await.unwrap(), last);
    assert_eq!(listed(&*archive, last).await, []);
    archive.revoke(bob, NOW + 2).await.unwrap();
    assert_eq!(listed(&*archive, last).await, [(bob, NOW + 2)]);
    assert_eq!(archive.revocations(0, 1).await.unwrap().len(), 1, "no more than asked for");
}

/// One task follows the list while others revoke: by the time a revocation is answered, its number is beyond every
/// number that was seen without it.
pub(super) async fn who_follows_the_list_misses_no_revocation(archive: Arc<dyn Archive>) {
    let users = users(&*archive, ["ann", "bob"]).await;
    let revoking = users.map(|user| {
        let archive = archive.clone();
        tokio::spawn(async move {
            for nth in 1..=50 {
                archive.revoke(user, nth).await.expect("the archive works");
            }
        })
    });
    let (mut after, mut newest) = (0, [0; 2]);
    while newest != [50; 2] {
        for one in archive.revocations(after, 1).await.expect("the archive works") {
            let at = users.iter().position(|user| *user == one.user).expect("one of the two");
            assert!(one.number > after && one.before >= newest[at], "the list goes on");
            (after, newest[at]) = (one.number, one.before);
        }
        tokio::task::yield_now().await;
    }
    for one in revoking {
        one.await.expect("no task panics");
    }
    assert_eq!(archive.last_revocation().await.unwrap(), 100, "each has taken a number");
}
