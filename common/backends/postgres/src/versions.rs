//! The bodies that items had before they were edited: of each living item the newest.
//!
//! ```text
//!   an edit ──▶ the body as it is, and those that this call has replaced ──▶ item_versions, without what is too many
//!   a delete ──▶ none is left, by the statement that takes the body away
//! ```
//!
//! The transaction has locked the row of the author, so nobody else changes the item.

use std::collections::HashMap;

use feedgate_common::{BODIES_KEPT, Body, ItemId, Millis, Replaced};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;

/// A body that a call replaces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept<'a> {
    pub(crate) item: ItemId,
    /// The version of the item until then.
    pub(crate) version: u32,
    pub(crate) at: Millis,
    /// The body that is replaced; `None` if it is the stored body of the item.
    pub(crate) body: Option<&'a str>,
}

/// Keeps bodies before the rows of their items change, and removes the oldest bodies beyond the number that is kept.
const KEEP: &str = "
WITH n AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::text[]) AS n(item, version, at, body)
), over AS (
    DELETE FROM item_versions v USING (SELECT item, count(*) AS more FROM n GROUP BY item) f
    WHERE v.item = f.item
      AND (SELECT count(*) FROM item_versions w WHERE w.item = v.item AND w.version > v.version) >= $5 - f.more
)
INSERT INTO item_versions (item, version, replaced_at, body)
SELECT n.item, n.version, n.at, coalesce(n.body, i.body) FROM n JOIN items i ON i.id = n.item
ON CONFLICT DO NOTHING";

const LISTED: &str = "
SELECT version, replaced_at, body FROM item_versions WHERE item = $1 ORDER BY version DESC";

/// Keeps the newest [`BODIES_KEPT`] of these bodies for each item. `replaced` is in the order in which the bodies were
/// replaced.
pub(crate) async fn keep(connection: &mut PgConnection, replaced: &[Kept<'_>]) -> sqlx::Result<()> {
    let mut counts: HashMap<ItemId, usize> = HashMap::new();
    let is_new = |kept: &&Kept<'_>| {
        let count = counts.entry(kept.item).or_default();
        *count += 1;
        *count <= BODIES_KEPT
    };
    let newest: Vec<&Kept<'_>> = replaced.iter().rev().filter(is_new).collect();
    if newest.is_empty() {
        return Ok(());
    }
    sqlx::query(KEEP)
        .bind(newest.iter().map(|kept| rows::item(kept.item)).collect::<Vec<_>>())
        .bind(newest.iter().map(|kept| kept.version.cast_signed()).collect::<Vec<_>>())
        .bind(newest.iter().map(|kept| kept.at).collect::<Vec<_>>())
        .bind(newest.iter().map(|kept| kept.body).collect::<Vec<_>>())
        .bind(rows::limit(BODIES_KEPT))
        .execute(connection)
        .await?;
    Ok(())
}

/// The bodies that an item had, the newest first.
pub(crate) async fn listed(connection: &mut PgConnection, item: ItemId) -> sqlx::Result<Vec<Replaced>> {
    let query = sqlx::query_as(LISTED).bind(rows::item(item));
    let read: Vec<(i32, i64, String)> = query.fetch_all(connection).await?;
    let replaced = |(version, at, body): (i32, i64, String)| {
        let body = Body::stored(body).map_err(|error| corrupt(format_args!("a version of item {item}: {error}")))?;
        Ok(Replaced { version: version.cast_unsigned(), body, at })
    };
    read.into_iter().map(replaced).collect()
}
