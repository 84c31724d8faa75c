//! Failures of the server and of connections, sorted by what can be done about them.
//!
//! ```text
//!   conflict   another transaction was in the way and this one was taken back: again from the start
//!   lost       the connection is gone: again on another one, unless COMMIT was already sent
//!   neither    answered to the caller: Unavailable, Misconfigured if a person has to change something, or Corrupt if what
//!              was read cannot be what was written
//! ```

use feedgate_common::StoreError;
use sqlx::Error;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// The SQLSTATE by which the server says that its disk is full.
const DISK_FULL: &str = "53100";

/// How often a transaction is tried in all, if other transactions are in its way.
pub(crate) const TRIES: usize = 5;

/// What to do about a connection that does not keep the settings of its session.
pub(crate) const NO_POOLER: &str =
    "archive_url must name PostgreSQL itself; a pooler such as PgBouncer does not pass the settings of a session on";

/// What to do about a server that a failover, or a mistake in a URL, has made a standby.
pub(crate) const STANDBY: &str = "archive_url must name the primary; this server is a standby";

/// The error for stored values that this program cannot have written.
pub(crate) fn corrupt(what: impl std::fmt::Display) -> Error {
    Error::Decode(what.to_string().into())
}

fn database(error: &Error) -> Option<&PgDatabaseError> {
    error.as_database_error().and_then(|error| error.try_downcast_ref())
}

/// Whether another transaction was in the way: a deadlock, a serialization failure, or a unique key that was free a
/// moment ago. The server has rolled this transaction back, so it can be tried again.
pub(crate) fn is_conflict(error: &Error) -> bool {
    const CHOSEN: [Option<&str>; 4] =
        [Some("items_pkey"), Some("items_foreign_id_key"), Some("users_name_key"), Some("comments_pkey")];
    database(error).is_some_and(|error| match error.code() {
        "40001" | "40P01" => true,
        "23505" => CHOSEN.contains(&error.constraint()),
        _ => false,
    })
}

/// `retried!(connection, transaction)` awaits the future of a transaction, or of a statement that is one. While another
/// transaction is in its way, it begins again from the start, [`TRIES`] times in all. A try that fails may leave its
/// transaction open.
macro_rules! retried {
    ($connection:ident, $transaction:expr) => {{
        let mut tries = 1;
        loop {
            match $transaction.await {
                Err(error) if tries < $crate::fault::TRIES && $crate::fault::is_conflict(&error) => {
                    tries += 1;
                    // Outside a transaction the server only warns.
                    sqlx::query("ROLLBACK").execute(&mut *$connection).await?;
                }
                done => break done,
            }
        }
    }};
}
pub(crate) use retried;

/// Whether the connection can no longer be used.
pub(crate) fn is_lost(error: &Error) -> bool {
    match database(error) {
        Some(error) => matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic),
        None => matches!(error, Error::Io(_) | Error::Protocol(_) | Error::Tls(_)),
    }
}

/// Whether a statement was given up because another session did not let go of a lock in time.
pub(crate) fn is_locked_out(error: &Error) -> bool {
    database(error).is_some_and(|error| error.code() == "55P03")
}

/// Whether the server had no room on its disk for a write.
pub(crate) fn is_disk_full(error: &Error) -> bool {
    database(error).is_some_and(|error| error.code() == DISK_FULL)
}

/// What a person has to change before a migration that failed in this way can end; `None` if it may end by itself.
pub(crate) fn bars_migration(error: &Error) -> Option<&'static str> {
    match database(error)?.code() {
        "42501" => Some("the user in archive_url must own the database and its tables"),
        code if code.starts_with("42") => Some("give Feedgate a database of its own, which holds no other tables"),
        _ => None,
    }
}

/// The error as callers of the Archive get it: `Corrupt` for damaged rows, `Misconfigured` for what a person has to
/// change, else `Unavailable`.
pub(crate) fn store_error(error: Error) -> StoreError {
    match error {
        Error::Database(error) => match error.try_downcast::<PgDatabaseError>() {
            Ok(error) => refused(&error).with_source(*error),
            Err(error) => StoreError::unavailable(format_args!("PostgreSQL: {error}")),
        },
        Error::Io(cause) => {
            StoreError::unavailable(format_args!("the connection to PostgreSQL: {cause}")).with_source(cause)
        }
        Error::Decode(what) => StoreError::corrupt(what),
        Error::ColumnDecode { .. } | Error::ColumnNotFound(_) | Error::TypeNotFound { .. } | Error::RowNotFound => {
            StoreError::corrupt(&error).with_source(error)
        }
        error => StoreError::unavailable(format_args!("PostgreSQL: {error}")).with_source(error),
    }
}

/// The error for a statement that the server has refused, with what would help.
fn refused(error: &PgDatabaseError) -> StoreError {
    let (sorted, help): (fn(String) -> StoreError, _) = match error.code() {
        "28P01" | "28000" => (StoreError::misconfigured, "check user and password in archive_url, and pg_hba.conf"),
        // PostgreSQL takes every setting that is sent to it.
        "08P01" if error.message().contains("startup parameter") => (StoreError::misconfigured, NO_POOLER),
        "3D000" => (StoreError::misconfigured, "create the database, or name another in archive_url"),
        "25006" => (StoreError::misconfigured, "archive_url must name the primary; this server only reads"),
        "42501" => (StoreError::misconfigured, "the user in archive_url must own the tables"),
        "53300" => (StoreError::unavailable, "raise max_connections of the server or lower Feedgate's"),
        DISK_FULL => return StoreError::down("PostgreSQL has no room left on its disk"),
        "57P01" | "57P02" | "57P03" => (StoreError::unavailable, "it is stopping or starting"),
        "57014" => (StoreError::unavailable, "a statement took too long; it was given up and changed nothing"),
        code if code.starts_with("XX") || code.starts_with("42") || code.starts_with("22") => {
            return StoreError::corrupt(format_args!("PostgreSQL ({code}): {}", error.message()));
        }
        code => return StoreError::unavailable(format_args!("PostgreSQL ({code}): {}", error.message())),
    };
    sorted(format!("PostgreSQL: {} ({help})", error.message()))
}
