//! What the pool costs: printed, and its memory held to what the documentation says.
//!
//! `cargo test -p feedgate-redis --test sessions a_session_and_a_device_cost_what_is_documented -- --nocapture`

use feedgate_common::sessions::{Held, SavePosition};
use feedgate_common::{FeedId, Sessions, UserNo};
use feedgate_engines::Redis;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::world::{BUCKETS, NOW, a_position, claim, nodes, server, two_nodes};

const USERS: u32 = 16_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_and_a_device_cost_what_is_documented() {
    let redis = server();
    let [n1, _] = two_nodes(&redis.url()).await;
    let node = "gateway-1.1764000000000";
    n1.renew(node).await.unwrap();
    redis.cli(&["config", "resetstat"]);
    let empty = used(&redis);
    let held: Vec<Held> = stream::iter(1..=USERS)
        .map(|user| claim(&n1, UserNo(user), "iphone-8f3a11c2", node, user.into()))
        .buffer_unordered(64)
        .collect()
        .await;
    let claim_us = usec_per_call(&redis, "evalsha");
    let online = memory(&redis, "{s007}") / u64::from(USERS / u32::from(BUCKETS));
    let claimed = used(&redis);
    let positions = held.iter().map(|held| a_position(held, 5)).collect();
    assert!(n1.save(positions, NOW).await.unwrap().into_iter().all(|saved| saved));
    let offline = memory(&redis, "{s007}:7");
    let [online_in_all, offline_in_all] =
        [claimed - empty, used(&redis) - claimed].map(|bytes| bytes / u64::from(USERS));

    redis.cli(&["config", "resetstat"]);
    let readers: Vec<UserNo> = (0..1000).map(|n| UserNo(7 + n * u32::from(BUCKETS))).collect();
    let mut best = u128::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        let nodes = nodes(&n1, &readers).await;
        best = best.min(begun.elapsed().as_micros());
        assert!(nodes[..999].iter().all(|nodes| nodes == &[node]));
    }
    let nodes_us = usec_per_call(&redis, "hmget");
    redis.cli(&["config", "resetstat"]);
    n1.renew(node).await.unwrap();
    let renewal_us = usec_per_call(&redis, "evalsha");
    let position =
        SavePosition { feed: FeedId(1), ..a_position(held.iter().find(|h| h.claim.user.0 == 7).unwrap(), 5) };
    assert_eq!(n1.save(vec![position], NOW).await.unwrap(), [true]);
    let named = memory(&redis, "{s007}:7") - offline;
    println!("a position of it in a named feed: {named} B by MEMORY USAGE");
    println!("a bucket's life, read: {renewal_us} us of the server's");
    println!("online user: {online} B by MEMORY USAGE, {online_in_all} B of used_memory");
    println!("user with one stored device: {offline} B by MEMORY USAGE, {offline_in_all} B of used_memory");
    println!(
        "claim: {claim_us} us of the server's; nodes of 1000 readers: {nodes_us} us of the server's, {best} us in all"
    );
    assert!(online <= 130 && offline <= 110, "{online} and {offline} B");
}

fn memory(redis: &Redis, key: &str) -> u64 {
    redis.cli(&["memory", "usage", key, "samples", "0"]).trim().parse().unwrap()
}

fn used(redis: &Redis) -> u64 {
    let info = redis.cli(&["info", "memory"]);
    info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().parse().unwrap()
}

/// Microseconds of the server's own time.
fn usec_per_call(redis: &Redis, command: &str) -> f64 {
    let stats = redis.cli(&["info", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:"))).unwrap();
    line.split("usec_per_call=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
}
