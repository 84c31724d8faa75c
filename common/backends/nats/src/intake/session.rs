//! One session: the messages of one consumer, from the first that is not acknowledged on.
//!
//! ```text
//!   message ─▶ call ─▶ its turn ─▶ carried out ─┬─ done ──────────────────────▶ acknowledged, and heard
//!                                    ▲          ├─ refused ─▶ FEED_REFUSED ───▶ acknowledged, and heard
//!                                    └── pause ◀┴─ for later (a store is away)
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::MessagesError;
use async_nats::jetstream::consumer::{Consumer, pull};
use async_nats::jetstream::message::AckKind;
use feedgate_common::StoreError;
use feedgate_common::error::Result;
use feedgate_common::intake::{Answer, Backend, Call, Concerns, Order, Wrong, fitted, refused_operations};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::time::{interval, sleep};
use tokio_util::sync::CancellationToken;

use super::ACK_WAIT;
use super::message;
use super::streams::{IN_SUBJECTS, REFUSED_SUBJECTS, Streams};
use crate::bus::{CALL, unavailable, within};

/// The pause before a call is tried again; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// How long a request for messages stands at the server. While a request stands, the server keeps the consumer.
const ASKED: Duration = Duration::from_secs(5);

/// The server says this often that a request stands. After twice as long without a word, the session ends.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// A message, with the call that was read from it.
struct Held {
    message: Message,
    call: std::result::Result<Call, Wrong>,
    key: String,
}

impl Held {
    /// Reads a message. A message without a key gets one, which is the same at every delivery and which no other
    /// message has.
    fn of(message: Message) -> Result<Self> {
        let mut call = message::read(IN_SUBJECTS, &message.message);
        let info = message.info().map_err(|error| unavailable(format_args!("a message without a place: {error}")))?;
        let own = format!("nats-{}-{}", info.stream_sequence, info.published.unix_timestamp_nanos());
        let key = match &mut call {
            Ok(call) => call.key.get_or_insert(own).clone(),
            Err(_) => own,
        };
        Ok(Self { message, call, key })
    }

    fn concerns(&self) -> Concerns {
        self.call.as_ref().map_or(Concerns::These(vec![]), Concerns::of)
    }
}

/// The next message, if it comes for the first time. A message that comes again was held for too long without a sign of
/// work. Then messages behind it that should wait for it may be under way already, so the session ends.
fn next(message: Option<std::result::Result<Message, MessagesError>>) -> Result<Held> {
    match message {
        Some(Ok(message)) => {
            let is_first = message.info().is_ok_and(|info| info.delivered == 1);
            if is_first { Held::of(message) } else { Err(unavailable("a message came again")) }
        }
        Some(Err(error)) => Err(unavailable(&error)),
        None => Err(unavailable("the consumer has ended")),
    }
}

/// The messages of one consumer.
pub(super) struct Session<'a> {
    streams: &'a Streams,
    backend: &'a Arc<dyn Backend>,
    consumer: Consumer<pull::Config>,
    /// Cancelled when no call is to be tried again.
    over: CancellationToken,
}

impl<'a> Session<'a> {
    pub(super) fn new(streams: &'a Streams, backend: &'a Arc<dyn Backend>, consumer: Consumer<pull::Config>) -> Self {
        Self { streams, backend, consumer, over: CancellationToken::new() }
    }

    /// Carries out messages until `stop` is cancelled or NATS fails; then waits for the calls that are under way.
    pub(super) async fn run(self, stop: &CancellationToken) -> Result<()> {
        let in_flight = self.streams.settings.in_flight;
        let asking = self.consumer.stream().max_messages_per_batch(in_flight).expires(ASKED).heartbeat(HEARTBEAT);
        let mut messages = asking.messages().await.map_err(|error| unavailable(&error))?;
        let (mut order, mut waiting, mut held) = (Order::default(), HashMap::new(), BTreeMap::new());
        let mut running: FuturesUnordered<BoxFuture<'_, Result<u64>>> = FuturesUnordered::new();
        let (mut ids, mut signs, mut ended) = (0.., interval(ACK_WAIT / 3), None);
        loop {
            while ended.is_none()
                && let Some(id) = order.begin()
            {
                running.push(Box::pin(self.settle(id, waiting.remove(&id).expect("what begins has waited"))));
            }
            tokio::select! {
                () = stop.cancelled(), if ended.is_none() => ended = Some(Ok(())),
                _ = signs.tick() => self.show_work(held.values()).await,
                Some(settled) = running.next(), if !running.is_empty() => match settled {
                    Ok(id) => {
                        held.remove(&id);
                        order.done(id);
                    }
                    Err(error) => drop(ended.get_or_insert(Err(error))),
                },
                message = messages.next(), if ended.is_none() => match next(message) {
                    Ok(message) => {
                        let id = ids.next().expect("numbers do not end");
                        held.insert(id, message.message.reply.clone());
                        order.push(id, message.concerns());
                        waiting.insert(id, message);
                    }
                    Err(error) => ended = Some(Err(error)),
                },
            }
            if ended.is_some() {
                self.over.cancel();
                if running.is_empty() {
                    return ended.unwrap_or(Ok(()));
                }
            }
        }
    }

    /// Tells the server that these messages are worked on, so that the server keeps the consumer, and delivers no such
    /// message again.
    async fn show_work(&self, held: impl Iterator<Item = &Option<Subject>>) {
        for reply in held.flatten() {
            let sign = self.streams.bus.client().publish(reply.clone(), AckKind::Progress.into()).await;
            if let Err(error) = sign {
                tracing::debug!(%error, "a sign of work could not be sent");
            }
        }
    }

    /// Carries out one message, stores the calls in it that are refused, and acknowledges the message.
    async fn settle(&self, id: u64, held: Held) -> Result<u64> {
        let answer = match &held.call {
            Ok(call) => self.carry_out(call).await?,
            Err(wrong) => self.backend.refuse(wrong.clone()),
        };
        self.tell_refused(&held, &answer).await?;
        self.streams.bus.connected().await?;
        let acked = async { held.message.double_ack().await.map_err(|error| unavailable(&error)) };
        within(CALL, acked).await?;
        Ok(id)
    }

    /// Tries until the call is carried out or refused, or the session is over.
    async fn carry_out(&self, call: &Call) -> Result<Answer> {
        let mut pause = PAUSE;
        loop {
            let answer = self.backend.carry_out(call.clone()).await;
            if !answer.is_for_later() {
                return Ok(answer);
            }
            tokio::select! {
                () = self.over.cancelled() => return Err(StoreError::unavailable("the call waits for another session")),
                () = sleep(pause) => pause = (pause * 2).min(PAUSE_MAX),
            }
        }
    }

    async fn tell_refused(&self, held: &Held, answer: &Answer) -> Result<()> {
        let of = held.message.headers.as_ref();
        let rest = held.message.subject.strip_prefix(IN_SUBJECTS).unwrap_or_default();
        let subject = format!("{REFUSED_SUBJECTS}{rest}");
        if !answer.is_done() {
            let headers = message::refused(of, &held.key, &fitted(&answer.body));
            return self.streams.refuse(subject, headers, held.message.payload.to_vec()).await;
        }
        for (at, alone, problem) in refused_operations(&held.message.payload, &answer.body) {
            let headers = message::refused(of, &format!("{}/{at}", held.key), &problem);
            self.streams.refuse(subject.clone(), headers, alone).await?;
        }
        Ok(())
    }
}
