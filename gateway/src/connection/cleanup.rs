//! What is done at the stores after a connection has ended, for whatever reason.

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::{FeedId, Position};
use tokio::time::timeout;

use super::Answering;
use super::outcome::Then;
use super::shared::Shared;
use crate::clock;
use crate::limits::log_limit::LogLimit;
use crate::node::bounded::bounded;
use crate::node::identity::Identity;
use crate::node::slot::Slot;

/// How long the end of a session waits for the command in flight.
const LAST_COMMAND: Duration = Duration::from_secs(1);

/// The log lines about positions that could not be saved.
static UNSAVED: LogLimit = LogLimit::new();

/// The log lines about sessions that could not be released.
static UNRELEASED: LogLimit = LogLimit::new();

/// Ends the session: first leaves the seat, so that counts are right at once; then saves the last acknowledged
/// positions, which needs the claim; then releases the claim. Until then posts are not told by push notices. So the
/// command in flight is waited for only if something of it is needed before: the claim of a `connect`, or, for
/// [`LAST_COMMAND`], the position if the command `moves` it. If the future is dropped, the rest is not done: positions
/// may be lost, and the claim lasts until the device claims again or the node's lease lapses.
pub(crate) async fn clean_up(
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    mut who: Option<Arc<Identity>>,
    mut acked: Vec<(FeedId, Position)>,
    mut answering: Option<Answering>,
    moves: bool,
) {
    let local = &shared.local;
    if let Some(who) = &who {
        local.pool.leave(who.user.no, slot.connection);
    }
    if let Some(in_flight) = answering.as_mut().filter(|_| who.is_none() || moves) {
        let answered = match (timeout(LAST_COMMAND, &mut *in_flight).await, &who) {
            (Ok((_, outcome)), _) => Some(outcome),
            // The device repeats a little then.
            (Err(_), Some(_)) => None,
            // A claim has to be released, so it is run to its end. A claim that waits for the session pool is given up:
            // if it came later, it would replace a newer connection of the device.
            (Err(_), None) => {
                slot.leave();
                Some(in_flight.await.1)
            }
        };
        match answered {
            Some(Ok(Then::Connected(identity, _))) => who = Some(identity),
            Some(Ok(Then::Acked(feed, position) | Then::ReplyAndAcked(_, feed, position))) => {
                acked.push((feed, position));
            }
            _ => {}
        }
        answering = None;
    }
    let Some(who) = who else { return };
    local.pool.leave(who.user.no, slot.connection);
    acked.iter().for_each(|(feed, _)| local.positions.forget(slot.connection, *feed));
    let sessions = &local.sessions;
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
        local.ghosts.note(who.user.no);
        if let Some(suppressed) = UNRELEASED.admit() {
            tracing::warn!(%error, suppressed, "a session could not be released; it is looked for again until it is gone");
        }
    }
    // A command such as `seen` is still done, though nobody hears the answer.
    if let Some(in_flight) = answering {
        drop(in_flight.await);
    }
}
