//! The task behind one listener.
//!
//! Invariants: everything between a gap and the moment the subscriptions stand again is covered by one
//! [`Heard::Missed`] after it; a message that cannot be read is a [`Heard::Missed`] too; the task ends when the guard
//! of the listener is dropped.

use std::pin::pin;
use std::time::Duration;

use async_nats::Message;
use feedgate_common::doorbell::{Growth, Heard, OnHeard, Onlooker};
use feedgate_common::trace::{self, Traced};
use futures_util::future::{Fuse, FusedFuture, try_join3};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::TRACED;
use super::wire::{self, Told};
use crate::bus::Bus;

/// The pause before a subscription that was refused, or a server that did not answer, is tried again.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn listen(bus: Bus, subjects: [String; 3], on_heard: OnHeard, stopped: oneshot::Receiver<()>) {
    tokio::select! {
        biased;
        _ = stopped => {}
        () = hear(bus, subjects, on_heard) => {}
    }
}

async fn hear(bus: Bus, subjects: [String; 3], on_heard: OnHeard) {
    loop {
        let mut gaps = bus.gaps();
        let [one, other, items] = subjects.each_ref().map(|subject| bus.client().subscribe(subject.clone()));
        let (mut one, mut other, mut items) = match try_join3(one, other, items).await {
            Ok(subscribed) => subscribed,
            Err(error) => {
                tracing::warn!(%error, ?subjects, "NATS takes no subscription for wakes");
                sleep(PAUSE).await;
                continue;
            }
        };
        gaps.mark_changed();
        // Wakes are taken all the time: a wake that waits too long is dropped, and that is the next gap.
        let mut standing = pin!(Fuse::terminated());
        loop {
            let message = tokio::select! {
                message = one.next() => message,
                message = other.next() => message,
                message = items.next() => message,
                _ = gaps.changed(), if standing.is_terminated() => {
                    // Until the server has answered `stand`, a subscription may be missing, and wakes may still be
                    // lost.
                    standing.set(stand(&bus).fuse());
                    continue;
                }
                _ = &mut standing => {
                    on_heard(Heard::Missed);
                    continue;
                }
            };
            match message {
                Some(message) => tell(&message, &on_heard),
                None => break,
            }
        }
    }
}

/// Ends once the server has taken everything that was sent before, the subscriptions too. A server that is slow or away
/// is asked again: if this ended too early, wakes that are lost before the subscriptions stand would not be noticed.
async fn stand(bus: &Bus) {
    while bus.round_trip().await.is_err() {
        sleep(PAUSE).await;
    }
}

fn tell(message: &Message, on_heard: &OnHeard) {
    match wire::decode(&message.payload) {
        Ok(Told::Growth(growth)) => on_heard(Heard::Growth(&Growth { traced: traced(message), ..growth })),
        Ok(Told::Close { user, connection, why }) => on_heard(Heard::Close { user, connection, why }),
        Ok(Told::Hot(head)) => on_heard(Heard::Hot(head)),
        Ok(Told::Confirm(users)) => on_heard(Heard::Confirm(&users)),
        Ok(Told::Seen { key, node, connection }) => on_heard(Heard::Seen(Onlooker { key, node: &node, connection })),
        Ok(Told::Stirred(stir)) => on_heard(Heard::Stirred(&stir)),
        Ok(Told::Message { session, message }) => on_heard(Heard::Message { session, message: &message }),
        Err(unreadable) => {
            tracing::debug!(?unreadable, "a wake cannot be read; everything may have grown");
            on_heard(Heard::Missed);
        }
    }
}

/// The traced changes that the headers of a growth name.
fn traced(message: &Message) -> Vec<Traced> {
    let Some(headers) = message.headers.as_ref().filter(|_| trace::is_on()) else { return vec![] };
    headers.get_all(TRACED).filter_map(|one| one.as_str().parse().ok()).collect()
}
