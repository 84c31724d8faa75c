//! Carries out `rpc seen`: the user has seen a feed up to a position, on whatever device. Without a position, the
//! command only asks what was seen and is unread.
//!
//! A position of another epoch, or after the log's last position, is refused and changes nothing.

use std::sync::Arc;

use feedgate_common::feed::Saw;
use feedgate_common::{FeedId, Position};

use super::outcome::{Outcome, Then, bad};
use super::shared::Shared;
use crate::node::identity::Identity;
use crate::protocol::{ErrorCode, Reply};

/// Stores the position, and counts what is unread. May be dropped at any time; then the position may be stored without
/// an answer.
pub(crate) async fn seen(
    shared: Arc<Shared>,
    who: Arc<Identity>,
    connection: u64,
    feed: FeedId,
    at: Option<Position>,
) -> Outcome {
    let key = who.inbox(feed);
    let Shared { reads, local, .. } = &*shared;
    reads.touches.note(key);
    let _permit = reads.permit().await;
    let Some(at) = at else { return Ok(Then::Reply(Reply::Seen(reads.pages.sight(key).await?))) };
    match reads.see(key, at, Some((&local.node, connection))).await? {
        Saw::More(sight) | Saw::Nothing(sight) => Ok(Then::Reply(Reply::Seen(sight))),
        Saw::Gone(_) => Err(ErrorCode::UnrecoverablePosition.into()),
        Saw::Ahead(head) => {
            Err(bad(format!("rpc seen: offset {} is beyond the head, which is {}", at.offset, head.offset)))
        }
    }
}
