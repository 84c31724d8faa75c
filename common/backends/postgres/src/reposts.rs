//! Reposts: how many living reposts an item has, and which.
//!
//! ```text
//!   a write ──▶ makes or deletes reposts ──▶ counter of (original, shard of the repost), by statements behind all
//!                                            others of the call but that which numbers what is pulled;
//!                                            a counter that comes to 0 is removed
//! ```
//!
//! No row of the original is locked. Counters are locked in the order of their keys, and for no longer than the call
//! takes to end, so a call that reposts a hot item waits only for the commit of calls in the same shard.

use std::collections::BTreeMap;

use feedgate_common::ItemId;
use sqlx::PgConnection;

use crate::rows::{self, column};

/// Into how many rows the counter of one item is divided. The migration that counted earlier reposts divides by the
/// same number.
const SHARDS: u64 = 32;

/// The number by which each counter grows, by the original and the shard of the counter.
pub(crate) type Recounted = BTreeMap<(ItemId, i16), i64>;

const COUNT: &str = "
INSERT INTO repost_counts AS known (item, shard, count)
SELECT item, shard, more FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) AS n(item, shard, more)
ORDER BY item, shard
ON CONFLICT (item, shard) DO UPDATE SET count = known.count + excluded.count";

/// Removes the counters among these that have come to 0. The statement before has locked them.
const FORGET: &str = "
DELETE FROM repost_counts c USING unnest($1::bigint[], $2::smallint[]) AS n(item, shard)
WHERE c.item = n.item AND c.shard = n.shard AND c.count = 0";

const LISTED: &str = "
SELECT id FROM items WHERE repost_of = $1 AND id <= $2 AND body IS NOT NULL ORDER BY id DESC LIMIT $3";

/// Notes that a repost counts from now on, or (`counts` is false) that it counts no longer.
pub(crate) fn note(recounted: &mut Recounted, original: ItemId, id: ItemId, counts: bool) {
    let shard = i16::try_from(id.0 % SHARDS).expect("a small number");
    *recounted.entry((original, shard)).or_default() += if counts { 1 } else { -1 };
}

/// Changes the counters, as a part of a transaction.
pub(crate) async fn count(connection: &mut PgConnection, recounted: &Recounted) -> sqlx::Result<()> {
    let changed: Vec<_> = recounted.iter().filter(|(_, more)| **more != 0).collect();
    if changed.is_empty() {
        return Ok(());
    }
    sqlx::query(COUNT)
        .bind(column(&changed, |((item, _), _)| rows::item(*item)))
        .bind(column(&changed, |((_, shard), _)| *shard))
        .bind(column(&changed, |(_, more)| **more))
        .execute(&mut *connection)
        .await?;
    let less: Vec<_> = changed.into_iter().filter(|(_, more)| **more < 0).collect();
    if !less.is_empty() {
        sqlx::query(FORGET)
            .bind(column(&less, |((item, _), _)| rows::item(*item)))
            .bind(column(&less, |((_, shard), _)| *shard))
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// The living reposts of an item with an id below `before`, the greatest first.
pub(crate) async fn listed(
    connection: &mut PgConnection,
    original: ItemId,
    before: Option<ItemId>,
    limit: usize,
) -> sqlx::Result<Vec<ItemId>> {
    let Some(last) = before.map_or(Some(u64::MAX), |before| before.0.checked_sub(1)) else { return Ok(vec![]) };
    let query = sqlx::query_scalar(LISTED).bind(rows::item(original)).bind(rows::item(ItemId(last)));
    let read: Vec<i64> = query.bind(rows::limit(limit)).fetch_all(connection).await?;
    Ok(read.into_iter().map(rows::item_of).collect())
}
