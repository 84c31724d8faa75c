//! PostgreSQL against the suite that every home of the Archive must pass.

mod server;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use feedgate_common::Archive;
use server::{Server, open};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_archive_keeps_every_promise_of_the_trait() {
    let server = Server::start(&["fsync=off"]).await;
    let made = Mutex::new(HashSet::new());
    let open = async |name: &str| {
        let new = made.lock().unwrap().insert(name.to_owned());
        let url = if new { server.database(name).await } else { server.url(name) };
        Arc::new(open(&url).await) as Arc<dyn Archive>
    };
    feedgate_conformance::archive::archive(open).await;
}
