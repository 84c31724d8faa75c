//! Asks whether the watchers of items may still see these items, and drops the watchers who may not.
//!
//! ```text
//!   told of a reader ─▶ its items: one question for the reader ─┐
//!   every now and then ─▶ each item: its watchers, so many at a time ─┴─▶ seen no more ─▶ dropped
//! ```

use std::collections::HashSet;
use std::time::Duration;

use feedgate_common::around::{seen_by, who_sees};
use feedgate_common::error::Result;
use feedgate_common::{Archive, ItemId, UserNo};
use tokio::time::{Instant, sleep};

use super::{ITEMS_MAX, Watches};
use crate::node::bounded::bounded;
use crate::node::paced::until_due;
use crate::settings::LiveSettings;

/// How many watchers of an item are asked about in one call.
const BATCH: usize = 500;

/// How long to wait after a store has failed, before readers in doubt are asked about again.
const AGAIN: Duration = Duration::from_secs(1);

/// Asks for ever. May be dropped at any time.
pub(crate) async fn keep_checking(watches: &Watches, archive: &dyn Archive, settings: &LiveSettings) {
    let told = async {
        loop {
            watches.doubt.notified().await;
            let doubted = std::mem::take(&mut *watches.doubted.lock());
            for user in doubted {
                if let Err(error) = check_user(watches, archive, user).await {
                    tracing::debug!(%error, "it could not be asked what a reader still sees; trying again");
                    watches.doubted.lock().insert(user);
                    watches.doubt.notify_one();
                    sleep(AGAIN).await;
                }
            }
        }
    };
    let now_and_then = async {
        loop {
            let time = Duration::from_secs(settings.now().reread_interval_secs.into());
            let started = Instant::now();
            check_all(watches, archive, started, time / 2).await;
            sleep((started + time).saturating_duration_since(Instant::now()).max(AGAIN)).await;
        }
    };
    tokio::join!(told, now_and_then);
}

/// Asks which of the items that a user watches the user still sees, and drops the user from the others.
async fn check_user(watches: &Watches, archive: &dyn Archive, user: UserNo) -> Result<()> {
    for ids in watches.watched_by(user).chunks(ITEMS_MAX) {
        let found = bounded(archive.items(ids)).await?;
        let seen = bounded(seen_by(archive, Some(user), found)).await?;
        for (id, seen) in ids.iter().zip(seen) {
            if seen.is_none() {
                let watchers = watches.watchers(*id);
                watchers.iter().filter(|watcher| watcher.user == user).for_each(|watcher| watcher.drop_out());
            }
        }
    }
    Ok(())
}

/// Asks about all watchers of all items, spread over `time`. A question that failed is asked again the next time.
async fn check_all(watches: &Watches, archive: &dyn Archive, started: Instant, time: Duration) {
    let ids: Vec<ItemId> = watches.all.lock().items.keys().copied().collect();
    for (nth, id) in ids.iter().enumerate() {
        until_due(started, time, nth, ids.len()).await;
        if let Err(error) = check_item(watches, archive, *id).await {
            tracing::debug!(%error, "it could not be asked who still sees an item; trying later");
        }
    }
}

/// Asks which of the watchers of an item still see it, and drops the others. Drops all if the item is gone.
async fn check_item(watches: &Watches, archive: &dyn Archive, id: ItemId) -> Result<()> {
    let Some(item) = bounded(archive.items(&[id])).await?.into_iter().flatten().next() else {
        watches.end(id);
        return Ok(());
    };
    let watchers = watches.watchers(id);
    for some in watchers.chunks(BATCH) {
        let users: HashSet<UserNo> = some.iter().map(|watcher| watcher.user).collect();
        let users = Vec::from_iter(users);
        let seeing: HashSet<UserNo> = bounded(who_sees(archive, &item, &users)).await?.into_iter().collect();
        some.iter().filter(|watcher| !seeing.contains(&watcher.user)).for_each(|watcher| watcher.drop_out());
    }
    Ok(())
}
