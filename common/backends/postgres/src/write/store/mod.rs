//! Stores the decided changes of a call: one statement for each kind of change, in the order in which rows may be
//! locked.

mod edges;
mod items;
mod numbered;

use sqlx::PgConnection;

use super::batch::Batch;
use super::lines;
use crate::announcements;
use crate::reposts;

/// Stores all changes, in the transaction that holds the locks.
pub(super) async fn all(connection: &mut PgConnection, batch: &Batch<'_>, buckets: u16) -> sqlx::Result<()> {
    items::all(connection, batch).await?;
    edges::all(connection, batch, buckets).await?;
    batch.lines.store(connection).await?;
    lines::end(connection, &batch.ended_alone).await?;
    if !batch.announced.is_empty() {
        announcements::keep(connection, &batch.announced).await?;
    }
    reposts::count(connection, &batch.reposts).await?;
    numbered::all(connection, batch).await
}
