//! For tests: a node over real stores that serves no port, and sessions of readers on it that have no socket.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use feedgate_common::feed::Feeds;
use feedgate_common::named::{NamedFeed, NamedFeeds};
use feedgate_common::sessions::User;
use feedgate_common::{FeedId, UserId};
use feedgate_embedded::Embedded;
use tokio::task::coop;

use crate::node::identity::Identity;
use crate::node::slot::Slot;
use crate::node::{Node, Stores};
use crate::settings::Settings;

pub(crate) const LIKES: FeedId = FeedId(1);
pub(crate) const STORIES: FeedId = FeedId(2);

/// Two feeds besides the main one.
pub(crate) fn likes_and_stories() -> NamedFeeds {
    let feed = |id, name: &str, kind: &str| {
        let (name, kinds) = (name.into(), vec![kind.into()]);
        NamedFeed { id, name, kinds, ranked: false, cap: 100, ttl: None }
    };
    NamedFeeds::new(vec![feed(LIKES, "likes", "like"), feed(STORIES, "stories", "story")]).unwrap()
}

pub(crate) fn node(stores: &Embedded, feeds: Feeds) -> Arc<Node> {
    let Embedded { sessions, jobs, doorbell, .. } = stores;
    let stores =
        Stores { feeds: Arc::new(feeds), sessions: sessions.clone(), doorbell: doorbell.clone(), jobs: jobs.clone() };
    let settings = Settings { pull_wakes_per_sec: 1_000_000, ..Settings::default() };
    Node::new("node".to_owned(), stores, settings)
}

/// Makes `count` readers with a session on the node that listens to the main feed, named `who` and a number.
pub(crate) async fn seated(node: &Node, who: &str, count: usize) -> Vec<(UserId, Arc<Slot>)> {
    let names: Vec<UserId> = (0..count).map(|n| format!("{who}{n}").parse().unwrap()).collect();
    let numbers = node.reads.feeds.archive().intern(&names).await.unwrap();
    let seat = |(id, no): (&UserId, _)| {
        let slot = node.local.pool.arrive().unwrap();
        slot.listen(&[FeedId::MAIN]);
        let user = User { id: id.clone(), no };
        node.local.pool.enter(&Identity::new(user, "phone".parse().unwrap(), true, 0), &slot).unwrap();
        (id.clone(), slot)
    };
    names.iter().zip(numbers).map(seat).collect()
}

/// Starts `work` and drops it while it waits. The task first uses up all the work that tokio lets it do in a row; then
/// no wait inside `work` can end at once, however fast a store answers.
pub(crate) async fn drop_in_the_middle(work: impl Future) {
    while coop::has_budget_remaining() {
        coop::consume_budget().await;
    }
    let polled = pin!(work).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it waits for a store");
}
