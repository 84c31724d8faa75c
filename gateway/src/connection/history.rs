//! Carries out `history`: gives a part of the change log, with items. A device has taken in all changes up to the
//! position that it names as `since`, so that position is acknowledged too.

use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::feed::Changes;
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::{InboxKey, Position};

use super::outcome::{Outcome, Then};
use super::reading;
use super::shared::Shared;
use crate::limits::budget::{REPLY_BYTES, most};
use crate::node::identity::Identity;
use crate::protocol::{ErrorCode, Format, History, HistoryReply, Large, Reply};

/// Carries out `history`. `limit` is cut to `settings.batch`, and a reply may hold fewer entries than that: the device
/// goes on from the last offset it got. May be dropped at any time.
pub(crate) async fn history(shared: Arc<Shared>, who: Arc<Identity>, asked: Box<History>, format: Format) -> Outcome {
    let key = who.inbox(asked.feed);
    shared.reads.touches.note(key);
    let limit = asked.limit.min(shared.settings.now().batch);
    let mut held = shared.budget.of(&who.user.id).reserve(most(limit, REPLY_BYTES)).await?;
    let _permit = shared.reads.permit().await;
    let Some((entries, head)) = stretch(&shared.reads.changes, key, &asked, limit).await? else {
        return Err(ErrorCode::UnrecoverablePosition.into());
    };
    let mut bytes = Vec::new();
    let write = |out: &mut Vec<u8>, offset, _: &_, json: &[u8]| format.publication(out, offset, json);
    reading::encode(&shared, key, &entries, REPLY_BYTES, &mut bytes, write, format.between_publications()).await?;
    held.shrink(bytes.capacity());
    let publications = Large { bytes, held: Some(held) };
    let reply = Reply::History(HistoryReply { epoch: head.epoch, offset: head.offset, publications });
    Ok(match asked.since.filter(|_| !asked.reverse) {
        Some(since) => Then::ReplyAndAcked(reply, key.feed, since),
        None => Then::Reply(reply),
    })
}

/// The entries asked for and the log's last position; `None` if the log does not serve `since` any more.
async fn stretch(
    changes: &Changes,
    key: InboxKey,
    asked: &History,
    limit: usize,
) -> Result<Option<(Vec<Numbered>, Position)>> {
    if let (Some(since), false) = (asked.since, asked.reverse) {
        // At least one entry is read, so that a device that wants none also learns that its position is gone.
        return Ok(match changes.read(key, since, limit.max(1)).await? {
            Read::Entries { mut entries, head, .. } => {
                entries.truncate(limit);
                Some((entries, Position { epoch: since.epoch, offset: head }))
            }
            Read::Gone { .. } | Read::Missing => None,
        });
    }
    if limit == 0 && asked.since.is_none() {
        return Ok(Some((vec![], changes.head(key).await?)));
    }
    let log = changes.log(key).await?;
    if asked.since.is_some_and(|since| since.epoch != log.head.epoch || since.offset > log.head.offset + 1) {
        return Ok(None);
    }
    let below = asked.since.map_or(u64::MAX, |since| since.offset);
    let entries = if asked.reverse {
        log.entries.iter().rev().filter(|numbered| numbered.seq < below).take(limit).copied().collect()
    } else {
        log.entries.iter().take(limit).copied().collect()
    };
    Ok(Some((entries, log.head)))
}
