//! For tests: a node over real stores that serves no port, and sessions of readers on it that have no socket.

use std::sync::Arc;

use feedgate_common::feed::Feeds;
use feedgate_common::named::{NamedFeed, NamedFeeds};
use feedgate_common::sessions::User;
use feedgate_common::{FeedId, UserId};
use feedgate_embedded::Embedded;

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
        NamedFeed { id, name, kinds, cap: 100, ttl: None }
    };
    NamedFeeds::new(vec![feed(LIKES, "likes", "like"), feed(STORIES, "stories", "story")]).unwrap()
}

pub(crate) fn node(stores: &Embedded, feeds: Feeds) -> Arc<Node> {
    let Embedded { archive, sessions, jobs, doorbell, .. } = stores;
    let stores = Stores {
        feeds: Arc::new(feeds),
        outboxes: archive.clone(),
        archive: archive.clone(),
        sessions: sessions.clone(),
        doorbell: doorbell.clone(),
        jobs: jobs.clone(),
    };
    let settings = Settings { pull_wakes_per_sec: 1_000_000, ..Settings::default() };
    Node::new("node".to_owned(), stores, Arc::new(settings))
}

/// Makes `count` readers with a session on the node, named `who` and a number.
pub(crate) async fn seated(node: &Node, who: &str, count: usize) -> Vec<(UserId, Arc<Slot>)> {
    let names: Vec<UserId> = (0..count).map(|n| format!("{who}{n}").parse().unwrap()).collect();
    let numbers = node.feeds.archive().intern(&names).await.unwrap();
    let seat = |(id, no): (&UserId, _)| {
        let slot = node.pool.arrive().unwrap();
        let user = User { id: id.clone(), no };
        node.pool.enter(&Identity::new(user, "phone".parse().unwrap(), true, 0), &slot).unwrap();
        (id.clone(), slot)
    };
    names.iter().zip(numbers).map(seat).collect()
}
