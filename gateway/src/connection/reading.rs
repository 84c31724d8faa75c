//! Carries out what a subscription asks of the log: the read, the items that the log refers to, and the bytes to send.
//!
//! Bounds: in this node as many reads run at once, by WebSocket and by HTTP, as there are
//! [permits](crate::node::Node::read_permit); the rest wait. They hold as many bytes as the [`budget`] has room for, of which a
//! subscription takes one slice and one change.

use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::feed::FETCH;
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::{FeedId, InboxKey, Position};

use super::shared::Shared;
use crate::limits::budget::{self, Reservation};
use crate::node::identity::Identity;
use crate::protocol::Format;
use crate::subscription::{Ask, Found};

/// A push frame ends once it holds this many bytes, which is what a slow device holds in memory here.
const SLICE_BYTES: usize = 64 * 1024;

/// An answer to the subscription, and the pushes that go with [`Found::Changes`].
pub(crate) struct Reading {
    pub(crate) found: Found,
    /// Pushes, in the format of the connection.
    pub(crate) frame: Vec<u8>,
    /// The counted bytes of the frame, if it has any.
    pub(crate) held: Option<Reservation>,
}

/// Does what a subscription asks with `ask`, for this device. It may be dropped at any time; it changes nothing, except
/// that a missing inbox is rebuilt. `live` is the position of a subscription that was only woken: it may be answered
/// from what the doorbell told.
pub(crate) async fn read(
    shared: Arc<Shared>,
    who: Arc<Identity>,
    format: Format,
    feed: FeedId,
    ask: Ask,
    live: Option<Position>,
) -> Result<Reading> {
    let key = who.inbox(feed);
    let growth = &shared.node.pool.growth;
    let found = match ask {
        Ask::After(own) => return changes(&shared, &who, format, key, own, live.is_some()).await,
        Ask::Head => match live.and_then(|own| growth.head_after(key, own)) {
            Some(head) => Found::Head(head),
            None => {
                let _permit = shared.node.read_permit().await;
                Found::Head(shared.node.changes.head(key).await?)
            }
        },
        Ask::Serves(own) => {
            let _permit = shared.node.read_permit().await;
            match shared.node.changes.read(key, own, 1).await? {
                Read::Entries { head, .. } => Found::Head(Position { epoch: own.epoch, offset: head }),
                Read::Gone { head } => Found::Gone(head),
                Read::Missing => unreachable_missing()?,
            }
        }
    };
    Ok(Reading { found, frame: vec![], held: None })
}

/// The changes after `own`, as pushes. If `live`, they may come from what the doorbell told.
async fn changes(
    shared: &Shared,
    who: &Identity,
    format: Format,
    key: InboxKey,
    own: Position,
    live: bool,
) -> Result<Reading> {
    let batch = shared.node.settings.batch;
    let recent = if live { shared.node.pool.growth.after(key, own, batch) } else { None };
    let room = |entries| budget::most(entries, SLICE_BYTES);
    let most = room(recent.as_ref().map_or(batch, |(entries, _)| entries.len()));
    let mut held = shared.budget.of(&who.user.id).reserve(most).await?;
    let _permit = shared.node.read_permit().await;
    let read = match recent {
        Some((entries, head)) => Read::Entries { entries, head, taken: Default::default() },
        None => shared.node.changes.read(key, own, batch).await?,
    };
    let (entries, head) = match read {
        Read::Entries { entries, head, .. } => (entries, head),
        Read::Gone { head } => return Ok(Reading { found: Found::Gone(head), frame: vec![], held: None }),
        Read::Missing => unreachable_missing()?,
    };
    held.shrink(room(entries.len()));
    let channel = shared.node.channel(key.feed);
    let push = |out: &mut Vec<u8>, offset, json: &[u8]| format.push(out, channel, offset, json);
    let mut frame = Vec::new();
    let last = encode(shared, key.feed, &entries, SLICE_BYTES, &mut frame, push, format.between_pushes()).await?;
    held.shrink(frame.capacity());
    let found = Found::Changes { first: own.offset + 1, last: last.unwrap_or(own.offset), head };
    Ok(Reading { found, frame, held: Some(held) })
}

/// Appends entries of this feed in order, with `separator` between them, until `out` holds `bytes_max` bytes. Gives the
/// last offset that was appended.
pub(crate) async fn encode(
    shared: &Shared,
    feed: FeedId,
    entries: &[Numbered],
    bytes_max: usize,
    out: &mut Vec<u8>,
    write: impl Fn(&mut Vec<u8>, u64, &[u8]),
    separator: &[u8],
) -> Result<Option<u64>> {
    let mut last = None;
    for chunk in entries.chunks(FETCH) {
        let changes = shared.node.changes.hydrate(feed, chunk.iter().map(|numbered| &numbered.entry)).await?;
        for (numbered, change) in chunk.iter().zip(&changes) {
            if out.len() >= bytes_max {
                return Ok(last);
            }
            if !out.is_empty() {
                out.extend_from_slice(separator);
            }
            shared.bodies.with(change, |json| write(out, numbered.seq, json));
            last = Some(numbered.seq);
        }
    }
    Ok(last)
}

/// An error that should never be seen: `Changes::read` rebuilds an inbox that is missing.
fn unreachable_missing<T>() -> Result<T> {
    Err(feedgate_common::StoreError::unavailable("the inbox vanished during the read"))
}
