//! Stores the records that readers take in by number: records addressed to readers, and records that readers pull.
//!
//! ```text
//!   items, edges, counts, … ─▶ the counter of what is pulled ─▶ COMMIT
//!                                └─ held from here on: the next one counts behind it, and commits behind it ─┘
//! ```

use std::collections::BTreeMap;

use feedgate_common::change::Route;
use sqlx::PgConnection;

use crate::rows::{self, column};
use crate::write::batch::{Appended, Batch};

/// Stores records addressed to readers, makes them outstanding, and marks the earlier adds of items that are deleted or
/// moved.
const ADDRESS: &str = "
WITH moved AS (
    UPDATE readers r SET direct = n.direct, direct_due = coalesce(r.direct_due, n.due),
        direct_quiet = n.quiet AND (r.direct_due IS NULL OR r.direct_quiet)
    FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::boolean[]) AS n(reader, direct, due, quiet)
    WHERE r.reader = n.reader
),
ended AS (
    UPDATE direct SET deleted = true WHERE item = ANY($5) AND op = 1 AND NOT ranked
)
INSERT INTO direct (reader, seq, item, rank, at, author, feed, op, deleted)
SELECT * FROM unnest($6::integer[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::integer[],
                     $12::smallint[], $13::smallint[], $14::boolean[])";

/// Stores the records of route pull, numbered in the order of the operations, and the last numbers of each author. The
/// one counter row that all transactions lock is locked here, after every other lock of the call, and only COMMIT
/// follows.
const PULL: &str = "
WITH taken AS (
    UPDATE counters SET value = value + $1 WHERE name = 'pull' RETURNING value - $1 AS before
),
newest AS (
    UPDATE authors a SET last_pull = taken.before + n.nth, last_told = coalesce(taken.before + n.told, a.last_told)
    FROM taken, unnest($2::integer[], $3::bigint[], $4::bigint[]) AS n(author, nth, told)
    WHERE a.author = n.author
)
INSERT INTO records (author, seq, op, feed, route, lane, rank, item, at, deleted_by, history, pull_seq)
SELECT n.author, n.seq, n.op, n.feed, 2, n.lane, n.rank, n.item, n.at, n.deleted_by, n.history, taken.before + n.nth
FROM taken, unnest($5::integer[], $6::bigint[], $7::smallint[], $8::smallint[], $9::smallint[], $10::bigint[], $11::bigint[],
                   $12::bigint[], $13::bigint[], $14::boolean[])
    WITH ORDINALITY AS n(author, seq, op, feed, lane, rank, item, at, deleted_by, history, nth)";

pub(super) async fn all(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    if !batch.addressed.is_empty() {
        address(connection, batch).await?;
    }
    let pulled: Vec<_> = batch.appended.iter().filter(|appended| appended.record.route == Route::Pull).collect();
    if !pulled.is_empty() {
        pull(connection, batch, &pulled).await?;
    }
    Ok(())
}

async fn address(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let addressed = &batch.addressed;
    let readers: Vec<_> = batch.told.iter().collect();
    let ended = batch.ended.iter().filter(|(_, by)| by.is_none()).map(|(id, _)| id);
    let gone: Vec<i64> = ended.chain(&batch.moved).copied().map(rows::item).collect();
    sqlx::query(ADDRESS)
        .bind(column(&readers, |(reader, _)| rows::user(**reader)))
        .bind(column(&readers, |(reader, _)| rows::count(batch.rows.readers[*reader].direct)))
        .bind(column(&readers, |(_, (due, _))| *due))
        .bind(column(&readers, |(_, (_, quiet))| *quiet))
        .bind(gone)
        .bind(column(addressed, |to| rows::user(to.reader)))
        .bind(column(addressed, |to| rows::count(to.seq)))
        .bind(column(addressed, |to| rows::item(to.key.item)))
        .bind(column(addressed, |to| to.key.rank))
        .bind(column(addressed, |to| to.at))
        .bind(column(addressed, |to| rows::user(to.author)))
        .bind(column(addressed, |to| rows::feed(to.feed)))
        .bind(column(addressed, |to| to.op as i16))
        .bind(column(addressed, |to| to.left || batch.ended.contains_key(&to.key.item)))
        .execute(connection)
        .await?;
    Ok(())
}

async fn pull(connection: &mut PgConnection, batch: &Batch<'_>, pulled: &[&Appended]) -> sqlx::Result<()> {
    // For each author: the number of the newest record, and of the newest record of which readers are told.
    let mut last: BTreeMap<i32, (i64, Option<i64>)> = BTreeMap::new();
    for (appended, nth) in pulled.iter().zip(1..) {
        let (newest, told) = last.entry(rows::user(appended.author)).or_default();
        *newest = nth;
        *told = if appended.history { *told } else { Some(nth) };
    }
    let last: Vec<_> = last.into_iter().collect();
    sqlx::query(PULL)
        .bind(rows::limit(pulled.len()))
        .bind(column(&last, |(author, _)| *author))
        .bind(column(&last, |(_, (newest, _))| *newest))
        .bind(column(&last, |(_, (_, told))| *told))
        .bind(column(pulled, |appended| rows::user(appended.author)))
        .bind(column(pulled, |appended| rows::count(appended.record.seq)))
        .bind(column(pulled, |appended| appended.record.op as i16))
        .bind(column(pulled, |appended| rows::feed(appended.record.feed)))
        .bind(column(pulled, |appended| i16::from(appended.aside)))
        .bind(column(pulled, |appended| appended.record.key.rank))
        .bind(column(pulled, |appended| rows::item(appended.record.key.item)))
        .bind(column(pulled, |appended| appended.at))
        .bind(column(pulled, |appended| appended.ended(batch)))
        .bind(column(pulled, |appended| appended.history))
        .execute(connection)
        .await?;
    Ok(())
}
