//! Positions in named feeds beside nodes of a version that knew the main feed alone.

use feedgate_common::sessions::{DEVICES_MAX, Held, SavePosition};
use feedgate_common::{FeedId, Sessions};
use feedgate_engines::Redis;
use feedgate_redis::RedisSessions;

use crate::world::{NOW, USER, a_position, claim, saves, server, two_nodes};

const LIKES: FeedId = FeedId(1);
const STORIES: FeedId = FeedId(2);

async fn saves_in(pool: &RedisSessions, held: &Held, feed: FeedId, offset: u64) -> bool {
    pool.save(vec![SavePosition { feed, ..a_position(held, offset) }], NOW).await.unwrap() == [true]
}

async fn position(pool: &RedisSessions, held: &Held, feed: FeedId) -> Option<u64> {
    let position = pool.position(USER, &held.claim.device, feed, NOW).await.unwrap();
    position.map(|position| position.offset)
}

/// Fields and texts in turn.
fn stored(redis: &Redis) -> Vec<String> {
    redis.cli(&["hgetall", "{s007}:7"]).lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_of_the_main_feed_alone_is_stored_as_before_there_were_others() {
    let redis = server();
    let [n1, _] = two_nodes(&redis.url()).await;
    let held = claim(&n1, USER, "a", "n1", 1).await;
    let row = |main: &str| format!("{} {} {main} {NOW}", held.token.epoch.0, held.token.counter);
    assert!(saves(&n1, &held, 5).await);
    assert_eq!(stored(&redis), ["a", &row("1 5")]);

    // Named feeds stand beside it, and a node of that version goes on reading and writing the row.
    assert!(saves_in(&n1, &held, STORIES, 60).await && saves_in(&n1, &held, LIKES, 70).await);
    assert_eq!(stored(&redis), ["a", &row("1 5"), "a feeds", "2/1/60,1/1/70 - -"]);
    redis.cli(&["hset", "{s007}:7", "a", &row("1 8")]);
    assert_eq!(position(&n1, &held, FeedId::MAIN).await, Some(8));
    assert_eq!(position(&n1, &held, LIKES).await, Some(70));

    let named = claim(&n1, USER, "b", "n1", 2).await;
    assert!(saves_in(&n1, &named, LIKES, 1).await);
    let row = format!("{} {} - - {NOW}", named.token.epoch.0, named.token.counter);
    assert_eq!(stored(&redis)[4..], ["b", &row, "b feeds", "1/1/1 - -"], "to that version it has no position");
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_what_a_node_that_knows_no_named_feeds_leaves_of_a_device_does_not_come_back_and_makes_room() {
    let redis = server();
    let [n1, _] = two_nodes(&redis.url()).await;
    for n in 0..DEVICES_MAX {
        let held = claim(&n1, USER, &format!("d{n}"), "n1", n as u64).await;
        assert!(saves_in(&n1, &held, LIKES, 9).await);
    }
    // It makes room by the row alone.
    for n in 0..DEVICES_MAX {
        assert_eq!(redis.cli(&["hdel", "{s007}:7", &format!("d{n}")]).trim(), "1");
    }
    let held = claim(&n1, USER, "d5", "n1", 100).await;
    assert_eq!(position(&n1, &held, LIKES).await, None, "a device without a row has no position");
    assert!(saves_in(&n1, &held, STORIES, 3).await);
    assert_eq!(position(&n1, &held, LIKES).await, None);
    assert_eq!(position(&n1, &held, STORIES).await, Some(3));
    // What else it left behind goes when more than so many would stand there.
    let next = claim(&n1, USER, "next", "n1", 101).await;
    assert!(saves(&n1, &next, 1).await);
    let fields: Vec<String> = stored(&redis).into_iter().step_by(2).collect();
    assert_eq!(fields, ["d5", "d5 feeds", "next"]);
}
