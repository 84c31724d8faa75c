//! What readers take in by number: what is addressed to them, and what they pull.
//!
//! ```text
//!   items, edges, counts, … ─▶ the counter of what is pulled ─▶ COMMIT
//!                                └─ held from here on: the next one counts behind it, and commits behind it ─┘
//! ```

use feedgate_common::change::Route;
use sqlx::PgConnection;

use super::column;
use crate::rows;
use crate::write::ledger::{Appended, Ledger};

/// What is addressed to readers, and that taking it in is outstanding; the adds of items that are gone.
const ADDRESS: &str = "
WITH moved AS (
    UPDATE readers r SET direct = n.direct, direct_due = coalesce(r.direct_due, n.due), direct_quiet = n.quiet
    FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $13::bigint[]) AS n(reader, direct, due, quiet)
    WHERE r.reader = n.reader
),
ended AS (
    UPDATE direct SET deleted = true WHERE item = ANY($4) AND op = 1
)
INSERT INTO direct (reader, seq, item, rank, at, author, op, deleted)
SELECT * FROM unnest($5::integer[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::integer[],
                     $11::smallint[], $12::boolean[])";

/// The records of route pull, numbered in the order of the operations, and the last number of each author. The one
/// row that all of them lock is locked here, behind every other lock of the call, and nothing follows but COMMIT.
const PULL: &str = "
WITH taken AS (
    UPDATE counters SET value = value + $1 WHERE name = 'pull' RETURNING value - $1 AS before
),
newest AS (
    UPDATE authors a SET last_pull = taken.before + n.nth
    FROM taken, unnest($2::integer[], $3::bigint[]) AS n(author, nth)
    WHERE a.author = n.author
)
INSERT INTO records (author, seq, op, route, lane, rank, item, at, deleted_by, pull_seq)
SELECT n.author, n.seq, n.op, 2, n.lane, n.rank, n.item, n.at, n.deleted_by, taken.before + n.nth
FROM taken, unnest($4::integer[], $5::bigint[], $6::smallint[], $7::smallint[], $8::bigint[], $9::bigint[], $10::bigint[],
                   $11::bigint[]) WITH ORDINALITY AS n(author, seq, op, lane, rank, item, at, deleted_by, nth)";

pub(super) async fn all(connection: &mut PgConnection, ledger: &Ledger) -> sqlx::Result<()> {
    if !ledger.addressed.is_empty() {
        address(connection, ledger).await?;
    }
    let pulled: Vec<_> = ledger.appended.iter().filter(|record| record.route == Route::Pull).collect();
    if !pulled.is_empty() {
        pull(connection, ledger, &pulled).await?;
    }
    Ok(())
}

async fn address(connection: &mut PgConnection, ledger: &Ledger) -> sqlx::Result<()> {
    let addressed = &ledger.addressed;
    // Since when each reader's is outstanding, unless it was already.
    let mut readers: Vec<_> = addressed.iter().map(|to| (rows::user(to.reader), to)).collect();
    readers.sort_by_key(|(reader, to)| (*reader, to.seq));
    readers.dedup_by_key(|(reader, _)| *reader);
    let gone = |item| ledger.ended_direct.contains(&item);
    sqlx::query(ADDRESS)
        .bind(column(&readers, |(reader, _)| *reader))
        .bind(column(&readers, |(_, to)| rows::count(ledger.readers[&to.reader].direct)))
        .bind(column(&readers, |(_, to)| to.at))
        .bind(ledger.ended_direct.iter().copied().map(rows::item).collect::<Vec<_>>())
        .bind(column(addressed, |to| rows::user(to.reader)))
        .bind(column(addressed, |to| rows::count(to.seq)))
        .bind(column(addressed, |to| rows::item(to.key.item)))
        .bind(column(addressed, |to| to.key.rank))
        .bind(column(addressed, |to| to.at))
        .bind(column(addressed, |to| rows::user(to.author)))
        .bind(column(addressed, |to| to.op as i16))
        .bind(column(addressed, |to| gone(to.key.item)))
        .bind(column(&readers, |(_, to)| rows::count(ledger.readers[&to.reader].quiet)))
        .execute(connection)
        .await?;
    Ok(())
}

async fn pull(connection: &mut PgConnection, ledger: &Ledger, pulled: &[&Appended]) -> sqlx::Result<()> {
    // The last of each author.
    let mut last: Vec<(i32, i64)> = pulled.iter().map(|record| rows::user(record.author)).zip(1..).collect();
    last.sort_unstable_by_key(|(author, nth)| (*author, -nth));
    last.dedup_by_key(|(author, _)| *author);
    let ended = |author, seq| ledger.ended.get(&(author, seq)).map(|by| rows::count(*by));
    sqlx::query(PULL)
        .bind(rows::limit(pulled.len()))
        .bind(column(&last, |(author, _)| *author))
        .bind(column(&last, |(_, nth)| *nth))
        .bind(column(pulled, |record| rows::user(record.author)))
        .bind(column(pulled, |record| rows::count(record.seq)))
        .bind(column(pulled, |record| record.op as i16))
        .bind(column(pulled, |record| i16::from(record.aside)))
        .bind(column(pulled, |record| record.key.rank))
        .bind(column(pulled, |record| rows::item(record.key.item)))
        .bind(column(pulled, |record| record.at))
        .bind(column(pulled, |record| ended(record.author, record.seq)))
        .execute(connection)
        .await?;
    Ok(())
}
