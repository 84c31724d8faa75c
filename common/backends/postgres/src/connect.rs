//! From a URL to an Archive: what the server must be, the tables, and how the store is laid out.
//!
//! ```text
//!   URL ─▶ connect ─▶ server ≥ 14, commits are durable ─▶ migrate under a lock ─▶ layout ─▶ pool
//! ```

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use feedgate_common::change::DEFAULT_PULL_ABOVE;
use feedgate_common::error::{Result, StoreError};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, SqlSafeStr};
use tokio::time::timeout;

use crate::fault;
use crate::pool::{self, Pool};

/// The oldest server that is tried.
const OLDEST: i32 = 14;

/// How long a start waits for the server.
const START: Duration = Duration::from_secs(60);

/// How long it waits for the tables to be brought to this version, by this process or by another one: an index over
/// hundreds of millions of rows takes minutes, and what is given up half way is done for nothing.
const MIGRATION: Duration = Duration::from_secs(3600);

/// What every connection is set to. Every statement is made to walk along indexes, so it never gets slower with the size
/// of the tables; a planner without statistics, as on a new store, might think otherwise.
const SESSION: [(&str, &str); 8] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    // Nothing waits longer than its caller does.
    ("statement_timeout", "5s"),
    ("lock_timeout", "4s"),
    ("idle_in_transaction_session_timeout", "10s"),
];

/// In order; a file is never changed once it is released.
const MIGRATIONS: [(i64, &str, &str); 1] = [(1, "archive", include_str!("../migrations/0001_archive.sql"))];

/// How to connect.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Connections this process holds at most; each is a process of the server. At least 1.
    pub max_connections: u32,
    /// Into how many the inbox store divides readers. Counts for a new store; one that exists keeps its own, and a
    /// warning says so. At least 1.
    pub buckets: u16,
    /// Above how many followers an author of class `auto` is pulled from then on. Nodes may differ: either route is right
    /// for any item.
    pub pull_above: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_connections: 16, buckets: 64, pull_above: DEFAULT_PULL_ABOVE }
    }
}

/// The pool, and the layout of the store.
pub(crate) async fn open(url: &str, options: Options) -> Result<(Pool, u16)> {
    let connect = parse(url)?;
    let buckets = prepare(&connect, options.buckets.max(1)).await?;
    let database = connect.get_database().unwrap_or(connect.get_username());
    if buckets != options.buckets {
        let other = options.buckets;
        tracing::warn!(
            "database {database} was made with buckets = {buckets} and keeps them; buckets = {other} has no effect"
        );
    }
    Ok((Pool::new(connect.clone().options(SESSION), options.max_connections.max(1)), buckets))
}

/// Sees to it that the server holds a store of this version; its number of buckets.
async fn prepare(connect: &PgConnectOptions, buckets: u16) -> Result<u16> {
    let starting = async {
        let mut connection = connect.connect().await.map_err(|error| pool::unreachable(connect, error))?;
        check(&mut connection).await.map(|()| connection)
    };
    let mut connection = timeout(START, starting).await.unwrap_or_else(|_| too_late(START))?;
    let migrating = async {
        migrate(&mut connection).await?;
        layout(&mut connection, buckets).await.map_err(fault::store_error)
    };
    let kept = timeout(MIGRATION, migrating).await.unwrap_or_else(|_| too_late(MIGRATION))?;
    _ = connection.close().await;
    Ok(kept)
}

fn too_late<T>(waited: Duration) -> Result<T> {
    Err(StoreError::unavailable(format_args!("PostgreSQL was not ready within {waited:?}")))
}

fn parse(url: &str) -> Result<PgConnectOptions> {
    const RIGHT: &str = "an archive_url is postgres://user:password@host:port/database";
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(StoreError::unavailable(RIGHT));
    }
    let options = PgConnectOptions::from_str(url);
    // Never the URL itself: it holds the password.
    let options = options.map_err(|error| StoreError::unavailable(format_args!("{RIGHT}: {error}")))?;
    let options = options.application_name("feedgate").disable_statement_logging();
    // Whoever names it in the URL may ask for more, such as remote_apply; what is in effect is checked.
    let named = options.get_options().is_some_and(|given| given.contains("synchronous_commit"));
    Ok(if named { options } else { options.options([("synchronous_commit", "on")]) })
}

/// Refuses a server that is too old or forgets what it has accepted.
async fn check(connection: &mut PgConnection) -> Result<()> {
    const SETTINGS: &str = "SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
        current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
        pg_is_in_recovery()";
    let read = sqlx::query_as(SETTINGS).fetch_one(connection).await.map_err(fault::store_error)?;
    let (number, version, synchronous_commit, fsync, full_page_writes, standby): (
        i32,
        String,
        String,
        String,
        String,
        bool,
    ) = read;
    if number / 10_000 < OLDEST {
        return Err(StoreError::unavailable(format_args!("PostgreSQL {OLDEST} or newer is needed, this is {version}")));
    }
    if standby {
        return Err(StoreError::unavailable("archive_url must name the primary; this server is a standby"));
    }
    if synchronous_commit == "off" {
        return Err(StoreError::unavailable(
            "synchronous_commit is off in archive_url: what is accepted could be lost; take it out or set it on",
        ));
    }
    if fsync == "off" || full_page_writes == "off" {
        tracing::warn!(
            "PostgreSQL runs with fsync = {fsync}, full_page_writes = {full_page_writes}: a crash of its machine loses or \
             damages what was accepted; set both on"
        );
    }
    Ok(())
}

/// Brings the tables to this version. Several processes may start at once: the migrator holds an advisory lock. Tables of
/// a later version are left as they are, since migrations only add.
async fn migrate(connection: &mut PgConnection) -> Result<()> {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.into());
    migrator.set_ignore_missing(true);
    let failed =
        |error| StoreError::unavailable(format_args!("the tables could not be brought to this version: {error}"));
    migrator.run_direct(None, connection, false).await.map_err(failed)
}

/// The layout that the store was made with, which for a new one is made now.
async fn layout(connection: &mut PgConnection, buckets: u16) -> sqlx::Result<u16> {
    const MAKE: &str = "INSERT INTO layout (buckets) VALUES ($1) ON CONFLICT DO NOTHING";
    sqlx::query(MAKE).bind(i32::from(buckets)).execute(&mut *connection).await?;
    let kept: i32 = sqlx::query_scalar("SELECT buckets FROM layout").fetch_one(connection).await?;
    u16::try_from(kept).map_err(|_| fault::corrupt(format_args!("{kept} where the number of buckets stands")))
}
