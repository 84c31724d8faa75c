//! A link to a Redis Cluster whose masters die, move, are replaced and cut off while everybody calls: what can be
//! reached goes on, and what comes back is used again by the same link.

#[cfg(test)]
mod load;
#[cfg(test)]
#[path = "../support/mod.rs"]
mod support;

use feedgate_engines::RedisCluster;
use load::{Load, callers_of, slot_of};

/// One whose masters go on without the others.
fn start_independent() -> RedisCluster {
    RedisCluster::start_with(&["--cluster-require-full-coverage", "no"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_was_killed_under_load_and_comes_back_is_used_again_by_the_same_link() {
    let mut cluster = RedisCluster::start();
    let load = Load::on(&cluster).await;
    for _ in 0..2 {
        cluster.node(1).kill();
        cluster.wait_until_failed(1);
        cluster.node(1).restart();
        cluster.wait_until_ok();
        load.all_are_answered().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_comes_back_at_another_port_is_found_by_the_same_link() {
    let mut cluster = RedisCluster::start();
    let load = Load::on(&cluster).await;
    // The first is the one that the link was told of: from now on it knows of it by the others alone.
    for node in [0, 2] {
        cluster.node(node).restart_elsewhere();
        cluster.wait_until_ok();
        load.all_are_answered().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_takes_over_is_found_and_so_is_the_master_that_takes_over_from_it() {
    let mut cluster = RedisCluster::start();
    cluster.add_replica(1);
    let load = Load::on(&cluster).await;
    cluster.node(1).kill();
    load.all_are_answered().await;
    cluster.node(1).restart();
    cluster.wait_until_ok();
    load.all_are_answered().await;
    cluster.replica(0).kill();
    load.all_are_answered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_was_cut_off_and_replaced_is_left_and_heard_no_more_when_it_is_back() {
    let mut cluster = RedisCluster::start();
    cluster.add_replica(1);
    let load = Load::on(&cluster).await;
    cluster.node(1).pause();
    load.all_are_answered().await;
    cluster.node(1).resume();
    load.all_are_answered().await;
    cluster.wait_until_ok();
    load.all_are_answered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_that_move_under_load_are_followed() {
    let cluster = RedisCluster::start();
    let load = Load::on(&cluster).await;
    let (callers, _) = callers_of(&cluster, 0);
    for caller in &callers[..6] {
        cluster.move_slot(slot_of(&cluster, *caller), 1 + usize::from(caller % 2));
    }
    load.all_are_answered().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_hangs_holds_up_nobody_but_who_calls_it() {
    let mut cluster = start_independent();
    let load = Load::on(&cluster).await;
    let (callers, others) = callers_of(&cluster, 1);
    cluster.node(1).pause();
    for _ in 0..3 {
        load.fail(&callers).await;
        load.are_answered(&others, 100).await;
    }
    cluster.node(1).resume();
    cluster.wait_until_ok();
    load.all_are_answered().await;
}
