//! Readers that stop reading while large posts arrive for them: the server's memory stays flat, since
//! a session holds a position and never a queue.
//!
//! These posts go first to readers who read, so that every cache is as full as it gets.

use anyhow::ensure;
use feedgate_tests::load::{Fleet, Report, Tally};

use crate::world::{LOUD, LOUD_READERS, World};

/// Bytes of text in a post: four times [`POSTS`] of it are far more than the kernel buffers for a socket.
const POST_BYTES: usize = 60 * 1024;

/// Posts with everyone reading, and again with all but one stalled.
const POSTS: usize = 150;

/// Lets most of the readers of [`LOUD`](crate::world::LOUD) stop reading, and measures how the server's memory grows.
pub(crate) async fn measure(world: &World, report: &mut Report) -> anyhow::Result<Tally> {
    let last = LOUD_READERS.end - 1;
    let reading = world.connect_loud(0..0).await?;
    flood(world, &reading, 0..last + 1).await?;
    let warm = reading.tally()?;
    let before = world.settled_memory().await?;
    reading.hang_up().await;

    let fleet = world.connect_loud(0..last).await?;
    flood(world, &fleet, last..last + 1).await?;
    let after = world.settled_memory().await?;
    ensure!(
        world.server.backend.sessions().await? as usize == LOUD_READERS.len(),
        "a stalled session was cut off too soon"
    );
    fleet.hang_up().await;

    let unread = (last * POSTS * POST_BYTES) as f64;
    report.count("stalled readers", last as u64, "sessions");
    report.figure("posts they did not read", unread / 1e6, "MB");
    report.figure("server memory before", before.anonymous as f64 / 1e6, "MB");
    report.figure("server memory after", after.anonymous as f64 / 1e6, "MB");
    let growth = after.anonymous as f64 - before.anonymous as f64;
    report.figure("growth per stalled reader", growth / last as f64 / 1024.0, "KiB");
    Ok(warm)
}

/// Posts, each awaited by the devices in `readers`.
async fn flood(world: &World, fleet: &Fleet, readers: std::ops::Range<usize>) -> anyhow::Result<()> {
    for _ in 0..POSTS {
        fleet.expect(readers.clone(), 1);
        world.server.backend.publish(LOUD, POST_BYTES).await?;
        fleet.arrived(readers.clone()).await?;
    }
    Ok(())
}
