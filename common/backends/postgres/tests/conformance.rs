//! PostgreSQL against the suite that every home of the Archive must pass.

mod server;

use std::sync::Arc;

use feedgate_common::Archive;
use feedgate_postgres::{Options, PostgresArchive};
use server::Server;
use sqlx::{ConnectOptions, Executor};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_archive_keeps_every_promise_of_the_trait() {
    let server = Server::start(&["fsync=off"]).await;
    let open = async |name: &str| {
        let url = server.url(name);
        let admin: sqlx::postgres::PgConnectOptions = server.url("postgres").parse().unwrap();
        let mut admin = admin.connect().await.unwrap();
        _ = admin.execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE \"{name}\""))).await;
        let archive = PostgresArchive::connect(&url, Options { buckets: 16, ..Options::default() }).await.unwrap();
        Arc::new(archive) as Arc<dyn Archive>
    };
    feedgate_conformance::archive::archive(open).await;
}
