//! The embedded job queue against the promises of its trait.

use std::path::Path;
use std::sync::Arc;

use feedgate_common::Jobs;
use feedgate_embedded::{Database, EmbeddedJobs};

fn open(dir: &Path, room: usize) -> Arc<dyn Jobs> {
    let database = Database::open(dir).expect("the directory is ours");
    Arc::new(EmbeddedJobs::open_with_room(database, room).expect("the queue opens"))
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_jobs_keep_the_promises_of_jobs() {
    let dir = tempfile::tempdir().unwrap();
    feedgate_conformance::jobs::jobs(async |name| open(&dir.path().join(name), 10_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_jobs_keep_their_promises_also_when_most_of_them_wait_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    feedgate_conformance::jobs::jobs(async |name| open(&dir.path().join(name), 20)).await;
}
