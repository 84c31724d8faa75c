//! What the pool costs: printed, and held to what its documentation says.

use std::time::Instant;

use feedgate_common::sessions::Held;
use feedgate_common::{Sessions, UserNo};
use feedgate_engines::Redis;
use futures_util::{StreamExt, stream};

use crate::world::{BUCKETS, claim, saves, server, two_nodes};

const USERS: u32 = 16_000;

/// `cargo test -p feedgate-redis --test sessions costs -- --nocapture`
#[tokio::test(flavor = "multi_thread")]
async fn a_session_and_a_device_cost_what_is_documented() {
    let redis = server();
    let [n1, _] = two_nodes(&redis.url()).await;
    let node = "gateway-1.1764000000000";
    n1.renew(node).await.unwrap();
    redis.cli(&["config", "resetstat"]);
    let held: Vec<Held> = stream::iter(1..=USERS)
        .map(|user| claim(&n1, UserNo(user), "iphone-8f3a11c2", node, user.into()))
        .buffer_unordered(64)
        .collect()
        .await;
    let claim_us = usec_per_call(&redis, "evalsha");
    let online = memory(&redis, "{s007}") / u64::from(USERS / u32::from(BUCKETS));
    assert!(saves(&n1, held.iter().find(|held| held.claim.user == UserNo(7)).unwrap(), 5).await);
    let offline = memory(&redis, "{s007}:7");

    redis.cli(&["config", "resetstat"]);
    let readers: Vec<UserNo> = (0..1000).map(|n| UserNo(7 + n * u32::from(BUCKETS))).collect();
    let mut best = u128::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        let nodes = n1.nodes(&readers).await.unwrap();
        best = best.min(begun.elapsed().as_micros());
        assert!(nodes[..999].iter().all(|nodes| nodes == &[node]));
    }
    let nodes_us = usec_per_call(&redis, "hmget");
    println!("online user: {online} B; user with one stored device: {offline} B");
    println!(
        "claim: {claim_us} us of the server's; nodes of 1000 readers: {nodes_us} us of the server's, {best} us in all"
    );
    assert!(online <= 220 && offline <= 160, "{online} and {offline} B");
}

fn memory(redis: &Redis, key: &str) -> u64 {
    redis.cli(&["memory", "usage", key, "samples", "0"]).trim().parse().unwrap()
}

/// Microseconds of the server's own time.
fn usec_per_call(redis: &Redis, command: &str) -> f64 {
    let stats = redis.cli(&["info", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:"))).unwrap();
    line.split("usec_per_call=").nth(1).unwrap().split(',').next().unwrap().parse().unwrap()
}
