//! Finds the followers of an author among the readers of this node, and wakes them.
//!
//! ```text
//!   fewer followers than readers here:  page through the followers, look each up in the pool
//!   else, and where everyone follows:   ask about the readers here, so many at a time
//! ```
//!
//! If a follow is added meanwhile, its reader starts after this news; if one is removed, its reader may be woken in
//! vain.

use std::time::Duration;

use feedgate_common::archive::Recipient;
use feedgate_common::change::Class;
use feedgate_common::error::Result;
use feedgate_common::{Bucket, UserNo};

use crate::node::Node;
use crate::node::bounded::bounded;
use crate::node::paced::paced;
use crate::node::pool::Seat;
use crate::node::slot::Wake;

/// How many followers or readers are asked for in one call.
const BATCH: usize = 500;

/// Wakes the author's followers among the readers of this node. Not atomic: if it fails or is dropped, some are not
/// woken. It may be repeated.
pub(super) async fn wake(node: &Node, author: UserNo) -> Result<()> {
    let readers = node.pool.users();
    if readers.is_empty() {
        return Ok(());
    }
    let outboxes = &node.outboxes;
    let about = bounded(outboxes.author(author)).await?;
    if about.class != Class::Everyone && about.followers < readers.len() as u64 {
        return wake_each_follower(node, author).await;
    }
    for some in readers.chunks(BATCH) {
        wake_all(node, bounded(outboxes.followers_among(author, some)).await?).await;
    }
    Ok(())
}

async fn wake_each_follower(node: &Node, author: UserNo) -> Result<()> {
    let (outboxes, buckets) = (&node.outboxes, node.feeds.inboxes().buckets());
    let readers = |some: &[Recipient]| some.iter().map(|to| to.reader).collect();
    let few = bounded(outboxes.all_recipients(author, BATCH)).await?;
    if few.len() < BATCH {
        wake_all(node, readers(&few)).await;
        return Ok(());
    }
    for bucket in (0..buckets).map(Bucket) {
        let mut after = None;
        loop {
            let some = bounded(outboxes.recipients(author, bucket, buckets, after, BATCH)).await?;
            wake_all(node, readers(&some)).await;
            if some.len() < BATCH {
                break;
            }
            after = some.last().map(|to| to.reader);
        }
    }
    Ok(())
}

/// Wakes every session of these readers on this node, spread over time.
async fn wake_all(node: &Node, readers: Vec<UserNo>) {
    let seats: Vec<Seat> = readers.into_iter().flat_map(|reader| node.pool.seats_of(reader)).collect();
    let per_sec = node.settings.pull_wakes_per_sec;
    let time = Duration::from_secs(seats.len() as u64) / per_sec;
    paced(&seats, time, |Seat { slot, .. }| slot.wake(Wake::LOOK)).await;
    // With a store that answers at once, this task would never give up its thread otherwise.
    tokio::task::yield_now().await;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use feedgate_common::UserId;
    use feedgate_common::archive::{Write, Writes};
    use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds};
    use feedgate_common::graph::Shield;
    use feedgate_embedded::Embedded;

    use super::*;
    use crate::node::fixture;
    use crate::node::slot::Slot;

    fn name(who: &str, n: usize) -> UserId {
        format!("{who}{n}").parse().unwrap()
    }

    fn node(stores: &Embedded) -> Arc<Node> {
        fixture::node(stores, Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL))
    }

    async fn write(archive: &dyn Writes, writes: impl Iterator<Item = Write>) {
        for written in archive.write(writes.collect(), 1).await.unwrap() {
            written.unwrap();
        }
    }

    async fn woken(node: &Node, author: &str, seats: &[(UserId, Arc<Slot>)]) -> BTreeSet<UserId> {
        let author = node.feeds.archive().intern(&[author.parse().unwrap()]).await.unwrap()[0];
        wake(node, author).await.unwrap();
        let woken = seats.iter().filter(|(_, slot)| slot.take_wake() == Some(Wake::LOOK));
        woken.map(|(id, _)| id.clone()).collect()
    }

    #[tokio::test]
    async fn whichever_side_is_smaller_exactly_the_followers_who_are_here_are_woken() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let (node, archive) = (node(&stores), &*stores.archive);
        assert!(woken(&node, "few", &[]).await.is_empty(), "nobody is here");
        let seats = fixture::seated(&node, "here", 3 * BATCH).await;
        let follow = |reader: UserId, author: &str| Write::Follow { reader, author: author.parse().unwrap() };
        let every = |step: usize, author: &'static str| {
            (0..3 * BATCH).step_by(step).map(move |n| follow(name("here", n), author))
        };
        // One page holds all followers of `few`; those of `many` take several pages per bucket; `most` has more
        // followers than there are readers here.
        write(archive, every(20, "few").chain((0..5).map(|n| follow(name("away", n), "few")))).await;
        write(archive, every(2, "many").chain((0..BATCH).map(|n| follow(name("away", n), "many")))).await;
        write(archive, every(3, "most").chain((0..3 * BATCH).map(|n| follow(name("away", n), "most")))).await;
        for (author, step) in [("few", 20), ("many", 2), ("most", 3), ("none", usize::MAX)] {
            let expected: BTreeSet<UserId> = (0..3 * BATCH).step_by(step).map(|n| name("here", n)).collect();
            let expected = if author == "none" { BTreeSet::new() } else { expected };
            assert_eq!(woken(&node, author, &seats).await, expected, "{author}");
        }
    }

    #[tokio::test]
    async fn where_everyone_follows_all_are_woken_but_those_who_said_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let node = node(&stores);
        let seats = fixture::seated(&node, "here", BATCH + 3).await;
        let news: UserId = "news".parse().unwrap();
        let writes = [
            Write::Classify { author: news.clone(), class: Class::Everyone },
            Write::Shield { user: name("here", 1), other: news.clone(), shield: Shield::Mute, up: true },
            Write::Unfollow { reader: name("here", 2), author: news },
        ];
        write(&*stores.archive, writes.into_iter()).await;
        let expected: BTreeSet<UserId> =
            (0..BATCH + 3).filter(|n| ![1, 2].contains(n)).map(|n| name("here", n)).collect();
        assert_eq!(woken(&node, "news", &seats).await, expected);
    }
}
