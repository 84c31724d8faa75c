//! What has come of the operations of a call, written: a statement for each kind of change there is, in the order in
//! which their rows may be locked.

mod edges;
mod items;
mod numbered;

use sqlx::PgConnection;

use super::batch::Batch;

/// Everything, in the transaction that holds the locks.
pub(super) async fn all(connection: &mut PgConnection, batch: &Batch<'_>, buckets: u16) -> sqlx::Result<()> {
    items::all(connection, batch).await?;
    edges::all(connection, batch, buckets).await?;
    numbered::all(connection, batch).await
}

/// One column of many rows.
fn column<'a, Row, T>(rows: &'a [Row], value: impl Fn(&'a Row) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
