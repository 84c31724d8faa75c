//! The work that a node does besides serving: once per node, however many ports it serves.
//!
//! ```text
//!   keeper: lease, sessions │ prober: which stores are away │ positions: saved │ wakes and closes: made up for if lost
//!   hot: news of authors who are pulled │ touches: inboxes that are read are kept │ ghosts: sessions left in the pool
//!   revocations: sessions whose tokens are revoked end │ watches: news of items that are watched
//! ```

use std::time::Duration;

use futures_util::future::{join, join3, join4};
use tokio::time::{Instant, sleep};

use super::{ghosts, keeper, positions, pull_news, touches, vitals, watches};
use crate::node::paced::paced;
use crate::node::pool::Seat;
use crate::node::slot::Wake;
use crate::node::{LocalSessions, Node};

/// The time over which all sessions are woken when any wake may have been lost.
const REREAD: Duration = Duration::from_secs(2);

/// The most time over which all sessions are woken, when such rounds follow each other without a rest.
const REREAD_MAX: Duration = Duration::from_secs(64);

/// Does the node's background work for ever. If it is called several times, one call works, and another goes on when
/// that one ends. It may be dropped at any time.
pub(crate) async fn run(node: &Node) {
    let _alone = node.background.lock().await;
    join3(keeper::begin(node), vitals::probe(node), pull_news::begin(node)).await;
    node.begun.cancel();
    join4(
        join3(keeper::keep(node), ghosts::keep_sweeping(&node.local), vitals::keep_probing(node)),
        join(
            positions::keep_saving(&node.local, &node.settings),
            touches::keep_touching(&node.reads, &node.local.pool),
        ),
        join3(
            make_up_for_the_missed(&node.local),
            pull_news::keep_joining(node),
            node.revocations.keep_following(&node.local.pool),
        ),
        join3(
            watches::keep_reading(&node.watches, &node.reads.feeds),
            watches::keep_telling(&node.watches, &*node.local.doorbell),
            watches::keep_checking(&node.watches, &**node.reads.feeds.archive(), &node.settings),
        ),
    )
    .await;
}

/// Wakes every session and confirms it in the session pool, spread over time, whenever a wake or a close may have been
/// lost.
async fn make_up_for_the_missed(local: &LocalSessions) {
    let mut rounds = Rounds::default();
    loop {
        local.pool.until_missed().await;
        let time = rounds.begin(Instant::now());
        let seats = local.pool.seated();
        let woken = paced(&seats, time, |Seat { slot, .. }| _ = slot.wake(Wake::MISSED));
        let ((), confirmed) = join(woken, keeper::confirm(local, time)).await;
        rounds.ended = Some(Instant::now());
        if let Err(error) = confirmed {
            tracing::debug!(%error, "sessions could not be confirmed after closes may have been lost; trying again");
            sleep(keeper::AGAIN).await;
            local.pool.missed();
        }
    }
}

/// How long a round takes. If all sessions read at once, wakes may be lost again; so a round that follows another one
/// without a rest takes twice as long as that one.
#[derive(Default)]
struct Rounds {
    time: Duration,
    ended: Option<Instant>,
}

impl Rounds {
    /// The time that a round takes which begins at `now`.
    fn begin(&mut self, now: Instant) -> Duration {
        let rested = self.ended.is_none_or(|ended| now.duration_since(ended) > self.time);
        self.time = if rested { REREAD } else { (2 * self.time).min(REREAD_MAX) };
        self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_follow_each_other_take_ever_longer_until_there_was_a_rest() {
        let (mut rounds, mut now) = (Rounds::default(), Instant::now());
        let mut round = |rest: u64| {
            now += Duration::from_secs(rest);
            let time = rounds.begin(now);
            now += time;
            rounds.ended = Some(now);
            time.as_secs()
        };
        assert_eq!([0, 0, 1, 8, 0, 16, 0, 0].map(&mut round), [2, 4, 8, 16, 32, 64, 64, 64]);
        assert_eq!([65, 0, 5, 0].map(&mut round), [2, 4, 2, 4]);
    }
}
