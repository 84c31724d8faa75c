//! Revocations: a row for each user, numbered by a counter whose lock is held until the commit. So a read that shows
//! one number shows every smaller number.

use feedgate_common::archive::Revocation;
use feedgate_common::{Millis, UserNo};
use sqlx::PgConnection;

use crate::rows;

const REVOKE: &str = r#"
WITH next AS (UPDATE counters SET value = value + 1 WHERE name = 'revocation' RETURNING value)
INSERT INTO revocations AS known ("user", before, number) SELECT $1, $2, value FROM next
ON CONFLICT ("user") DO UPDATE SET before = greatest(known.before, excluded.before), number = excluded.number"#;

const REVOKED: &str = r#"SELECT before FROM revocations WHERE "user" = $1"#;

const LAST: &str = "SELECT value FROM counters WHERE name = 'revocation'";

const BEYOND: &str = r#"SELECT number, "user", before FROM revocations WHERE number > $1 ORDER BY number LIMIT $2"#;

pub(crate) async fn revoke(connection: &mut PgConnection, user: UserNo, before: Millis) -> sqlx::Result<()> {
    sqlx::query(REVOKE).bind(rows::user(user)).bind(before).execute(connection).await.map(drop)
}

/// The time before which the user's tokens are refused.
pub(crate) async fn revoked(connection: &mut PgConnection, user: UserNo) -> sqlx::Result<Option<Millis>> {
    sqlx::query_scalar(REVOKED).bind(rows::user(user)).fetch_optional(connection).await
}

/// The number of the newest revocation; 0 if there is none.
pub(crate) async fn last(connection: &mut PgConnection) -> sqlx::Result<u64> {
    rows::count_of(sqlx::query_scalar(LAST).fetch_one(connection).await?)
}

/// The revocations beyond `after`, by number, at most `limit`.
pub(crate) async fn beyond(connection: &mut PgConnection, after: u64, limit: usize) -> sqlx::Result<Vec<Revocation>> {
    let asked = sqlx::query_as(BEYOND).bind(rows::count(after)).bind(rows::limit(limit));
    let read: Vec<(i64, i32, Millis)> = asked.fetch_all(connection).await?;
    let revocation =
        |(number, user, before)| Ok(Revocation { number: rows::count_of(number)?, user: rows::user_of(user)?, before });
    read.into_iter().map(revocation).collect()
}
