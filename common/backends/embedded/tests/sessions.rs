//! The embedded session pool against the promises of its trait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use feedgate_common::{Epoch, Sessions};
use feedgate_embedded::{Database, EmbeddedSessions};

#[tokio::test(flavor = "multi_thread")]
async fn embedded_sessions_keep_the_promises_of_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let epochs = AtomicU64::new(1);
    feedgate_conformance::sessions::sessions(async |name| {
        let database = Database::open(&dir.path().join(name)).unwrap();
        let epoch = Epoch(epochs.fetch_add(1, Ordering::Relaxed));
        Arc::new(EmbeddedSessions::open(database, epoch)) as Arc<dyn Sessions>
    })
    .await;
}
