//! Carries out what a subscription asks of the log: the read, the items that the log refers to, and the bytes to send.
//!
//! Bounds: in this node as many reads run at once, by WebSocket and by HTTP, as there are
//! [permits](crate::node::Reads::permit); the rest wait. All reads together hold at most the bytes that the [`budget`]
//! has room for; a subscription takes room for the bodies of one fetch, one slice and one change.

use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::feed::{Change, FETCH, Sight};
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::trace::{self, Pushing};
use feedgate_common::{FeedId, InboxKey, Position};

use super::shared::Shared;
use crate::clock;
use crate::limits::budget::{self, Reservation};
use crate::node::identity::Identity;
use crate::node::metrics::Source;
use crate::protocol::{Format, Label};
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
    /// What was seen and is unread, if that was asked for; counted after `found` was read.
    pub(crate) sight: Option<Sight>,
    /// The changes of the frame that are traced.
    pub(crate) pushing: Option<Pushing>,
}

/// What a channel wants to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) feed: FeedId,
    pub(crate) ask: Ask,
    /// The position of a subscription that was only woken: it may be answered from what the doorbell told.
    pub(crate) live: Option<Position>,
    /// Whether to count what is unread.
    pub(crate) count: bool,
}

/// How the pushes of a subscription are written.
#[derive(Clone, Copy)]
pub(crate) struct Pushes {
    pub(crate) format: Format,
    /// Whether the pushes have the number of the channel in place of its name.
    pub(crate) numbered: bool,
}

/// Does what a subscription asks with `ask`, for this device. The future may be dropped at any time: a read changes
/// nothing, except that a missing inbox is rebuilt.
pub(crate) async fn read(shared: Arc<Shared>, who: Arc<Identity>, pushes: Pushes, wanted: Wanted) -> Result<Reading> {
    let reading = find(&shared, &who, pushes, wanted).await?;
    if !wanted.count {
        return Ok(reading);
    }
    let _permit = shared.reads.permit().await;
    let sight = shared.reads.pages.sight(who.inbox(wanted.feed)).await?;
    Ok(Reading { sight: Some(sight), ..reading })
}

async fn find(shared: &Shared, who: &Identity, pushes: Pushes, wanted: Wanted) -> Result<Reading> {
    let Wanted { feed, ask, live, .. } = wanted;
    let key = who.inbox(feed);
    let growth = &shared.local.pool.growth;
    let found = match ask {
        Ask::After(own) => return changes(shared, who, pushes, key, own, live.is_some()).await,
        Ask::Head => match live.and_then(|own| growth.head_after(key, own)) {
            Some(head) => Found::Head(head),
            None => {
                let _permit = shared.reads.permit().await;
                Found::Head(shared.reads.changes.head(key).await?)
            }
        },
        Ask::Serves(own) => {
            let _permit = shared.reads.permit().await;
            match shared.reads.changes.read(key, own, 1).await? {
                Read::Entries { head, .. } => Found::Head(Position { epoch: own.epoch, offset: head }),
                Read::Gone { head } => Found::Gone(head),
                Read::Missing => unreachable_missing()?,
            }
        }
    };
    Ok(Reading { found, frame: vec![], held: None, sight: None, pushing: None })
}

/// The changes after `own`, as pushes. If `live`, they may come from what the doorbell told.
async fn changes(
    shared: &Shared,
    who: &Identity,
    Pushes { format, numbered }: Pushes,
    key: InboxKey,
    own: Position,
    live: bool,
) -> Result<Reading> {
    let batch = shared.settings.now().batch;
    let recent = if live { shared.local.pool.growth.after(key, own, batch) } else { None };
    let source = if recent.is_some() { Source::Doorbell } else { Source::Log };
    let room = |entries| budget::most(entries, SLICE_BYTES);
    let most = room(recent.as_ref().map_or(batch, |(entries, _)| entries.len()));
    let mut held = shared.budget.of(&who.user.id).reserve(most).await?;
    let _permit = shared.reads.permit().await;
    let read = match recent {
        Some((entries, head)) => Read::Entries { entries, head, taken: Default::default() },
        None => shared.reads.changes.read(key, own, batch).await?,
    };
    let (entries, head) = match read {
        Read::Entries { entries, head, .. } => (entries, head),
        Read::Gone { head } => {
            return Ok(Reading { found: Found::Gone(head), frame: vec![], held: None, sight: None, pushing: None });
        }
        Read::Missing => unreachable_missing()?,
    };
    let metrics = &shared.metrics;
    metrics.reads.of(source).add(entries.len() as u64);
    held.shrink(room(entries.len()));
    let name = shared.reads.channel(key.feed);
    let label = Label::of(key.feed, &name, numbered);
    let at = |offset| Position { offset, ..own };
    let now = clock::now();
    let push = |out: &mut Vec<u8>, offset, change: &Change, json: &[u8]| {
        if live && let Change::Add { item } = change {
            metrics.pushed(item.published_at, now);
        }
        format.push(out, label, at(offset), json);
    };
    let mut frame = Vec::new();
    let last = encode(shared, key, &entries, SLICE_BYTES, &mut frame, push, format.between_pushes()).await?;
    held.shrink(frame.capacity());
    let last = last.unwrap_or(own.offset);
    let pushing = if live { traced(key, entries.iter().filter(|numbered| numbered.seq <= last)) } else { None };
    let found = Found::Changes { first: own.offset + 1, last, head };
    Ok(Reading { found, frame, held: Some(held), sight: None, pushing })
}

/// The spans of a frame with these changes, as far as they are traced.
#[inline]
fn traced<'a>(key: InboxKey, pushed: impl Iterator<Item = &'a Numbered>) -> Option<Pushing> {
    trace::is_on().then(|| Pushing::begin(key.reader, pushed.map(|n| (n.entry.key.item, n.entry.op)))).flatten()
}

/// Appends entries of this inbox in order, with `separator` between them, until `out` holds `bytes_max` bytes. Gives
/// the last offset that was appended.
pub(crate) async fn encode(
    shared: &Shared,
    key: InboxKey,
    entries: &[Numbered],
    bytes_max: usize,
    out: &mut Vec<u8>,
    write: impl Fn(&mut Vec<u8>, u64, &Change, &[u8]),
    separator: &[u8],
) -> Result<Option<u64>> {
    let mut last = None;
    for chunk in entries.chunks(FETCH) {
        let changes = shared.reads.changes.hydrate(key, chunk.iter().map(|numbered| &numbered.entry)).await?;
        for (numbered, change) in chunk.iter().zip(&changes) {
            if out.len() >= bytes_max {
                return Ok(last);
            }
            if !out.is_empty() {
                out.extend_from_slice(separator);
            }
            shared.bodies.with(change, |json| write(out, numbered.seq, change, json));
            last = Some(numbered.seq);
        }
    }
    Ok(last)
}

/// An error that should never be seen: `Changes::read` rebuilds an inbox that is missing.
fn unreachable_missing<T>() -> Result<T> {
    Err(feedgate_common::StoreError::unavailable("the inbox vanished during the read"))
}
