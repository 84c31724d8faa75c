//! An answer to a read: JSON, coded as the caller asks. The bytes of the answer are counted in memory until the caller
//! has received them.
//!
//! ```text
//!   permit ──▶ read ──▶ JSON ──▶ gzip, if asked for ──▶ pieces ──▶ each piece is given back, and no longer counted, when it is written
//! ```

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use feedgate_common::UserId;
use hyper::body::{Frame, SizeHint};
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use super::coding::Coding;
use crate::limits::budget::Reservation;
use crate::limits::quotas::Ticket;
use crate::net::address::AddressKey;

/// The most bytes in one piece of an answer.
const PIECE_BYTES: usize = 32 * 1024;

/// The reads that a request counts for, until its answer is written.
#[derive(Default)]
pub(crate) struct Tickets {
    pub(crate) _user: Option<Ticket<UserId>>,
    pub(crate) _address: Option<Ticket<AddressKey>>,
}

/// The permission for one read, with the bytes that are counted for it.
pub(crate) struct Permit {
    held: Reservation,
    tickets: Arc<Tickets>,
    coding: Coding,
    _reads: OwnedSemaphorePermit,
}

impl Permit {
    /// Begins a read; `held` must have room for the most bytes that it takes.
    pub(crate) fn new(held: Reservation, tickets: Tickets, coding: Coding, reads: OwnedSemaphorePermit) -> Self {
        Self { held, tickets: Arc::new(tickets), coding, _reads: reads }
    }

    /// Makes a response with status 200 from what was read. The permit for the stores is given back here; the bytes of
    /// the answer stay counted until they are written.
    pub(crate) fn answer(self, found: &impl Serialize) -> Response {
        let Self { mut held, tickets, coding, _reads } = self;
        let mut json = Pieces::default();
        serde_json::to_writer(&mut json, found).expect("our own values serialize, and memory takes all");
        let (mut pieces, mut coded) = (json.into_all(), Pieces::default());
        let coded_by = coding.apply(&mut pieces, &mut coded);
        if coded_by.is_some() {
            pieces = coded.into_all();
        }
        let piece = |bytes: Vec<u8>| {
            let held = held.split(bytes.capacity());
            Bytes::from_owner(Piece { bytes, _held: held, _tickets: tickets.clone() })
        };
        let left = Left(pieces.into_iter().map(piece).collect());
        let mut response = Response::new(Body::new(left));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        if let Some(name) = coded_by {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
        }
        response
    }
}

/// A body in pieces, while it is being written.
#[derive(Default)]
struct Pieces {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
}

impl Pieces {
    fn into_all(mut self) -> Vec<Vec<u8>> {
        self.full.push(self.last);
        self.full
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.last.len() == PIECE_BYTES {
            let next = Vec::with_capacity(PIECE_BYTES);
            self.full.push(std::mem::replace(&mut self.last, next));
        }
        let fits = bytes.len().min(PIECE_BYTES - self.last.len());
        self.last.extend_from_slice(&bytes[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of an answer that are counted for as long as they exist.
struct Piece {
    bytes: Vec<u8>,
    _held: Reservation,
    _tickets: Arc<Tickets>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The pieces that were not yet handed to the connection.
struct Left(VecDeque<Bytes>);

impl HttpBody for Left {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|piece| piece.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::limits::budget::{Budget, NODE_MIN};

    #[tokio::test]
    async fn an_answer_is_counted_piece_by_piece_until_it_is_written() {
        let (budget, reads) = (Budget::new(NODE_MIN), Arc::new(Semaphore::new(1)));
        let share = budget.of(&"ann".parse().unwrap());
        let left =
            || NODE_MIN / 16 - (0..).take_while(|n| share.try_reserve(n * 1024).is_some()).last().unwrap() * 1024;
        let reading = reads.clone().try_acquire_owned().unwrap();
        let permit = Permit::new(share.try_reserve(1_000_000).unwrap(), Tickets::default(), Coding::Identity, reading);
        let text = "x".repeat(100_000);
        let mut body = permit.answer(&text).into_body();
        assert!(reads.try_acquire().is_ok(), "the stores are free for others");
        assert_eq!(body.size_hint().exact(), Some(100_002));
        let mut whole = Vec::new();
        let mut held = vec![left()];
        while let Some(frame) = body.frame().await {
            let piece = frame.unwrap().into_data().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            whole.extend_from_slice(&piece);
            drop(piece);
            held.push(left());
        }
        assert_eq!(whole, serde_json::to_vec(&text).unwrap());
        assert!(held.is_sorted_by(|a, b| a > b) && held[0] < 160_000 && held.last() == Some(&0), "{held:?}");
    }
}
