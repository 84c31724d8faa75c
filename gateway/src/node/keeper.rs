//! Renews this node's lease in the session pool, and closes its sessions that the pool does not have.
//!
//! ```text
//!   every LEASE / 4 ──▶ renew ──Kept──▶ the lease goes on
//!                         └──Anew, or too late──▶ doubt ──▶ confirm all, at once ──▶ it stands; all re-read
//!   every reread_interval ──▶ confirm all, paced: a close that was lost on the way is made up for
//!   a node doubts a user's sessions ([`ghosts`](crate::node::ghosts)) ──▶ confirm those that are here, at once
//!   a gap in what the node hears ──▶ confirm all within seconds ([`background`](crate::node::background))
//! ```
//!
//! A session that the pool does not confirm has been replaced or ended: it is closed with 4500, after which the device
//! stays away. But the claim of an older connection may have been carried out late, long after its node gave it up.
//! Then the newer session is closed with 3011, and its device connects again.

use std::time::Duration;

use feedgate_common::doorbell::Closing;
use feedgate_common::error::Result;
use feedgate_common::sessions::Confirmed;
use futures_util::future::join3;
use tokio::time::{Instant, sleep, sleep_until};

use crate::node::bounded::{CALL, bounded};
use crate::node::paced::until_due;
use crate::node::pool::Seat;
use crate::node::{LocalSessions, Node};

/// How many sessions are confirmed in one call.
const CHUNK: usize = 500;

/// How long to wait before a call that has failed is made again.
pub(crate) const AGAIN: Duration = Duration::from_millis(500);

/// Renews the lease and confirms the sessions for ever. May be dropped at any time.
pub(crate) async fn keep(node: &Node) {
    join3(renew_on_time(node), confirm_all(node), confirm_the_doubted(&node.local)).await;
}

/// Renews the lease once, and lets it stand if no session needs to be confirmed. A node calls this when it begins.
pub(crate) async fn begin(node: &Node) {
    renew(node).await;
    if let Some(doubt) = node.lease.doubt()
        && confirm(&node.local, Duration::ZERO).await.is_ok()
    {
        node.lease.settle(doubt);
    }
}

async fn renew_on_time(node: &Node) {
    loop {
        let asked = Instant::now();
        let renewed = renew(node).await;
        node.vitals.kept(node.uptime.elapsed_ms());
        sleep_until(asked + if renewed { CALL } else { AGAIN }).await;
    }
}

/// Renews the lease. Returns whether the pool has renewed it.
async fn renew(node: &Node) -> bool {
    let asked = node.lease.now_ms();
    match bounded(node.local.sessions.renew(&node.local.node)).await {
        Ok(renewed) => node.lease.renewed(asked, node.lease.now_ms(), renewed),
        Err(error) => {
            tracing::warn!(%error, "the node's lease could not be renewed; nothing is pushed once it has lapsed");
            return false;
        }
    }
    true
}

async fn confirm_all(node: &Node) {
    loop {
        let interval = Duration::from_secs(node.settings.now().reread_interval_secs.into());
        let doubt = node.lease.doubt();
        let confirmed = match doubt {
            Some(_) => confirm(&node.local, Duration::ZERO).await,
            None => tokio::select! {
                confirmed = confirm_in_turn(&node.local, interval) => confirmed,
                () = node.lease.doubted() => continue,
            },
        };
        match (confirmed, doubt) {
            (Ok(()), Some(doubt)) => {
                node.lease.settle(doubt);
                node.local.pool.missed();
            }
            (Ok(()), None) => {}
            (Err(error), _) => {
                tracing::warn!(%error, "sessions could not be confirmed; trying again");
                sleep(AGAIN).await;
            }
        }
    }
}

/// Confirms the sessions that another node doubts. Sessions that cannot be confirmed now are left to that node, which
/// goes on to doubt them for a while, and to the next round of all sessions.
async fn confirm_the_doubted(local: &LocalSessions) {
    loop {
        let seats = local.pool.until_doubted().await;
        for chunk in seats.chunks(CHUNK) {
            if let Err(error) = confirm_some(local, chunk).await {
                tracing::debug!(%error, "sessions that are in doubt could not be confirmed");
                break;
            }
        }
    }
}

/// Confirms every session that is here now, spread over `time`. Ends with the last session, or with the first call that
/// fails.
pub(crate) async fn confirm(local: &LocalSessions, time: Duration) -> Result<()> {
    let started = Instant::now();
    let seats = local.pool.seated();
    for (n, chunk) in seats.chunks(CHUNK).enumerate() {
        until_due(started, time, n * CHUNK, seats.len()).await;
        confirm_some(local, chunk).await?;
    }
    Ok(())
}

/// Confirms every session that is here now, spread over `interval`, and ends when the next round is due.
async fn confirm_in_turn(local: &LocalSessions, interval: Duration) -> Result<()> {
    let started = Instant::now();
    confirm(local, interval).await?;
    until_due(started, interval, 1, 1).await;
    Ok(())
}

/// Asks the pool whether these sessions are still those of their devices, and closes the sessions that are not. A
/// session whose claim has no answer yet is left out.
pub(crate) async fn confirm_some(local: &LocalSessions, seats: &[Seat]) -> Result<()> {
    let held = |seat: &Seat| seat.who.held(&local.node, seat.slot.connection);
    let (seats, held): (Vec<&Seat>, Vec<_>) = seats.iter().filter_map(|seat| Some((seat, held(seat)?))).unzip();
    if held.is_empty() {
        return Ok(());
    }
    let confirmed = bounded(local.sessions.confirm(held)).await?;
    for (seat, confirmed) in seats.iter().zip(confirmed) {
        let why = match confirmed {
            Confirmed::Kept => continue,
            Confirmed::Ended => Closing::Replaced,
            Confirmed::Displaced => Closing::Displaced,
        };
        local.pool.end(seat.who.user.no, seat.slot.connection, why);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds};
    use feedgate_common::sessions::LEASE;
    use feedgate_embedded::Embedded;

    use super::*;
    use crate::node::fixture;

    #[tokio::test]
    async fn i17_a_lease_lapses_while_the_machine_is_suspended() {
        static SUSPENDED: AtomicU64 = AtomicU64::new(0);
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 4).unwrap();
        let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL);
        let mut node = fixture::node(&stores, feeds);
        let lease = &mut Arc::get_mut(&mut node).unwrap().lease;
        Arc::get_mut(lease).unwrap().suspended_ms = || SUSPENDED.load(Ordering::Relaxed);
        begin(&node).await;
        assert!(node.lease.may_push());
        SUSPENDED.fetch_add(LEASE.as_millis() as u64, Ordering::Relaxed);
        assert!(!node.lease.may_push(), "the pool has let it go meanwhile");
        renew(&node).await;
        assert!(!node.lease.may_push(), "nothing was confirmed since");
        begin(&node).await;
        assert!(node.lease.may_push());
    }
}
