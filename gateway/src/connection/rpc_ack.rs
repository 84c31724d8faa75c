//! Carries out `rpc ack`: the device has applied all changes of a feed up to a position.
//!
//! A position of another epoch, or after the log's last position, is refused and changes nothing (I12).

use std::sync::Arc;

use feedgate_common::{FeedId, Position};

use super::outcome::{Outcome, Stop, Then, bad};
use super::shared::Shared;
use crate::node::identity::Identity;

/// Checks `at` against the feed's log. May be dropped at any time.
pub(crate) async fn ack(shared: Arc<Shared>, who: Arc<Identity>, feed: FeedId, at: Position) -> Outcome {
    let head = shared.reads.changes.head(who.inbox(feed)).await?;
    within(at, head)?;
    Ok(Then::Acked(feed, at))
}

/// Checks that a device can be at `at` while the log ends at `head`.
pub(crate) fn within(at: Position, head: Position) -> Result<(), Stop> {
    if at.epoch != head.epoch {
        return Err(bad(format!("rpc ack: epoch {} is not the feed's, which is {}", at.epoch, head.epoch)));
    }
    if at.offset > head.offset {
        return Err(bad(format!("rpc ack: offset {} is beyond the head, which is {}", at.offset, head.offset)));
    }
    Ok(())
}
