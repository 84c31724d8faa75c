//! What no push brings, and inboxes that nobody reads.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::town::{BACKFILL, NOW, Town, eventually, settings};
use async_trait::async_trait;
use feedgate_common::archive::{Audience, Publish, PullHead, Write};
use feedgate_common::change::Class;
use feedgate_common::doorbell::{Closing, Growth, Heard, Listening, OnHeard, Onlooker, Stir};
use feedgate_common::error::Result;
use feedgate_common::feed::{Changes, Feeds};
use feedgate_common::import::Import;
use feedgate_common::{Archive, Doorbell, InboxKey, Op, UserNo, Watermarks};
use feedgate_timeline::Settings;
use feedgate_timeline::fanout::Step;

/// What a node was told, in order.
#[derive(Default)]
struct Told {
    hot: Mutex<Vec<PullHead>>,
    grown: Mutex<Vec<InboxKey>>,
}

impl Told {
    fn listen(self: &Arc<Self>, town: &Town) -> Listening {
        let told = self.clone();
        town.stores.doorbell.listen(Arc::new(move |heard| match heard {
            Heard::Hot(head) => told.hot.lock().expect("no test panics with it").push(head),
            Heard::Growth(growth) => {
                told.grown.lock().expect("no test panics with it").extend(growth.inboxes.iter().map(|grown| grown.key));
            }
            Heard::Missed
            | Heard::Close { .. }
            | Heard::Confirm(_)
            | Heard::Message { .. }
            | Heard::Seen(_)
            | Heard::Stirred(_) => {}
        }))
    }
}

/// A doorbell at whose first ring a post is accepted that nobody relays.
struct Meanwhile {
    inner: Arc<dyn Doorbell>,
    archive: Arc<dyn Archive>,
    post: Mutex<Option<Publish>>,
}

#[async_trait]
impl Doorbell for Meanwhile {
    async fn ring(&self, growth: &Growth) {
        let post = self.post.lock().expect("no test panics with it").take();
        if let Some(post) = post {
            self.archive.write(vec![Write::Publish(post)], NOW).await.unwrap();
        }
        self.inner.ring(growth).await;
    }

    async fn hot(&self, head: PullHead) {
        self.inner.hot(head).await;
    }

    async fn close(&self, node: &str, user: UserNo, connection: u64, why: Closing) -> bool {
        self.inner.close(node, user, connection, why).await
    }

    async fn pass(&self, node: &str, session: u128, message: &[u8]) {
        self.inner.pass(node, session, message).await;
    }

    async fn seen(&self, by: Onlooker<'_>) {
        self.inner.seen(by).await;
    }

    async fn stirred(&self, stir: &Stir) {
        self.inner.stirred(stir).await;
    }

    async fn confirm(&self, users: &[UserNo]) {
        self.inner.confirm(users).await;
    }

    fn listen(&self, on_heard: OnHeard) -> Listening {
        self.inner.listen(on_heard)
    }

    async fn ping(&self) -> Result<()> {
        self.inner.ping().await
    }
}

/// How far the reader's inbox is, and how long; nobody reads it for that.
async fn stands(town: &Town, reader: usize) -> (Watermarks, u64) {
    let stand = town.stores.inboxes.stand(town.key(reader)).await.unwrap().expect("an inbox");
    (stand.taken, stand.head.offset)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_is_pulled_reaches_no_inbox_by_push_rings_hot_once_and_is_taken_in_by_the_next_read() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 3).await;
    let before = stands(&town, 1).await;
    town.classify(0, Class::Pull).await;
    let told = Arc::new(Told::default());
    let _listening = told.listen(&town);
    town.publish(0, 100).await;
    town.deliver().await;
    assert_eq!(*told.hot.lock().unwrap(), [PullHead { pull_seq: 1, author: town.no(0) }]);
    assert_eq!(*told.grown.lock().unwrap(), []);
    assert_eq!(stands(&town, 1).await, before, "whoever does not read costs nothing");
    assert_eq!(town.shown(1).await, BTreeSet::from([100]));
    assert_eq!(stands(&town, 1).await, (Watermarks { pull: 1, direct: 0 }, before.1 + 1));
    assert_eq!(stands(&town, 2).await, before, "each reader takes it alone");
}

/// The author has more followers than a step takes, so it goes bucket by bucket; here one after the other, and the post
/// comes while the first is not through.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_is_pulled_and_comes_while_one_that_is_pushed_is_on_its_way_rings_hot_too() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 5).await;
    town.publish(0, 100).await;
    town.classify(0, Class::Pull).await;
    let told = Arc::new(Told::default());
    let _listening = told.listen(&town);
    let (inner, archive) = (town.stores.doorbell.clone(), town.stores.archive.clone());
    let doorbell = Meanwhile { inner, archive, post: Mutex::new(Some(town.item(0, 101))) };
    let in_turn = Settings { buckets_at_once: 1, ..settings() };
    let worker = town.worker_on(town.stores.jobs.clone(), Arc::new(doorbell), in_turn);
    town.drained().await;
    worker.stop().await;
    assert_eq!(*told.hot.lock().unwrap(), [PullHead { pull_seq: 1, author: town.no(0) }]);
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101]));
}

/// One reader reads after each post, one only in the end; one comes in the middle, one returns to a dropped inbox.
#[tokio::test(flavor = "multi_thread")]
async fn i13_an_author_who_crosses_from_push_to_pull_and_back_shows_every_item_once() {
    const USERS: usize = 5;
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), USERS).await;
    town.unfollow(3, 0).await;
    let classes = [Class::Push, Class::Push, Class::Pull, Class::Pull, Class::Push, Class::Pull, Class::Push];
    for (class, id) in classes.into_iter().zip(1..) {
        town.classify(0, class).await;
        town.publish(0, id).await;
        match id {
            3 => town.edit(1).await,
            5 => town.delete(3).await,
            6 => town.delete(2).await,
            _ => {}
        }
        town.deliver().await;
        town.log(1).await;
        if id == 4 {
            town.follow(3, 0).await;
            town.stores.inboxes.discard(town.key(4)).await.unwrap();
        }
    }
    let all = BTreeSet::from([1, 4, 5, 6, 7]);
    let since_4 = BTreeSet::from([4, 5, 6, 7]);
    assert_eq!(BACKFILL, 3, "of 2, 3 and 4 one is left");
    for (reader, wants) in [(1, &all), (2, &all), (3, &since_4)] {
        assert_eq!(town.shown(reader).await, *wants, "reader {reader}");
        let entries = town.entries(reader).await;
        for item in wants {
            let adds = entries.iter().filter(|entry| entry.op == Op::Add && entry.key.item.0 == *item);
            assert_eq!(adds.count(), 1, "reader {reader}: item {item}");
        }
    }
    assert_eq!(town.shown(4).await, all, "who returns");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_addressed_to_a_reader_comes_at_once_and_stays_when_its_author_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 4).await;
    town.unfollow(2, 0).await;
    town.deliver().await;
    let told = Arc::new(Told::default());
    let _listening = told.listen(&town);
    town.publish_to(0, 200, &[1, 2]).await;
    town.deliver().await;
    let grown = BTreeSet::from_iter(told.grown.lock().unwrap().clone());
    assert_eq!(grown, BTreeSet::from([town.key(1), town.key(2)]), "these are woken, and nobody else");
    assert_eq!(stands(&town, 1).await.0, Watermarks { pull: 0, direct: 1 });
    town.publish(0, 100).await;
    town.unfollow(1, 0).await;
    town.deliver().await;
    for (reader, wants) in [(1, vec![200]), (2, vec![200]), (3, vec![100])] {
        assert_eq!(town.shown(reader).await, BTreeSet::from_iter(wants), "reader {reader}");
    }
    town.delete(200).await;
    town.deliver().await;
    assert_eq!((town.shown(1).await, town.shown(2).await), (BTreeSet::new(), BTreeSet::new()));
}

#[tokio::test(flavor = "multi_thread")]
async fn i4_a_step_that_brings_what_is_pushed_also_tells_of_what_it_passes_by() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 2).await;
    town.publish(0, 100).await;
    town.classify(0, Class::Pull).await;
    town.publish(0, 101).await;
    let fan_out = town.fan_out();
    let bucket = town.no(1).bucket(town.stores.inboxes.buckets());
    let step = fan_out.advance(town.no(0), bucket).await.unwrap();
    let Step::Moved { growth, hot } = step else { panic!("{step:?}") };
    assert_eq!((growth.records.len(), hot.map(|head| head.pull_seq)), (1, Some(1)));
    let left = fan_out.advance(town.no(0), bucket).await.unwrap();
    assert!(matches!(left, Step::AtHead(_)), "one step has passed both: {left:?}");
}

/// The inboxes were read last in 1970.
#[tokio::test(flavor = "multi_thread")]
async fn i4_an_inbox_that_the_cleaner_has_dropped_is_passed_by_and_rebuilt_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 3).await;
    let (archive, inboxes) = (town.stores.archive.clone(), town.stores.inboxes.clone());
    let second = Duration::from_secs(1);
    let read_long_ago = Feeds::new(archive, inboxes.clone(), BACKFILL).with_retention(second, Arc::new(|| NOW));
    let before = Changes::new(Arc::new(read_long_ago)).head(town.key(1)).await.unwrap();
    town.visit(2).await;
    for reader in [1, 2] {
        town.follow(reader, 0).await;
    }
    town.publish(0, 100).await;
    let often = Settings { clean_every: Duration::from_millis(5), ..settings() };
    let worker = town.worker_on(town.stores.jobs.clone(), town.stores.doorbell.clone(), often);
    eventually("the inbox is dropped", async || inboxes.stand(town.key(1)).await.unwrap().is_none()).await;
    town.publish(0, 101).await;
    town.publish_to(0, 200, &[1]).await;
    town.classify(0, Class::Pull).await;
    town.publish(0, 102).await;
    town.drained().await;
    worker.stop().await;
    assert_eq!(inboxes.stand(town.key(1)).await.unwrap(), None, "nothing that passes by brings it back");
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101, 102, 200]));
    assert!(town.log(1).await.head.epoch > before.epoch);
    assert_eq!(town.shown(2).await, BTreeSet::from([100, 101, 102]), "who is kept stays as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_ends_however_fast_more_comes_to_be_pulled() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 2).await;
    town.classify(0, Class::Pull).await;
    let mut posts = 0;
    let mut post = async || {
        posts += 1;
        town.publish(0, 100 + posts).await;
        town.changes.heard_pull(posts);
    };
    post().await;
    let mut reading = std::pin::pin!(town.changes.log(town.key(1)));
    let log = loop {
        match futures_util::poll!(&mut reading) {
            std::task::Poll::Ready(read) => break read.unwrap(),
            std::task::Poll::Pending => post().await,
        }
    };
    assert!(log.taken.pull >= 1, "what was there when it began");
    assert_eq!(town.shown(1).await.len() as u64, posts, "and the next one finds the rest");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_the_archive_does_not_have_holds_up_no_read() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 2).await;
    town.classify(0, Class::Pull).await;
    town.publish(0, 100).await;
    town.changes.heard_pull(1000);
    assert_eq!(town.shown(1).await, BTreeSet::from([100]));
    town.publish(0, 101).await;
    town.deliver().await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101]), "what comes is heard of as ever");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_been_away_takes_in_however_much_there_is_by_one_read() {
    const POSTS: u64 = 200;
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 2).await;
    town.classify(0, Class::Pull).await;
    let before = stands(&town, 1).await.1;
    let posts = (1..=POSTS).map(|id| Write::Publish(town.item(0, id))).collect();
    town.stores.archive.write(posts, NOW).await.unwrap();
    town.changes.heard_pull(POSTS);
    assert_eq!(town.log(1).await.head.offset, before + POSTS, "a hundred steps");
    town.publish_to(0, POSTS + 1, &[1]).await;
    let posts = (POSTS + 2..=2 * POSTS).map(|id| Write::Publish(town.item(0, id))).collect();
    town.stores.archive.write(posts, NOW).await.unwrap();
    town.deliver().await;
    assert_eq!(stands(&town, 1).await.1, before + 2 * POSTS, "and so does the worker for what is addressed");
}

/// The author has more followers than a step takes, so it goes bucket by bucket.
#[tokio::test(flavor = "multi_thread")]
async fn history_that_is_pulled_rings_nobody_whatever_the_number_of_followers() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 5).await;
    let told = Arc::new(Told::default());
    let _listening = told.listen(&town);
    let old = |id| Import::Item { publish: town.item(0, id), version: 1, deleted: false };
    town.write(Write::Import(old(100))).await;
    town.classify(0, Class::Pull).await;
    town.write(Write::Import(old(101))).await;
    town.deliver().await;
    assert_eq!((told.hot.lock().unwrap().len(), told.grown.lock().unwrap().len()), (0, 0));
    town.changes.heard_pull(1);
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 101]));
}

/// By rounds, and bucket by bucket: one follower, and more than a step takes.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_before_history_of_its_author_rings_all_the_same() {
    for users in [2, 5] {
        let dir = tempfile::tempdir().unwrap();
        let town = Town::with_followers(dir.path(), users).await;
        let told = Arc::new(Told::default());
        let _listening = told.listen(&town);
        let old = |publish| Write::Import(Import::Item { publish, version: 1, deleted: false });
        let delivered = async || {
            town.deliver().await;
            let grown = BTreeSet::from_iter(std::mem::take(&mut *told.grown.lock().unwrap()));
            (grown, std::mem::take(&mut *told.hot.lock().unwrap()))
        };

        town.publish(0, 100).await;
        town.write(old(town.item(0, 101))).await;
        let followers: BTreeSet<InboxKey> = (1..users).map(|reader| town.key(reader)).collect();
        assert_eq!(delivered().await, (followers, vec![]), "what is pushed to {users} users");

        town.classify(0, Class::Pull).await;
        town.publish(0, 102).await;
        town.write(old(town.item(0, 103))).await;
        let (grown, hot) = delivered().await;
        assert_eq!((grown.len(), hot.last().map(|head| head.author)), (0, Some(town.no(0))), "what is pulled");

        town.publish_to(0, 104, &[1]).await;
        let audience = Audience::Users(vec![town.name(1)]);
        town.write(old(Publish { audience, ..town.item(0, 105) })).await;
        assert_eq!(delivered().await, (BTreeSet::from([town.key(1)]), vec![]), "what is addressed");
    }
}

/// The reader's own read is quicker than the worker.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_addressed_to_a_reader_wakes_all_the_devices_whoever_has_taken_it_in() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::with_followers(dir.path(), 2).await;
    town.classify(0, Class::Pull).await;
    town.publish(0, 100).await;
    town.changes.heard_pull(1);
    town.publish_to(0, 200, &[1]).await;
    assert_eq!(town.shown(1).await, BTreeSet::from([100, 200]));
    let told = Arc::new(Told::default());
    let _listening = told.listen(&town);
    town.deliver().await;
    assert_eq!(BTreeSet::from_iter(told.grown.lock().unwrap().clone()), BTreeSet::from([town.key(1)]));
}
