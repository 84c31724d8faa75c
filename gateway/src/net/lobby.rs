//! The HTTP connections of one port: those of readers, of backends, and those that have not yet become a WebSocket.
//!
//! ```text
//!   accept ──▶ enter ──▶ Admission ──▶ a request ──▶ credentials ──▶ ends, or becomes a WebSocket and leaves
//!                └── no room: of the older half, the least known has to go
//! ```
//!
//! Invariant: at most `room` connections are inside. Readers cannot keep out a backend: a backend sends a request long
//! before its connection is in the older half, and is not asked to leave once its key was seen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use axum::http::Extensions;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::net::address::shares::Stay;

/// How long a newcomer waits for a connection that was asked to leave, before the next one is asked.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a reader may pause between two requests: browsers, proxies and load balancers keep a connection for a
/// minute.
const READER_RESTS: Duration = Duration::from_secs(75);

/// How long a backend may pause between two requests: the load balancers of the large clouds keep a connection for ten
/// minutes, most HTTP clients for less.
const BACKEND_RESTS: Duration = Duration::from_secs(620);

/// What a connection has shown so far, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Standing {
    /// The connection has sent no request.
    Silent,
    /// The connection has sent a request without credentials.
    Stranger,
    /// The connection has shown a reader's token.
    Reader,
    /// The connection has shown the API key.
    Backend,
}

/// The connections of one port, by the number of their admission: the oldest first.
pub(crate) struct Lobby {
    room: usize,
    guests: Mutex<BTreeMap<u64, Arc<Guest>>>,
    /// Wakes the newcomer when a connection has left.
    left: Notify,
}

/// What is known of one connection.
pub(crate) struct Guest {
    standing: AtomicU8,
    asked_to_leave: AtomicBool,
    leave: Notify,
    /// The counted place of the connection at its address; `None` if no limit per address holds for the connection.
    stay: Mutex<Option<Stay>>,
    /// How many requests have come, counted when the head is complete. Wraps around.
    requests: AtomicU32,
    /// How many answers have begun. Wraps around.
    answers: AtomicU32,
}

/// A request without an answer yet. Dropping this counts it as answered.
pub(crate) struct Asking(Arc<Guest>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.answers.fetch_add(1, Ordering::AcqRel);
    }
}

/// The place of a connection in the lobby. Dropping this frees the place.
pub(crate) struct Admission {
    lobby: Arc<Lobby>,
    number: u64,
    /// The connection that was admitted. Each of its requests carries it as an extension.
    pub(crate) guest: Arc<Guest>,
}

impl Lobby {
    /// A lobby with room for `room` connections, at least one.
    pub(crate) fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { room: room.max(1), guests: Mutex::default(), left: Notify::new() })
    }

    /// Waits for a free place and takes it. While no place is free, asks one connection after another to leave. For one
    /// caller at a time. Cancel safe, but a connection that was asked to leave still leaves.
    pub(crate) async fn enter(self: &Arc<Self>, stay: Option<Stay>) -> Admission {
        let guest = Arc::new(Guest::new(stay));
        loop {
            if let Some(number) = self.try_enter(&guest) {
                return Admission { lobby: self.clone(), number, guest };
            }
            // A connection that is in the middle of an answer ends it first; after this wait, another one is asked.
            let _ = timeout(LEAVE_TIMEOUT, self.left.notified()).await;
        }
    }

    /// Takes a free place and gives its number. Gives `None` if there is none, and asks one connection to leave, if any
    /// may be asked.
    fn try_enter(&self, guest: &Arc<Guest>) -> Option<u64> {
        let mut guests = self.guests.lock();
        if guests.len() < self.room {
            let number = guests.last_key_value().map_or(0, |(last, _)| last + 1);
            guests.insert(number, guest.clone());
            return Some(number);
        }
        let may_go = |guest: &&Arc<Guest>| guest.standing() < Standing::Backend && !guest.is_leaving();
        // Of several connections that are equal, the first is the oldest. The newer half is spared, to have time for a
        // request.
        let least = |some: usize| guests.values().take(some).filter(may_go).min_by_key(|guest| guest.standing());
        if let Some(guest) = least(guests.len().div_ceil(2)).or_else(|| least(guests.len())) {
            guest.asked_to_leave.store(true, Ordering::Release);
            guest.leave.notify_one();
        }
        None
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.lobby.guests.lock().remove(&self.number);
        self.lobby.left.notify_one();
    }
}

impl Guest {
    pub(crate) fn new(stay: Option<Stay>) -> Self {
        Self {
            standing: AtomicU8::new(Standing::Silent as u8),
            asked_to_leave: AtomicBool::new(false),
            leave: Notify::new(),
            stay: Mutex::new(stay),
            requests: AtomicU32::new(0),
            answers: AtomicU32::new(0),
        }
    }

    /// Counts a request whose head has come.
    pub(crate) fn asks(self: &Arc<Self>) -> Asking {
        self.shows(Standing::Stranger);
        self.requests.fetch_add(1, Ordering::AcqRel);
        Asking(self.clone())
    }

    /// How many requests have come, counted when the head is complete; wraps around.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Acquire)
    }

    /// Whether a request has come whose answer has not begun.
    pub(crate) fn is_asking(&self) -> bool {
        self.requests() != self.answers.load(Ordering::Acquire)
    }

    /// How long the connection may be silent before its next request; `least` if it has shown no credentials.
    pub(crate) fn may_rest(&self, least: Duration) -> Duration {
        match self.standing() {
            Standing::Silent | Standing::Stranger => least,
            Standing::Reader => least.max(READER_RESTS),
            Standing::Backend => least.max(BACKEND_RESTS),
        }
    }

    /// The connection of a request, from its extensions; `None` if the request came by no port.
    pub(crate) fn of(request: &Extensions) -> Option<&Arc<Self>> {
        request.get()
    }

    /// Raises the standing to `standing`, never lowers it. From [`Standing::Reader`] on, the address no longer counts
    /// the connection as unauthenticated.
    pub(crate) fn shows(&self, standing: Standing) {
        self.standing.fetch_max(standing as u8, Ordering::AcqRel);
        if standing >= Standing::Reader
            && let Some(stay) = &mut *self.stay.lock()
        {
            stay.known();
        }
    }

    /// The most that the connection has shown so far.
    pub(crate) fn standing(&self) -> Standing {
        match self.standing.load(Ordering::Acquire) {
            0 => Standing::Silent,
            1 => Standing::Stranger,
            2 => Standing::Reader,
            _ => Standing::Backend,
        }
    }

    fn is_leaving(&self) -> bool {
        self.asked_to_leave.load(Ordering::Acquire)
    }

    /// Waits until the connection is asked to leave to make room for another. Cancel safe.
    pub(crate) async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Counts the connection for an address, from now on.
    pub(crate) fn counts(&self, stay: Stay) {
        *self.stay.lock() = Some(stay);
    }

    /// Whether the connection counts for an address.
    pub(crate) fn is_counted(&self) -> bool {
        self.stay.lock().is_some()
    }

    /// Takes out the counted place at the address, to hand it to the WebSocket that the connection becomes.
    pub(crate) fn take_stay(&self) -> Option<Stay> {
        self.stay.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    /// Lets a newcomer wait, and gives which of the guests is asked to leave for it.
    async fn asked(lobby: &Arc<Lobby>, guests: &[Admission]) -> Option<usize> {
        let before: Vec<bool> = guests.iter().map(|admission| admission.guest.is_leaving()).collect();
        let mut waiting = Box::pin(lobby.enter(None));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        guests.iter().zip(before).position(|(admission, before)| admission.guest.is_leaving() && !before)
    }

    #[tokio::test]
    async fn of_the_older_half_the_least_known_makes_room_and_a_backend_never_does() {
        let lobby = Lobby::new(5);
        let mut guests = Vec::new();
        for standing in [Standing::Backend, Standing::Reader, Standing::Stranger, Standing::Silent, Standing::Silent] {
            let admission = lobby.enter(None).await;
            admission.guest.shows(standing);
            guests.push(admission);
        }
        for expected in [Some(2), Some(1), Some(3), Some(4), None] {
            assert_eq!(asked(&lobby, &guests).await, expected);
        }
        guests[3].guest.asked_to_leave().await;
    }

    #[tokio::test]
    async fn a_newcomer_waits_until_somebody_has_left() {
        let lobby = Lobby::new(1);
        let first = lobby.enter(None).await;
        let mut second = Box::pin(lobby.enter(None));
        assert!(futures_util::poll!(second.as_mut()).is_pending());
        first.guest.asked_to_leave().await;
        drop(first);
        fn is_send(future: impl Future<Output = Admission> + Send) -> impl Future<Output = Admission> + Send {
            future
        }
        let second = is_send(second).await;
        second.guest.shows(Standing::Reader);
        second.guest.shows(Standing::Stranger);
        assert_eq!(second.guest.standing(), Standing::Reader, "nobody becomes less known");
    }
}
