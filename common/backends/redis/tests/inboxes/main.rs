//! The inboxes in Redis against the promises of their trait, on one server and on a cluster, and against whatever
//! Redis may lose.

#[cfg(test)]
mod clusters;
#[cfg(test)]
mod expiry;
#[cfg(test)]
mod layouts;
#[cfg(test)]
mod losses;
#[cfg(test)]
mod outages;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod trims;
#[cfg(test)]
mod world;

use feedgate_engines::{Redis, RedisCluster};
use world::open;

#[tokio::test(flavor = "multi_thread")]
async fn redis_inboxes_keep_the_promises_of_inboxes() {
    let redis = Redis::start();
    feedgate_conformance::inboxes::inboxes(async || {
        redis.cli(&["flushall"]);
        open(&redis.url()).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_cluster_inboxes_keep_the_promises_of_inboxes() {
    let cluster = RedisCluster::start();
    feedgate_conformance::inboxes::inboxes(async || {
        cluster.nodes().iter().for_each(|node| _ = node.cli(&["flushall"]));
        open(&several_hosts(&cluster)).await
    })
    .await;
}

/// All nodes in one URL.
fn several_hosts(cluster: &RedisCluster) -> String {
    cluster.urls().join(",").replace(",redis://", ",")
}
