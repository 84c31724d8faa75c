//! PostgreSQL against the suite that every home of the Archive must pass.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use feedgate_common::Archive;
use feedgate_common::change::DEFAULT_PULL_ABOVE;
use feedgate_conformance::archive;
use feedgate_postgres::doctor;
use server::{open_with, server, terminate};
use tokio::sync::OnceCell;

/// The URL of the database of each store.
#[derive(Default)]
struct Stores(Mutex<HashMap<String, String>>);

#[async_trait]
impl archive::Stores for Stores {
    fn new() -> Self {
        Self::default()
    }

    async fn open(&self, name: &str, pull_above: u64) -> Arc<dyn Archive> {
        Arc::new(open_with(&self.database(name).await, pull_above).await)
    }

    async fn are_sound(self) {
        let stores = self.0.into_inner().unwrap();
        assert!(!stores.is_empty());
        let mut findings = vec![];
        for (name, url) in stores {
            for check in doctor::check(&url).await.unwrap().checks {
                findings.extend(check.findings.into_iter().map(|finding| format!("{name}: {finding}")));
            }
        }
        assert_eq!(findings, [""; 0]);
    }
}

impl Stores {
    /// The URL of the database of the store of this name, which is made at first.
    async fn database(&self, name: &str) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        if let Some(url) = self.0.lock().unwrap().get(name) {
            return url.clone();
        }
        let new = format!("store_{}", MADE.fetch_add(1, Ordering::Relaxed));
        lay_out().await;
        let url = tokio::task::spawn_blocking(move || server().copy(EMPTY, &new)).await.unwrap();
        self.0.lock().unwrap().insert(name.to_owned(), url.clone());
        url
    }
}

/// A database with tables and no rows. All stores are copies of it, since to make the tables takes longer than a test.
const EMPTY: &str = "empty";

/// Makes the database `EMPTY` at first.
async fn lay_out() {
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_init(async || {
        let url = tokio::task::spawn_blocking(|| server().database(EMPTY)).await.unwrap();
        drop(open_with(&url, DEFAULT_PULL_ABOVE).await);
        // A database is not copied while it has clients, and a pool closes its connections only after it was dropped.
        terminate(&url).await;
    })
    .await;
}

mod the_postgres_archive_keeps_its_promises_of {
    feedgate_conformance::archive_tests!(super::Stores);
}
