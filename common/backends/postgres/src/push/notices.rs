//! Notices: what readers are still to be told. Each function is a transaction, and locks its rows in the order of their
//! keys, or passes by those that are locked.
//!
//! [`NoticeRow::settled`] decides what becomes of a notice after a call to a push service: the rows are locked, loaded
//! and stored. What a note and a retry make of a notice is repeated here in SQL, in `NOTE` and `RETRY_DEAD`. A note is
//! part of each push step to readers who listen, and loading the rows first took three times as long; and only one
//! statement is atomic where a row may be new.

use std::collections::HashMap;

use feedgate_common::archive::{DeadNotice, Note, Notice, Outcome, Settled, UNREAD_MAX};
use feedgate_common::notices::NoticeRow;
use feedgate_common::{DirectSeq, InboxKey, Millis, UserNo};
use sqlx::PgConnection;

use crate::rows;

/// Notes posts, each of another reader and feed, as `NoticeRow::noted` does. Nothing locks the sequence, so numbers
/// need not be in order.
const NOTE: &str = "
INSERT INTO push_notices AS known (reader, feed, item, count, number, due)
SELECT n.reader, n.feed, n.item, least(n.count, $6), nextval('push_numbers'), $5
FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::integer[]) AS n(reader, feed, item, count)
WHERE EXISTS (SELECT FROM push_devices d WHERE d.reader = n.reader AND n.feed = ANY(d.feeds))
ORDER BY n.reader, n.feed
ON CONFLICT (reader, feed) DO UPDATE
SET item = excluded.item,
    count = least(known.count + excluded.count, $6),
    number = excluded.number,
    due = CASE WHEN known.sent THEN greatest(known.due, excluded.due) ELSE known.due END,
    sent = false
WHERE known.item <> excluded.item";

/// Stores up to which record addressed to the reader was noted, in the transaction of the notes.
const NOTED: &str = "UPDATE readers SET noted = $2 WHERE reader = $1 AND listens AND noted < $2";

/// Removes notices that were sent and whose time has passed.
const FORGET: &str = "
WITH over AS (
    SELECT reader, feed FROM push_notices WHERE due <= $1 AND sent ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM push_notices p USING over WHERE p.reader = over.reader AND p.feed = over.feed";

const TAKE: &str = "
WITH due AS (
    SELECT reader, feed FROM push_notices WHERE due <= $1 AND NOT sent ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE push_notices p SET due = $2 FROM due WHERE p.reader = due.reader AND p.feed = due.feed
RETURNING p.reader, p.feed, p.item, p.count, p.number, p.tries, p.due, p.sent";

/// Locks the rows of these keys.
const LOCK: &str = "
SELECT p.reader, p.feed, p.item, p.count, p.number, p.tries, p.due, p.sent
FROM unnest($1::integer[], $2::smallint[]) AS k(reader, feed)
JOIN push_notices p ON p.reader = k.reader AND p.feed = k.feed
ORDER BY p.reader, p.feed FOR UPDATE OF p";

const STORE: &str = "
UPDATE push_notices p SET count = n.count, tries = n.tries, due = n.due, sent = n.sent
FROM unnest($1::integer[], $2::smallint[], $3::integer[], $4::integer[], $5::bigint[], $6::boolean[])
     AS n(reader, feed, count, tries, due, sent)
WHERE p.reader = n.reader AND p.feed = n.feed";

const REMOVE: &str = "
DELETE FROM push_notices p USING unnest($1::integer[], $2::smallint[]) AS k(reader, feed)
WHERE p.reader = k.reader AND p.feed = k.feed";

const BURY: &str = "
INSERT INTO push_dead (reader, feed, item, count, number, tries, why, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (reader, feed) DO UPDATE
SET item = excluded.item, count = excluded.count, number = excluded.number, tries = excluded.tries, why = excluded.why,
    at = excluded.at";

const DEAD: &str = "
SELECT reader, feed, item, count, number, tries, why, at FROM push_dead
WHERE (reader, feed) > ($1, $2) ORDER BY reader, feed LIMIT $3";

/// Makes dead notices due, as `NoticeRow::revived` does.
const RETRY_DEAD: &str = "
WITH chosen AS (
    SELECT reader, feed FROM push_dead WHERE $1::integer IS NULL OR reader = $1 ORDER BY reader, feed LIMIT $3 FOR UPDATE
), taken AS (
    DELETE FROM push_dead p USING chosen WHERE p.reader = chosen.reader AND p.feed = chosen.feed
    RETURNING p.reader, p.feed, p.item, p.count, p.number
), due AS (
    INSERT INTO push_notices AS known (reader, feed, item, count, number, due)
    SELECT reader, feed, item, count, number, $2 FROM taken ORDER BY reader, feed
    ON CONFLICT (reader, feed) DO UPDATE
    SET item = excluded.item, count = excluded.count, number = excluded.number, tries = 0, due = excluded.due,
        sent = false
    WHERE known.sent
)
SELECT count(*) FROM taken";

const FORGET_DEAD: &str = "
WITH chosen AS (
    SELECT reader, feed FROM push_dead WHERE $1::integer IS NULL OR reader = $1 ORDER BY reader, feed LIMIT $2 FOR UPDATE
)
DELETE FROM push_dead p USING chosen WHERE p.reader = chosen.reader AND p.feed = chosen.feed";

type Row = (i32, i16, i64, i32, i64, i32, i64, bool);

type DeadRow = (i32, i16, i64, i32, i64, i32, String, i64);

fn row_of((reader, feed, item, count, number, tries, due, sent): Row) -> sqlx::Result<(InboxKey, NoticeRow)> {
    let key = InboxKey { reader: rows::user_of(reader)?, feed: rows::feed_of(feed)? };
    let (count, number, tries) = (count.unsigned_abs(), rows::count_of(number)?, tries.unsigned_abs());
    Ok((key, NoticeRow { item: rows::item_of(item), count, number, tries, due, sent }))
}

fn notice_of(row: Row) -> sqlx::Result<Notice> {
    row_of(row).map(|(key, row)| row.notice(key))
}

fn readers_and_feeds(keys: impl Iterator<Item = InboxKey>) -> (Vec<i32>, Vec<i16>) {
    keys.map(|key| (rows::user(key.reader), rows::feed(key.feed))).unzip()
}

pub(crate) async fn note(
    connection: &mut PgConnection,
    notes: &[Note],
    due: Millis,
    noted: Option<(UserNo, DirectSeq)>,
) -> sqlx::Result<()> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    if let Some((reader, upto)) = noted {
        sqlx::query(NOTED).bind(rows::user(reader)).bind(rows::count(upto)).execute(&mut *connection).await?;
    }
    if !notes.is_empty() {
        let (readers, feeds) = readers_and_feeds(notes.iter().map(|note| note.key));
        sqlx::query(NOTE)
            .bind(readers)
            .bind(feeds)
            .bind(notes.iter().map(|note| rows::item(note.item)).collect::<Vec<_>>())
            .bind(notes.iter().map(|note| note.count.min(UNREAD_MAX).cast_signed()).collect::<Vec<_>>())
            .bind(due)
            .bind(UNREAD_MAX.cast_signed())
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query("COMMIT").execute(connection).await.map(drop)
}

pub(crate) async fn take_due(
    connection: &mut PgConnection,
    now: Millis,
    lease_until: Millis,
    limit: usize,
) -> sqlx::Result<Vec<Notice>> {
    sqlx::query(FORGET).bind(now).bind(rows::limit(limit.saturating_mul(4))).execute(&mut *connection).await?;
    let query = sqlx::query_as(TAKE).bind(now).bind(lease_until).bind(rows::limit(limit));
    query.fetch_all(connection).await?.into_iter().map(notice_of).collect()
}

pub(crate) async fn settle(connection: &mut PgConnection, settled: &[Settled], now: Millis) -> sqlx::Result<()> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let (readers, feeds) = readers_and_feeds(settled.iter().map(|settled| settled.notice.key));
    let locked = sqlx::query_as(LOCK).bind(readers).bind(feeds).fetch_all(&mut *connection).await?;
    let locked = locked.into_iter().map(row_of).collect::<sqlx::Result<HashMap<_, _>>>()?;
    let (mut stay, mut go) = (vec![], vec![]);
    for Settled { notice, outcome } in settled {
        let Some(row) = locked.get(&notice.key) else { continue };
        match row.settled(notice, outcome, now) {
            Some(row) => stay.push((notice.key, row)),
            None => go.push((row.notice(notice.key), outcome)),
        }
    }
    if !stay.is_empty() {
        store(connection, &stay).await?;
    }
    if !go.is_empty() {
        let (readers, feeds) = readers_and_feeds(go.iter().map(|(notice, _)| notice.key));
        sqlx::query(REMOVE).bind(readers).bind(feeds).execute(&mut *connection).await?;
    }
    for (notice, outcome) in go {
        if let Outcome::Dead { why, at } = outcome {
            bury(connection, &notice, why, *at).await?;
        }
    }
    sqlx::query("COMMIT").execute(connection).await.map(drop)
}

/// Stores what a call to a push service has changed in notices whose rows are locked.
async fn store(connection: &mut PgConnection, after: &[(InboxKey, NoticeRow)]) -> sqlx::Result<()> {
    let (readers, feeds) = readers_and_feeds(after.iter().map(|(key, _)| *key));
    let rows = || after.iter().map(|(_, row)| row);
    sqlx::query(STORE)
        .bind(readers)
        .bind(feeds)
        .bind(rows().map(|row| row.count.cast_signed()).collect::<Vec<_>>())
        .bind(rows().map(|row| row.tries.cast_signed()).collect::<Vec<_>>())
        .bind(rows().map(|row| row.due).collect::<Vec<_>>())
        .bind(rows().map(|row| row.sent).collect::<Vec<_>>())
        .execute(connection)
        .await
        .map(drop)
}

/// Puts a notice onto the list of dead ones.
async fn bury(connection: &mut PgConnection, notice: &Notice, why: &str, at: Millis) -> sqlx::Result<()> {
    sqlx::query(BURY)
        .bind(rows::user(notice.key.reader))
        .bind(rows::feed(notice.key.feed))
        .bind(rows::item(notice.item))
        .bind(notice.count.cast_signed())
        .bind(rows::count(notice.number))
        .bind(notice.tries.cast_signed())
        .bind(why)
        .bind(at)
        .execute(connection)
        .await
        .map(drop)
}

pub(crate) async fn dead(
    connection: &mut PgConnection,
    after: Option<InboxKey>,
    limit: usize,
) -> sqlx::Result<Vec<DeadNotice>> {
    let (reader, feed) = after.map_or((-1, -1), |after| (rows::user(after.reader), rows::feed(after.feed)));
    let query = sqlx::query_as(DEAD).bind(reader).bind(feed).bind(rows::limit(limit));
    let read: Vec<DeadRow> = query.fetch_all(connection).await?;
    let dead = |(reader, feed, item, count, number, tries, why, at): DeadRow| {
        Ok(DeadNotice { notice: notice_of((reader, feed, item, count, number, tries, at, false))?, why, at })
    };
    read.into_iter().map(dead).collect()
}

/// Makes dead notices due now. Answers how many.
pub(crate) async fn retry_dead(
    connection: &mut PgConnection,
    reader: Option<UserNo>,
    now: Millis,
    limit: usize,
) -> sqlx::Result<usize> {
    let query = sqlx::query_scalar(RETRY_DEAD).bind(reader.map(rows::user)).bind(now).bind(rows::limit(limit));
    let revived: i64 = query.fetch_one(connection).await?;
    Ok(usize::try_from(revived).unwrap_or_default())
}

/// Removes dead notices. Answers how many.
pub(crate) async fn forget_dead(
    connection: &mut PgConnection,
    reader: Option<UserNo>,
    limit: usize,
) -> sqlx::Result<usize> {
    let query = sqlx::query(FORGET_DEAD).bind(reader.map(rows::user)).bind(rows::limit(limit));
    let dead = query.execute(connection).await?.rows_affected();
    Ok(usize::try_from(dead).unwrap_or_default())
}
