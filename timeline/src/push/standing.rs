//! How a reader stands to a feed when a notice is due: what is unread, and which item is the newest.
//!
//! ```text
//!   the log has not the item that was noted ─▶ the item, if it still comes to the reader, and all that is unread
//!   the log has it ─▶ all that is unread: no device has acknowledged it, and the reader has not seen it
//!   no inbox ─▶ the item that was noted ─▶ if it is gone: the newest that is left of those noted before it
//! ```

use std::sync::Arc;

use feedgate_common::archive::{Below, Notice, PushDevice, UNREAD_MAX};
use feedgate_common::around::brought_to;
use feedgate_common::error::Result;
use feedgate_common::feed::Feeds;
use feedgate_common::inboxes::{Log, Numbered};
use feedgate_common::{DisplayKey, InboxKey, Item, ItemId, Millis, Op, Seen, Sessions};
use futures_util::future::try_join;

/// How many items are looked at, to find one that the reader may see.
const LOOKED_AT: usize = 16;

/// The items of one notice were published within this time of each other, in ms. Any other was told before, or is not
/// told.
const TOGETHER: u64 = 24 * 3600 * 1000;

/// How many items the reader has not seen, and the newest of them; `None` if there is nothing to tell.
pub(super) async fn standing(
    feeds: &Feeds,
    sessions: &dyn Sessions,
    notice: &Notice,
    devices: &[PushDevice],
    now: Millis,
) -> Result<Option<(u32, Arc<Item>)>> {
    let key = notice.key;
    let (log, seen) = try_join(feeds.inboxes().log(key), feeds.archive().seen(key)).await?;
    let Some(log) = log else {
        return match noted(feeds, notice).await? {
            Some(item) => Ok(Some((notice.count, item))),
            None => left(feeds, notice, seen).await,
        };
    };
    let acked = acknowledged(sessions, &log, key, devices, now).await?;
    let unread = feeds.unread_in(key, &log, seen, acked).await?;
    let count = |all: usize| u32::try_from(all).unwrap_or(u32::MAX).min(UNREAD_MAX);
    // A note is stored before the step that brings its item, so the notice may be due before the step is taken.
    if !has(&log, notice.item)
        && let Some(item) =
            noted(feeds, notice).await?.filter(|item| is_to_come(item.key(), item.published_at, &log, seen))
    {
        return Ok(Some((count(unread.len() + 1), item)));
    }
    let newest_first: Vec<ItemId> = unread.iter().rev().take(LOOKED_AT).copied().collect();
    let newest = feeds.shown(key, &newest_first).await?.into_iter().flatten().next();
    Ok(newest.map(|newest| (count(unread.len()), newest)))
}

/// The greatest position that one of the devices has acknowledged in this log; 0 if none has.
async fn acknowledged(
    sessions: &dyn Sessions,
    log: &Log,
    key: InboxKey,
    devices: &[PushDevice],
    now: Millis,
) -> Result<u64> {
    let mut greatest = 0;
    for device in devices {
        if let Some(position) = sessions.position(key.reader, &device.device, key.feed, now).await?
            && position.epoch == log.head.epoch
        {
            greatest = greatest.max(position.offset);
        }
    }
    Ok(greatest)
}

fn has(log: &Log, item: ItemId) -> bool {
    let is_add = |numbered: &Numbered| numbered.entry.op == Op::Add && numbered.entry.key.item == item;
    log.entries.iter().any(is_add)
}

/// Whether an item that the log has not is still to come. The log may also have been cut since: then the item stands at
/// or below the floor, and the reader has seen it if it is no newer than what was seen.
fn is_to_come(key: DisplayKey, published_at: Millis, log: &Log, seen: Option<Seen>) -> bool {
    let may_be_cut = log.floor.is_some_and(|floor| key <= floor);
    !may_be_cut || seen.is_none_or(|seen| published_at > seen.until)
}

/// The item that was noted, if it lives and still comes to the reader. An item that comes to the reader only by a
/// ranking is not told.
async fn noted(feeds: &Feeds, notice: &Notice) -> Result<Option<Arc<Item>>> {
    let (archive, reader) = (feeds.archive(), notice.key.reader);
    let Some(item) = feeds.shown(notice.key, &[notice.item]).await?.remove(0) else { return Ok(None) };
    let brought = brought_to(&**archive, reader, &[Some(item.clone())]).await?;
    Ok(brought.contains(&item.id).then_some(item))
}

/// What is left to tell a reader without an inbox to whom the item that was noted does not come any more: the newest of
/// the items that were noted before it. An item that was noted alone may be a line of notifications that was made anew:
/// it is addressed to its reader, and the new item has the time of the old one.
async fn left(feeds: &Feeds, notice: &Notice, seen: Option<Seen>) -> Result<Option<(u32, Arc<Item>)>> {
    let (archive, key) = (feeds.archive(), notice.key);
    let alone = notice.count <= 1;
    if alone && archive.addressed(key.reader, &[notice.item]).await?.is_empty() {
        return Ok(None);
    }
    let published = archive.published(&[notice.item]).await?;
    let Some((_, at)) = published.into_iter().flatten().next() else { return Ok(None) };
    let within = if alone { 0 } else { TOGETHER };
    let adds = archive.feed_below(key, Below::newest(LOOKED_AT), feeds.backfill()).await?;
    let others = adds.iter().filter(|add| add.author != key.reader && (add.outbox_seq == 0 || !alone));
    let others: Vec<ItemId> = others.map(|add| add.key.item).collect();
    let is_unseen = |item: &Arc<Item>| seen.is_none_or(|seen| item.published_at > seen.until);
    let shown = feeds.shown(key, &others).await?.into_iter().flatten();
    let newest = shown.filter(is_unseen).find(|item| item.published_at.abs_diff(at) <= within);
    Ok(newest.map(|newest| (notice.count.saturating_sub(1).max(1), newest)))
}

#[cfg(test)]
mod tests {
    use feedgate_common::{Entry, Epoch, Position, UserNo, Watermarks};

    use super::*;

    fn log(ops: &[(Op, u64)]) -> Log {
        let entry = |(op, item): &(Op, u64)| Entry {
            op: *op,
            author: UserNo(9),
            outbox_seq: 1,
            generation: 1,
            key: DisplayKey { rank: 0, item: ItemId(*item) },
        };
        let numbered = |(n, op): (u64, _)| Numbered { seq: 11 + n, entry: entry(op) };
        Log {
            head: Position { epoch: Epoch(1), offset: 10 + ops.len() as u64 },
            floor: None,
            taken: Watermarks::default(),
            entries: (0..).zip(ops).map(numbered).collect(),
        }
    }

    #[test]
    fn an_item_that_the_log_has_not_is_to_come_unless_the_log_was_cut_and_the_reader_has_seen_it() {
        let log = log(&[(Op::Add, 1), (Op::Add, 2), (Op::Delete, 2)]);
        assert!(has(&log, ItemId(2)) && !has(&log, ItemId(4)));
        let key = DisplayKey { rank: 7, item: ItemId(4) };
        let seen = |until| Some(Seen { until, ..Seen::of_log(None, log.head) });
        let is_to_come = |floor, seen| is_to_come(key, 70, &Log { floor, ..log.clone() }, seen);
        assert!(is_to_come(None, seen(70)), "nothing was cut");
        assert!(is_to_come(key.just_below(), seen(70)), "only what stands lower was cut");
        assert_eq!([None, seen(69), seen(70)].map(|seen| is_to_come(Some(key), seen)), [true, true, false]);
    }
}
