//! The streams and the consumers all workers share: how they are set up, and what happens to a put.
//!
//! ```text
//!   FEED_WORK    feed.work.>    what was published: a message per job, at most one per subject, gone when it is acknowledged
//!      └ workers                one durable pull consumer: each call that pulls gets the next job
//!   FEED_EDGES   feed.edges.>   the same for edges that have changed
//!      └ workers
//!   FEED         feed.event.>   what was accepted, for other programs; the oldest goes first
//! ```
//!
//! Edges have a stream of their own, so that many of them delay no post.
//!
//! Invariant: setting up is idempotent, so any number of processes may do it at once, at start and whenever the
//! server's store turns out to be gone.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::{AckKind, PublishMessage};
use async_nats::jetstream::stream::{Config, DiscardPolicy, RawMessageErrorKind, RetentionPolicy, State};
use feedgate_common::error::{Result, StoreError};
use feedgate_common::jobs::{Job, Lane};
use futures_util::future::{join_all, try_join};

use super::hands::Place;
use super::{Settings, wire};
use crate::bus::{Bus, CALL, DUPLICATES, failed, not_set_up, unavailable, within};
use crate::set_up;

const EVENTS: &str = "FEED";
pub(crate) const EVENT_SUBJECTS: &str = "feed.event.";
const CONSUMER: &str = "workers";

/// The pause between two looks whether the replicas have dropped a message.
const REPLICATION: Duration = Duration::from_millis(2);

/// The stream of a lane.
fn stream(lane: Lane) -> &'static str {
    match lane {
        Lane::Posts => "FEED_WORK",
        Lane::Edges => "FEED_EDGES",
    }
}

/// How the subjects of the jobs of a lane begin.
fn subjects(lane: Lane) -> &'static str {
    match lane {
        Lane::Posts => "feed.work.",
        Lane::Edges => "feed.edges.",
    }
}

/// The subject on which a worker asks for jobs of a lane.
pub(crate) fn next(lane: Lane) -> String {
    format!("CONSUMER.MSG.NEXT.{}.{CONSUMER}", stream(lane))
}

/// The work streams of JetStream and their settings.
#[derive(Clone)]
pub(crate) struct Streams {
    pub(crate) bus: Bus,
    settings: Settings,
    /// Whether the stream of a lane was seen with several replicas.
    replicated: Arc<AtomicBool>,
}

impl Streams {
    pub(crate) fn new(bus: Bus, settings: Settings) -> Self {
        Self { bus, settings, replicated: Arc::default() }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the stream of a lane has several replicas, or had them once. An operator may have raised the number.
    pub(crate) fn are_replicated(&self) -> bool {
        self.replicated.load(Ordering::Relaxed)
    }

    fn saw_replicas(&self, replicas: usize) {
        self.replicated.fetch_or(replicas > 1, Ordering::Relaxed);
    }

    fn client(&self) -> &Client {
        self.bus.client()
    }

    /// Creates streams and consumers that are missing, and sets them to these settings if they differ, in eight calls.
    pub(crate) async fn set_up(&self) -> Result<()> {
        for lane in Lane::ALL {
            self.saw_replicas(set_up::stream(&self.bus, self.work(lane)).await?);
        }
        set_up::stream(&self.bus, self.events()).await?;
        for name in Lane::ALL.map(stream) {
            let consumer = self.bus.jetstream().create_consumer_on_stream(self.workers(), name).await;
            consumer.map_err(|error| not_set_up(format_args!("consumer {CONSUMER} of {name}"), error))?;
        }
        Ok(())
    }

    fn work(&self, lane: Lane) -> Config {
        Config {
            name: stream(lane).to_owned(),
            description: Some("Feedgate: fan-out work, a message per job".to_owned()),
            subjects: vec![format!("{}>", subjects(lane))],
            retention: RetentionPolicy::WorkQueue,
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            discard_new_per_subject: true,
            num_replicas: self.settings.replicas,
            ..Config::default()
        }
    }

    fn events(&self) -> Config {
        Config {
            name: EVENTS.to_owned(),
            description: Some("Feedgate: what was accepted, for other programs".to_owned()),
            subjects: vec![format!("{EVENT_SUBJECTS}>")],
            max_age: self.settings.events_age,
            max_bytes: self.settings.events_bytes,
            duplicate_window: DUPLICATES.min(self.settings.events_age),
            num_replicas: self.settings.replicas,
            ..Config::default()
        }
    }

    fn workers(&self) -> pull::Config {
        pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            description: Some("Feedgate: shared by all workers".to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.settings.ack_wait,
            max_ack_pending: self.settings.in_flight_max,
            max_deliver: -1,
            ..pull::Config::default()
        }
    }

    /// Puts all of `jobs` into the queue; a job is merged with an equal job that is there.
    pub(crate) async fn put(&self, jobs: &[Job]) -> Result<()> {
        let message = |&job: &Job| {
            let payload = wire::encode(job).into();
            (wire::subject(subjects(job.lane()), job), PublishMessage::build().payload(payload))
        };
        self.store(jobs, message).await
    }

    /// Stores all of these in their streams, as the messages that `message` makes; a merged message counts as stored.
    /// Sets up streams that are missing. After a failure some messages may be stored.
    pub(crate) async fn store<T>(&self, all: &[T], message: impl Fn(&T) -> (String, PublishMessage)) -> Result<()> {
        let all: Vec<&T> = all.iter().collect();
        let homeless = self.publish(&all, &message).await?;
        if !homeless.is_empty() {
            // Boxed: large, and rarely needed.
            Box::pin(self.set_up()).await?;
            if !self.publish(&homeless, &message).await?.is_empty() {
                return Err(unavailable("no stream takes what was published"));
            }
        }
        Ok(())
    }

    /// Publishes all messages, then awaits the answers. Gives the messages that no stream took.
    async fn publish<'a, T>(
        &self,
        some: &[&'a T],
        message: impl Fn(&T) -> (String, PublishMessage),
    ) -> Result<Vec<&'a T>> {
        let mut answers = Vec::with_capacity(some.len());
        for one in some {
            let (subject, message) = message(one);
            let sent = self.bus.jetstream().send_publish(subject, message).await;
            answers.push(sent.map_err(failed)?.into_future());
        }
        let mut homeless = vec![];
        for (one, answer) in some.iter().zip(join_all(answers).await) {
            match answer {
                Ok(_) => {}
                Err(error) if is_merged(&error) => {}
                Err(error) if error.kind() == PublishErrorKind::StreamNotFound => homeless.push(*one),
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(homeless)
    }

    /// Whether the message of a delivery is still in the stream.
    pub(crate) async fn holds(&self, place: &Place) -> Result<bool> {
        let found = async {
            let stream = self.bus.jetstream().get_stream_no_info(stream(place.lane)).await.map_err(failed)?;
            match stream.get_raw_message(place.sequence).await {
                Ok(message) => Ok(message.time == place.published),
                Err(error) => match error.kind() {
                    RawMessageErrorKind::NoMessageFound => Ok(false),
                    RawMessageErrorKind::JetStream(e) if e.error_code() == ErrorCode::STREAM_NOT_FOUND => Ok(false),
                    _ => Err(failed(error)),
                },
            }
        };
        within(CALL, found).await
    }

    /// Removes the message of a delivery, even if it was delivered to another worker since.
    pub(crate) async fn remove(&self, place: &Place) -> Result<()> {
        let removed = async {
            let stream = self.bus.jetstream().get_stream_no_info(stream(place.lane)).await.map_err(failed)?;
            stream.delete_message(place.sequence).await.map_err(failed)
        };
        within(CALL, removed).await.map(drop)
    }

    /// Puts the jobs anew whose messages stand in the stream at or before `acknowledged`. The consumer had been
    /// acknowledged that far a while ago: what was removed late is gone by now, and what still stands is delivered to
    /// nobody. Gives how far the consumer has been acknowledged now.
    ///
    /// It takes as many messages as it can within a few seconds. If it fails, or if the process dies between the two
    /// steps, a job may be removed and not put. Its event is outstanding in the Archive, so the sweep puts it again.
    pub(crate) async fn put_stranded_anew(&self, lane: Lane, acknowledged: u64) -> Result<u64> {
        let looked = async {
            let stream = self.bus.jetstream().get_stream_no_info(stream(lane)).await.map_err(failed)?;
            let consumer = stream.consumer_info(CONSUMER).await.map_err(failed)?;
            let info = stream.get_info().await.map_err(failed)?;
            self.saw_replicas(info.config.num_replicas);
            let mut first = info.state;
            while is_stranded(&first, acknowledged.min(consumer.ack_floor.stream_sequence)) {
                let message = stream.get_raw_message(first.first_sequence).await.map_err(failed)?;
                stream.delete_message(first.first_sequence).await.map_err(failed)?;
                let job = wire::decode(&message.payload).ok();
                tracing::warn!(?job, sequence = first.first_sequence, "NATS delivered a job to nobody; it is put anew");
                self.put(job.as_slice()).await?;
                first = stream.get_info().await.map_err(failed)?.state;
            }
            Ok(consumer.ack_floor.stream_sequence)
        };
        within(CALL, looked).await
    }

    /// Waits until the message of a delivery is gone from the stream.
    pub(crate) async fn gone(&self, place: &Place) -> Result<()> {
        let gone = async {
            while self.holds(place).await? {
                tokio::time::sleep(REPLICATION).await;
            }
            Ok(())
        };
        within(CALL, gone).await
    }

    /// The number of messages in the queue; 0 if the streams are missing.
    pub(crate) async fn pending(&self) -> Result<u64> {
        let (posts, edges) = try_join(self.waiting(Lane::Posts), self.waiting(Lane::Edges)).await?;
        Ok(posts + edges)
    }

    async fn waiting(&self, lane: Lane) -> Result<u64> {
        let counted = async {
            let stream = self.bus.jetstream().get_stream_no_info(stream(lane)).await.map_err(failed)?;
            match stream.get_info().await {
                Ok(info) => Ok(info.state.messages),
                Err(error) if refusal(&error).is_some_and(|e| e.error_code() == ErrorCode::STREAM_NOT_FOUND) => Ok(0),
                Err(error) => Err(failed(error)),
            }
        };
        within(CALL, counted).await
    }

    /// Answers a delivery and waits until the server has confirmed the answer.
    pub(crate) async fn settle(&self, reply: &str, answer: AckKind) -> Result<()> {
        let heard = async { self.client().request(reply.to_owned(), answer.into()).await.map_err(failed) };
        within(CALL, heard).await.map(drop)
    }

    /// Sends an answer to a delivery without waiting for a confirmation.
    pub(crate) async fn say(&self, reply: &str, answer: AckKind) {
        let said = async { self.client().publish(reply.to_owned(), answer.into()).await.map_err(failed) };
        if let Err(error) = within(CALL, said).await {
            tracing::debug!(%error, "a delivery could not be answered; it comes again");
        }
    }
}

/// Whether the first message of a stream is one that its consumer has passed.
fn is_stranded(stream: &State, acknowledged: u64) -> bool {
    stream.messages > 0 && stream.first_sequence <= acknowledged
}

/// The error that says that the stream of a lane takes no jobs, and what to do.
pub(crate) fn takes_nothing(lane: Lane) -> StoreError {
    let stream = stream(lane);
    StoreError::down(format_args!(
        "NATS: stream {stream} takes no jobs; if the disk of nats-server was full, make room and restart it"
    ))
}

/// Whether a put was refused because an equal job is there.
fn is_merged(error: &PublishError) -> bool {
    refusal(error).is_some_and(|e| {
        e.error_code() == ErrorCode::STREAM_STORE_FAILED && e.to_string().contains("maximum messages per subject")
    })
}

/// The refusal with which the server answered, if the error is one.
fn refusal<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a jetstream::Error> {
    std::iter::successors(Some(error), |&e| e.source()).find_map(|e| e.downcast_ref())
}
