//! Calls that are answered: requests of core NATS. NATS keeps no such call.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use feedgate_common::intake::Backend;
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
    let (most, mut running, mut stopping) = (streams.settings.in_flight, FuturesUnordered::new(), false);
    loop {
        tokio::select! {
            () = stop.cancelled(), if !stopping => {
                stopping = true;
                if calls.drain().await.is_err() {
                    break;
                }
            }
            Some(()) = running.next(), if !running.is_empty() => {}
            call = calls.next(), if running.len() < most => match call {
                Some(call) => running.push(one(streams, backend, call)),
                None => break,
            },
        }
    }
    while running.next().await.is_some() {}
}

/// Carries out one call and sends the answer. A message that asks for no answer is not carried out: its sender could
/// not know the outcome, and `feed.in.>` is for such messages.
async fn one(streams: &Streams, backend: &Arc<dyn Backend>, call: Message) {
    let Some(reply) = call.reply.clone() else {
        tracing::debug!(subject = %call.subject, "a call without a reply subject is not carried out");
        return;
    };
    let answer = match message::read(CALL_SUBJECTS, &call) {
        Ok(call) => backend.carry_out(call).await,
        Err(wrong) => backend.refuse(wrong),
    };
    let headers = message::answer(&answer);
    if let Err(error) = streams.bus.client().publish_with_headers(reply, headers, answer.body.into()).await {
        tracing::debug!(%error, "a call could not be answered");
    }
}
