//! Finds where a subscription starts.

use std::sync::Arc;

use feedgate_common::{FeedId, Position};

use super::outcome::{Outcome, Then};
use super::shared::Shared;
use crate::clock;
use crate::node::identity::Identity;
use crate::protocol::StartFrom;
use crate::subscription::Start;

/// Where `from` starts; `None` if the store has to be asked.
pub(crate) fn start_of(from: StartFrom) -> Option<Start> {
    match from {
        StartFrom::Head => Some(Start::Head),
        StartFrom::Own(position) => Some(position.map_or(Start::Lost, Start::At)),
        StartFrom::Stored => None,
    }
}

/// The start at the position that is stored for this device in this feed, or at `acked` if that is later: what this
/// connection has acknowledged is stored only a moment afterwards. [`Start::Lost`] if there is neither. May be dropped
/// at any time.
pub(crate) async fn stored(shared: Arc<Shared>, who: Arc<Identity>, feed: FeedId, acked: Option<Position>) -> Outcome {
    let stored = match who.durable {
        true => shared.local.sessions.position(who.user.no, &who.device, feed, clock::now()).await?,
        false => None,
    };
    let latest = stored.into_iter().chain(acked).max();
    Ok(Then::Start(latest.map_or(Start::Lost, Start::At)))
}
