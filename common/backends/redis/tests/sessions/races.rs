//! Nodes that want the same device at the same time.

use feedgate_common::sessions::{Confirmed, Held};
use feedgate_common::{Sessions, UserNo};
use tokio::join;

use crate::world::{USER, a_claim, lines, nodes, saves, server, shown, two_nodes};

#[tokio::test(flavor = "multi_thread")]
async fn i17_of_two_nodes_that_claim_one_device_at_once_exactly_one_survives() {
    let redis = server();
    let [n1, n2] = two_nodes(&redis.url()).await;
    let mut last = None;
    for round in 1..=200u64 {
        let (one, two) = (a_claim(USER, "a", "n1", 2 * round), a_claim(USER, "a", "n2", 2 * round + 1));
        let (a, b) = join!(n1.claim(one.clone()), n2.claim(two.clone()));
        let (a, b) = ((one, a.unwrap()), (two, b.unwrap()));
        let ((loser, lost), (winner, won)) = if a.1.token < b.1.token { (a, b) } else { (b, a) };
        assert_eq!(won.replaced, Some((loser.node.clone(), loser.connection)), "who lost is told to close");
        assert_eq!(lost.replaced, last, "and so is who had it before");
        assert_eq!(shown(&n1).await, lines(&[("a", winner.connection)]));
        let [loser, winner] =
            [(loser, lost), (winner, won)].map(|(claim, claimed)| Held { claim, token: claimed.token });
        let confirmed = n2.confirm(vec![loser.clone(), winner.clone()]).await.unwrap();
        assert_eq!(confirmed, [Confirmed::Ended, Confirmed::Kept]);
        assert!(!saves(&n1, &loser, 2 * round + 1).await, "an older session saves nothing");
        assert!(saves(&n2, &winner, 2 * round).await);
        last = Some((winner.claim.node, winner.claim.connection));
    }
    assert_eq!(nodes(&n1, &[USER, UserNo(8)]).await, [vec![last.unwrap().0], vec![]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_is_sent_again_replaces_nobody() {
    let redis = server();
    let [n1, _] = two_nodes(&redis.url()).await;
    let first = n1.claim(a_claim(USER, "a", "n1", 1)).await.unwrap();
    let again = n1.claim(a_claim(USER, "a", "n1", 1)).await.unwrap();
    assert_eq!(again.replaced, None);
    assert!(again.token > first.token);
    assert_eq!(shown(&n1).await, lines(&[("a", 1)]));
}
