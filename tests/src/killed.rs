//! The child of `tests/feeds_killed.rs`: embedded stores on disk with a worker and a node, asked line by line.
//!
//! Built with debug assertions it has failpoints, and dies at the one that `FEEDGATE_FAILPOINT` names.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use feedgate_common::accept::Policy;
use feedgate_common::feed::{Feeds, Publisher};
use feedgate_common::{Millis, failpoint};
use feedgate_embedded::{Embedded, Kept, Opening};
use feedgate_tests::oracle::{
    Answer, Ask, BACKFILL, NOW, Node, Op, PULL_ABOVE, STEP_MAX, Serves, USERS, World, listens, name_feeds, name_notes,
    name_rankings, rankings, renew_all,
};
use feedgate_tests::rules::Rules;
use feedgate_timeline::{FanOut, Settings, Worker};
use tokio_util::sync::CancellationToken;

const BUCKETS: u16 = 2;
/// Long: the time of these worlds stands nearly still.
const UNREAD: Duration = Duration::from_secs(3600);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let dir = std::env::args().nth(1).context("usage: feedgate-killed DIRECTORY [all]")?;
    // A second word stands for the setting `backfill = "all"`.
    let policy = Policy { pull_above: PULL_ABOVE, whole_past: std::env::args().nth(2).is_some() };
    let opening = Opening { buckets: BUCKETS, policy, accept_loss: false, kept: Kept::default() };
    let stores = Embedded::open_with(Path::new(&dir), opening)?;
    let feeds = || {
        Feeds::new(stores.archive.clone(), stores.inboxes.clone(), BACKFILL).with_retention(UNREAD, Arc::new(|| NOW))
    };
    let (unranked, feeds) = (feeds(), Arc::new(feeds().with_named(rankings())));
    let rules = Arc::new(Rules::by_steps(feeds.clone(), STEP_MAX));
    name_feeds(&*stores.archive).await?;
    name_rankings(&*stores.archive).await?;
    name_notes(&*stores.archive).await?;
    let world = World::new(1, USERS);
    let numbers = stores.archive.intern(&world.names).await?;
    let node = Node::new(rules.clone(), unranked, world, numbers);
    let _listening = listens(&rules.changes, &*stores.doorbell);
    let settings = Settings {
        sweep_every: Duration::from_millis(10),
        overdue: Duration::from_millis(0),
        retry_first: Duration::from_millis(1),
        retry_max: Duration::from_millis(5),
        ..Settings::default()
    };
    let worker =
        Worker::new(FanOut::new(feeds).with_step_max(STEP_MAX), stores.jobs.clone(), stores.doorbell.clone(), settings);
    tokio::spawn(async move { worker.run(CancellationToken::new()).await });
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&stores, &node, serde_json::from_str(&line?)?).await?;
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&answer)?)?;
    }
    Ok(())
}

async fn answer(stores: &Embedded, node: &Node, ask: Ask) -> anyhow::Result<Answer> {
    Ok(match ask {
        Ask::Write(op, now) => {
            let publisher = Publisher::new(stores.archive.clone(), stores.jobs.clone());
            let accepted = node.accept(&op, Some(&publisher), now).await?;
            if matches!(op, Op::Rank(..) | Op::React { .. }) {
                // As a server passes it, whose own call this is.
                failpoint::hit("archive-committed");
            }
            Answer::Accepted(accepted)
        }
        Ask::Changes(inbox, after, limit) => Answer::Changes(node.changes(inbox, after, limit).await),
        Ask::Page(inbox, before, limit, look) => Answer::Page(node.page(inbox, before, limit, look).await),
        Ask::Lines(user) => Answer::Lines(node.lines(user).await),
        Ask::Sleep(inbox) => {
            stores.inboxes.discard(node.key(inbox)).await?;
            Answer::Done
        }
        Ask::Settle => {
            while !is_settled(stores).await? {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            node.hear().await?;
            Answer::Done
        }
    })
}

async fn is_settled(stores: &Embedded) -> anyhow::Result<bool> {
    renew_all(&*stores.archive, NOW).await?;
    let outstanding = stores.archive.outstanding(None, Millis::MAX, 1).await?;
    Ok(outstanding.is_empty() && stores.jobs.pending().await? == 0)
}
