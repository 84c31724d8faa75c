//! Finds where a subscription starts.

use std::sync::Arc;

use feedgate_common::FeedId;

use super::outcome::{Outcome, Then};
use crate::clock;
use crate::node::Node;
use crate::node::identity::Identity;
use crate::protocol::From;
use crate::subscription::Start;

/// Where `from` starts; `None` if the store has to be asked.
pub(crate) fn start_of(from: From) -> Option<Start> {
    match from {
        From::Head => Some(Start::Head),
        From::Own(position) => Some(position.map_or(Start::Lost, Start::At)),
        From::Stored => None,
    }
}

/// The start at the position that is stored for this device in this feed; [`Start::Lost`] if none is stored. May be
/// dropped at any time.
pub(crate) async fn stored(node: Arc<Node>, who: Arc<Identity>, feed: FeedId) -> Outcome {
    if !who.durable {
        return Ok(Then::Start(Start::Lost));
    }
    let stored = node.sessions.position(who.user.no, &who.device, feed, clock::now()).await?;
    Ok(Then::Start(stored.map_or(Start::Lost, Start::At)))
}
