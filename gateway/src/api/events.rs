//! `GET /v1/events`: what was accepted, for other programs, as server-sent events that go on for ever.
//!
//! ```text
//!   after, or Last-Event-ID ─▶ still in the log? ── no ──▶ 410
//!                                    │ yes
//!                                    ▼
//!            read from there, a piece at a time ◀── the log has grown     (a comment if it has not for a while)
//!                                    └─▶ id: <id of the event>   data: <the event>
//! ```
//!
//! Invariants: a stream holds a position and one piece of events, never a queue; between two events that it sends, none
//! is left out; it ends when the server drains, and when the log was cut off beyond its position.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use feedgate_common::Archive;
use feedgate_common::announce::{EventId, PublicEvent, with_names};
use feedgate_common::error::Result;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::access::ReadKey;
use super::problem::{Kind, Problem, short};
use super::query::Query;
use crate::limits::budget::Reservation;

/// The most streams of events at a time.
const STREAMS_MAX: usize = 64;

/// The most events that a stream holds at a time.
const PIECE: usize = 64;

/// The most bytes of one event: two names, a foreign id of which each character is escaped, and the rest.
const EVENT_MAX: usize = 1536;

/// After this time without an event a stream sends a comment, so that proxies keep it and its end is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A comment, which clients skip.
const COMMENT: &[u8] = b":\n\n";

const HEADERS: [(HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
    (header::CACHE_CONTROL, "no-cache, no-store, no-transform"),
    (HeaderName::from_static("x-accel-buffering"), "no"),
];

/// The places of streams of events. All clones share them.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Semaphore>);

impl Streams {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(STREAMS_MAX)))
    }

    fn place(&self) -> std::result::Result<OwnedSemaphorePermit, Problem> {
        let place = self.0.clone().try_acquire_owned();
        place.map_err(|_| {
            let detail = format!("{STREAMS_MAX} programs follow the events here already; end one of these streams");
            Problem::new(Kind::Overloaded, detail)
        })
    }
}

/// Whether a stream may go on behind the event `id`. `last` is the last number of the log, and `kept` are the first two
/// events of the log whose numbers are not below that of `id`. Numbers are missing where the loss of files was
/// accepted; a stream cannot go on over such a gap.
fn stands(id: EventId, last: u64, kept: &[EventId]) -> bool {
    match id.number {
        0 => id.at == 0 && (last == 0 || kept.first().is_some_and(|first| first.number == 1)),
        number => {
            let goes_on = number == last || kept.get(1).is_some_and(|next| next.number == number + 1);
            number <= last && kept.first() == Some(&id) && goes_on
        }
    }
}

/// Answers `GET /v1/events` with a stream of events.
pub(super) async fn follow(
    ReadKey(caller): ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    State(streams): State<Streams>,
    State(stopping): State<CancellationToken>,
    headers: HeaderMap,
    query: Query,
) -> std::result::Result<Response, Problem> {
    let after = asked(&headers, query)?;
    let elsewhere = "the events of a cluster are on NATS: read the stream FEED, as docs/nats.md says";
    let mut growth = archive.growth().ok_or_else(|| Problem::new(Kind::NotFound, elsewhere))?;
    let place = streams.place()?;
    let held = caller.hold(PIECE * EVENT_MAX).await?;
    let last = growth.next().await.ok_or_else(|| Problem::new(Kind::Unavailable, "the server is stopping"))?;
    let from = begin(&*archive, after, last).await?;
    let first = format!("id: {from}\n\n");
    let (number, span) = (from.number, Span::current());
    let tail = Tail { archive, growth, number, last, stopping, span, _held: held, _place: place };
    let rest = stream::unfold(tail, |mut tail| async move { tail.next().await.map(|bytes| (bytes, tail)) });
    let all = stream::once(async { Bytes::from(first) }).chain(rest).map(Ok::<_, Infallible>);
    Ok((HEADERS, Body::from_stream(all)).into_response())
}

/// The position after which the caller wants to go on; `None` to begin now. A client that connects again sends the
/// header, and its first query once more, so the header counts.
fn asked(headers: &HeaderMap, query: Query) -> std::result::Result<Option<EventId>, Problem> {
    let params = query.only(&["after"])?;
    if let Some(id) = headers.get("last-event-id").filter(|id| !id.is_empty()) {
        let wrong = "Last-Event-ID must be the id of an event that was sent from here";
        let position = id.to_str().ok().and_then(|id| id.parse().ok());
        return position.map(Some).ok_or_else(|| Problem::header("Last-Event-ID", wrong));
    }
    let Some(text) = params.get("after") else { return Ok(None) };
    let wrong = || {
        let text = short(text);
        Problem::parameter("after", format!("after must be the id of an event, such as 1800000000000-17, not {text:?}"))
    };
    text.parse().map(Some).map_err(|()| wrong())
}

/// The position from which the stream goes on; 410 if the log does not reach back to it, or never had it.
async fn begin(archive: &dyn Archive, after: Option<EventId>, last: u64) -> std::result::Result<EventId, Problem> {
    let number = after.map_or(last, |after| after.number);
    let kept = archive.announced(number.saturating_sub(1), 2).await?;
    let kept: Vec<_> = kept.iter().map(|(number, told)| EventId { at: told.at, number: *number }).collect();
    match after {
        None => Ok(kept.first().copied().unwrap_or(EventId { at: 0, number: last })),
        Some(after) if stands(after, last, &kept) => Ok(after),
        Some(_) => {
            let detail = "the event with this id is not kept any more, or never was: read what you need through the API, \
                          and begin without after and Last-Event-ID";
            Err(Problem::new(Kind::Gone, detail))
        }
    }
}

/// One stream of events: a position, and what tells that the log has grown.
struct Tail {
    archive: Arc<dyn Archive>,
    growth: BoxStream<'static, u64>,
    /// The number of the last event that was sent.
    number: u64,
    /// The last number of the log, as far as is known.
    last: u64,
    stopping: CancellationToken,
    /// The span of the request.
    span: Span,
    _held: Reservation,
    _place: OwnedSemaphorePermit,
}

impl Tail {
    /// What is sent next; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.stopping.is_cancelled() {
                return None;
            }
            if self.number < self.last {
                return match self.piece().await {
                    Ok(piece) => piece,
                    Err(error) => {
                        let (span, number) = (&self.span, self.number);
                        tracing::warn!(parent: span, %error, number, "a stream of events was broken off");
                        None
                    }
                };
            }
            tokio::select! {
                biased;
                () = self.stopping.cancelled() => return None,
                last = self.growth.next() => self.last = last?,
                () = sleep(KEEP_ALIVE) => return Some(Bytes::from_static(COMMENT)),
            }
        }
    }

    /// The next events; `None` if the next number is missing from the log.
    async fn piece(&mut self) -> Result<Option<Bytes>> {
        let list = self.archive.announced(self.number, PIECE).await?;
        if list.first().is_none_or(|(number, _)| *number != self.number + 1) {
            return Ok(None);
        }
        let mut bytes = vec![];
        for event in with_names(&*self.archive, list).await? {
            self.number = event.number;
            write(&mut bytes, &event);
        }
        Ok(Some(bytes.into()))
    }
}

fn write(out: &mut Vec<u8>, event: &PublicEvent) {
    out.extend_from_slice(format!("id: {}\ndata: ", event.id()).as_bytes());
    out.extend_from_slice(&event.json());
    out.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> EventId {
        text.parse().unwrap()
    }

    #[test]
    fn a_stream_goes_on_only_from_an_event_that_the_log_holds_as_it_was_sent() {
        let stands = |text, last, kept: &[&str]| {
            let kept: Vec<EventId> = kept.iter().map(|text| id(text)).collect();
            super::stands(id(text), last, &kept)
        };
        assert!(stands("5-7", 9, &["5-7", "5-8"]) && stands("5-9", 9, &["5-9"]) && stands("5-9", 9, &["5-9", "5-10"]));
        assert!(!stands("5-7", 9, &["6-8", "6-9"]), "it was cut off");
        assert!(!stands("5-7", 9, &["6-7", "6-8"]), "it is an event of another life of the log");
        assert!(!stands("5-7", 99, &["5-7"]) && !stands("5-7", 99, &["5-7", "9-99"]), "what came after it is lost");
        assert!(!stands("5-10", 9, &[]) && !stands("5-10", 9, &["5-10"]), "it never was");
        assert!(!stands("5-10", 9, &["5-10", "5-11"]), "it never was");
        assert!(stands("0-0", 0, &[]) && stands("0-0", 9, &["5-1", "5-2"]));
        assert!(!stands("0-0", 9, &["5-2", "5-3"]) && !stands("5-0", 9, &["5-1", "5-2"]));
        for wrong in ["", "7", "5-", "-7", "5-7-8", "5--7"] {
            assert_eq!(wrong.parse::<EventId>(), Err(()), "{wrong}");
        }
    }
}
