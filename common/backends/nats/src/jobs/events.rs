//! Publishes events for other programs on the stream `FEED`, each under its id and acknowledged by the server.
//!
//! Invariant: an event that is published again within the server's window for duplicates is kept once.

use async_nats::jetstream::message::PublishMessage;
use async_trait::async_trait;
use feedgate_common::announce::{Outlet, PublicEvent};
use feedgate_common::error::Result;

use super::NatsJobs;
use super::streams::EVENT_SUBJECTS;
use crate::bus::{CALL, within};

#[async_trait]
impl Outlet for NatsJobs {
    async fn publish(&self, events: &[PublicEvent]) -> Result<()> {
        let message = |event: &PublicEvent| {
            let message = PublishMessage::build().payload(event.json().into());
            (subject(event), message.message_id(event.id()))
        };
        let published = async {
            self.streams.bus.connected().await?;
            self.streams.store(events, message).await
        };
        within(CALL, published).await
    }
}

/// The subject of an event. Of the characters of a user id, only the dot has a meaning in a subject, so it is written
/// as `%2E`, as calls of backends write it.
fn subject(event: &PublicEvent) -> String {
    format!("{EVENT_SUBJECTS}{}.{}", event.kind(), event.owner.as_str().replace('.', "%2E"))
}
