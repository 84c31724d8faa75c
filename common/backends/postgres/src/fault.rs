//! Failures of the server and of connections, sorted by what can be done about them.
//!
//! ```text
//!   conflict   another transaction was in the way and this one was taken back: again from the start
//!   lost       the connection is gone: again on another one, unless COMMIT was already sent
//!   neither    answered to the caller: Unavailable, or Corrupt if what was read cannot be what was written
//! ```

use feedgate_common::StoreError;
use sqlx::Error;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// The SQLSTATE by which the server says that its disk is full.
const DISK_FULL: &str = "53100";

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
    const CHOSEN: [Option<&str>; 3] = [Some("items_pkey"), Some("items_foreign_id_key"), Some("users_name_key")];
    database(error).is_some_and(|error| match error.code() {
        "40001" | "40P01" => true,
        "23505" => CHOSEN.contains(&error.constraint()),
        _ => false,
    })
}

/// Whether the connection can no longer be used.
pub(crate) fn is_lost(error: &Error) -> bool {
    match database(error) {
        Some(error) => matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic),
        None => matches!(error, Error::Io(_) | Error::Protocol(_) | Error::Tls(_)),
    }
}

/// Whether the server had no room on its disk for a write.
pub(crate) fn is_disk_full(error: &Error) -> bool {
    database(error).is_some_and(|error| error.code() == DISK_FULL)
}

/// The error as callers of the Archive get it: `Corrupt` for damaged rows, else `Unavailable`.
pub(crate) fn store_error(error: Error) -> StoreError {
    if let Some(error) = database(&error) {
        return refused(error);
    }
    match error {
        Error::Io(cause) => StoreError::unavailable(format_args!("the connection to PostgreSQL: {cause}")),
        Error::Decode(what) => StoreError::corrupt(what),
        Error::ColumnDecode { .. } | Error::ColumnNotFound(_) | Error::TypeNotFound { .. } | Error::RowNotFound => {
            StoreError::corrupt(error)
        }
        error => StoreError::unavailable(format_args!("PostgreSQL: {error}")),
    }
}

/// The error for a statement that the server has refused, with what would help.
fn refused(error: &PgDatabaseError) -> StoreError {
    let help = match error.code() {
        "28P01" | "28000" => "check user and password in archive_url, and pg_hba.conf",
        "3D000" => "create the database, or name another in archive_url",
        "53300" => "raise max_connections of the server or lower Feedgate's",
        DISK_FULL => return StoreError::down("PostgreSQL has no room left on its disk"),
        "57P01" | "57P02" | "57P03" => "it is stopping or starting",
        "57014" => "a statement took too long; it was given up and changed nothing",
        "25006" => "archive_url must name the primary; this server only reads",
        "42501" => "the user in archive_url must own the tables",
        code if code.starts_with("XX") || code.starts_with("42") || code.starts_with("22") => {
            return StoreError::corrupt(format_args!("PostgreSQL ({code}): {}", error.message()));
        }
        code => return StoreError::unavailable(format_args!("PostgreSQL ({code}): {}", error.message())),
    };
    StoreError::unavailable(format_args!("PostgreSQL: {} ({help})", error.message()))
}
