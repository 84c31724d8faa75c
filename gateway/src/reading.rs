//! What a session asks of the log, done: the read, the items behind its references, the bytes for
//! the wire.
//!
//! Bounds: as many reads at once in this node as [`READS_MAX`], the rest wait their turn; and as many
//! bytes in hand per session as one slice, plus one change.

use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::{FeedId, InboxKey, Position};

use crate::Gateway;
use crate::protocol::push;
use crate::session::{Ask, Found};

/// Reads of the store at once, when many devices return in one second.
pub(crate) const READS_MAX: usize = 256;

/// A push frame ends once it holds this many bytes: what a slow device holds in memory here.
const SLICE_BYTES: usize = 64 * 1024;

/// Changes hydrated at a time, so that large bodies are not fetched only to be fetched again.
const HYDRATE: usize = 32;

/// An answer to the session, and the pushes that go with [`Found::Changes`].
pub(crate) struct Reading {
    pub(crate) found: Found,
    /// Lines of pushes, joined by `\n`.
    pub(crate) frame: Vec<u8>,
}

/// Carries out `ask`. May be dropped at any time; it changes nothing but that a missing inbox is
/// rebuilt. `live`: where a session stands that was only woken, so that what the doorbell told may do.
pub(crate) async fn read(gateway: Arc<Gateway>, key: InboxKey, ask: Ask, live: Option<Position>) -> Result<Reading> {
    let told = &gateway.pool.told;
    if let (Ask::Head, Some(head)) = (ask, live.and_then(|own| told.head_after(key, own))) {
        return Ok(Reading { found: Found::Head(head), frame: vec![] });
    }
    let _turn = gateway.reads.acquire().await.expect("the semaphore is never closed");
    let (feeds, batch) = (&gateway.parts.feeds, gateway.parts.settings.batch);
    let mut frame = Vec::new();
    let found = match ask {
        Ask::Head => Found::Head(feeds.head(key).await?),
        Ask::Serves(own) => match feeds.read(key, own, 1).await? {
            Read::Entries { head, .. } => Found::Head(Position { epoch: own.epoch, offset: head }),
            Read::Gone { head } => Found::Gone(head),
            Read::Missing => unreachable_missing()?,
        },
        Ask::After(own) => {
            let read = match live.and_then(|_| told.after(key, own, batch)) {
                Some((entries, head)) => Read::Entries { entries, head, taken: Default::default() },
                None => feeds.read(key, own, batch).await?,
            };
            match read {
                Read::Entries { entries, head, .. } => {
                    let (first, channel) = (own.offset + 1, gateway.channel(key.feed));
                    let push = |out: &mut Vec<u8>, offset, json: &[u8]| push::push(out, channel, offset, json);
                    let last = encode(&gateway, key.feed, &entries, SLICE_BYTES, &mut frame, push, b'\n').await?;
                    Found::Changes { first, last: last.unwrap_or(own.offset), head }
                }
                Read::Gone { head } => Found::Gone(head),
                Read::Missing => unreachable_missing()?,
            }
        }
    };
    Ok(Reading { found, frame })
}

/// Appends entries of such a feed in order, `separator` between, until `out` holds `bytes_max` bytes. Answers with
/// the last offset appended.
pub(crate) async fn encode(
    gateway: &Gateway,
    feed: FeedId,
    entries: &[Numbered],
    bytes_max: usize,
    out: &mut Vec<u8>,
    write: impl Fn(&mut Vec<u8>, u64, &[u8]),
    separator: u8,
) -> Result<Option<u64>> {
    let mut last = None;
    for chunk in entries.chunks(HYDRATE) {
        let changes = gateway.parts.feeds.hydrate(feed, chunk.iter().map(|numbered| &numbered.entry)).await?;
        for (numbered, change) in chunk.iter().zip(&changes) {
            if out.len() >= bytes_max {
                return Ok(last);
            }
            if !out.is_empty() {
                out.push(separator);
            }
            gateway.bodies.with(change, |json| write(out, numbered.seq, json));
            last = Some(numbered.seq);
        }
    }
    Ok(last)
}

/// `Feeds::read` rebuilds what is missing; one that still says so is worth an error, not a crash.
fn unreachable_missing() -> Result<Found> {
    Err(feedgate_common::StoreError::unavailable("the inbox vanished during the read"))
}
