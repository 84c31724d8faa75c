//! The HTTP connections of one port: whoever has not become a WebSocket, readers with requests, and backends.
//!
//! ```text
//!   accept ──▶ enter ──▶ Seat ──▶ a request ──▶ credentials ──▶ ends, or becomes a WebSocket and leaves
//!                └── no room: of the older half, the least known has to go
//! ```
//!
//! Invariant: at most `room` are inside. Nobody keeps out a backend: its request is underway long before it is among the
//! older half, and once its key was seen it is not asked to go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use axum::http::Extensions;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::net::address::shares::Stay;

/// How long a newcomer waits for one who was asked to leave, before the next is asked.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a reader may pause between two requests: browsers, proxies and load balancers keep a connection for a minute.
const READER_RESTS: Duration = Duration::from_secs(75);

/// And a backend: the load balancers of the large clouds keep one for ten minutes, most HTTP clients for less.
const BACKEND_RESTS: Duration = Duration::from_secs(620);

/// What a connection has shown so far, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Standing {
    /// No request.
    Silent,
    /// A request, no credentials.
    Stranger,
    /// A reader's token.
    Reader,
    /// The API key.
    Backend,
}

/// See the module.
pub(crate) struct Lobby {
    room: usize,
    guests: Mutex<BTreeMap<u64, Arc<Guest>>>,
    /// Somebody has left.
    left: Notify,
}

/// One connection.
pub(crate) struct Guest {
    standing: AtomicU8,
    asked_to_leave: AtomicBool,
    leave: Notify,
    /// Its share of its address; none if it has none.
    stay: Mutex<Option<Stay>>,
    /// Requests whose head has come, and those of them whose answer has begun.
    requests: AtomicU32,
    answers: AtomicU32,
}

/// A request that is being answered, until this is dropped.
pub(crate) struct Asking(Arc<Guest>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.answers.fetch_add(1, Ordering::AcqRel);
    }
}

/// A guest's place, until this is dropped.
pub(crate) struct Seat {
    lobby: Arc<Lobby>,
    number: u64,
    /// Who sits there. Travels with each request as an extension.
    pub(crate) guest: Arc<Guest>,
}

impl Lobby {
    /// For so many connections, at least one.
    pub(crate) fn new(room: usize) -> Arc<Self> {
        Arc::new(Self { room: room.max(1), guests: Mutex::default(), left: Notify::new() })
    }

    /// A seat for one more, for which somebody else may have to leave. Cancel safe; one caller at a time.
    pub(crate) async fn enter(self: &Arc<Self>, stay: Option<Stay>) -> Seat {
        let guest = Arc::new(Guest::new(stay));
        loop {
            if let Some(number) = self.try_enter(&guest) {
                return Seat { lobby: self.clone(), number, guest };
            }
            // Who is in the middle of an answer takes its time; then somebody else has to go.
            let _ = timeout(PATIENCE, self.left.notified()).await;
        }
    }

    /// The number of the seat, or somebody was asked to leave, if there is anybody to ask.
    fn try_enter(&self, guest: &Arc<Guest>) -> Option<u64> {
        let mut guests = self.guests.lock();
        if guests.len() < self.room {
            let number = guests.last_key_value().map_or(0, |(last, _)| last + 1);
            guests.insert(number, guest.clone());
            return Some(number);
        }
        let may_go = |guest: &&Arc<Guest>| guest.standing() < Standing::Backend && !guest.is_leaving();
        // The first of several that are equal is the oldest. Those who have just come have time to say something.
        let least = |some: usize| guests.values().take(some).filter(may_go).min_by_key(|guest| guest.standing());
        if let Some(guest) = least(guests.len().div_ceil(2)).or_else(|| least(guests.len())) {
            guest.asked_to_leave.store(true, Ordering::Release);
            guest.leave.notify_one();
        }
        None
    }
}

impl Drop for Seat {
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

    /// The head of a request has come.
    pub(crate) fn asks(self: &Arc<Self>) -> Asking {
        self.shows(Standing::Stranger);
        self.requests.fetch_add(1, Ordering::AcqRel);
        Asking(self.clone())
    }

    /// Requests whose head has come; wraps around.
    pub(crate) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Acquire)
    }

    /// Whether a request has come whose answer has not begun.
    pub(crate) fn is_answered(&self) -> bool {
        self.requests() != self.answers.load(Ordering::Acquire)
    }

    /// How long it may say nothing before the next request; `least` if it has not said who it is.
    pub(crate) fn may_rest(&self, least: Duration) -> Duration {
        match self.standing() {
            Standing::Silent | Standing::Stranger => least,
            Standing::Reader => least.max(READER_RESTS),
            Standing::Backend => least.max(BACKEND_RESTS),
        }
    }

    /// Of the request, if a port brought it.
    pub(crate) fn of(request: &Extensions) -> Option<&Arc<Self>> {
        request.get()
    }

    /// It has shown this; what it has shown before counts on.
    pub(crate) fn shows(&self, standing: Standing) {
        self.standing.fetch_max(standing as u8, Ordering::AcqRel);
        if standing >= Standing::Reader
            && let Some(stay) = &mut *self.stay.lock()
        {
            stay.known();
        }
    }

    /// What it has shown so far.
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

    /// When it has to go, so that another finds room. Cancel safe.
    pub(crate) async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }

    /// From now on it counts for an address.
    pub(crate) fn counts(&self, stay: Stay) {
        *self.stay.lock() = Some(stay);
    }

    /// Whether it counts for an address.
    pub(crate) fn is_counted(&self) -> bool {
        self.stay.lock().is_some()
    }

    /// Its share of its address goes over to what it becomes.
    pub(crate) fn take_stay(&self) -> Option<Stay> {
        self.stay.lock().take()
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::*;

    /// Lets a newcomer wait, and tells which of the guests is asked to leave for it.
    async fn asked(lobby: &Arc<Lobby>, guests: &[Seat]) -> Option<usize> {
        let before: Vec<bool> = guests.iter().map(|seat| seat.guest.is_leaving()).collect();
        let mut waiting = Box::pin(lobby.enter(None));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        guests.iter().zip(before).position(|(seat, before)| seat.guest.is_leaving() && !before)
    }

    #[tokio::test]
    async fn of_the_older_half_the_least_known_makes_room_and_a_backend_never_does() {
        let lobby = Lobby::new(5);
        let mut guests = Vec::new();
        for standing in [Standing::Backend, Standing::Reader, Standing::Stranger, Standing::Silent, Standing::Silent] {
            let seat = lobby.enter(None).await;
            seat.guest.shows(standing);
            guests.push(seat);
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
        fn is_send(future: impl Future<Output = Seat> + Send) -> impl Future<Output = Seat> + Send {
            future
        }
        let second = is_send(second).await;
        second.guest.shows(Standing::Reader);
        second.guest.shows(Standing::Stranger);
        assert_eq!(second.guest.standing(), Standing::Reader, "nobody becomes less known");
    }
}
