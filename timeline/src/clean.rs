//! Drops inboxes that nobody has read for the time for which unread inboxes are kept.
//!
//! When the reader of a dropped inbox returns, the inbox is rebuilt; until then push skips it. Some stores of inboxes
//! drop them by themselves: such a store is asked too, and has nothing to do. Several workers may clean at the same
//! time.

use std::time::Duration;

use feedgate_common::error::Result;
use feedgate_common::{Inboxes, Millis};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::rounds::again;

/// How many inboxes are dropped in one call.
const SOME: usize = 10_000;

/// Cleans until the shutdown. A failed cleaning is a warning; the next cleaning finds the same inboxes.
pub(crate) async fn run(inboxes: &dyn Inboxes, every: Duration, shutdown: &CancellationToken) {
    again("a cleaning of the inboxes", every, shutdown, || clean(inboxes, clock::now(), SOME)).await;
}

/// Drops inboxes whose time is over at `now`, at most `some`. Gives whether there may be more.
async fn clean(inboxes: &dyn Inboxes, now: Millis, some: usize) -> Result<bool> {
    let dropped = inboxes.discard_expired(now, some).await?;
    if dropped > 0 {
        tracing::info!(inboxes = dropped, "dropped inboxes that nobody has read for long");
    }
    Ok(dropped >= some)
}

#[cfg(test)]
mod tests {
    use feedgate_common::inboxes::{Begun, Build};
    use feedgate_common::{Epoch, InboxKey, UserNo, Watermarks};
    use feedgate_embedded::Embedded;

    use super::*;

    fn key(reader: u32) -> InboxKey {
        InboxKey::main(UserNo(reader))
    }

    async fn build(inboxes: &dyn Inboxes, reader: u32, until: Millis) {
        let (key, epoch, taken) = (key(reader), Epoch(1), Watermarks::default());
        assert_eq!(inboxes.begin_build(key, epoch).await.unwrap(), Some(Begun { placeholder: epoch, notes: 0 }));
        let build =
            Build { key, epoch, built_at: 1, entries: vec![], floor: None, taken, ahead: vec![], notes_from: 0, until };
        assert!(inboxes.finish_build(build).await.unwrap());
    }

    async fn there(inboxes: &dyn Inboxes) -> u64 {
        inboxes.counts().await.unwrap().inboxes
    }

    #[tokio::test]
    async fn a_cleaning_drops_everything_past_its_time_however_little_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let inboxes = Embedded::open(dir.path(), 4).unwrap().inboxes;
        for reader in 0..50 {
            build(&*inboxes, reader, if reader % 5 == 0 { 20_000 } else { 10_000 }).await;
        }
        let clean_at = async |now| while clean(&*inboxes, now, 7).await.unwrap() {};
        clean_at(9_999).await;
        assert_eq!(there(&*inboxes).await, 50);
        clean_at(10_000).await;
        assert_eq!(there(&*inboxes).await, 10);
        clean_at(Millis::MAX - 1).await;
        assert_eq!(there(&*inboxes).await, 0);
    }

    /// The clock of the inboxes is the machine's; that of the cleaner's rounds jumps ahead as soon as all wait.
    #[tokio::test(start_paused = true)]
    async fn the_cleaner_comes_round_until_the_shutdown_and_leaves_what_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let inboxes = Embedded::open(dir.path(), 4).unwrap().inboxes;
        build(&*inboxes, 1, Millis::MAX).await;
        let (shutdown, every) = (CancellationToken::new(), Duration::from_secs(60));
        let test = async {
            for _ in 0..3 {
                build(&*inboxes, 2, 10_000).await;
                while inboxes.stand(key(2)).await.unwrap().is_some() {
                    tokio::time::sleep(every).await;
                }
            }
            shutdown.cancel();
        };
        tokio::join!(run(&*inboxes, every, &shutdown), test);
        assert_eq!(there(&*inboxes).await, 1);
    }
}
