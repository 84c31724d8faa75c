//! What is done at the stores after a connection has ended, for whatever reason.

use std::sync::Arc;

use feedgate_common::{FeedId, Position};

use super::Answering;
use super::outcome::Then;
use crate::clock;
use crate::limits::log_limit::LogLimit;
use crate::node::Node;
use crate::node::bounded::bounded;
use crate::node::identity::Identity;
use crate::node::slot::Slot;

/// The log lines about positions that could not be saved.
static UNSAVED: LogLimit = LogLimit::new();

/// The log lines about sessions that could not be released.
static UNRELEASED: LogLimit = LogLimit::new();

/// Ends the session: first leaves the seat, so that counts are right at once; then saves the last acknowledged
/// positions, which needs the claim; then releases the claim. If it is dropped, the rest is not done: positions may be
/// lost, and the claim lasts until the device claims again or the node's lease lapses.
pub(crate) async fn clean_up(
    node: Arc<Node>,
    slot: Arc<Slot>,
    mut who: Option<Arc<Identity>>,
    mut acked: Vec<(FeedId, Position)>,
    answering: Option<Answering>,
) {
    if let (Some(who), None) = (&who, &answering) {
        node.pool.leave(who.user.no, slot.connection);
    }
    // A command in flight is run to its end, because a claim that it makes has to be released.
    if let Some(answering) = answering {
        match answering.await.1 {
            Ok(Then::Connected(identity, _)) => who = Some(identity),
            Ok(Then::Acked(feed, position) | Then::ReplyAndAcked(_, feed, position)) => acked.push((feed, position)),
            _ => {}
        }
    }
    let Some(who) = who else { return };
    node.pool.leave(who.user.no, slot.connection);
    acked.iter().for_each(|(feed, _)| node.positions.forget(slot.connection, *feed));
    let sessions = &node.sessions;
    let saving: Vec<_> = acked.into_iter().filter_map(|(feed, position)| who.saving(feed, position)).collect();
    if !saving.is_empty()
        && let Err(error) = bounded(sessions.save(saving, clock::now())).await
        && let Some(suppressed) = UNSAVED.admit()
    {
        tracing::warn!(%error, suppressed, "a device's last positions could not be saved; it will repeat a little");
    }
    if let Some(token) = who.token()
        && let Err(error) = bounded(sessions.release(who.user.no, &who.device, token)).await
    {
        node.ghosts.note(who.user.no);
        if let Some(suppressed) = UNRELEASED.admit() {
            tracing::warn!(%error, suppressed, "a session could not be released; it is looked for again until it is gone");
        }
    }
}
