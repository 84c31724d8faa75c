//! Calls of backends: calls that NATS keeps until they are carried out, and calls that are answered.
//!
//! ```text
//!   feed.in.>    ─▶ stream FEED_IN ─▶ the one consumer ─▶ the gateway that made it ─▶ Backend ─▶ acknowledged
//!                                                                                       └ refused ─▶ FEED_REFUSED, first
//!   feed.call.>  ─▶ any gateway (a queue group) ─▶ Backend ─▶ the answer, to the reply subject
//! ```
//!
//! # One gateway at a time
//!
//! `FEED_IN` is a work queue, and the server lets such a stream have one consumer. Each gateway tries to make this
//! consumer. The gateway that succeeds carries out the messages, and the others try again every [`AGAIN`]. The gateway
//! deletes its consumer when it drains. If it is killed, the server deletes the consumer after [`ACK_WAIT`] and
//! [`ABANDONED`]. A new consumer begins at the first message that is not acknowledged. So the order of the stream is
//! kept over any change of gateways, which a shared consumer does not do: it would deliver again what a dead gateway
//! held, behind later messages.
//!
//! A session of a consumer ends with the first call to NATS that fails. What is under way is waited for, and the next
//! session begins at the first message that is not acknowledged. A call begins only after the calls before it that
//! concern one of its users are acknowledged, and the server has said so. So a call that is repeated is never repeated
//! behind a later one of these users.
//!
//! Invariants: a message is acknowledged after what it asks for is durable, or its refusal is; this process holds at
//! most [`IntakeSettings::in_flight`] messages, and carries out at most as many calls. Further calls wait or are
//! refused, each with an answer. The intake has a connection of its own, so that a flood of calls costs nobody a wake.

mod calls;
mod message;
mod session;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use feedgate_common::StoreError;
use feedgate_common::intake::Backend;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, failed};
use session::Session;
use streams::Streams;

/// The pause between two tries to be the gateway that carries out messages.
const AGAIN: Duration = Duration::from_millis(500);

/// If a gateway has shown no sign of work on a message for this long, it no longer holds the message. A gateway shows a
/// sign three times in this time.
const ACK_WAIT: Duration = Duration::from_millis(1500);

/// How long a consumer stays after its gateway has last asked for messages or held a message.
const ABANDONED: Duration = Duration::from_secs(1);

/// How the streams of the intake are kept, and how much is carried out at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntakeSettings {
    /// Messages that a gateway holds at a time, and calls with an answer that it carries out at a time; at least 1.
    pub in_flight: usize,
    /// The most bytes of messages that wait. When there are more, NATS refuses further messages.
    pub waiting_bytes: i64,
    /// How long refused calls stay.
    pub refused_age: Duration,
    /// The most bytes of refused calls; the oldest go first.
    pub refused_bytes: i64,
}

impl Default for IntakeSettings {
    fn default() -> Self {
        Self {
            in_flight: 64,
            waiting_bytes: 1 << 30,
            refused_age: Duration::from_secs(7 * 24 * 3600),
            refused_bytes: 256 << 20,
        }
    }
}

/// Takes calls of backends from NATS. Any number of gateways may each have one.
pub struct NatsIntake {
    streams: Streams,
    backend: Arc<dyn Backend>,
    /// This node's name, in the names of its consumers.
    node: String,
}

impl NatsIntake {
    /// Sets up the streams if they are missing or differ from the settings. The intake makes a connection of its own to
    /// the servers of `bus`: however many calls come, no wake is lost for them.
    ///
    /// # Errors
    /// `Unavailable`, naming the stream that cannot be set up and why, or why there is no other connection.
    pub async fn open(
        bus: &Bus,
        settings: IntakeSettings,
        node: &str,
        backend: Arc<dyn Backend>,
    ) -> Result<Self, StoreError> {
        let streams = Streams::new(bus.another().await.map_err(failed)?, settings);
        streams.set_up().await?;
        let node = node.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        Ok(Self { streams, backend, node })
    }

    /// Takes calls until `stop` is cancelled; then finishes the calls that are under way, and leaves other calls to
    /// other gateways. A dropped future leaves calls that are under way done or not done, and no message lost.
    pub async fn run(self, stop: CancellationToken) {
        tokio::join!(self.take_kept(&stop), calls::answer(&self.streams, &self.backend, &stop));
    }

    async fn take_kept(&self, stop: &CancellationToken) {
        let mut sessions = 0_u64;
        while !stop.is_cancelled() {
            sessions += 1;
            let name = format!("{}-{sessions}", self.node);
            match self.streams.consumer(&name).await {
                Ok(Some(consumer)) => {
                    tracing::info!("this gateway carries out what backends put into FEED_IN");
                    let ended = Session::new(&self.streams, &self.backend, consumer).run(stop).await;
                    if let Err(error) = ended {
                        tracing::warn!(%error, "messages of FEED_IN wait; they are taken up again from the first");
                    }
                    self.streams.leave(&name).await;
                }
                Ok(None) => {}
                Err(error) => tracing::debug!(%error, "no consumer of FEED_IN can be made"),
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(AGAIN) => {}
            }
        }
    }
}
