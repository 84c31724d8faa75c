//! What readers have seen of their feeds: a row for each reader and feed, changed by one statement.

use feedgate_common::seen::Earlier;
use feedgate_common::{Epoch, InboxKey, ItemId, Millis, Position, Seen, UserNo};
use sqlx::PgConnection;

use crate::rows;

const SEEN: &str = r#"
SELECT epoch, "offset", until, earlier_until, earlier_upto FROM sights WHERE reader = $1 AND feed = $2"#;

/// [`Seen::or_later`] in SQL. The row is locked while it is compared.
const SEE: &str = r#"
INSERT INTO sights AS held (reader, feed, epoch, "offset", until, earlier_until, earlier_upto)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (reader, feed) DO UPDATE SET
    epoch = excluded.epoch,
    "offset" = excluded."offset",
    until = greatest(held.until, excluded.until),
    earlier_until = greatest(excluded.earlier_until,
        CASE WHEN held.epoch = excluded.epoch THEN held.earlier_until ELSE held.until END),
    earlier_upto = excluded.earlier_upto
WHERE (held.epoch, held."offset") < (excluded.epoch, excluded."offset")"#;

const PUBLISHED: &str = "
SELECT author, published_at FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (id, nth)
LEFT JOIN items USING (id) ORDER BY nth";

/// What the reader has seen of this feed; `None` if nothing is stored.
pub(crate) async fn seen(connection: &mut PgConnection, key: InboxKey) -> sqlx::Result<Option<Seen>> {
    let asked = sqlx::query_as(SEEN).bind(rows::user(key.reader)).bind(rows::feed(key.feed));
    let row: Option<(i64, i64, Millis, Millis, i64)> = asked.fetch_optional(connection).await?;
    row.map(|(epoch, offset, until, earlier_until, upto)| {
        let position = Position { epoch: Epoch(rows::count_of(epoch)?), offset: rows::count_of(offset)? };
        Ok(Seen { position, until, earlier: Earlier { until: earlier_until, upto: rows::count_of(upto)? } })
    })
    .transpose()
}

/// Stores the later of `seen` and the stored sight. Answers whether the stored sight has changed.
pub(crate) async fn see(connection: &mut PgConnection, key: InboxKey, seen: Seen) -> sqlx::Result<bool> {
    let Seen { position, until, earlier } = seen;
    let done = sqlx::query(SEE)
        .bind(rows::user(key.reader))
        .bind(rows::feed(key.feed))
        .bind(rows::count(position.epoch.0))
        .bind(rows::count(position.offset))
        .bind(until)
        .bind(earlier.until)
        .bind(rows::count(earlier.upto))
        .execute(connection)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// When each of these items was published, in the order asked.
pub(crate) async fn published(
    connection: &mut PgConnection,
    ids: &[ItemId],
) -> sqlx::Result<Vec<Option<(UserNo, Millis)>>> {
    let ids: Vec<i64> = ids.iter().map(|id| rows::item(*id)).collect();
    let read: Vec<(Option<i32>, Option<Millis>)> = sqlx::query_as(PUBLISHED).bind(ids).fetch_all(connection).await?;
    read.into_iter()
        .map(|(author, at)| author.zip(at).map(|(author, at)| Ok((rows::user_of(author)?, at))).transpose())
        .collect()
}
