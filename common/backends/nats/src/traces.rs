//! Tells the processes of a cluster, over core NATS, which span belongs to which change.
//!
//! ```text
//!   a gateway accepts ─▶ feed.traces: a line for each change ─▶ every process that traces notes it
//! ```
//!
//! A message is sent over the connection that the jobs go over, and before them, so a worker hears of a change before
//! it gets the work. Like any wake, a message may be lost; then spans are missing from the trace.

use std::sync::Arc;

use async_nats::Subscriber;
use feedgate_common::error::Result;
use feedgate_common::trace::{self, Teller, Traced};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};

use crate::bus::{Bus, failed};

/// Where every process that traces listens.
const SUBJECT: &str = "feed.traces";

/// The most changes in one message, at about 90 bytes each.
const CHANGES_MAX: usize = 500;

struct ByNats(Bus);

impl Teller for ByNats {
    fn tell<'a>(&'a self, traced: &'a [Traced]) -> BoxFuture<'a, ()> {
        async move {
            // Without a connection, the client would keep these messages in memory.
            if !self.0.is_connected() {
                return;
            }
            for some in traced.chunks(CHANGES_MAX) {
                let lines: Vec<String> = some.iter().map(ToString::to_string).collect();
                if let Err(error) = self.0.client().publish(SUBJECT, lines.join("\n").into()).await {
                    tracing::debug!(%error, "other processes were not told of traced changes");
                }
            }
        }
        .boxed()
    }
}

/// From now on this process tells other processes of the traced changes that it notes, and notes the traced changes
/// that others tell of. Needs a tokio runtime. Fails if NATS takes no subscription.
pub async fn share_traces(bus: &Bus) -> Result<()> {
    let heard = bus.client().subscribe(SUBJECT).await.map_err(failed)?;
    trace::tell_by(Arc::new(ByNats(bus.clone())));
    tokio::spawn(hear(heard));
    Ok(())
}

/// The client subscribes again by itself after a lost connection.
async fn hear(mut told: Subscriber) {
    while let Some(message) = told.next().await {
        let text = String::from_utf8_lossy(&message.payload);
        text.lines().filter_map(|line| line.parse().ok()).for_each(trace::heard);
    }
}
