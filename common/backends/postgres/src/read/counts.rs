//! Counts for the stats page: exact while small, estimated beyond, and never a scan of a big table.
//!
//! Users are counted by the counter that numbers them. The others count the entries of a partial index that holds just
//! them, up to a bound; beyond it the answer is what the server's last VACUUM or ANALYZE found in that index.

use feedgate_common::archive::ArchiveCounts;
use sqlx::PgConnection;

use crate::rows;

/// Counted one by one up to here.
const EXACT: i64 = 10_000;

const COUNTS: &str = "
SELECT (SELECT value FROM counters WHERE name = 'users'),
       (SELECT count(*) FROM (SELECT 1 FROM records WHERE op = 1 AND deleted_by IS NULL LIMIT $1) AS found),
       (SELECT count(*) FROM (SELECT 1 FROM edges WHERE is_on LIMIT $1) AS found),
       (SELECT count(*) FROM (SELECT 1 FROM authors WHERE due IS NOT NULL LIMIT $1) AS found),
       (SELECT count(*) FROM (SELECT 1 FROM edges WHERE due IS NOT NULL LIMIT $1) AS found)";

const ESTIMATE: &str = "SELECT reltuples::bigint FROM pg_class WHERE oid = $1::regclass";

pub(crate) async fn counts(connection: &mut PgConnection) -> sqlx::Result<ArchiveCounts> {
    let query = sqlx::query_as(COUNTS).bind(EXACT);
    let (users, items, edges, outboxes, changes): (i64, i64, i64, i64, i64) = query.fetch_one(&mut *connection).await?;
    Ok(ArchiveCounts {
        users: rows::count_of(users)?,
        items: count(connection, items, "records_shown").await?,
        edges: count(connection, edges, "edges_recipients").await?,
        events: count(connection, outboxes, "authors_due").await? + count(connection, changes, "edges_due").await?,
    })
}

async fn count(connection: &mut PgConnection, counted: i64, index: &str) -> sqlx::Result<u64> {
    if counted < EXACT {
        return rows::count_of(counted);
    }
    let estimate: i64 = sqlx::query_scalar(ESTIMATE).bind(index).fetch_one(connection).await?;
    rows::count_of(estimate.max(counted))
}
