//! Opens an Archive from a URL: checks the server, makes the tables, and reads how the store is laid out.
//!
//! ```text
//!   URL ─▶ connect ─▶ server ≥ 14, commits are durable, sessions keep settings ─▶ migrate under a lock ─▶ layout ─▶ pool
//! ```

use std::borrow::Cow;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use feedgate_common::accept::Policy;
use feedgate_common::error::{Result, StoreError};
use feedgate_tls::StoreTls;
use sqlx::error::DatabaseError;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{ConnectOptions, Connection, SqlSafeStr};
use tokio::time::{sleep, timeout};

use crate::fault::{self, NO_POOLER, STANDBY};
use crate::pool::{self, Pool};

/// The oldest version of PostgreSQL that is accepted.
const OLDEST: i32 = 14;

/// How long a start waits for the server, unless the options say otherwise.
const START: Duration = Duration::from_secs(60);

/// How long a start waits until this or another process has brought the tables to this version. An index over hundreds
/// of millions of rows takes minutes, and an index that is given up half way has to be built anew.
const MIGRATION: Duration = Duration::from_secs(3600);

/// How long a migration waits for a lock. Writes to the table queue behind the migration meanwhile, and their sessions
/// wait longer than that.
const MIGRATION_LOCK: &str = "2s";

/// How long a migration that has waited in vain lets those pass who queued behind it.
const LET_PASS: Duration = Duration::from_secs(3);

/// By how many seconds the clocks of this machine and of the server may differ without a warning.
const CLOCKS_DIFFER: u64 = 5;

/// The settings of every connection. Sequential scans are off, so each statement reads along indexes and does not get
/// slower with the size of the tables. A planner without statistics, as on a new store, might choose otherwise.
const SESSION: [(&str, &str); 10] = [
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    // A read after a lock was taken has to see what the last holder of the lock wrote.
    ("default_transaction_isolation", "read committed"),
    // A statement is planned once for each connection. The plan does not depend on the values that are asked for, and
    // planning some statements takes longer than carrying them out.
    ("plan_cache_mode", "force_generic_plan"),
    // No statement runs longer than its caller waits.
    ("statement_timeout", "5s"),
    ("lock_timeout", "4s"),
    ("idle_in_transaction_session_timeout", "10s"),
];

/// The migrations in order. A file never changes once it is released.
const MIGRATIONS: [(i64, &str, &str); 22] = [
    (1, "archive", include_str!("../migrations/0001_archive.sql")),
    (2, "revocations", include_str!("../migrations/0002_revocations.sql")),
    (3, "sights", include_str!("../migrations/0003_sights.sql")),
    (4, "push", include_str!("../migrations/0004_push.sql")),
    (5, "announcements", include_str!("../migrations/0005_announcements.sql")),
    (6, "reactions", include_str!("../migrations/0006_reactions.sql")),
    (7, "people", include_str!("../migrations/0007_people.sql")),
    (8, "reposts", include_str!("../migrations/0008_reposts.sql")),
    (9, "comments", include_str!("../migrations/0009_comments.sql")),
    (10, "erasures", include_str!("../migrations/0010_erasures.sql")),
    (11, "search", include_str!("../migrations/0011_search.sql")),
    (12, "lines", include_str!("../migrations/0012_lines.sql")),
    (13, "audiences", include_str!("../migrations/0013_audiences.sql")),
    (14, "moves", include_str!("../migrations/0014_moves.sql")),
    (15, "own_posts", include_str!("../migrations/0015_own_posts.sql")),
    (16, "pins", include_str!("../migrations/0016_pins.sql")),
    (17, "private", include_str!("../migrations/0017_private.sql")),
    (18, "repost_counts", include_str!("../migrations/0018_repost_counts.sql")),
    (19, "item_versions", include_str!("../migrations/0019_item_versions.sql")),
    (20, "mentions", include_str!("../migrations/0020_mentions.sql")),
    (21, "finished", include_str!("../migrations/0021_finished.sql")),
    (22, "followers_changed", include_str!("../migrations/0022_followers_changed.sql")),
];

/// The options with which an Archive connects.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How many connections this process holds at most, at least 1. Each is a process of the server.
    pub max_connections: u32,
    /// Into how many buckets the inbox store divides readers, at least 1. Only a new store takes this number; an
    /// existing store keeps its own, and a warning says so.
    pub buckets: u16,
    /// The configured rules for writes. Nodes may have different policies.
    pub policy: Policy,
    /// How long a start waits for a session with the server. Migrations have a time of their own, since they may take
    /// long.
    pub reach_within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_connections: 16, buckets: 64, policy: Policy::default(), reach_within: START }
    }
}

/// Connects, and prepares the store. Answers the pool of connections and the number of buckets in the store's layout.
pub(crate) async fn open(url: &str, tls: &StoreTls, options: Options) -> Result<(Pool, u16)> {
    let connect = by_tls(parse(url)?, tls);
    let buckets = prepare(&connect, options).await?;
    let database = connect.get_database().unwrap_or(connect.get_username());
    if buckets != options.buckets {
        let other = options.buckets;
        tracing::warn!(
            "database {database} was made with buckets = {buckets} and keeps them; buckets = {other} has no effect"
        );
    }
    Ok((Pool::new(connect.clone().options(SESSION), options.max_connections.max(1)), buckets))
}

/// Checks the server, and brings its tables to this version. Answers the store's number of buckets.
async fn prepare(connect: &PgConnectOptions, options: Options) -> Result<u16> {
    // A migration may take longer than a statement of a session.
    let migrating = connect.clone().options([("lock_timeout", MIGRATION_LOCK)]);
    let starting = async {
        let mut session = reach(&connect.clone().options(SESSION)).await?;
        check(&mut session).await?;
        _ = session.close().await;
        reach(&migrating).await
    };
    let silent = || {
        StoreError::unavailable(format_args!(
            "what listens at {} gave no session within {:.1?}; is it PostgreSQL?",
            pool::address(connect),
            options.reach_within
        ))
    };
    let connection = timeout(options.reach_within, starting).await.unwrap_or_else(|_| Err(silent()))?;
    let late = || StoreError::unavailable(format_args!("the tables were not ready within {MIGRATION:?}"));
    let migrated = migrated(connection, &migrating, options.buckets.max(1));
    timeout(MIGRATION, migrated).await.unwrap_or_else(|_| Err(late()))
}

/// Brings the tables to this version, and answers the store's number of buckets. If a migration waits for a lock in
/// vain, it begins anew after a while.
async fn migrated(mut connection: PgConnection, migrating: &PgConnectOptions, buckets: u16) -> Result<u16> {
    if let Some(from) = version(&mut connection).await?.filter(|from| *from < newest()) {
        let to = newest();
        tracing::info!(from, to, "the tables are brought to this version; let it end, it may take minutes");
    }
    while let Err(error) = migrate(&mut connection).await {
        match &error {
            MigrateError::Execute(why) | MigrateError::ExecuteMigration(why, _) if fault::is_locked_out(why) => {
                tracing::debug!("another session uses a table, or brings the tables to this version");
            }
            _ => return Err(unmigrated(error)),
        }
        // The session that has failed would keep others from migrating.
        _ = connection.close().await;
        sleep(LET_PASS).await;
        connection = reach(migrating).await?;
    }
    let kept = layout(&mut connection, buckets).await.map_err(fault::store_error)?;
    _ = connection.close().await;
    Ok(kept)
}

async fn reach(options: &PgConnectOptions) -> Result<PgConnection> {
    options.connect().await.map_err(|error| pool::unreachable(options, error))
}

/// The number of the last migration of this version.
pub(crate) fn newest() -> i64 {
    MIGRATIONS.iter().map(|(number, ..)| *number).max().unwrap_or(0)
}

/// The options of the database that a URL names.
pub(crate) fn parse(url: &str) -> Result<PgConnectOptions> {
    const RIGHT: &str = "an archive_url is postgres://user:password@host:port/database, in which a / ? # @ or % of the \
                         password is %2F %3F %23 %40 or %25";
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(StoreError::misconfigured(RIGHT));
    }
    let options = PgConnectOptions::from_str(url);
    // An error must not show the URL, since it holds the password.
    let options = options.map_err(|error| StoreError::misconfigured(format_args!("{RIGHT}: {error}")))?;
    let options = options.application_name("feedgate").disable_statement_logging();
    // The URL may ask for another value of synchronous_commit, such as remote_apply. The value in effect is checked
    // later.
    let named = options.get_options().is_some_and(|given| given.contains("synchronous_commit"));
    Ok(if named { options } else { options.options([("synchronous_commit", "on")]) })
}

/// The options with these files for TLS. If there are any, the certificate and the host name are checked, and a server
/// without TLS is refused. Then the URL may only ask for `verify-ca`, or for no TLS with `disable`.
pub(crate) fn by_tls(options: PgConnectOptions, tls: &StoreTls) -> PgConnectOptions {
    let mode = match options.get_ssl_mode() {
        PgSslMode::Disable => return options,
        _ if tls.is_empty() => return options,
        PgSslMode::VerifyCa => PgSslMode::VerifyCa,
        // The weaker modes do not check the host name, and some go on without TLS.
        PgSslMode::Allow | PgSslMode::Prefer | PgSslMode::Require | PgSslMode::VerifyFull => PgSslMode::VerifyFull,
    };
    let mut options = options.ssl_mode(mode);
    if let Some(ca) = &tls.ca {
        options = options.ssl_root_cert(ca);
    }
    if let Some((certificate, key)) = &tls.client {
        options = options.ssl_client_cert(certificate).ssl_client_key(key);
    }
    options
}

/// Fails if the server is too old, may forget what it has accepted, or does not keep the settings of a session.
async fn check(connection: &mut PgConnection) -> Result<()> {
    const SETTINGS: &str = "SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
        current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
        pg_is_in_recovery(), current_setting('statement_timeout'),
        floor(extract(epoch FROM clock_timestamp()))::bigint";
    let read = sqlx::query_as(SETTINGS).fetch_one(connection).await.map_err(fault::store_error)?;
    let (number, version, synchronous_commit, fsync, full_page_writes, standby, statement_timeout, clock): (
        i32,
        String,
        String,
        String,
        String,
        bool,
        String,
        i64,
    ) = read;
    if number / 10_000 < OLDEST {
        return Err(StoreError::misconfigured(format_args!(
            "PostgreSQL {OLDEST} or newer is needed, this is {version}"
        )));
    }
    if standby {
        return Err(StoreError::misconfigured(STANDBY));
    }
    if !SESSION.contains(&("statement_timeout", &statement_timeout)) {
        return Err(StoreError::misconfigured(format_args!("statement_timeout is {statement_timeout}: {NO_POOLER}")));
    }
    if synchronous_commit == "off" {
        return Err(StoreError::misconfigured(
            "synchronous_commit is off in archive_url: what is accepted could be lost; take it out or set it on",
        ));
    }
    if let Some(differ) = clocks_differ(clock, seconds_here()) {
        tracing::warn!(
            "the clock of this machine is {differ} that of PostgreSQL: tokens are refused or live too long, and items get \
             wrong times; let both follow one source of time, such as NTP"
        );
    }
    if fsync == "off" || full_page_writes == "off" {
        tracing::warn!(
            "PostgreSQL runs with fsync = {fsync}, full_page_writes = {full_page_writes}: a crash of its machine loses or \
             damages what was accepted; set both on"
        );
    }
    Ok(())
}

/// How far the clock of this machine is from that of the server, if that matters.
fn clocks_differ(server: i64, here: i64) -> Option<String> {
    let seconds = server.abs_diff(here);
    let way = if here < server { "behind" } else { "ahead of" };
    (seconds > CLOCKS_DIFFER).then(|| format!("{seconds} s {way}"))
}

#[expect(clippy::disallowed_methods, reason = "the clock itself is what is looked at")]
fn seconds_here() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Brings the tables to this version. Several processes may start at once: an advisory lock lets one of them migrate.
/// Tables of a later version are left as they are, since migrations only add.
async fn migrate(connection: &mut PgConnection) -> std::result::Result<(), MigrateError> {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let mut migrator = Migrator::with_migrations(migrations.into());
    migrator.set_ignore_missing(true);
    migrator.run_direct(None, connection, false).await
}

/// The last migration of the tables, whichever version made it. `None` if the database has no tables of Feedgate.
pub(crate) async fn version(connection: &mut PgConnection) -> Result<Option<i64>> {
    const HAS_TABLES: &str = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    const VERSION: &str = "SELECT max(version) FROM _sqlx_migrations";
    let has_tables = sqlx::query_scalar(HAS_TABLES).fetch_one(&mut *connection).await.map_err(fault::store_error)?;
    match has_tables {
        true => sqlx::query_scalar(VERSION).fetch_one(connection).await.map_err(fault::store_error),
        false => Ok(None),
    }
}

/// The error for migrations that did not end. It may pass by itself if the server or the connection failed.
fn unmigrated(error: MigrateError) -> StoreError {
    const WHAT: &str = "the tables could not be brought to this version";
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            let Some(help) = fault::bars_migration(&error) else {
                return StoreError::unavailable(format_args!("{WHAT}: {error}")).with_source(error);
            };
            let said = error.as_database_error().map(DatabaseError::message).unwrap_or_default();
            StoreError::misconfigured(format_args!("{WHAT}: {said} ({help})"))
        }
        error => StoreError::misconfigured(format_args!("{WHAT}: {error}")).with_source(error),
    }
}

/// The number of buckets with which the store was made; a new store is made with `buckets`.
async fn layout(connection: &mut PgConnection, buckets: u16) -> sqlx::Result<u16> {
    const MAKE: &str = "INSERT INTO layout (buckets) VALUES ($1) ON CONFLICT DO NOTHING";
    sqlx::query(MAKE).bind(i32::from(buckets)).execute(&mut *connection).await?;
    let kept: i32 = sqlx::query_scalar("SELECT buckets FROM layout").fetch_one(connection).await?;
    u16::try_from(kept).map_err(|_| fault::corrupt(format_args!("{kept} where the number of buckets stands")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_minutes_off_is_told_with_its_way_and_one_that_is_seconds_off_is_not() {
        assert_eq!(clocks_differ(1000, 1005), None);
        assert_eq!(clocks_differ(1000, 995), None);
        assert_eq!(clocks_differ(1000, 1600).as_deref(), Some("600 s ahead of"));
        assert_eq!(clocks_differ(4600, 1000).as_deref(), Some("3600 s behind"));
    }

    #[test]
    fn with_a_file_for_tls_no_server_goes_unchecked_unless_the_url_asks_for_no_tls() {
        let files = StoreTls { ca: Some("ca.pem".into()), client: None };
        let mode = |asked: &str, tls: &StoreTls| {
            by_tls(parse(&format!("postgres://db/x{asked}")).unwrap(), tls).get_ssl_mode()
        };
        for asked in ["", "?sslmode=allow", "?sslmode=prefer", "?sslmode=require", "?sslmode=verify-full"] {
            assert!(matches!(mode(asked, &files), PgSslMode::VerifyFull), "{asked}");
        }
        assert!(matches!(mode("?sslmode=verify-ca", &files), PgSslMode::VerifyCa));
        assert!(matches!(mode("?sslmode=disable", &files), PgSslMode::Disable));
        assert!(matches!(mode("?sslmode=require", &StoreTls::default()), PgSslMode::Require));
    }
}
