//! What these tests share: a server, databases of their own on it, and things to write.

#![allow(dead_code, clippy::unwrap_used, reason = "each test uses its part; what fails says where")]

use std::sync::OnceLock;

use feedgate_common::accept::Policy;
use feedgate_common::archive::{Publish, Write};
use feedgate_common::change::DEFAULT_PULL_ABOVE;
use feedgate_common::{Body, UserId};
use feedgate_engines::Postgres;
use feedgate_postgres::{Options, PostgresArchive};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor};

/// One server for the tests of a file. It does not sync, since nobody cuts its power.
pub(crate) fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(|| Postgres::start_with(&["-c", "fsync=off", "-c", "max_connections=300"]))
}

/// An Archive laid out for 16 buckets.
pub(crate) async fn open(url: &str) -> PostgresArchive {
    open_with(url, DEFAULT_PULL_ABOVE).await
}

/// An Archive laid out for 16 buckets, with this pull threshold.
pub(crate) async fn open_with(url: &str, pull_above: u64) -> PostgresArchive {
    let policy = Policy { pull_above, ..Policy::default() };
    let options = Options { buckets: 16, policy, ..Options::default() };
    PostgresArchive::connect(url, options).await.unwrap()
}

/// A statement outside of the Archive; how many rows it was about.
pub(crate) async fn execute(url: &str, sql: &str) -> u64 {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection = options.connect().await.unwrap();
    let done = connection.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    done.rows_affected()
}

/// Breaks every connection to this database; how many.
pub(crate) async fn terminate(url: &str) -> u64 {
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    execute(url, others).await
}

pub(crate) fn user(name: &str) -> UserId {
    name.parse().unwrap()
}

/// A publish with nothing but an author and a text.
pub(crate) fn post(author: &str, text: &str) -> Publish {
    Publish::new(user(author), Body::parse(format!("{{\"text\":\"{text}\"}}")).unwrap())
}

pub(crate) fn follow(reader: &str, author: &str) -> Write {
    Write::Follow { reader: user(reader), author: user(author) }
}
