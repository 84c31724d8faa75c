//! The change log of a reader's feed from a position on: the changes, in the format in which pushes bring them to a
//! device.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::feed::{Change, Changes, FETCH};
use feedgate_common::inboxes::{Numbered, Read};
use feedgate_common::{Archive, Epoch, InboxKey, Position, StoreError, UserId};
use serde::Serialize;

use super::access::Caller;
use super::names::intern;
use super::problem::{Problem, short};
use super::query::{Params, Query, Segment, decimal};
use crate::limits::budget::{ANSWER_BYTES, most};
use crate::node::Reads;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1000;

/// A part of the log.
#[derive(Serialize)]
struct Answer {
    changes: Vec<ChangeJson>,
    /// The position after the last of these changes, from which the next call goes on.
    position: Position,
    /// The log's last offset. It equals the offset of the position when nothing is left to read.
    head: u64,
}

#[derive(Serialize)]
struct ChangeJson {
    offset: u64,
    #[serde(flatten)]
    change: Change,
}

/// Answers `GET /v1/users/{user}/changes` with changes of a feed of the user, after a position.
pub(super) async fn read(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(reads): State<Arc<Reads>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let params = query.only(&["name", "offset", "epoch", "limit"])?;
    let feed = params.feed(&reads.feeds.named())?;
    let (after, limit) = (position(&params)?, params.limit(LIMIT_DEFAULT, LIMIT_MAX)?);
    let permit = caller.permit(most(limit, ANSWER_BYTES)).await?;
    let key = InboxKey { reader: intern(&*archive, &user).await?, feed };
    reads.touches.note(key);
    let after = match after {
        Some(position) => position,
        None => Position { offset: 0, ..reads.changes.head(key).await? },
    };
    match reads.changes.read(key, after, limit).await? {
        Read::Entries { entries, head, .. } => {
            let changes = lines(&reads.changes, key, &entries).await?;
            let position = Position { offset: changes.last().map_or(after.offset, |line| line.offset), ..after };
            Ok(permit.answer(&Answer { changes, position, head }))
        }
        Read::Gone { head } => Err(Problem::gone(head)),
        Read::Missing => Err(StoreError::unavailable("an inbox vanished during a read").into()),
    }
}

/// The changes of `entries`, until their bodies hold [`ANSWER_BYTES`]; at least one, if there is one.
async fn lines(changes: &Changes, key: InboxKey, entries: &[Numbered]) -> Result<Vec<ChangeJson>, Problem> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for chunk in entries.chunks(FETCH) {
        let hydrated = changes.hydrate(key, chunk.iter().map(|n| &n.entry)).await?;
        for (n, change) in chunk.iter().zip(hydrated) {
            if bytes >= ANSWER_BYTES {
                return Ok(lines);
            }
            if let Change::Add { item } | Change::Update { item } = &change {
                bytes += item.bytes();
            }
            lines.push(ChangeJson { offset: n.seq, change });
        }
    }
    Ok(lines)
}

/// Reads `offset` and `epoch`, which must be given together; `None` if neither is given, to begin at the log's start.
pub(super) fn position(params: &Params) -> Result<Option<Position>, Problem> {
    let epoch: Option<Epoch> = params.parse("epoch")?;
    let offset = params.get("offset").map(|text| {
        let wrong = || Problem::parameter("offset", format!("offset must be a number from 0, not {:?}", short(text)));
        decimal(text).ok_or_else(wrong)
    });
    match (epoch, offset.transpose()?) {
        (Some(epoch), Some(offset)) => Ok(Some(Position { epoch, offset })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Problem::parameter("epoch", "offset needs the epoch that it was given with")),
        (Some(_), None) => Err(Problem::parameter("offset", "epoch needs the offset that it was given with")),
    }
}
