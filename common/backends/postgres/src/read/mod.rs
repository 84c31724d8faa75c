//! What is read: each call in one snapshot, by a walk along indexes.

pub(crate) mod counts;
pub(crate) mod door;
pub(crate) mod items;
pub(crate) mod lists;
mod merge;
#[cfg(test)]
mod plans;
mod window;

use sqlx::PgConnection;

pub(crate) use window::Lows;

/// Several statements over one snapshot. If `work` fails the transaction is left open: the connection is closed then.
pub(crate) async fn snapshot<T>(
    connection: &mut PgConnection,
    work: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
) -> sqlx::Result<T> {
    sqlx::query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").execute(&mut *connection).await?;
    let answer = work(&mut *connection).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(answer)
}
