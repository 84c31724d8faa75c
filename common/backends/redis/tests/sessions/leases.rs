//! Nodes that come, are cut off, and go.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use feedgate_common::Sessions;
use feedgate_common::sessions::Renewed;
use feedgate_redis::Spans;

use crate::world::{
    BUCKETS, USER, a_claim, claim, is_confirmed, lines, long, nodes, open, server, short, shown, two_nodes, until,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_a_node_count_while_its_lease_stands() {
    let redis = server();
    let pool = open(&redis.url(), short()).await;
    let held = claim(&pool, USER, "a", "n1", 1).await;
    assert_eq!(shown(&pool).await, [], "a node that has not renewed yet does not count");
    assert_eq!(pool.renew("n1").await.unwrap(), Renewed::Anew);
    // On a busy machine a short lease may lapse before one has looked.
    let counts = async || {
        pool.renew("n1").await.unwrap();
        shown(&pool).await == lines(&[("a", 1)]) && nodes(&pool, &[USER]).await == [["n1"]]
    };
    until("the session counts", counts).await;

    until("the lease lapses", async || shown(&pool).await.is_empty()).await;
    until("those who read lately notice", async || nodes(&pool, &[USER]).await == [[""; 0]]).await;
    assert_eq!(pool.renew("n1").await.unwrap(), Renewed::Anew);
    assert!(is_confirmed(&pool, &held).await, "who was only cut off has lost nothing");
    until("the session counts again", counts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i17_a_device_that_went_elsewhere_while_its_node_was_cut_off_is_not_confirmed() {
    let redis = server();
    let (cut_off, other) = (open(&redis.url(), short()).await, open(&redis.url(), long()).await);
    cut_off.renew("n1").await.unwrap();
    other.renew("n2").await.unwrap();
    let old = claim(&cut_off, USER, "a", "n1", 1).await;
    until("the lease lapses", async || shown(&other).await.is_empty()).await;
    let new = other.claim(a_claim(USER, "a", "n2", 2)).await.unwrap();
    assert_eq!(new.replaced, Some(("n1".to_owned(), 1)));
    assert_eq!(cut_off.renew("n1").await.unwrap(), Renewed::Anew);
    assert!(!is_confirmed(&cut_off, &old).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_just_begun_is_never_overlooked() {
    let redis = server();
    let [n1, n2] = two_nodes(&redis.url()).await;
    claim(&n1, USER, "a", "n1", 1).await;
    claim(&n2, USER, "b", "n3", 2).await;
    for _ in 0..2 {
        assert_eq!(nodes(&n1, &[USER]).await, [["n1"]], "n3 has no lease");
    }
    n2.renew("n3").await.unwrap();
    assert_eq!(nodes(&n1, &[USER]).await, [["n1", "n3"]], "and now it has");
    claim(&n2, USER, "c", "n2", 3).await;
    assert_eq!(nodes(&n1, &[USER]).await, [["n1", "n2", "n3"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_what_a_node_dead_for_long_has_left_is_removed() {
    let redis = server();
    let spans = Spans { dead: Duration::from_millis(1), ..long() };
    let pool = open(&redis.url(), spans).await;
    for node in ["n1", "n2", "n3"] {
        pool.renew(node).await.unwrap();
    }
    claim(&pool, USER, "a", "n1", 1).await;
    claim(&pool, USER, "b", "n2", 2).await;
    let left = || redis.cli(&["hget", "{s007}", "7"]);
    assert!(left().contains("n1"));
    pool.retire("n1").await.unwrap();
    let patient = open(&redis.url(), long()).await;
    for _ in 0..2 * BUCKETS {
        patient.renew("n3").await.unwrap();
    }
    assert!(left().contains("n1"), "one that is not dead for long may come back to its sessions");
    until("the sweep has come by", async || {
        pool.renew("n3").await.unwrap();
        !left().contains("n1")
    })
    .await;
    assert_eq!(shown(&pool).await, lines(&[("b", 2)]));
    assert_eq!(pool.renew("n2").await.unwrap(), Renewed::Kept);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_server_that_is_full_leases_go_on_and_sessions_end() {
    let redis = server();
    let [n1, _] = two_nodes(&redis.url()).await;
    let held = claim(&n1, USER, "a", "n1", 1).await;
    claim(&n1, USER, "b", "n1", 2).await;
    redis.cli(&["config", "set", "maxmemory", "1"]);
    assert_eq!(n1.renew("n1").await.unwrap(), Renewed::Kept);
    assert!(n1.claim(a_claim(USER, "c", "n1", 3)).await.is_err());
    assert_eq!(shown(&n1).await, lines(&[("a", 1), ("b", 2)]));
    n1.release(USER, &held.claim.device, held.token).await.unwrap();
    assert_eq!(n1.revoke(USER, &"b".parse().unwrap()).await.unwrap(), Some(("n1".to_owned(), 2)));
    assert_eq!(shown(&n1).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_of_a_node_that_would_not_fit_into_a_line_is_refused() {
    let redis = server();
    let pool = open(&redis.url(), Spans::default()).await;
    for name in ["", "gateway 1", "gateway\n1"] {
        let refused = pool.claim(a_claim(USER, "a", name, 1)).await.unwrap_err().to_string();
        assert!(refused.contains("such as gateway-1") && refused.contains(&format!("{name:?}")), "{refused}");
        assert!(pool.renew(name).await.is_err());
    }
}

/// The answer, unless it takes more than so many polls.
async fn within_polls<T>(polls: usize, call: impl Future<Output = T>) -> Option<T> {
    let (mut call, mut left) = (pin!(call), polls);
    poll_fn(|context| match (left, call.as_mut().poll(context)) {
        (_, Poll::Ready(answer)) => Poll::Ready(Some(answer)),
        (0, Poll::Pending) => Poll::Ready(None),
        (_, Poll::Pending) => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// On one thread, so that no answer comes while the renewal is being polled: each round trip takes a poll at least.
#[tokio::test]
async fn a_renewal_that_is_given_up_anywhere_hides_no_loss_from_the_next_one() {
    let redis = server();
    let pool = open(&redis.url(), Spans::default()).await;
    for polls in 0.. {
        pool.renew("n1").await.unwrap();
        redis.cli(&["flushall"]);
        let whole = within_polls(polls, pool.renew("n1")).await;
        if let Some(renewed) = whole {
            assert_eq!(renewed.unwrap(), Renewed::Anew);
            assert!(polls > 3, "given up before and after each of its four round trips, not after {polls} polls only");
            break;
        }
        assert_eq!(pool.renew("n1").await.unwrap(), Renewed::Anew, "given up after {polls} polls");
    }
}
