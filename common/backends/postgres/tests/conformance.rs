//! PostgreSQL against the suite that every home of the Archive must pass.

#![allow(clippy::unwrap_used, reason = "a test: what fails says where")]

mod server;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use feedgate_common::Archive;
use feedgate_postgres::doctor;
use server::{open_with, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_archive_keeps_every_promise_of_the_trait() {
    let made: Mutex<HashMap<String, String>> = Mutex::default();
    let open = async |name: &str, pull_above: u64| {
        let url = database(&made, "of", name).await;
        Arc::new(open_with(&url, pull_above).await) as Arc<dyn Archive>
    };
    feedgate_conformance::archive::archive(open).await;
    are_sound(made).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s14_the_postgres_archive_finds_what_it_is_to_find() {
    let made: Mutex<HashMap<String, String>> = Mutex::default();
    let open = async |name: &str| {
        let url = database(&made, "search", name).await;
        Arc::new(open_with(&url, 10).await) as Arc<dyn Archive>
    };
    feedgate_conformance::archive::search::search(open).await;
    are_sound(made).await;
}

/// The URL of the database of the store of this name, which is made at first.
async fn database(made: &Mutex<HashMap<String, String>>, prefix: &str, name: &str) -> String {
    if let Some(url) = made.lock().unwrap().get(name) {
        return url.clone();
    }
    let new = format!("{prefix}_{}", name.replace('-', "_"));
    let url = tokio::task::spawn_blocking(move || server().database(&new)).await.unwrap();
    made.lock().unwrap().insert(name.to_owned(), url.clone());
    url
}

/// Whatever the suite has done to its stores, their rows agree with each other.
async fn are_sound(stores: Mutex<HashMap<String, String>>) {
    let stores = stores.into_inner().unwrap();
    assert!(!stores.is_empty());
    let mut findings = vec![];
    for (name, url) in stores {
        for check in doctor::check(&url).await.unwrap().checks {
            findings.extend(check.findings.into_iter().map(|finding| format!("{name}: {finding}")));
        }
    }
    assert_eq!(findings, [""; 0]);
}
