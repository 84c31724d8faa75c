//! What has come of the operations of a call, written: a statement for each kind of change there is.

use std::collections::BTreeMap;

use feedgate_common::{Millis, UserNo};
use sqlx::PgConnection;

use super::ledger::{Change, ItemState, Ledger};
use crate::rows;

/// Items, their records and the heads of their authors. The authors' push is outstanding since then, unless it was
/// already.
const APPEND: &str = "
WITH made AS (
    INSERT INTO items (id, author, seq, published_at, rank, version, route, fingerprint, kind, foreign_id, body)
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[],
                         $7::smallint[], $8::bytea[], $9::text[], $10::text[], $11::text[])
),
moved AS (
    UPDATE authors a
    SET head = n.head, last_rank = n.last_rank, last_item = n.last_item, has_aside = n.has_aside,
        last_given = n.last_given, due = coalesce(a.due, n.due)
    FROM unnest($12::integer[], $13::bigint[], $14::bigint[], $15::bigint[], $16::boolean[], $17::bigint[], $18::bigint[])
        AS n(author, head, last_rank, last_item, has_aside, last_given, due)
    WHERE a.author = n.author
)
INSERT INTO records (author, seq, op, route, lane, rank, item, at, deleted_by)
SELECT * FROM unnest($19::integer[], $20::bigint[], $21::smallint[], $22::smallint[], $23::smallint[],
                     $24::bigint[], $25::bigint[], $26::bigint[], $27::bigint[])";

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

/// Edges come in the order of their changes, which is that of the lists; they are written in the order in which
/// finished events lock them.
const CHANGE_EDGES: &str = "
WITH counted AS (
    UPDATE readers r SET counter = n.counter
    FROM unnest($1::integer[], $2::bigint[]) AS n(reader, counter)
    WHERE r.reader = n.reader
),
changed AS (
    SELECT reader, author, bucket, is_on, generation, from_seq, at AS since, at AS due, nextval('follows') AS listed
    FROM unnest($3::integer[], $4::integer[], $5::smallint[], $6::boolean[], $7::bigint[], $8::bigint[], $9::bigint[])
        AS n(reader, author, bucket, is_on, generation, from_seq, at)
)
INSERT INTO edges AS e (reader, author, bucket, is_on, generation, from_seq, since, due, listed)
SELECT * FROM changed ORDER BY reader, author
ON CONFLICT (reader, author) DO UPDATE
SET is_on = excluded.is_on, generation = excluded.generation, from_seq = excluded.from_seq,
    listed = excluded.listed, since = excluded.since, due = coalesce(e.due, excluded.due)";

/// Everything, in the transaction that holds the locks.
pub(super) async fn all(connection: &mut PgConnection, ledger: Ledger, layout: u16) -> sqlx::Result<()> {
    if !ledger.appended.is_empty() {
        append(connection, &ledger).await?;
    }
    if ledger.items.values().any(|row| row.change == Change::Changed) {
        change_items(connection, &ledger).await?;
    }
    if ledger.retries.values().any(|retry| retry.changed) {
        keep_retries(connection, &ledger).await?;
    }
    if ledger.edge_changes > 0 {
        change_edges(connection, &ledger, layout).await?;
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
    let records = &ledger.appended;
    // Since when each author's push is outstanding, unless it was already.
    let mut due: BTreeMap<UserNo, Millis> = BTreeMap::new();
    for record in records {
        due.entry(record.author).or_insert(record.at);
    }
    let authors: Vec<_> = due.iter().map(|(author, due)| (rows::user(*author), ledger.authors[author], *due)).collect();
    let ended = |author, seq| ledger.ended.get(&(author, seq)).map(|by| rows::count(*by));
    sqlx::query(APPEND)
        .bind(column(&made, |(id, _)| *id))
        .bind(column(&made, |(_, row)| rows::user(row.author)))
        .bind(column(&made, |(_, row)| rows::count(row.seq)))
        .bind(column(&made, |(_, row)| row.published_at))
        .bind(column(&made, |(_, row)| row.rank))
        .bind(column(&made, |(_, row)| row.version.cast_signed()))
        .bind(column(&made, |(_, row)| row.route as i16))
        .bind(column(&made, |(_, row)| row.fingerprint.to_vec()))
        .bind(column(&made, |(_, row)| row.kind.as_deref()))
        .bind(column(&made, |(_, row)| row.foreign_id.as_deref()))
        .bind(column(&made, |(_, row)| row.body.as_deref()))
        .bind(column(&authors, |(author, ..)| *author))
        .bind(column(&authors, |(_, row, _)| rows::count(row.head)))
        .bind(column(&authors, |(_, row, _)| row.last_in_step.map(|key| key.rank)))
        .bind(column(&authors, |(_, row, _)| row.last_in_step.map(|key| rows::item(key.item))))
        .bind(column(&authors, |(_, row, _)| row.has_aside))
        .bind(column(&authors, |(_, row, _)| row.last_given.map(rows::item)))
        .bind(column(&authors, |(.., due)| *due))
        .bind(column(records, |record| rows::user(record.author)))
        .bind(column(records, |record| rows::count(record.seq)))
        .bind(column(records, |record| record.op as i16))
        .bind(column(records, |record| record.route as i16))
        .bind(column(records, |record| i16::from(record.aside)))
        .bind(column(records, |record| record.key.rank))
        .bind(column(records, |record| rows::item(record.key.item)))
        .bind(column(records, |record| record.at))
        .bind(column(records, |record| ended(record.author, record.seq)))
        .execute(connection)
        .await?;
    Ok(())
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

async fn change_edges(connection: &mut PgConnection, ledger: &Ledger, layout: u16) -> sqlx::Result<()> {
    let readers: Vec<_> = ledger.changed_readers.iter().map(|reader| (*reader, ledger.readers[reader])).collect();
    let mut edges: Vec<_> =
        ledger.edges.iter().filter_map(|(edge, row)| Some((row.changed?, *edge, row.edge))).collect();
    edges.sort_unstable_by_key(|((change, _), ..)| *change);
    sqlx::query(CHANGE_EDGES)
        .bind(column(&readers, |(reader, _)| rows::user(*reader)))
        .bind(column(&readers, |(_, counter)| rows::count(*counter)))
        .bind(column(&edges, |(_, (reader, _), _)| rows::user(*reader)))
        .bind(column(&edges, |(_, (_, author), _)| rows::user(*author)))
        .bind(column(&edges, |(_, (reader, _), _)| reader.bucket(layout).0.cast_signed()))
        .bind(column(&edges, |(.., edge)| edge.on))
        .bind(column(&edges, |(.., edge)| rows::count(edge.generation)))
        .bind(column(&edges, |(.., edge)| rows::count(edge.from)))
        .bind(column(&edges, |((_, at), ..)| *at))
        .execute(connection)
        .await?;
    Ok(())
}

/// One column of many rows.
fn column<'a, Row, T>(rows: &'a [Row], value: impl Fn(&'a Row) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
