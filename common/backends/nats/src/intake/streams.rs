//! The streams of the intake: how they are set up, who has their consumer, and how refused calls are stored.

use async_nats::HeaderMap;
use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::consumer::{AckPolicy, Consumer, pull};
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::stream::{Config, ConsumerErrorKind, DiscardPolicy, RetentionPolicy};
use feedgate_common::error::Result;

use super::{ABANDONED, ACK_WAIT, IntakeSettings};
use crate::bus::{Bus, CALL, DUPLICATES, failed, within};
use crate::set_up;

/// The stream of messages that wait.
pub(super) const IN: &str = "FEED_IN";

/// How the subjects of messages in `FEED_IN` begin.
pub(super) const IN_SUBJECTS: &str = "feed.in.";

const REFUSED: &str = "FEED_REFUSED";

/// How the subjects of refused calls begin.
pub(super) const REFUSED_SUBJECTS: &str = "feed.refused.";

/// The room for the problem of a refused call, in bytes, which is stored besides the message of the call.
const PROBLEM_ROOM: usize = 16 * 1024;

/// The most bytes of a message.
const MESSAGE_MAX: usize = 1 << 20;

/// The streams `FEED_IN` and `FEED_REFUSED`.
pub(super) struct Streams {
    pub(super) bus: Bus,
    pub(super) settings: IntakeSettings,
}

impl Streams {
    pub(super) fn new(bus: Bus, settings: IntakeSettings) -> Self {
        Self { bus, settings }
    }

    /// Creates the two streams if they are missing, and sets them to these settings if they differ, in four calls.
    pub(super) async fn set_up(&self) -> Result<()> {
        for config in [self.waiting(), self.refused()] {
            set_up::stream(&self.bus, config).await?;
        }
        Ok(())
    }

    fn waiting(&self) -> Config {
        let payload_max = self.bus.client().server_info().max_payload;
        let message_max = payload_max.min(MESSAGE_MAX).saturating_sub(PROBLEM_ROOM);
        Config {
            name: IN.to_owned(),
            description: Some("Feedgate: calls of backends, until they are carried out".to_owned()),
            subjects: vec![format!("{IN_SUBJECTS}>")],
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            max_bytes: self.settings.waiting_bytes,
            max_message_size: i32::try_from(message_max).unwrap_or(i32::MAX),
            duplicate_window: DUPLICATES,
            ..Config::default()
        }
    }

    fn refused(&self) -> Config {
        Config {
            name: REFUSED.to_owned(),
            description: Some("Feedgate: calls of backends that were refused, each with its problem".to_owned()),
            subjects: vec![format!("{REFUSED_SUBJECTS}>")],
            max_age: self.settings.refused_age,
            max_bytes: self.settings.refused_bytes,
            duplicate_window: DUPLICATES.min(self.settings.refused_age),
            ..Config::default()
        }
    }

    /// Makes the consumer of `FEED_IN`; `None` if another process has it, or if the stream was missing and is made now.
    /// `name` must be new.
    pub(super) async fn consumer(&self, name: &str) -> Result<Option<Consumer<pull::Config>>> {
        let config = pull::Config {
            name: Some(name.to_owned()),
            description: Some("Feedgate: the gateway that carries out calls".to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: i64::try_from(self.settings.in_flight).unwrap_or(i64::MAX),
            inactive_threshold: ABANDONED,
            ..pull::Config::default()
        };
        self.bus.connected().await?;
        match self.bus.jetstream().create_consumer_on_stream(config, IN).await {
            Ok(consumer) => Ok(Some(consumer)),
            Err(error) => match error.kind() {
                ConsumerErrorKind::JetStream(refusal) if TAKEN.contains(&refusal.error_code()) => Ok(None),
                ConsumerErrorKind::JetStream(refusal) if refusal.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    self.set_up().await?;
                    Ok(None)
                }
                _ => Err(failed(error)),
            },
        }
    }

    /// Deletes a consumer of this process, so that another process need not wait for its end.
    pub(super) async fn leave(&self, name: &str) {
        let left = async { self.bus.jetstream().delete_consumer_from_stream(name, IN).await.map_err(failed) };
        if let Err(error) = within(CALL, left).await {
            tracing::debug!(%error, "the consumer of FEED_IN ends by itself");
        }
    }

    /// Stores a refused call, durably when this answers. Sets up the streams if they are missing.
    pub(super) async fn refuse(&self, subject: String, headers: HeaderMap, body: Vec<u8>) -> Result<()> {
        let publish = async || {
            let jetstream = self.bus.jetstream();
            let sent = jetstream.publish_with_headers(subject.clone(), headers.clone(), body.clone().into()).await;
            sent?.await.map(drop)
        };
        match publish().await {
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                self.set_up().await?;
                publish().await.map_err(failed)
            }
            stored => stored.map_err(failed),
        }
    }
}

/// What the server says when a work queue has its consumer already.
const TAKEN: [ErrorCode; 2] = [ErrorCode::CONSUMER_WQ_MULTIPLE_UNFILTERED, ErrorCode::CONSUMER_WQ_CONSUMER_NOT_UNIQUE];
