//! The pool when Redis has lost what it held, in each of the ways it can.

use std::collections::BTreeSet;
use std::path::Path;

use feedgate_common::sessions::{Claim, Confirmed, DEVICES_MAX, Held, Holders, Renewed};
use feedgate_common::{FeedId, Sessions, UserNo};
use feedgate_engines::{Redis, RedisCluster};

use crate::world::{
    BUCKETS, NOW, USER, a_claim, claim, enter, is_confirmed, lines, long, nodes, open, renewed, saves, server, shown,
    two_nodes, until,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Flushed,
    Evicted,
    RestartedWithout,
    RestartedWith,
    RolledBack,
    /// Made a replica of an empty server and a master again, with every connection standing.
    Overwritten,
}

const LOSSES: [Loss; 6] =
    [Loss::Flushed, Loss::Evicted, Loss::RestartedWithout, Loss::RestartedWith, Loss::RolledBack, Loss::Overwritten];

impl Loss {
    /// Loses what was written since `copy` of the data was made, or everything.
    fn happens(self, redis: &mut Redis, copy: &Path) {
        match self {
            Self::Flushed => _ = redis.cli(&["flushall"]),
            Self::Evicted => assert_eq!(redis.cli(&["del", "{s007}"]).trim(), "1"),
            Self::RestartedWith => redis.restart(),
            Self::RestartedWithout => redis.restart_without_files(),
            Self::RolledBack => redis.roll_back(copy),
            Self::Overwritten => redis.overwrite_with(&server()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i17_after_any_loss_the_newest_stays_whoever_confirms_first() {
    for loss in LOSSES {
        for older_first in [true, false] {
            the_newest_stays(loss, older_first).await;
        }
    }
}

async fn the_newest_stays(loss: Loss, older_first: bool) {
    let mut redis = server();
    let [n1, n2] = two_nodes(&redis.url()).await;
    let older = claim(&n1, USER, "a", "n1", 1).await;
    let ended = claim(&n1, USER, "c", "n1", 3).await;
    let copy = tempfile::tempdir().unwrap();
    redis.copy_files(copy.path());
    n1.release(USER, &ended.claim.device, ended.token).await.unwrap();
    let other = claim(&n1, USER, "b", "n1", 4).await;
    let newer = claim(&n2, USER, "a", "n2", 2).await;

    loss.happens(&mut redis, copy.path());
    assert_eq!(renewed(&n1, "n1").await, Renewed::Anew, "{loss:?}");
    assert_eq!(renewed(&n2, "n2").await, Renewed::Anew, "{loss:?}");
    assert_eq!(shown(&n1).await, [], "{loss:?}: what is left of an earlier life counts for nothing");
    assert!(!saves(&n1, &other, 5).await);

    let mut held = [older.clone(), newer.clone()];
    if !older_first {
        held.reverse();
    }
    for held in &held {
        let pool = if held.claim.node == "n1" { &n1 } else { &n2 };
        assert_eq!(is_confirmed(pool, held).await, older_first || held.claim.node == "n2", "{loss:?}");
    }
    assert!(is_confirmed(&n1, &other).await);
    assert!(!is_confirmed(&n1, &older).await, "{loss:?}: now the newer one is known");
    assert!(is_confirmed(&n2, &newer).await);
    assert_eq!(shown(&n1).await, lines(&[("a", 2), ("b", 4)]), "{loss:?}");
    assert!(saves(&n1, &other, 5).await);
    assert!(!saves(&n1, &older, 5).await);

    let next = claim(&n1, USER, "a", "n1", 9).await;
    assert!(next.token > newer.token && next.token > other.token, "{loss:?}: tokens only grow");
    assert_eq!(renewed(&n1, "n1").await, Renewed::Kept, "{loss:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn i17_a_replica_promoted_without_the_last_claims_takes_them_in_again() {
    let master = server();
    let replica = Redis::replica_of(&master);
    let [n1, n2] = two_nodes(&master.url()).await;
    let older = claim(&n1, USER, "a", "n1", 1).await;
    assert!(saves(&n1, &older, 5).await);
    until("the replica has it", async || replica.cli(&["hlen", "{s007}:7"]).trim() == "1").await;
    replica.cli(&["replicaof", "no", "one"]);
    // Answered by a master that nobody will hear of again.
    let newer = claim(&n2, USER, "a", "n2", 2).await;
    assert!(saves(&n2, &newer, 6).await);
    drop(master);

    let [n1, n2] = two_nodes(&replica.url()).await;
    assert_eq!(shown(&n1).await, []);
    let position = n1.position(USER, &older.claim.device, FeedId::MAIN, NOW).await.unwrap();
    assert_eq!(position.map(|position| position.offset), Some(5), "late, never early");
    assert!(is_confirmed(&n2, &newer).await);
    assert!(!is_confirmed(&n1, &older).await);
    let next = claim(&n1, USER, "a", "n1", 3).await;
    assert!(next.token > newer.token);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_ended_after_a_loss_is_not_entered_again() {
    let redis = server();
    let [n1, n2] = two_nodes(&redis.url()).await;
    for durable in [true, false] {
        let mut held = vec![];
        for (connection, name) in ["revoked", "confirmed-revoked", "released", "confirmed-released"].iter().enumerate()
        {
            held.push(enter(&n1, Claim { durable, ..a_claim(USER, name, "n1", connection as u64) }).await);
        }
        redis.cli(&["flushall"]);
        n1.renew("n1").await.unwrap();
        for held in [&held[1], &held[3]] {
            assert!(is_confirmed(&n1, held).await);
        }
        for (end, was_known) in held[..2].iter().zip([false, true]) {
            let was = n2.revoke(USER, &end.claim.device).await.unwrap();
            assert_eq!(was.is_some(), was_known);
        }
        for end in &held[2..] {
            n1.release(USER, &end.claim.device, end.token).await.unwrap();
        }
        assert_eq!(n1.confirm(held.clone()).await.unwrap(), [Confirmed::Ended; 4], "durable: {durable}");
        // Nor after the next claim has come and gone.
        for Held { claim, .. } in &held {
            let next = enter(&n2, Claim { node: "n2".to_owned(), ..claim.clone() }).await;
            n2.release(USER, &claim.device, next.token).await.unwrap();
        }
        assert_eq!(n1.confirm(held).await.unwrap(), [Confirmed::Ended; 4], "durable: {durable}");
        assert_eq!(shown(&n1).await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_fences_make_room_for_positions_and_for_each_other() {
    let redis = server();
    let [n1, _] = two_nodes(&redis.url()).await;
    let held = claim(&n1, USER, "a", "n1", 1).await;
    assert!(saves(&n1, &held, 5).await);
    for n in 0..=2 * DEVICES_MAX {
        n1.revoke(USER, &format!("never-seen-{n}").parse().unwrap()).await.unwrap();
    }
    assert_eq!(redis.cli(&["hlen", "{s007}:7"]).trim(), DEVICES_MAX.to_string());
    let position = n1.position(USER, &held.claim.device, FeedId::MAIN, NOW).await.unwrap();
    assert_eq!(position.map(|position| position.offset), Some(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_a_later_life_ends_one_that_began_with_an_epoch_taken_too_early() {
    let redis = server();
    let [n1, n2] = two_nodes(&redis.url()).await;
    redis.cli(&["flushall"]);
    let newer = claim(&n2, USER, "a", "n2", 1).await;
    // As if the loss had come again, and somebody who had been asleep had begun a life in an older epoch.
    redis.cli(&["hset", "{s007}", "epoch", "1"]);
    let wrong = claim(&n1, USER, "b", "n1", 2).await;
    assert!(wrong.token < newer.token);
    assert!(is_confirmed(&n2, &newer).await);
    let next = claim(&n1, USER, "a", "n1", 3).await;
    assert!(next.token > newer.token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_loses_one_master_keeps_what_the_others_hold() {
    let cluster = RedisCluster::start();
    let [n1, _] = two_nodes(&cluster.url()).await;
    let mut held = vec![];
    for user in 1..=u32::from(BUCKETS) {
        held.push(claim(&n1, UserNo(user), "a", "n1", user.into()).await);
    }
    let users: Vec<UserNo> = held.iter().map(|held| held.claim.user).collect();
    let online = async || nodes(&n1, &users).await.iter().filter(|nodes| !nodes.is_empty()).count();
    assert_eq!(online().await, held.len());
    cluster.nodes()[1].cli(&["flushall"]);
    let found = n1.renew("n1").await.unwrap();
    assert_eq!(found, Renewed::Anew);
    let left = online().await;
    assert!((1..held.len()).contains(&left), "{left} of {} are left", held.len());
    assert_eq!(n1.confirm(held.clone()).await.unwrap(), vec![Confirmed::Kept; held.len()]);
    assert_eq!(online().await, held.len());
    assert_eq!(n1.renew("n1").await.unwrap(), Renewed::Kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_master_is_away_the_nodes_of_users_on_the_others_are_known() {
    let mut cluster = RedisCluster::start_with(&["--cluster-require-full-coverage", "no"]);
    let slot = |key: &str| cluster.nodes()[0].cli(&["cluster", "keyslot", key]).trim().parse().unwrap();
    let away = cluster.holder_of(slot("{s001}"));
    let is_away = |key: &str| cluster.holder_of(slot(key)) == away;
    // The node that has not renewed may have a lease on the master that is away.
    let (lives, unknown) = ("n1".to_owned(), "n2".to_owned());
    let users: Vec<UserNo> = (1..=u32::from(BUCKETS)).map(UserNo).collect();
    let lost: Vec<bool> = users.iter().map(|user| is_away(&format!("{{s{:03}}}", user.bucket(BUCKETS).0))).collect();
    let pool = open(&cluster.url(), long()).await;
    pool.renew(&lives).await.unwrap();
    for user in &users {
        claim(&pool, *user, "a", &lives, user.0.into()).await;
    }
    let both = users[lost.iter().position(|lost| !lost).unwrap()];
    claim(&pool, both, "b", &unknown, 100).await;
    cluster.node(away).kill();

    let holders = pool.nodes(&users).await.unwrap();
    for ((user, lost), Holders { mut nodes, partial }) in users.iter().zip(&lost).zip(holders) {
        nodes.sort_unstable();
        let mut wanted = if *lost { vec![] } else { vec![lives.clone()] };
        wanted.extend((*user == both).then(|| unknown.clone()));
        wanted.sort_unstable();
        assert_eq!((nodes, partial), (wanted, *lost || *user == both), "{user:?}");
    }
    let gone: Vec<UserNo> = users.iter().zip(&lost).filter_map(|(user, lost)| lost.then_some(*user)).collect();
    assert!(pool.nodes(&gone).await.is_err(), "nothing is known of these");
}

#[tokio::test(flavor = "multi_thread")]
async fn i17_every_node_keeps_its_lease_while_a_master_is_away() {
    let mut cluster = RedisCluster::start_with(&["--cluster-require-full-coverage", "no"]);
    let slot = |key: &str| cluster.nodes()[0].cli(&["cluster", "keyslot", key]).trim().parse().unwrap();
    let keys = ["node:n1", "node:{a}:n1", "node:{b}:n1", "node:{c}:n1"];
    let masters: BTreeSet<usize> = keys.map(|key| cluster.holder_of(slot(key))).into();
    assert_eq!(masters.len(), cluster.nodes().len(), "each master has a key of the lease");
    let [pool, of_others] = [open(&cluster.url(), long()).await, open(&cluster.url(), long()).await];
    let nodes: Vec<String> = (0..12).map(|n| format!("n{n}")).collect();
    for (connection, node) in (0..).zip(&nodes) {
        assert_eq!(pool.renew(node).await.unwrap(), Renewed::Anew);
        claim(&pool, USER, node, node, connection).await;
    }
    let away = (0..masters.len()).find(|node| *node != cluster.holder_of(slot("{s007}"))).unwrap();
    cluster.node(away).kill();
    for node in &nodes {
        assert_eq!(pool.renew(node).await.unwrap(), Renewed::Kept, "{node}");
    }
    assert_eq!(shown(&of_others).await.len(), nodes.len());
    for node in &nodes {
        let retired = pool.retire(node).await;
        assert!(retired.is_err(), "a key on the master that is away may stand");
    }
    cluster.node(away).restart();
    cluster.wait_until_ok();
    until("the lives that its restart has begun are noticed", async || {
        pool.renew(&nodes[0]).await.is_ok_and(|renewed| renewed == Renewed::Anew)
    })
    .await;
}
