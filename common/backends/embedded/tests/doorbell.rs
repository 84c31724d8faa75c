//! The in-process doorbell against the promises of its trait.

use std::sync::Arc;

use feedgate_common::Doorbell;
use feedgate_embedded::EmbeddedDoorbell;

#[tokio::test]
async fn the_embedded_doorbell_keeps_the_promises_of_doorbell() {
    feedgate_conformance::doorbell::doorbell(async || Arc::new(EmbeddedDoorbell::default()) as Arc<dyn Doorbell>).await;
}
