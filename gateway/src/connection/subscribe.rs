//! `subscribe`: where does this device start?

use std::sync::Arc;

use feedgate_common::FeedId;

use super::outcome::{Outcome, Then};
use crate::node::identity::Identity;
use crate::protocol::From;
use crate::session::Start;
use crate::{Gateway, clock};

/// Where `from` points, as far as it takes no look at the store.
pub(crate) fn start_of(from: From) -> Option<Start> {
    match from {
        From::Head => Some(Start::Head),
        From::Own(position) => Some(position.map_or(Start::Lost, Start::At)),
        From::Stored => None,
    }
}

/// The position stored for this device in this feed; a device that has none has lost it.
pub(crate) async fn stored(gateway: Arc<Gateway>, who: Arc<Identity>, feed: FeedId) -> Outcome {
    if !who.durable {
        return Ok(Then::Start(Start::Lost));
    }
    let stored = gateway.node.sessions.position(who.user.no, &who.device, feed, clock::now()).await?;
    Ok(Then::Start(stored.map_or(Start::Lost, Start::At)))
}
