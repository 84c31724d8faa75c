//! The tests that every implementation ("home") of [`Sessions`] must pass: the newest connection of a device wins, an
//! ended session stays ended, and a stored position never goes back.

mod feeds;

use std::sync::Arc;

use feedgate_common::sessions::{
    Claim, Confirmed, DEVICE_TTL_MS, DEVICES_MAX, Held, Holders, SavePosition, Sessions, Token,
};
use feedgate_common::{DeviceId, Epoch, FeedId, Millis, Position, UserNo};

/// Runs all tests of the pool. `open(name)` opens the pool of that name, which is empty at first. To open it again
/// after every handle was dropped is a restart of the pool's store.
pub async fn sessions(open: impl AsyncFn(&str) -> Arc<dyn Sessions>) {
    // A node renews its lease before its first claim.
    let open = async |name: &str| {
        let pool = open(name).await;
        for node in ["n1", "n2"] {
            pool.renew(node).await.expect("the pool works");
        }
        pool
    };
    i17_the_newest_claim_wins(open("newest").await).await;
    i17_of_many_claims_at_once_one_survives(open("race").await).await;
    i17_the_newest_stays_whatever_the_order_of_confirmations(open("confirm").await).await;
    i17_a_session_learns_whether_a_newer_or_an_older_connection_has_its_place(open("displaced").await).await;
    an_older_session_changes_nothing(open("older").await).await;
    what_was_revoked_changes_nothing_and_is_not_confirmed(open("revoked").await).await;
    each_node_of_a_user_is_named_once(open("nodes").await).await;
    a_node_that_has_retired_holds_nothing(open("retired").await).await;
    i10_a_position_only_moves_forward(open("forward").await).await;
    i12_devices_are_independent(open("devices").await).await;
    the_list_is_sorted_and_shows_what_is_online(open("list").await).await;
    what_is_listed_is_ended_by_the_token_it_is_listed_with(open("listed").await).await;
    a_device_without_an_id_of_its_own_is_never_stored(open("anonymous").await).await;
    the_device_unseen_longest_makes_room(open("room").await).await;
    a_device_unseen_for_60_days_is_forgotten(open("ttl").await).await;
    positions_survive_a_restart_and_tokens_grow(&open).await;
    feeds::feeds(&open).await;
}

const USER: UserNo = UserNo(7);
const NOW: Millis = 1_700_000_000_000;

fn device(name: &str) -> DeviceId {
    name.parse().expect("a device id")
}

fn at(epoch: u64, offset: u64) -> Position {
    Position { epoch: Epoch(epoch), offset }
}

fn a_claim(name: &str, connection: u64) -> Claim {
    Claim { user: USER, device: device(name), durable: true, node: "n1".to_owned(), connection, since: NOW }
}

async fn claim(pool: &dyn Sessions, name: &str, connection: u64) -> Token {
    pool.claim(a_claim(name, connection)).await.expect("the pool works").token
}

async fn claim_on(pool: &dyn Sessions, node: &str, name: &str, connection: u64) -> Held {
    let claim = Claim { node: node.to_owned(), ..a_claim(name, connection) };
    Held { token: pool.claim(claim.clone()).await.expect("the pool works").token, claim }
}

async fn confirm(pool: &dyn Sessions, held: &[&Held]) -> Vec<bool> {
    let confirmed = pool.confirm(held.iter().map(|held| (*held).clone()).collect()).await.expect("the pool works");
    confirmed.into_iter().map(|confirmed| confirmed == Confirmed::Kept).collect()
}

async fn nodes(pool: &dyn Sessions, users: &[UserNo]) -> Vec<Vec<String>> {
    let holders = pool.nodes(users).await.expect("the pool works");
    let sorted = |Holders { mut nodes, partial }| {
        assert!(!partial, "the whole pool answers");
        nodes.sort_unstable();
        nodes
    };
    holders.into_iter().map(sorted).collect()
}

async fn save(pool: &dyn Sessions, name: &str, token: Token, position: Position, now: Millis) -> bool {
    let save = SavePosition { user: USER, device: device(name), token, feed: FeedId::MAIN, position };
    let saved = pool.save(vec![save], now).await.expect("the pool works");
    assert_eq!(saved.len(), 1, "an answer for each");
    saved[0]
}

async fn position(pool: &dyn Sessions, name: &str, now: Millis) -> Option<Position> {
    pool.position(USER, &device(name), FeedId::MAIN, now).await.expect("the pool works")
}

async fn connections(pool: &dyn Sessions) -> Vec<(String, u64)> {
    let list = pool.list(USER).await.expect("the pool works");
    list.into_iter().map(|s| (s.device.to_string(), s.connection)).collect()
}

async fn i17_the_newest_claim_wins(pool: Arc<dyn Sessions>) {
    let first = pool.claim(a_claim("a", 1)).await.expect("the pool works");
    assert_eq!(first.replaced, None);
    let second = pool.claim(Claim { node: "n2".to_owned(), ..a_claim("a", 2) }).await.expect("the pool works");
    assert!(second.token > first.token);
    assert_eq!(second.replaced, Some(("n1".to_owned(), 1)));
    assert_eq!(connections(&*pool).await, [("a".to_owned(), 2)]);

    pool.release(USER, &device("a"), second.token).await.expect("the pool works");
    assert_eq!(connections(&*pool).await, []);
    let third = pool.claim(a_claim("a", 3)).await.expect("the pool works");
    assert!(third.token > second.token, "tokens grow also after a release");
    assert_eq!(third.replaced, None);
}

async fn i17_of_many_claims_at_once_one_survives(pool: Arc<dyn Sessions>) {
    let claims: Vec<_> = (1..=64u64)
        .map(|connection| {
            let pool = pool.clone();
            tokio::spawn(async move { (connection, pool.claim(a_claim("a", connection)).await.expect("works")) })
        })
        .collect();
    let mut claimed = vec![];
    for claim in claims {
        claimed.push(claim.await.expect("no panic"));
    }
    claimed.sort_by_key(|(_, claimed)| claimed.token);
    let (last, _) = claimed[63];
    assert_eq!(connections(&*pool).await, [("a".to_owned(), last)]);
    // Each session but the last was handed to exactly its successor, to be closed.
    for pair in claimed.windows(2) {
        assert_eq!(pair[1].1.replaced, Some(("n1".to_owned(), pair[0].0)));
    }
}

async fn i17_the_newest_stays_whatever_the_order_of_confirmations(pool: Arc<dyn Sessions>) {
    let (older, newer) = (claim_on(&*pool, "n1", "a", 1).await, claim_on(&*pool, "n2", "a", 2).await);
    let other = claim_on(&*pool, "n1", "b", 3).await;
    assert_eq!(confirm(&*pool, &[]).await, [] as [bool; 0]);
    assert_eq!(confirm(&*pool, &[&older, &newer, &other]).await, [false, true, true]);
    assert_eq!(confirm(&*pool, &[&other, &newer, &older]).await, [true, true, false]);
    assert_eq!(connections(&*pool).await, [("a".to_owned(), 2), ("b".to_owned(), 3)]);

    // The newest session has ended. That does not bring the older one back.
    pool.release(USER, &newer.claim.device, newer.token).await.expect("the pool works");
    assert_eq!(confirm(&*pool, &[&older, &newer]).await, [false, false]);
    assert_eq!(connections(&*pool).await, [("b".to_owned(), 3)]);
}

async fn i17_a_session_learns_whether_a_newer_or_an_older_connection_has_its_place(pool: Arc<dyn Sessions>) {
    let made_at = async |connection: u64, since: Millis| {
        let claim = Claim { since, ..a_claim("a", connection) };
        Held { token: pool.claim(claim.clone()).await.expect("the pool works").token, claim }
    };
    let confirm = async |held: &Held| pool.confirm(vec![held.clone()]).await.expect("the pool works")[0];
    let (older, newer) = (made_at(1, NOW).await, made_at(2, NOW + 1000).await);
    assert_eq!((confirm(&older).await, confirm(&newer).await), (Confirmed::Ended, Confirmed::Kept));
    let late = made_at(1, NOW).await;
    assert_eq!((confirm(&newer).await, confirm(&late).await), (Confirmed::Displaced, Confirmed::Kept));
    let again = made_at(3, NOW + 2000).await;
    assert_eq!((confirm(&newer).await, confirm(&again).await), (Confirmed::Ended, Confirmed::Kept));
    pool.release(USER, &device("a"), again.token).await.expect("the pool works");
    assert_eq!(confirm(&again).await, Confirmed::Ended);
}

async fn what_was_revoked_changes_nothing_and_is_not_confirmed(pool: Arc<dyn Sessions>) {
    let held = claim_on(&*pool, "n2", "a", 1).await;
    assert!(save(&*pool, "a", held.token, at(1, 5), NOW).await);
    let revoke = async |name: &str| pool.revoke(USER, &device(name)).await.expect("the pool works");
    assert_eq!(revoke("a").await, Some(("n2".to_owned(), 1)));
    assert_eq!(revoke("a").await, None, "it is gone");
    assert_eq!(revoke("never-seen").await, None);

    assert!(!save(&*pool, "a", held.token, at(1, 6), NOW).await);
    assert_eq!(confirm(&*pool, &[&held]).await, [false]);
    assert_eq!(connections(&*pool).await, []);
    assert_eq!(position(&*pool, "a", NOW).await, Some(at(1, 5)), "the stored position stays");
    assert_eq!(position(&*pool, "never-seen", NOW).await, None);
    let again = claim_on(&*pool, "n1", "a", 2).await;
    assert!(again.token > held.token);
    assert!(save(&*pool, "a", again.token, at(1, 6), NOW).await, "a device that was revoked may come back");
}

async fn each_node_of_a_user_is_named_once(pool: Arc<dyn Sessions>) {
    for (node, name, connection) in [("n1", "a", 1), ("n1", "b", 2), ("n2", "c", 3)] {
        claim_on(&*pool, node, name, connection).await;
    }
    let other = Claim { user: UserNo(8), node: "n2".to_owned(), ..a_claim("a", 4) };
    pool.claim(other).await.expect("the pool works");
    // There is an answer for each user in the order asked, also for one who is asked for twice or has no session.
    let asked = [UserNo(8), UserNo(1_000_000), USER, UserNo(8)];
    let (both, one) = (vec!["n1".to_owned(), "n2".to_owned()], vec!["n2".to_owned()]);
    assert_eq!(nodes(&*pool, &asked).await, [one.clone(), vec![], both, one]);
    assert_eq!(nodes(&*pool, &[]).await, [] as [Vec<String>; 0]);

    pool.revoke(USER, &device("c")).await.expect("the pool works");
    assert_eq!(nodes(&*pool, &[USER]).await, [["n1".to_owned()]]);
    claim_on(&*pool, "n2", "a", 5).await;
    assert_eq!(nodes(&*pool, &[USER]).await, [["n1".to_owned(), "n2".to_owned()]], "a claim that was answered counts");
}

async fn a_node_that_has_retired_holds_nothing(pool: Arc<dyn Sessions>) {
    claim_on(&*pool, "n1", "a", 1).await;
    claim_on(&*pool, "n2", "b", 2).await;
    assert_eq!(nodes(&*pool, &[USER]).await, [["n1".to_owned(), "n2".to_owned()]]);
    pool.retire("n1").await.expect("the pool works");
    assert_eq!(connections(&*pool).await, [("b".to_owned(), 2)]);
    assert_eq!(nodes(&*pool, &[USER]).await, [["n2".to_owned()]]);
    assert_eq!(pool.revoke(USER, &device("a")).await.expect("the pool works"), None);
}

async fn an_older_session_changes_nothing(pool: Arc<dyn Sessions>) {
    let old = claim(&*pool, "a", 1).await;
    assert!(save(&*pool, "a", old, at(1, 5), NOW).await);
    let new = claim(&*pool, "a", 2).await;
    assert!(!save(&*pool, "a", old, at(1, 9), NOW).await, "an older token must not save");
    assert_eq!(position(&*pool, "a", NOW).await, Some(at(1, 5)));
    pool.release(USER, &device("a"), old).await.expect("the pool works");
    assert_eq!(connections(&*pool).await, [("a".to_owned(), 2)], "an older token must not release");
    assert!(save(&*pool, "a", new, at(1, 6), NOW).await);

    pool.release(USER, &device("a"), new).await.expect("the pool works");
    assert!(!save(&*pool, "a", new, at(1, 7), NOW).await, "a released session must not save");
    assert_eq!(position(&*pool, "a", NOW).await, Some(at(1, 6)), "the stored position stays");
}

async fn i10_a_position_only_moves_forward(pool: Arc<dyn Sessions>) {
    let token = claim(&*pool, "a", 1).await;
    assert_eq!(position(&*pool, "a", NOW).await, None);
    for (to, moves) in [
        (at(2, 5), true),
        (at(2, 4), false),
        (at(2, 6), true),
        (at(1, 99), false),
        (at(3, 0), true),
        (at(2, 100), false),
        (at(3, 1), true),
    ] {
        let before = position(&*pool, "a", NOW).await;
        assert_eq!(save(&*pool, "a", token, to, NOW).await, moves, "{to:?}");
        assert_eq!(position(&*pool, "a", NOW).await, if moves { Some(to) } else { before });
    }
    // Positions only move forward across sessions too, and also in the order within one call.
    let token = claim(&*pool, "a", 2).await;
    assert!(!save(&*pool, "a", token, at(3, 0), NOW).await);
    let steps = [at(3, 3), at(3, 2), at(3, 4)];
    let steps =
        steps.map(|position| SavePosition { user: USER, device: device("a"), token, feed: FeedId::MAIN, position });
    assert_eq!(pool.save(steps.into(), NOW).await.expect("the pool works"), [true, false, true]);
    assert_eq!(position(&*pool, "a", NOW).await, Some(at(3, 4)));
}

async fn i12_devices_are_independent(pool: Arc<dyn Sessions>) {
    let (a, b) = (claim(&*pool, "a", 1).await, claim(&*pool, "a2", 2).await);
    assert!(save(&*pool, "a", a, at(1, 9), NOW).await);
    assert!(save(&*pool, "a2", b, at(1, 3), NOW).await);
    assert_eq!([position(&*pool, "a", NOW).await, position(&*pool, "a2", NOW).await], [Some(at(1, 9)), Some(at(1, 3))]);
    // A user's device has nothing to do with another user's device of the same name.
    let other = pool.claim(Claim { user: UserNo(8), ..a_claim("a", 3) }).await.expect("the pool works");
    assert_eq!(other.replaced, None);
    assert_eq!(pool.position(UserNo(8), &device("a"), FeedId::MAIN, NOW).await.expect("the pool works"), None);
    assert_eq!(connections(&*pool).await, [("a".to_owned(), 1), ("a2".to_owned(), 2)]);
}

async fn the_list_is_sorted_and_shows_what_is_online(pool: Arc<dyn Sessions>) {
    for (name, connection) in [("m", 1), ("z", 2), ("b", 3)] {
        claim(&*pool, name, connection).await;
    }
    let token = claim(&*pool, "c", 4).await;
    assert!(save(&*pool, "c", token, at(1, 2), NOW).await);
    let list = pool.list(USER).await.expect("the pool works");
    let shown: Vec<_> = list.iter().map(|s| (s.device.as_str(), s.node.as_str(), s.position, s.since)).collect();
    assert_eq!(
        shown,
        [("b", "n1", None, NOW), ("c", "n1", Some(at(1, 2)), NOW), ("m", "n1", None, NOW), ("z", "n1", None, NOW)]
    );
    // A new session of a device shows the position where the device stood.
    pool.release(USER, &device("c"), token).await.expect("the pool works");
    claim(&*pool, "c", 5).await;
    let list = pool.list(USER).await.expect("the pool works");
    assert_eq!((list[1].connection, list[1].position), (5, Some(at(1, 2))));
}

/// A node whose claim was not answered finds its token in the list, whether the device has an id of its own or not.
async fn what_is_listed_is_ended_by_the_token_it_is_listed_with(pool: Arc<dyn Sessions>) {
    let token = claim(&*pool, "named", 1).await;
    let nameless = Claim { durable: false, ..a_claim("n1-2", 2) };
    let nameless = pool.claim(nameless).await.expect("the pool works").token;
    let listed = pool.list(USER).await.expect("the pool works");
    assert_eq!(listed.iter().map(|session| session.token).collect::<Vec<_>>(), [nameless, token]);
    for (left, session) in [1, 0].into_iter().zip(listed) {
        pool.release(USER, &session.device, session.token).await.expect("the pool works");
        assert_eq!(connections(&*pool).await.len(), left);
    }
}

async fn a_device_without_an_id_of_its_own_is_never_stored(pool: Arc<dyn Sessions>) {
    let passing = Claim { durable: false, ..a_claim("conn-1", 1) };
    let token = pool.claim(passing).await.expect("the pool works").token;
    assert!(save(&*pool, "conn-1", token, at(1, 5), NOW).await, "its session may acknowledge");
    let list = pool.list(USER).await.expect("the pool works");
    assert_eq!(list[0].position, Some(at(1, 5)), "and shows it while it lasts");
    assert_eq!(position(&*pool, "conn-1", NOW).await, None);
    pool.release(USER, &device("conn-1"), token).await.expect("the pool works");
    assert_eq!(connections(&*pool).await, []);
    assert_eq!(position(&*pool, "conn-1", NOW).await, None);
}

async fn the_device_unseen_longest_makes_room(pool: Arc<dyn Sessions>) {
    let name = |n: usize| format!("d{n}");
    for n in 0..DEVICES_MAX {
        let token = claim(&*pool, &name(n), n as u64).await;
        assert!(save(&*pool, &name(n), token, at(1, 1), NOW + n as i64).await);
    }
    // Device 0 came first, but was seen again; so device 1 is the one that is removed.
    let token = claim(&*pool, &name(0), 100).await;
    assert!(save(&*pool, &name(0), token, at(1, 2), NOW + 1000).await);
    let token = claim(&*pool, "one-more", 101).await;
    assert!(save(&*pool, "one-more", token, at(1, 3), NOW + 1001).await);

    let now = NOW + 1001;
    assert_eq!(position(&*pool, "d1", now).await, None);
    assert_eq!(position(&*pool, "d0", now).await, Some(at(1, 2)));
    assert_eq!(position(&*pool, "one-more", now).await, Some(at(1, 3)));
    for n in 2..DEVICES_MAX {
        assert_eq!(position(&*pool, &name(n), now).await, Some(at(1, 1)), "device {n}");
    }
}

async fn a_device_unseen_for_60_days_is_forgotten(pool: Arc<dyn Sessions>) {
    let token = claim(&*pool, "a", 1).await;
    assert!(save(&*pool, "a", token, at(5, 5), NOW).await);
    // A device that acknowledges the same position again counts as seen.
    assert!(save(&*pool, "a", token, at(5, 5), NOW + 10).await);
    assert_eq!(position(&*pool, "a", NOW + 9 + DEVICE_TTL_MS).await, Some(at(5, 5)));
    let later = NOW + 10 + DEVICE_TTL_MS;
    assert_eq!(position(&*pool, "a", later).await, None);
    assert!(save(&*pool, "a", token, at(5, 3), later).await, "what was forgotten holds nothing back");
    assert_eq!(position(&*pool, "a", later).await, Some(at(5, 3)));
}

async fn positions_survive_a_restart_and_tokens_grow(open: &impl AsyncFn(&str) -> Arc<dyn Sessions>) {
    let pool = open("restart").await;
    let old = claim(&*pool, "a", 1).await;
    assert!(save(&*pool, "a", old, at(4, 44), NOW).await);
    drop(pool);

    let pool = open("restart").await;
    assert_eq!(position(&*pool, "a", NOW).await, Some(at(4, 44)));
    assert_eq!(connections(&*pool).await, [], "no session outlives its node's memory");
    assert!(!save(&*pool, "a", old, at(4, 50), NOW).await, "a token from before the restart is no claim");
    let new = claim(&*pool, "a", 2).await;
    assert!(new > old);
    assert!(!save(&*pool, "a", new, at(4, 43), NOW).await, "forward only, also across a restart");
    assert!(save(&*pool, "a", new, at(4, 45), NOW).await);
    assert_eq!(position(&*pool, "a", NOW).await, Some(at(4, 45)));
}
