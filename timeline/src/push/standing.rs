//! How a reader stands to a feed when a notice is due: what is unread, and which item is the newest.
//!
//! ```text
//!   an inbox ─▶ the adds beyond what a device has acknowledged or the reader has seen, that still live
//!   none, or one that the post has not reached yet ─▶ the item that was noted, if it still comes to the reader
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use feedgate_common::archive::{Notice, PushDevice, UNREAD_MAX};
use feedgate_common::around::brought_to;
use feedgate_common::error::Result;
use feedgate_common::feed::{Feeds, living};
use feedgate_common::inboxes::{Log, Numbered};
use feedgate_common::{InboxKey, Item, ItemId, Millis, Op, Seen, Sessions, UserNo};

/// How many of the unread items are looked at, to find one that the reader may see.
const LOOKED_AT: usize = 16;

/// How many items the reader has not seen, and the newest of them; `None` if there is nothing to tell.
pub(super) async fn standing(
    feeds: &Feeds,
    sessions: &dyn Sessions,
    notice: &Notice,
    devices: &[PushDevice],
    now: Millis,
) -> Result<Option<(u32, Arc<Item>)>> {
    let Some(log) = feeds.inboxes().log(notice.key).await? else { return noted(feeds, notice).await };
    let acked = acknowledged(sessions, &log, notice.key, devices, now).await?;
    let unread = unread(&log, notice.key.reader, acked.max(seen(feeds, &log, notice.key).await?));
    if unread.is_empty() && !has(&log, notice.item) {
        return noted(feeds, notice).await;
    }
    let looked_at = &unread[..unread.len().min(LOOKED_AT)];
    let newest = feeds.first_shown(notice.key, looked_at).await?;
    let count = u32::try_from(unread.len()).unwrap_or(u32::MAX).min(UNREAD_MAX);
    Ok(newest.map(|newest| (count, newest)))
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

/// The position up to which the reader has seen this log, on any device; 0 if the reader has seen nothing of it.
async fn seen(feeds: &Feeds, log: &Log, key: InboxKey) -> Result<u64> {
    let seen = feeds.archive().seen(key).await?;
    Ok(Seen::of_log(seen, log.head).position.offset)
}

/// The living items of others than the reader whose add stands beyond `known`, the last one first.
fn unread(log: &Log, reader: UserNo, known: u64) -> Vec<ItemId> {
    let from = log.entries.partition_point(|numbered| numbered.seq <= known);
    let beyond = &log.entries[from..];
    let mut left: HashSet<ItemId> = living(beyond).into_iter().map(|key| key.item).collect();
    let of_others = |numbered: &&Numbered| numbered.entry.op == Op::Add && numbered.entry.author != reader;
    let adds = beyond.iter().rev().filter(of_others);
    adds.map(|numbered| numbered.entry.key.item).filter(|item| left.remove(item)).collect()
}

fn has(log: &Log, item: ItemId) -> bool {
    let is_add = |numbered: &Numbered| numbered.entry.op == Op::Add && numbered.entry.key.item == item;
    log.entries.iter().any(is_add)
}

/// The item that was noted, if it lives and still comes to the reader. An item that comes to the reader only by a
/// ranking is not told.
async fn noted(feeds: &Feeds, notice: &Notice) -> Result<Option<(u32, Arc<Item>)>> {
    let (archive, reader) = (feeds.archive(), notice.key.reader);
    let Some(item) = feeds.first_shown(notice.key, &[notice.item]).await? else { return Ok(None) };
    let brought = brought_to(&**archive, reader, &[Some(item.clone())]).await?;
    Ok(brought.contains(&item.id).then_some((notice.count, item)))
}

#[cfg(test)]
mod tests {
    use feedgate_common::{DisplayKey, Entry, Epoch, Position, Watermarks};

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
    fn unread_is_what_was_added_beyond_the_position_and_lives() {
        let log = log(&[(Op::Add, 1), (Op::Add, 2), (Op::Add, 3), (Op::Update, 1), (Op::Delete, 2)]);
        let ids = |acked| unread(&log, UserNo(1), acked).into_iter().map(|item| item.0).collect::<Vec<_>>();
        assert_eq!([ids(0), ids(11), ids(13)], [vec![3, 1], vec![3], vec![]]);
        assert_eq!(unread(&log, UserNo(9), 0), [], "s10: one's own items are never unread");
        assert!(has(&log, ItemId(2)) && !has(&log, ItemId(4)));
    }
}
