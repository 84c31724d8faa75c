//! Items, authors, the records that are pushed, idempotency keys.

use feedgate_common::change::Route;
use sqlx::PgConnection;

use super::column;
use crate::rows;
use crate::write::ledger::{Change, Door, ItemState, Ledger};

/// Items, their pushed records and the rows of their authors. The authors' push is outstanding since then, unless it was
/// already.
const APPEND: &str = "
WITH made AS (
    INSERT INTO items (id, author, seq, published_at, rank, version, route, fingerprint, kind, foreign_id, body, feed)
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[],
                         $7::smallint[], $8::bytea[], $9::text[], $10::text[], $11::text[], $12::smallint[])
),
moved AS (
    UPDATE authors a
    SET head = n.head, last_rank = n.last_rank, last_item = n.last_item, has_aside = n.has_aside,
        last_given = n.last_given, due = coalesce(a.due, n.due), class = n.class, everyone_since = n.everyone_since
    FROM unnest($13::integer[], $14::bigint[], $15::bigint[], $16::bigint[], $17::boolean[], $18::bigint[], $19::bigint[],
                $20::smallint[], $21::bigint[])
        AS n(author, head, last_rank, last_item, has_aside, last_given, due, class, everyone_since)
    WHERE a.author = n.author
)
INSERT INTO records (author, seq, op, feed, route, lane, rank, item, at, deleted_by, history)
SELECT author, seq, op, feed, 1, lane, rank, item, at, deleted_by, history
FROM unnest($22::integer[], $23::bigint[], $24::smallint[], $25::smallint[], $26::smallint[], $27::bigint[], $28::bigint[],
            $29::bigint[], $30::bigint[], $31::boolean[])
    AS n(author, seq, op, feed, lane, rank, item, at, deleted_by, history)";

/// A deleted item gives its foreign id up to a new one.
const FREE_FOREIGN_IDS: &str = "UPDATE items SET foreign_id = NULL WHERE id = ANY($1)";

const CHANGE_ITEMS: &str = "
UPDATE items i SET version = n.version, body = n.body
FROM unnest($1::bigint[], $2::integer[], $3::text[]) AS n(id, version, body)
WHERE i.id = n.id";

const END_ADDS: &str = "
UPDATE records r SET deleted_by = n.deleted_by
FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS n(author, seq, deleted_by)
WHERE r.author = n.author AND r.seq = n.seq";

const KEEP_RETRIES: &str = "
INSERT INTO retries (author, key, item, fingerprint, expires)
SELECT * FROM unnest($1::integer[], $2::text[], $3::bigint[], $4::bytea[], $5::bigint[])
ON CONFLICT (author, key) DO UPDATE
SET item = excluded.item, fingerprint = excluded.fingerprint, expires = excluded.expires";

pub(super) async fn all(connection: &mut PgConnection, ledger: &Ledger) -> sqlx::Result<()> {
    if !ledger.freed.is_empty() {
        let freed: Vec<i64> = ledger.freed.iter().copied().map(rows::item).collect();
        sqlx::query(FREE_FOREIGN_IDS).bind(freed).execute(&mut *connection).await?;
    }
    // What makes an item changes its author's row, if only to give it its id; a given id of a direct item alone does not.
    if !ledger.changed_authors.is_empty() || ledger.items.values().any(|row| row.change == Change::Made) {
        append(connection, ledger).await?;
    }
    if ledger.items.values().any(|row| row.change == Change::Changed) {
        change_items(connection, ledger).await?;
    }
    if ledger.retries.values().any(|retry| retry.changed) {
        keep_retries(connection, ledger).await?;
    }
    Ok(())
}

async fn append(connection: &mut PgConnection, ledger: &Ledger) -> sqlx::Result<()> {
    let mut made: Vec<(i64, &ItemState)> = ledger
        .items
        .iter()
        .filter(|(_, row)| row.change == Change::Made)
        .map(|(id, row)| (rows::item(*id), row))
        .collect();
    // Two calls that make the same items meet at the first of them.
    made.sort_unstable_by_key(|(id, _)| *id);
    let authors: Vec<_> = ledger
        .changed_authors
        .iter()
        .map(|(author, due)| (rows::user(*author), &ledger.authors[author], *due))
        .collect();
    let pushed: Vec<_> = ledger.appended.iter().filter(|record| record.route == Route::Push).collect();
    let ended = |author, seq| ledger.ended.get(&(author, seq)).map(|by| rows::count(*by));
    sqlx::query(APPEND)
        .bind(column(&made, |(id, _)| *id))
        .bind(column(&made, |(_, row)| rows::user(row.author)))
        .bind(column(&made, |(_, row)| rows::count(row.seq)))
        .bind(column(&made, |(_, row)| row.published_at))
        .bind(column(&made, |(_, row)| row.rank))
        .bind(column(&made, |(_, row)| row.version.cast_signed()))
        .bind(column(&made, |(_, row)| route(row)))
        .bind(column(&made, |(_, row)| row.fingerprint.to_vec()))
        .bind(column(&made, |(_, row)| row.kind.as_deref()))
        .bind(column(&made, |(_, row)| row.foreign_id.as_deref()))
        .bind(column(&made, |(_, row)| row.body.as_deref()))
        .bind(column(&made, |(_, row)| rows::feed(row.feed)))
        .bind(column(&authors, |(author, ..)| *author))
        .bind(column(&authors, |(_, row, _)| rows::count(row.head)))
        .bind(column(&authors, |(_, row, _)| row.last_in_step.map(|key| key.rank)))
        .bind(column(&authors, |(_, row, _)| row.last_in_step.map(|key| rows::item(key.item))))
        .bind(column(&authors, |(_, row, _)| row.has_aside))
        .bind(column(&authors, |(_, row, _)| row.last_given.map(rows::item)))
        .bind(column(&authors, |(.., due)| *due))
        .bind(column(&authors, |(_, row, _)| row.class as i16))
        .bind(column(&authors, |(_, row, _)| row.everyone_since.map(rows::count)))
        .bind(column(&pushed, |record| rows::user(record.author)))
        .bind(column(&pushed, |record| rows::count(record.seq)))
        .bind(column(&pushed, |record| rows::signed(record.op as i16, record.feed)))
        .bind(column(&pushed, |record| rows::feed(record.feed)))
        .bind(column(&pushed, |record| i16::from(record.aside)))
        .bind(column(&pushed, |record| record.key.rank))
        .bind(column(&pushed, |record| rows::item(record.key.item)))
        .bind(column(&pushed, |record| record.at))
        .bind(column(&pushed, |record| ended(record.author, record.seq)))
        .bind(column(&pushed, |record| record.history))
        .execute(connection)
        .await?;
    Ok(())
}

fn route(item: &ItemState) -> i16 {
    match item.door {
        Door::Outbox(route) => rows::signed(route as i16, item.feed),
        Door::Direct(_) => rows::DIRECT,
    }
}

/// New versions, and the ends of adds of earlier calls.
async fn change_items(connection: &mut PgConnection, ledger: &Ledger) -> sqlx::Result<()> {
    let changed: Vec<_> = ledger.items.iter().filter(|(_, row)| row.change == Change::Changed).collect();
    sqlx::query(CHANGE_ITEMS)
        .bind(column(&changed, |(id, _)| rows::item(**id)))
        .bind(column(&changed, |(_, row)| row.version.cast_signed()))
        .bind(column(&changed, |(_, row)| row.body.as_deref()))
        .execute(&mut *connection)
        .await?;
    let ended: Vec<_> = ledger.ended.iter().collect();
    if ended.is_empty() {
        return Ok(());
    }
    sqlx::query(END_ADDS)
        .bind(column(&ended, |((author, _), _)| rows::user(*author)))
        .bind(column(&ended, |((_, seq), _)| rows::count(*seq)))
        .bind(column(&ended, |(_, by)| rows::count(**by)))
        .execute(connection)
        .await?;
    Ok(())
}

async fn keep_retries(connection: &mut PgConnection, ledger: &Ledger) -> sqlx::Result<()> {
    let changed: Vec<_> = ledger.retries.iter().filter(|(_, retry)| retry.changed).collect();
    sqlx::query(KEEP_RETRIES)
        .bind(column(&changed, |((author, _), _)| rows::user(*author)))
        .bind(column(&changed, |((_, key), _)| key.as_str()))
        .bind(column(&changed, |(_, retry)| rows::item(retry.item)))
        .bind(column(&changed, |(_, retry)| retry.fingerprint.to_vec()))
        .bind(column(&changed, |(_, retry)| retry.expires))
        .execute(connection)
        .await?;
    Ok(())
}
