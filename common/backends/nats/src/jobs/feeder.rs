//! The task that asks for jobs of one lane, shows that they are worked on, and gives back what nobody takes.
//!
//! ```text
//!   calls of take wait ─▶ as many requests to the server, each until it lapses
//!   a message ─▶ readable? ─ yes ─▶ hands        a newer version's ─▶ back, for a newer worker
//!   no consumer there ─▶ set up again, pause     a new connection  ─▶ all requests again
//!   every now and then ─▶ jobs that are stranded are put anew
//!   the handle is dropped ─▶ drain, and give everything back
//! ```
//!
//! Invariants: a request is made only for a call that waits, and if the call is dropped, its request stands until it
//! lapses; an error is followed by a pause.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::message::AckKind;
use async_nats::{Message, StatusCode, Subscriber, jetstream};
use feedgate_common::jobs::Lane;
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use super::Shared;
use super::hands::{Held, Place, UNKNOWN};
use super::streams::{self, Streams};
use super::wire::{self, Unreadable};
use crate::bus::CALL;

/// How long a request for a job stands at the server. If its connection is dead and the server does not know that, the
/// server sends jobs there for so long.
const REQUEST: Duration = Duration::from_secs(2);

/// The time after which a request counts as lost, if the server has not said that it lapsed.
const REQUEST_LOST: Duration = Duration::from_secs(3);

/// How long the feeder leaves a server alone that is not ready.
const PAUSE: Duration = Duration::from_millis(100);

/// When a job of a newer version is offered again.
const NEWER: Duration = Duration::from_secs(5);

/// A request for one job.
#[derive(Clone, Copy)]
struct Asked {
    /// When it counts as lost.
    lost: Instant,
    /// The connection on which it was made: what answers it is no newer.
    connection: u64,
}

/// Asks the server for jobs of one lane, as many as there are calls that wait for one.
pub(crate) struct Feeder {
    lane: Lane,
    streams: Streams,
    shared: Arc<Shared>,
    inbox: String,
    /// The requests under way, the oldest first.
    asked: VecDeque<Asked>,
    paused_until: Instant,
    /// Whether this process takes jobs of the lane: it has asked for one.
    takes: bool,
    /// How far the consumer had been acknowledged at the last look for stranded jobs.
    acknowledged: u64,
}

impl Feeder {
    pub(crate) fn new(lane: Lane, streams: Streams, shared: Arc<Shared>) -> Self {
        let inbox = streams.bus.client().new_inbox();
        let (asked, paused_until) = (VecDeque::new(), Instant::now());
        Self { lane, streams, shared, inbox, asked, paused_until, takes: false, acknowledged: 0 }
    }

    /// Runs until `closed` says that the handle was dropped.
    pub(crate) async fn run(mut self, mut closed: watch::Receiver<()>) {
        let mut signs_of_work = interval(self.streams.settings().ack_wait / 3);
        signs_of_work.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut looks = interval(self.streams.settings().stranded_every);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut gaps = self.streams.bus.gaps();
        loop {
            let mut subscriber = match self.streams.bus.client().subscribe(self.inbox.clone()).await {
                Ok(subscriber) => subscriber,
                Err(error) => {
                    tracing::warn!(%error, "NATS takes no subscription for jobs");
                    tokio::select! {
                        () = sleep(PAUSE) => continue,
                        _ = closed.changed() => return,
                    }
                }
            };
            loop {
                self.give_back_untaken().await;
                self.ask().await;
                // The branches are tried in this order, so that messages which came before a gap are received before
                // it.
                tokio::select! {
                    biased;
                    _ = closed.changed() => return self.close(subscriber).await,
                    _ = signs_of_work.tick() => self.show_work().await,
                    message = subscriber.next() => match message {
                        Some(message) => self.receive(message).await,
                        None => break,
                    },
                    _ = gaps.changed() => self.asked.clear(),
                    _ = looks.tick(), if self.takes => self.put_stranded_anew().await,
                    () = self.shared.wanted(self.lane).notified() => {}
                    () = sleep_until(self.next_look()) => {}
                }
            }
        }
    }

    /// When something is due even if nothing happens.
    fn next_look(&self) -> Instant {
        let now = Instant::now();
        let paused = (self.paused_until > now).then_some(self.paused_until);
        let untaken =
            self.shared.hands.lock().ready_since(self.lane).map(|since| since + self.streams.settings().grace);
        let lost = self.asked.front().map(|asked| asked.lost);
        [paused, untaken, lost].into_iter().flatten().min().unwrap_or(now + REQUEST)
    }

    /// Asks for a job for each call that waits and has none coming.
    async fn ask(&mut self) {
        let now = Instant::now();
        self.asked.retain(|asked| asked.lost > now);
        let batch = self.shared.hands.lock().wanted(self.lane).saturating_sub(self.asked.len());
        if batch == 0 || now < self.paused_until {
            return;
        }
        if !self.streams.bus.is_connected() {
            self.paused_until = now + PAUSE;
            return;
        }
        self.takes = true;
        let asked = Asked { lost: now + REQUEST_LOST, connection: self.streams.bus.connection() };
        let request = format!(r#"{{"batch":{batch},"expires":{}}}"#, REQUEST.as_nanos());
        let request = async_nats::client::Request::new().payload(request.into()).inbox(self.inbox.clone());
        match timeout(CALL, self.streams.bus.jetstream().send_request(streams::next(self.lane), request)).await {
            Ok(Ok(())) => self.asked.extend(std::iter::repeat_n(asked, batch)),
            Ok(Err(_)) | Err(_) => self.paused_until = now + PAUSE,
        }
    }

    async fn receive(&mut self, message: Message) {
        match message.status {
            None | Some(StatusCode::OK) => {
                let connection = self.asked.pop_front().map_or(UNKNOWN, |asked| asked.connection);
                self.deliver(message, connection).await;
            }
            Some(StatusCode::IDLE_HEARTBEAT) => {}
            Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => {
                let left = message.headers.as_ref().and_then(|h| h.get("Nats-Pending-Messages"));
                let left = left.and_then(|n| n.as_str().parse().ok()).unwrap_or(1);
                self.asked.drain(..self.asked.len().min(left));
            }
            // There is no consumer, or the server cannot serve the request now.
            Some(status) => {
                tracing::debug!(%status, why = message.description.as_deref(), "no jobs can be asked for");
                self.asked.clear();
                if let Err(error) = self.streams.set_up().await {
                    tracing::warn!(%error, "the job queue cannot be set up");
                }
                self.paused_until = Instant::now() + PAUSE;
            }
        }
    }

    async fn deliver(&self, message: Message, connection: u64) {
        let Some(reply) = message.reply.as_ref().map(ToString::to_string) else { return };
        let message = jetstream::Message { message, context: self.streams.bus.jetstream().clone() };
        let Ok(info) = message.info() else { return };
        let place = Place { lane: self.lane, sequence: info.stream_sequence, published: info.published };
        match wire::decode(&message.payload) {
            Ok(job) => {
                let held = Held::new(job, place, reply, connection);
                self.shared.hands.lock().arrived(held, Instant::now());
                self.shared.arrived.notify_waiters();
            }
            Err(Unreadable::Newer(version)) => {
                tracing::info!(version, "a job of a newer version waits for a newer worker");
                self.streams.say(&reply, AckKind::Nak(Some(NEWER))).await;
            }
            Err(Unreadable::Garbage) => {
                tracing::error!(subject = %message.subject, "a message in the job queue is no job; it is dropped");
                self.streams.say(&reply, AckKind::Term).await;
            }
        }
    }

    async fn show_work(&self) {
        if self.streams.bus.is_connected() {
            let replies = self.shared.hands.lock().at_work(self.lane);
            for reply in replies {
                self.streams.say(&reply, AckKind::Progress).await;
            }
        }
    }

    /// Puts jobs anew whose messages the consumer had passed at the last look. If it fails, the next look finds them
    /// again.
    async fn put_stranded_anew(&mut self) {
        if !self.streams.bus.is_connected() {
            return;
        }
        match self.streams.put_stranded_anew(self.lane, self.acknowledged).await {
            Ok(acknowledged) => self.acknowledged = acknowledged,
            Err(error) => tracing::debug!(%error, lane = ?self.lane, "NATS was not looked through for stranded jobs"),
        }
    }

    async fn give_back_untaken(&self) {
        let untaken = self.shared.hands.lock().overdue(self.lane, Instant::now(), self.streams.settings().grace);
        self.give_back(untaken).await;
    }

    async fn give_back(&self, held: Vec<Held>) {
        // The reply subject of an earlier connection may name another job by now, so such a job is left to lapse by
        // itself.
        let connection = self.streams.bus.connection();
        for held in held.into_iter().filter(|held| held.connection == connection) {
            self.streams.say(&held.reply, AckKind::Nak(None)).await;
        }
    }

    /// Gives back what is in hand and what is still coming.
    async fn close(self, mut subscriber: Subscriber) {
        let held = self.shared.hands.lock().let_go(self.lane);
        let close = async {
            self.give_back(held).await;
            if subscriber.drain().await.is_ok() {
                while let Some(message) = subscriber.next().await {
                    self.receive_late(message).await;
                }
            }
        };
        if timeout(CALL, close).await.is_err() {
            tracing::debug!("jobs in hand could not be given back; they come again after the AckWait");
        }
    }

    async fn receive_late(&self, message: Message) {
        if let (None, Some(reply)) = (message.status, message.reply) {
            self.streams.say(&reply, AckKind::Nak(None)).await;
        }
    }
}
