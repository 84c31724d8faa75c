//! The counts of the statistics page: exact while small, estimated when greater, and never by a scan of a big table.
//!
//! Users are counted by the counter that numbers them. Each other count is the number of entries in a partial index, up
//! to a bound; beyond it the answer is what the server's last VACUUM or ANALYZE found in that index. The index of
//! direct items also holds deleted ones, which only estimates count.

use feedgate_common::archive::ArchiveCounts;
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;

/// Up to this number, entries are counted one by one.
const EXACT: i64 = 10_000;

const COUNTS: &str = "
SELECT ARRAY[
    (SELECT value FROM counters WHERE name = 'users'),
    (SELECT count(*) FROM (SELECT 1 FROM records WHERE op = 1 AND deleted_by IS NULL LIMIT $1) AS found),
    (SELECT CASE WHEN count(*) < $1 THEN count(body) ELSE $1 END
     FROM (SELECT body FROM items WHERE route = 0 LIMIT $1) AS found),
    (SELECT count(*) FROM (SELECT 1 FROM edges WHERE is_on AND reader <> author LIMIT $1) AS found),
    (SELECT count(*) FROM (SELECT 1 FROM authors WHERE due IS NOT NULL LIMIT $1) AS found),
    (SELECT count(*) FROM (SELECT 1 FROM edges WHERE due IS NOT NULL LIMIT $1) AS found),
    (SELECT count(*) FROM (SELECT 1 FROM readers WHERE direct_due IS NOT NULL LIMIT $1) AS found)]";

/// The partial index of each count, in the order of `COUNTS` without users.
const INDEXES: [&str; 6] =
    ["records_shown", "items_direct", "edges_recipients", "authors_due", "edges_due", "readers_due"];

const ESTIMATE: &str = "SELECT reltuples::bigint FROM pg_class WHERE oid = $1::regclass";

pub(crate) async fn counts(connection: &mut PgConnection) -> sqlx::Result<ArchiveCounts> {
    let query = sqlx::query_scalar(COUNTS).bind(EXACT);
    let counted: Vec<i64> = query.fetch_one(&mut *connection).await?;
    let mut counts = vec![];
    for (counted, index) in counted.iter().skip(1).zip(INDEXES) {
        counts.push(count(connection, *counted, index).await?);
    }
    let users = rows::count_of(counted.first().copied().unwrap_or(0))?;
    let [shown, direct, edges, outboxes, changes, addressed] = counts[..] else {
        return Err(corrupt(format_args!("{} counts", counts.len())));
    };
    Ok(ArchiveCounts { users, items: shown + direct, edges, events: outboxes + changes + addressed })
}

async fn count(connection: &mut PgConnection, counted: i64, index: &str) -> sqlx::Result<u64> {
    if counted < EXACT {
        return rows::count_of(counted);
    }
    let estimate: i64 = sqlx::query_scalar(ESTIMATE).bind(index).fetch_one(connection).await?;
    rows::count_of(estimate.max(counted))
}
