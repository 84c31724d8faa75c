//! Calls that are answered: requests of core NATS. NATS keeps no such call.
//!
//! Invariant: calls are taken from the connection as they come, whatever the backend does. What is not taken would be
//! dropped by the connection, and its caller would wait for nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use feedgate_common::intake::{Answer, Backend};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::message;
use super::streams::Streams;

/// How the subjects of calls begin.
const CALL_SUBJECTS: &str = "feed.call.";

/// Each call goes to one of the gateways that listen as members of this group.
const GROUP: &str = "feedgate";

/// The most calls that wait for one that is under way to end. A call beyond that is answered at once.
const WAITING_MAX: usize = 512;

/// The pause before a subscription that was refused is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// Answers calls until `stop` is cancelled; then answers the calls that have arrived.
pub(super) async fn answer(streams: &Streams, backend: &Arc<dyn Backend>, stop: &CancellationToken) {
    while !stop.is_cancelled() {
        let client = streams.bus.client();
        match client.queue_subscribe(format!("{CALL_SUBJECTS}>"), GROUP.to_owned()).await {
            Ok(calls) => serve(streams, backend, calls, stop).await,
            Err(error) => tracing::warn!(%error, "NATS takes no subscription for calls"),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(PAUSE) => {}
        }
    }
}

async fn serve(streams: &Streams, backend: &Arc<dyn Backend>, mut calls: Subscriber, stop: &CancellationToken) {
    let (most, mut running, mut waiting) = (streams.settings.in_flight, FuturesUnordered::new(), VecDeque::new());
    let (mut stopping, mut ended) = (false, false);
    while !(ended && running.is_empty()) {
        tokio::select! {
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                ended = calls.drain().await.is_err();
            }
            Some(()) = running.next(), if !running.is_empty() => {}
            call = calls.next(), if !ended => match call {
                Some(call) if waiting.len() < WAITING_MAX => waiting.push_back(call),
                Some(call) => reply(streams, &call, &backend.overloaded()).await,
                None => ended = true,
            },
        }
        while running.len() < most
            && let Some(call) = waiting.pop_front()
        {
            running.push(one(streams, backend, call));
        }
    }
}

/// Carries out one call and sends the answer. A message that asks for no answer is not carried out: its sender could
/// not know the outcome, and `feed.in.>` is for such messages.
async fn one(streams: &Streams, backend: &Arc<dyn Backend>, call: Message) {
    if call.reply.is_none() {
        tracing::debug!(subject = %call.subject, "a call without a reply subject is not carried out");
        return;
    }
    let answer = match message::read(CALL_SUBJECTS, &call) {
        Ok(call) => backend.carry_out(call).await,
        Err(wrong) => backend.refuse(wrong),
    };
    reply(streams, &call, &answer).await;
}

/// Sends an answer to the caller, if the call asks for one.
async fn reply(streams: &Streams, call: &Message, answer: &Answer) {
    let Some(to) = call.reply.clone() else { return };
    let (headers, body) = (message::answer(answer), answer.body.clone());
    if let Err(error) = streams.bus.client().publish_with_headers(to, headers, body.into()).await {
        tracing::debug!(%error, "a call could not be answered");
    }
}
