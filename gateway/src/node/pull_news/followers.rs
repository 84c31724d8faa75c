//! Finds the followers of an author among the readers of this node, and wakes them.
//!
//! ```text
//!   fewer followers than readers here:  page through the followers, look each up in the pool
//!   else, and where everyone follows:   ask about the readers here, so many at a time
//!
//!   some of them ─▶ their inboxes take in the news ─▶ wake: grown ─▶ each session reads from this node's memory
//!                                  └ where that fails ─▶ wake: look ─▶ each session reads its log
//! ```
//!
//! The next followers wait until the inboxes of the ones before have taken in the news. So a post to a crowd asks the
//! store for no more than some inboxes at a time, and the posts of other authors do not wait behind the crowd. This
//! takes no permits of the readers: the number of authors whose followers are woken at a time is bounded, and so is the
//! number of inboxes of each author (I18).
//!
//! If a follow is added meanwhile, its reader starts after this news; if a follow is removed, its reader may be woken
//! without need.

use std::time::Duration;

use feedgate_common::archive::Recipient;
use feedgate_common::change::Class;
use feedgate_common::error::Result;
use feedgate_common::feed::TakenIn;
use feedgate_common::{Bucket, InboxKey, UserNo};

use crate::node::Node;
use crate::node::bounded::bounded;
use crate::node::paced::paced;

/// How many followers or readers are asked for in one call.
const BATCH: usize = 500;

/// Wakes the author's followers among the readers of this node. Not atomic: if the call fails or is dropped, some
/// followers are not woken. It may be repeated.
pub(super) async fn wake(node: &Node, author: UserNo) -> Result<()> {
    let readers = node.local.pool.users();
    if readers.is_empty() {
        return Ok(());
    }
    let (outboxes, mut waking) = (&node.hot.outboxes, Waking { node, takes: true });
    let about = bounded(outboxes.author(author)).await?;
    if about.class != Class::Everyone && about.followers < readers.len() as u64 {
        return waking.each_follower(author).await;
    }
    for some in readers.chunks(BATCH) {
        waking.all(&bounded(outboxes.followers_among(author, some)).await?).await;
    }
    Ok(())
}

/// The waking of the followers of one author.
struct Waking<'a> {
    node: &'a Node,
    /// Whether the inboxes take in the news before their readers are woken. False once the store has failed to do so:
    /// then each session looks for itself, and sessions that can be served need not wait for others.
    takes: bool,
}

impl Waking<'_> {
    async fn each_follower(&mut self, author: UserNo) -> Result<()> {
        let (outboxes, buckets) = (&self.node.hot.outboxes, self.node.reads.feeds.inboxes().buckets());
        let readers = |some: &[Recipient]| some.iter().map(|to| to.reader).collect::<Vec<_>>();
        let few = bounded(outboxes.all_recipients(author, BATCH)).await?;
        if few.len() < BATCH {
            self.all(&readers(&few)).await;
            return Ok(());
        }
        for bucket in (0..buckets).map(Bucket) {
            let mut after = None;
            loop {
                let some = bounded(outboxes.recipients(author, bucket, buckets, after, BATCH)).await?;
                self.all(&readers(&some)).await;
                if some.len() < BATCH {
                    break;
                }
                after = some.last().map(|to| to.reader);
            }
        }
        Ok(())
    }

    /// Wakes the sessions of these readers on this node, spread over time: by growth if the inbox has taken in the
    /// news, else with [`Wake::LOOK`](crate::node::slot::Wake::LOOK).
    async fn all(&mut self, readers: &[UserNo]) {
        let (pool, feeds) = (&self.node.local.pool, &self.node.reads.feeds);
        let named = feeds.named();
        let keys: Vec<InboxKey> = readers.iter().flat_map(|reader| pool.listened(*reader, &named)).collect();
        let time = Duration::from_secs(keys.len() as u64) / self.node.settings.now().pull_wakes_per_sec;
        let taken = self.take_in(&keys).await;
        let inboxes: Vec<_> = keys.into_iter().zip(taken).collect();
        paced(&inboxes, time, |(key, taken)| match taken {
            Some(TakenIn { head, entries }) => pool.has_grown(*key, *head, entries.iter().copied()),
            None => pool.look_at(*key),
        })
        .await;
        // Without this, a store that answers at once would let this task run without ever giving up its thread.
        tokio::task::yield_now().await;
    }

    /// How each inbox has grown by the news; `None` for an inbox for which this is not known.
    async fn take_in(&mut self, keys: &[InboxKey]) -> Vec<Option<TakenIn>> {
        if self.takes {
            match bounded(self.node.reads.changes.take_in(keys)).await {
                Ok(taken) => return taken,
                Err(error) => tracing::debug!(%error, "sessions look for the news of an author by themselves"),
            }
            self.takes = false;
        }
        vec![None; keys.len()]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use feedgate_common::archive::{Publish, Write, Writes};
    use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds};
    use feedgate_common::graph::Shield;
    use feedgate_common::inboxes::Read;
    use feedgate_common::{Body, FeedId, UserId};
    use feedgate_embedded::Embedded;

    use super::*;
    use crate::node::fixture;
    use crate::node::slot::{Slot, Wake};

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
        let author = node.reads.feeds.archive().intern(&[author.parse().unwrap()]).await.unwrap()[0];
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

    #[tokio::test]
    async fn sessions_are_woken_once_their_inboxes_have_taken_in_the_news_and_read_them_from_memory() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let (node, archive) = (node(&stores), &*stores.archive);
        let seats = fixture::seated(&node, "here", BATCH + 3).await;
        let star: UserId = "star".parse().unwrap();
        let pull = Write::Classify { author: star.clone(), class: Class::Pull };
        let follows = seats.iter().map(|(reader, _)| Write::Follow { reader: reader.clone(), author: star.clone() });
        write(archive, [pull].into_iter().chain(follows)).await;
        let names: Vec<UserId> = seats.iter().map(|(reader, _)| reader.clone()).collect();
        let mut readers: Vec<InboxKey> =
            archive.intern(&names).await.unwrap().into_iter().map(InboxKey::main).collect();
        let (without_inbox, its_seat) = (readers.pop().unwrap(), &seats[BATCH + 2].1);
        let mut own = Vec::new();
        for key in &readers {
            own.push(node.reads.changes.head(*key).await.unwrap());
        }

        let body = Body::parse("{}".to_owned()).unwrap();
        write(archive, [Write::Publish(Publish::new(star.clone(), body))].into_iter()).await;
        node.reads.changes.heard_pull(archive.pull_head().await.unwrap());
        wake(&node, archive.intern(&[star]).await.unwrap()[0]).await.unwrap();
        for ((key, own), (_, slot)) in readers.iter().zip(own).zip(&seats) {
            assert_eq!(slot.take_wake(), Some(Wake::growth(FeedId::MAIN)));
            let Read::Entries { entries, head, .. } = stores.inboxes.read(*key, own, 9).await.unwrap() else {
                panic!()
            };
            assert_eq!((entries.len(), head), (1, own.offset + 1));
            assert_eq!(node.local.pool.growth.after(*key, own, 9), Some((entries, head)));
        }
        assert_eq!(its_seat.take_wake(), Some(Wake::LOOK), "an inbox that is missing is built by who reads it");
        assert_eq!(stores.inboxes.stand(without_inbox).await.unwrap(), None);
    }
}
