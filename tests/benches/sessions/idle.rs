//! User memory of a session that is authenticated, subscribed and idle, its entry in the pool included;
//! and how fast they come in.
//!
//! The inboxes exist before the first figure is taken, so none of the growth is theirs. Kernel
//! buffers of the sockets are not in it.

use std::time::Duration;

use anyhow::ensure;
use feedgate_tests::load::{Deliver, Fleet, Report, Wire};
use feedgate_tests::process::Memory;
use tokio::time::sleep;

use crate::world::{PING_INTERVAL, World};

/// After a ping interval every session has been pinged once, by the slowest of timers.
const GRACE: Duration = Duration::from_secs(2);

/// Connects everyone. With a report, measures what they weigh, and reports it under names that end with the words
/// beside the report.
pub(crate) async fn measure(
    world: &World,
    deliver: Deliver,
    wire: Wire,
    report: Option<(&mut Report, &str)>,
) -> anyhow::Result<Fleet> {
    let Some((report, over)) = report else { return world.connect(deliver, wire).await };
    let n = world.sessions();
    let before = world.settled_memory().await?;
    let fleet = world.connect(deliver, wire).await?;
    let per_second = n as f64 / fleet.connecting.as_secs_f64();
    report.figure(&format!("upgrade + connect + subscribe{over}"), per_second, "sessions/s");
    let after = world.settled_memory().await?;
    weigh(&format!("memory per idle session{over}"), before, after, n, report);

    sleep(PING_INTERVAL + GRACE).await;
    let pings = fleet.tally()?.pings;
    ensure!(pings >= n as u64, "only {pings} of {n} sessions were pinged");
    ensure!(world.server.backend.sessions().await? == n as u64, "a session was lost");
    report.count(&format!("pings answered{over}"), pings, "pings");
    let later = world.settled_memory().await?;
    weigh(&format!("memory per idle session{over} after a ping interval"), before, later, n, report);
    Ok(fleet)
}

fn weigh(name: &str, before: Memory, after: Memory, sessions: usize, report: &mut Report) {
    let each = |before: u64, after: u64| (after as f64 - before as f64) / sessions as f64;
    report.figure(name, each(before.anonymous, after.anonymous), "B");
    report.figure(&format!("{name}, pss"), each(before.pss, after.pss), "B");
    report.figure(&format!("{name}, server rss"), after.rss as f64 / 1e6, "MB");
}
