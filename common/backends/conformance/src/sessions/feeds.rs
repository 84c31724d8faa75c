//! Tests of the positions that a device has in each of its feeds: each position moves by itself, and all are forgotten
//! together.

use std::sync::Arc;

use feedgate_common::named::NAMED_MAX;
use feedgate_common::sessions::{Claim, DEVICE_TTL_MS, DEVICES_MAX, SavePosition, Sessions, Token};
use feedgate_common::{FeedId, Millis, Position};

use super::{NOW, USER, a_claim, at, claim, device};

const MAIN: FeedId = FeedId::MAIN;
const LIKES: FeedId = FeedId(1);
const STORIES: FeedId = FeedId(2);

pub(super) async fn feeds(open: &impl AsyncFn(&str) -> Arc<dyn Sessions>) {
    i10_positions_of_two_feeds_of_a_device_move_independently_and_only_forward(open("feeds").await).await;
    i17_an_older_token_moves_a_device_in_none_of_its_feeds(open("feeds-older").await).await;
    the_list_shows_the_position_in_the_main_feed(open("feeds-list").await).await;
    a_device_without_an_id_of_its_own_keeps_nothing_of_named_feeds(open("feeds-anonymous").await).await;
    i18_a_device_has_positions_in_so_many_named_feeds_at_most(open("feeds-many").await).await;
    a_device_that_makes_room_loses_its_positions_in_all_feeds(open("feeds-room").await).await;
    devices_are_counted_not_their_positions(open("feeds-count").await).await;
    a_device_unseen_in_every_feed_for_60_days_is_forgotten_in_all(open("feeds-ttl").await).await;
    positions_in_all_feeds_survive_a_restart(open).await;
}

async fn save(pool: &dyn Sessions, name: &str, token: Token, feed: FeedId, position: Position, now: Millis) -> bool {
    let saved = pool.save(vec![SavePosition { user: USER, device: device(name), token, feed, position }], now).await;
    saved.expect("the pool works") == [true]
}

async fn position(pool: &dyn Sessions, name: &str, feed: FeedId, now: Millis) -> Option<Position> {
    pool.position(USER, &device(name), feed, now).await.expect("the pool works")
}

/// The positions of a device in the main feed, in the likes and in the stories.
async fn positions(pool: &dyn Sessions, name: &str, now: Millis) -> [Option<Position>; 3] {
    let mut found = [None; 3];
    for (found, feed) in found.iter_mut().zip([MAIN, LIKES, STORIES]) {
        *found = position(pool, name, feed, now).await;
    }
    found
}

async fn i10_positions_of_two_feeds_of_a_device_move_independently_and_only_forward(pool: Arc<dyn Sessions>) {
    let (a, b) = (claim(&*pool, "a", 1).await, claim(&*pool, "b", 2).await);
    let mut expected = [None; 3];
    for (feed, to, moves) in [
        (LIKES, at(2, 5), true),
        (STORIES, at(1, 9), true),
        (MAIN, at(1, 1), true),
        (LIKES, at(2, 4), false),
        (MAIN, at(1, 0), false),
        (MAIN, at(3, 0), true),
        (LIKES, at(2, 5), true),
        (LIKES, at(1, 99), false),
        (STORIES, at(1, 10), true),
        (LIKES, at(3, 0), true),
        (STORIES, at(1, 9), false),
        (MAIN, at(2, 7), false),
    ] {
        assert_eq!(save(&*pool, "a", a, feed, to, NOW).await, moves, "{feed:?} to {to:?}");
        if moves {
            expected[usize::from(feed.0)] = Some(to);
        }
        assert_eq!(positions(&*pool, "a", NOW).await, expected, "{feed:?} to {to:?}");
    }
    assert_eq!(positions(&*pool, "b", NOW).await, [None; 3], "another device says so itself");
    assert!(save(&*pool, "b", b, LIKES, at(1, 1), NOW).await);

    // Positions only move forward across sessions too, and also in the order within one call.
    let again = claim(&*pool, "a", 3).await;
    let steps = [(STORIES, at(1, 12)), (MAIN, at(3, 1)), (STORIES, at(1, 11)), (LIKES, at(2, 9)), (STORIES, at(1, 12))];
    let steps =
        steps.map(|(feed, position)| SavePosition { user: USER, device: device("a"), token: again, feed, position });
    assert_eq!(pool.save(steps.into(), NOW).await.expect("the pool works"), [true, true, false, false, true]);
    assert_eq!(positions(&*pool, "a", NOW).await, [Some(at(3, 1)), Some(at(3, 0)), Some(at(1, 12))]);
    assert_eq!(positions(&*pool, "b", NOW).await, [None, Some(at(1, 1)), None]);
}

async fn i17_an_older_token_moves_a_device_in_none_of_its_feeds(pool: Arc<dyn Sessions>) {
    let old = claim(&*pool, "a", 1).await;
    assert!(save(&*pool, "a", old, LIKES, at(1, 5), NOW).await);
    let new = claim(&*pool, "a", 2).await;
    for feed in [MAIN, LIKES, STORIES] {
        assert!(!save(&*pool, "a", old, feed, at(1, 9), NOW).await, "{feed:?}");
    }
    assert_eq!(positions(&*pool, "a", NOW).await, [None, Some(at(1, 5)), None]);
    assert!(save(&*pool, "a", new, STORIES, at(1, 6), NOW).await);
    pool.revoke(USER, &device("a")).await.expect("the pool works");
    assert!(!save(&*pool, "a", new, LIKES, at(1, 7), NOW).await, "what was revoked must not save");
    assert_eq!(positions(&*pool, "a", NOW).await, [None, Some(at(1, 5)), Some(at(1, 6))], "the stored positions stay");
}

async fn the_list_shows_the_position_in_the_main_feed(pool: Arc<dyn Sessions>) {
    let shown = async || pool.list(USER).await.expect("the pool works")[0].position;
    let token = claim(&*pool, "a", 1).await;
    assert!(save(&*pool, "a", token, LIKES, at(1, 50), NOW).await);
    assert_eq!(shown().await, None, "it has acknowledged nothing there");
    assert!(save(&*pool, "a", token, MAIN, at(1, 5), NOW).await);
    assert!(save(&*pool, "a", token, LIKES, at(1, 51), NOW).await);
    assert_eq!(shown().await, Some(at(1, 5)));
}

async fn a_device_without_an_id_of_its_own_keeps_nothing_of_named_feeds(pool: Arc<dyn Sessions>) {
    let passing = Claim { durable: false, ..a_claim("conn-1", 1) };
    let token = pool.claim(passing).await.expect("the pool works").token;
    assert!(save(&*pool, "conn-1", token, MAIN, at(1, 5), NOW).await);
    assert!(save(&*pool, "conn-1", token, LIKES, at(1, 50), NOW).await, "its session may acknowledge");
    assert_eq!(positions(&*pool, "conn-1", NOW).await, [None; 3]);
    let list = pool.list(USER).await.expect("the pool works");
    assert_eq!(list[0].position, Some(at(1, 5)));
}

async fn i18_a_device_has_positions_in_so_many_named_feeds_at_most(pool: Arc<dyn Sessions>) {
    let token = claim(&*pool, "a", 1).await;
    assert!(save(&*pool, "a", token, MAIN, at(1, 1), NOW).await);
    let feeds = || (1..=NAMED_MAX as u16).map(FeedId);
    for feed in feeds() {
        assert!(save(&*pool, "a", token, feed, at(1, feed.0.into()), NOW).await);
    }
    // The position in the first feed has moved again. So the position in the second feed was saved longest ago, and is
    // removed to make room for one more.
    assert!(save(&*pool, "a", token, LIKES, at(1, 100), NOW).await);
    let one_more = FeedId(NAMED_MAX as u16 + 1);
    assert!(save(&*pool, "a", token, one_more, at(1, 7), NOW).await);
    assert_eq!(positions(&*pool, "a", NOW).await, [Some(at(1, 1)), Some(at(1, 100)), None]);
    for feed in feeds().skip(2) {
        assert_eq!(position(&*pool, "a", feed, NOW).await, Some(at(1, feed.0.into())), "{feed:?}");
    }
    assert_eq!(position(&*pool, "a", one_more, NOW).await, Some(at(1, 7)));
}

async fn a_device_that_makes_room_loses_its_positions_in_all_feeds(pool: Arc<dyn Sessions>) {
    let name = |n: usize| format!("d{n}");
    for n in 0..DEVICES_MAX {
        let token = claim(&*pool, &name(n), n as u64).await;
        // A device with positions in named feeds alone is kept as long as the others.
        let feed = if n == 2 { LIKES } else { MAIN };
        assert!(save(&*pool, &name(n), token, feed, at(1, 1), NOW + n as i64).await);
        assert!(save(&*pool, &name(n), token, STORIES, at(1, 2), NOW + n as i64).await);
    }
    // Device 0 came first, but was seen again in one feed; so device 1 is the one that is removed.
    let token = claim(&*pool, &name(0), 100).await;
    assert!(save(&*pool, &name(0), token, LIKES, at(1, 3), NOW + 1000).await);
    let now = NOW + 1001;
    let token = claim(&*pool, "one-more", 101).await;
    assert!(save(&*pool, "one-more", token, LIKES, at(1, 4), now).await);

    assert_eq!(positions(&*pool, "d0", now).await, [1, 3, 2].map(|offset| Some(at(1, offset))));
    assert_eq!(positions(&*pool, "d1", now).await, [None; 3]);
    assert_eq!(positions(&*pool, "one-more", now).await, [None, Some(at(1, 4)), None]);
    assert_eq!(positions(&*pool, "d2", now).await, [None, Some(at(1, 1)), Some(at(1, 2))]);
    for n in 3..DEVICES_MAX {
        assert_eq!(positions(&*pool, &name(n), now).await, [Some(at(1, 1)), None, Some(at(1, 2))], "device {n}");
    }
    // A device that comes back has no positions: the forgotten positions do not come back, and the device may save
    // lower ones.
    let token = claim(&*pool, "d1", 102).await;
    assert!(save(&*pool, "d1", token, MAIN, at(1, 0), now).await);
    assert_eq!(positions(&*pool, "d1", now).await, [Some(at(1, 0)), None, None]);
    assert!(save(&*pool, "d1", token, STORIES, at(1, 0), now).await);
}

async fn devices_are_counted_not_their_positions(pool: Arc<dyn Sessions>) {
    for n in 0..DEVICES_MAX {
        let name = format!("d{n}");
        let token = claim(&*pool, &name, n as u64).await;
        for feed in [LIKES, STORIES, MAIN] {
            assert!(save(&*pool, &name, token, feed, at(1, 1), NOW).await);
        }
    }
    for n in 0..DEVICES_MAX {
        assert_eq!(positions(&*pool, &format!("d{n}"), NOW).await, [Some(at(1, 1)); 3], "device {n}");
    }
}

async fn a_device_unseen_in_every_feed_for_60_days_is_forgotten_in_all(pool: Arc<dyn Sessions>) {
    let token = claim(&*pool, "a", 1).await;
    for feed in [MAIN, LIKES] {
        assert!(save(&*pool, "a", token, feed, at(5, 5), NOW).await);
    }
    // A device that acknowledges anything in one feed counts as seen.
    assert!(save(&*pool, "a", token, LIKES, at(5, 6), NOW + 10).await);
    let last = NOW + 9 + DEVICE_TTL_MS;
    assert_eq!(positions(&*pool, "a", last).await, [Some(at(5, 5)), Some(at(5, 6)), None]);
    let later = last + 1;
    assert_eq!(positions(&*pool, "a", later).await, [None; 3]);
    assert!(save(&*pool, "a", token, STORIES, at(5, 1), later).await);
    assert_eq!(positions(&*pool, "a", later).await, [None, None, Some(at(5, 1))], "what was forgotten stays so");
    for feed in [MAIN, LIKES] {
        assert!(save(&*pool, "a", token, feed, at(5, 3), later).await, "and holds nothing back");
    }
    // An acknowledgement in the main feed counts as seen too.
    let later = later + DEVICE_TTL_MS;
    assert!(save(&*pool, "a", token, MAIN, at(5, 0), later).await);
    assert_eq!(positions(&*pool, "a", later).await, [Some(at(5, 0)), None, None]);
}

async fn positions_in_all_feeds_survive_a_restart(open: &impl AsyncFn(&str) -> Arc<dyn Sessions>) {
    let pool = open("feeds-restart").await;
    let (both, named) = (claim(&*pool, "a", 1).await, claim(&*pool, "b", 2).await);
    assert!(save(&*pool, "a", both, MAIN, at(4, 44), NOW).await);
    assert!(save(&*pool, "a", both, LIKES, at(3, 33), NOW).await);
    assert!(save(&*pool, "b", named, LIKES, at(2, 22), NOW).await);
    drop(pool);

    let pool = open("feeds-restart").await;
    assert_eq!(positions(&*pool, "a", NOW).await, [Some(at(4, 44)), Some(at(3, 33)), None]);
    assert_eq!(positions(&*pool, "b", NOW).await, [None, Some(at(2, 22)), None]);
    assert!(!save(&*pool, "a", both, LIKES, at(3, 50), NOW).await, "a token from before the restart is no claim");
    let new = claim(&*pool, "a", 3).await;
    assert!(!save(&*pool, "a", new, LIKES, at(3, 32), NOW).await, "forward only, also across a restart");
    assert!(save(&*pool, "a", new, LIKES, at(3, 34), NOW).await);
}
