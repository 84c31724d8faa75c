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
    FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[]) AS n(reader, direct, due, quiet)
    WHERE r.reader = n.reader
),
ended AS (
    UPDATE direct SET deleted = true WHERE item = ANY($5) AND op = 1
)
INSERT INTO direct (reader, seq, item, rank, at, author, feed, op, deleted)
SELECT * FROM unnest($6::integer[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::integer[],
                     $12::smallint[], $13::smallint[], $14::boolean[])";

/// The records of route pull, numbered in the order of the operations, and the last number of each author. The one
/// row that all of them lock is locked here, behind every other lock of the call, and nothing follows but COMMIT.
const PULL: &str = "
WITH taken AS (
    UPDATE counters SET value = value + $1 WHERE name = 'pull' RETURNING value - $1 AS before
),
newest AS (
    UPDATE authors a SET last_pull = taken.before + n.nth, pulled = n.seq
    FROM taken, unnest($2::integer[], $3::bigint[], $4::bigint[]) AS n(author, nth, seq)
    WHERE a.author = n.author
)
INSERT INTO records (author, seq, op, feed, route, lane, rank, item, at, deleted_by, pull_seq)
SELECT n.author, n.seq, n.op, n.feed, 2, n.lane, n.rank, n.item, n.at, n.deleted_by, taken.before + n.nth
FROM taken, unnest($5::integer[], $6::bigint[], $7::smallint[], $8::smallint[], $9::smallint[], $10::bigint[], $11::bigint[],
                   $12::bigint[], $13::bigint[]) WITH ORDINALITY AS n(author, seq, op, feed, lane, rank, item, at, deleted_by, nth)";

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
        .bind(column(&readers, |(_, to)| rows::count(ledger.readers[&to.reader].quiet)))
        .bind(ledger.ended_direct.iter().copied().map(rows::item).collect::<Vec<_>>())
        .bind(column(addressed, |to| rows::user(to.reader)))
        .bind(column(addressed, |to| rows::count(to.seq)))
        .bind(column(addressed, |to| rows::item(to.key.item)))
        .bind(column(addressed, |to| to.key.rank))
        .bind(column(addressed, |to| to.at))
        .bind(column(addressed, |to| rows::user(to.author)))
        .bind(column(addressed, |to| rows::feed(to.feed)))
        .bind(column(addressed, |to| to.op as i16))
        .bind(column(addressed, |to| gone(to.key.item)))
        .execute(connection)
        .await?;
    Ok(())
}

async fn pull(connection: &mut PgConnection, ledger: &Ledger, pulled: &[&Appended]) -> sqlx::Result<()> {
    // The last of each author.
    let mut last: Vec<(i32, i64, i64)> =
        pulled.iter().zip(1..).map(|(record, nth)| (rows::user(record.author), nth, rows::count(record.seq))).collect();
    last.sort_unstable_by_key(|(author, nth, _)| (*author, -nth));
    last.dedup_by_key(|(author, ..)| *author);
    let ended = |author, seq| ledger.ended.get(&(author, seq)).map(|by| rows::count(*by));
    sqlx::query(PULL)
        .bind(rows::limit(pulled.len()))
        .bind(column(&last, |(author, ..)| *author))
        .bind(column(&last, |(_, nth, _)| *nth))
        .bind(column(&last, |(.., seq)| *seq))
        .bind(column(pulled, |record| rows::user(record.author)))
        .bind(column(pulled, |record| rows::count(record.seq)))
        .bind(column(pulled, |record| rows::signed(record.op as i16, record.feed)))
        .bind(column(pulled, |record| rows::feed(record.feed)))
        .bind(column(pulled, |record| i16::from(record.aside)))
        .bind(column(pulled, |record| record.key.rank))
        .bind(column(pulled, |record| rows::item(record.key.item)))
        .bind(column(pulled, |record| record.at))
        .bind(column(pulled, |record| ended(record.author, record.seq)))
        .execute(connection)
        .await?;
    Ok(())
}
