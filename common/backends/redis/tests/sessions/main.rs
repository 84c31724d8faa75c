//! The session pool in Redis against the promises of its trait, on one server and on a cluster.

#[cfg(test)]
mod feeds;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod losses;
#[cfg(test)]
mod races;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod world;

use std::sync::Arc;

use feedgate_common::Sessions;
use feedgate_engines::RedisCluster;
use feedgate_redis::Spans;
use parking_lot::Mutex;
use world::{open, server};

/// The pool behind `url`, as the suite opens it.
async fn pool(url: String) -> Arc<dyn Sessions> {
    open(&url, Spans::default()).await
}

// Opened under another name the pool is empty; under the same one again, its servers are killed and come back with
// what they had.

#[tokio::test(flavor = "multi_thread")]
async fn redis_sessions_keep_the_promises_of_sessions() {
    let state = Mutex::new((server(), String::new()));
    let prepare = |name: &str| {
        let (server, last) = &mut *state.lock();
        if *last == name {
            server.restart();
        } else {
            server.cli(&["flushall"]);
        }
        *last = name.to_owned();
        server.url()
    };
    feedgate_conformance::sessions::sessions(async |name| pool(prepare(name)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_cluster_sessions_keep_the_promises_of_sessions() {
    let state = Mutex::new((RedisCluster::start_with(&["--appendfsync", "always"]), String::new()));
    let prepare = |name: &str| {
        let (cluster, last) = &mut *state.lock();
        for index in 0..cluster.nodes().len() {
            if *last == name {
                cluster.node(index).restart();
            } else {
                cluster.node(index).cli(&["flushall"]);
            }
        }
        cluster.wait_until_ok();
        *last = name.to_owned();
        cluster.url()
    };
    feedgate_conformance::sessions::sessions(async |name| pool(prepare(name)).await).await;
}
