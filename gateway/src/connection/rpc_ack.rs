//! `rpc ack`: the device has applied everything of a feed up to here.
//!
//! A position of another epoch, or beyond the head, is refused and changes nothing (I12).

use std::sync::Arc;

use feedgate_common::{FeedId, Position};

use super::outcome::{Outcome, Stop, Then, bad};
use crate::Gateway;
use crate::node::identity::Identity;

/// Checks `at` against the feed's log.
pub(crate) async fn ack(gateway: Arc<Gateway>, who: Arc<Identity>, feed: FeedId, at: Position) -> Outcome {
    let head = gateway.node.feeds.head(who.inbox(feed)).await?;
    within(at, head)?;
    Ok(Then::Acked(feed, at))
}

/// Whether a device can be at `at` while the log is at `head`.
pub(crate) fn within(at: Position, head: Position) -> Result<(), Stop> {
    if at.epoch != head.epoch {
        return Err(bad(format!("rpc ack: epoch {} is not the feed's, which is {}", at.epoch, head.epoch)));
    }
    if at.offset > head.offset {
        return Err(bad(format!("rpc ack: offset {} is beyond the head, which is {}", at.offset, head.offset)));
    }
    Ok(())
}
