//! A post that every session pulls, compared with a post that is pushed to every inbox, in turn.
//!
//! ```text
//!   pushed:  accepted ─▶ appended to every inbox, a step for a thousand ─▶ wakes ─▶ frames, without a read
//!   pulled:  accepted ─▶ one broadcast ─▶ wakes, so many a second ─▶ each session reads, which appends ─▶ frames
//! ```
//!
//! Pull appends only to inboxes whose readers are online. Here all readers are online, so pull appends as much as push,
//! one inbox at a time. The benchmark `followers` shows what pull saves for readers who are not online.

use feedgate_tests::load::{Deliver, Report, Tally, Times, Wire};

use crate::delivery::to_all;
use crate::world::{IDOL, STAR, World};

/// The two routes of a post, each with the author who posts by it.
const WAYS: [(&str, &str); 2] = [("pushed", STAR), ("pulled", IDOL)];

/// Measures a pulled post to all devices that are online, beside a pushed one.
pub(crate) async fn measure(world: &World, deliver: Deliver, report: &mut Report) -> anyhow::Result<Tally> {
    let mode = if deliver == Deliver::Items { "items" } else { "notify" };
    report.heading(&format!("one post to all, pushed and pulled, with {mode}"));
    let (fleet, backend) = (world.connect(deliver, Wire::Json).await?, &world.server.backend);
    for (_, author) in WAYS {
        // The first post finds cold caches.
        to_all(world, &fleet, author, 1, &mut Times::default()).await?;
    }
    let (mut times, mut spent) = ([Times::default(), Times::default()], [0.0; 2]);
    for _ in 0..world.options.rounds {
        for (way, (_, author)) in WAYS.iter().enumerate() {
            backend.quiet().await?;
            let before = world.cpu_seconds()?;
            to_all(world, &fleet, author, 1, &mut times[way]).await?;
            backend.quiet().await?;
            spent[way] += world.cpu_seconds()? - before;
        }
    }
    let per_million = 1e6 / (world.sessions() * world.options.rounds) as f64;
    let mut last = [0.0; 2];
    for (way, (times, (what, _))) in times.into_iter().zip(WAYS).enumerate() {
        let name = format!("{mode}, {what}");
        last[way] = times.tell(&name, world.sessions(), report);
        report.figure(&format!("{name}: whole path"), spent[way] * per_million, "CPU-s/M");
    }
    report.figure(&format!("{mode}: the last has it, pulled / pushed"), last[1] / last[0], "x");
    report.figure(&format!("{mode}: whole path, pulled / pushed"), spent[1] / spent[0], "x processor time");
    let tally = fleet.tally()?;
    report.count(&format!("{mode}: missing"), tally.missing, "notifications");
    report.count(&format!("{mode}: repeated"), tally.repeated, "notifications");
    fleet.hang_up().await;
    Ok(tally)
}
