//! Events: work that accepted writes left to be done. An event is a value in the column `due` of authors and edges, or
//! `direct_due` of readers.
//!
//! ```text
//!   null ── write ──▶ due since t ── finish up to the head ──▶ null
//!                       │    ▲
//!                       └────┘ finish short of the head: due since the next record's time
//!
//!   any ── reopen ──▶ 0 ── finish: gives a number ──▶ -1 ── finish under that number, up to the head ──▶ null
//!                     ▲                               │
//!                     └──────────── reopen ───────────┘
//! ```
//!
//! Each statement is a transaction, and locks its rows in the order of their numbers, as writes do.

use std::collections::BTreeMap;

use feedgate_common::archive::{Event, Outstanding};
use feedgate_common::{Millis, UserNo};
use sqlx::PgConnection;

use crate::rows;

/// The outstanding events by time. At equal times authors come before edges and edges before readers, each by number.
const OUTSTANDING: &str = "
SELECT * FROM (
    SELECT due, 0 AS kind, author AS one, 0 AS other, head AS reach FROM authors
    WHERE due <= $1 AND (due, author) > ($3, $4) ORDER BY due, author LIMIT $2
) outboxes
UNION ALL
SELECT * FROM (
    SELECT due, 1, reader, author, generation FROM edges
    WHERE due <= $1 AND (due, reader, author) > ($3, $5, $6) ORDER BY due, reader, author LIMIT $2
) changes
UNION ALL
SELECT * FROM (
    SELECT direct_due, 2, reader, 0, direct FROM readers
    WHERE direct_due <= $1 AND (direct_due, reader) > ($3, $7) ORDER BY direct_due, reader LIMIT $2
) addressed
ORDER BY due, kind, one, other LIMIT $2";

/// Finishes pushes of authors up to a record. If the record behind the finished ones was appended during the statement,
/// the statement does not see it: then the push stays outstanding since an earlier time, which does no harm. A reopened
/// push is finished only as a whole, by a worker that has gone through all its records since; only then is it known how
/// far the push is finished. Whether a push was reopened is read from the locked row, never from an older version of
/// that row.
const FINISH_OUTBOXES: &str = "
WITH done AS (
    SELECT a.author, done.seq, done.redo, a.due AS was
    FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS done(author, seq, redo)
    JOIN authors a ON a.author = done.author
    WHERE a.due IS NOT NULL ORDER BY a.author FOR UPDATE OF a
)
UPDATE authors a
SET redo = CASE WHEN done.was = 0 THEN a.redo + 1 ELSE a.redo END,
    due = CASE WHEN done.was = 0 OR done.was = -1 AND (done.redo <> a.redo OR done.seq < a.head) THEN -1
               WHEN done.seq >= a.head THEN NULL
               ELSE greatest(a.due, (SELECT at FROM records r WHERE r.author = a.author AND r.seq = done.seq + 1)) END,
    finished = CASE WHEN done.was = 0 OR done.was = -1 AND done.redo <> a.redo THEN a.finished
                    ELSE greatest(a.finished, least(done.seq, a.head)) END
FROM done WHERE a.author = done.author AND a.due IS NOT NULL
RETURNING a.author, a.head, CASE WHEN done.was <= 0 AND done.redo <> a.redo THEN a.redo END";

/// Finishes edges. An edge that has changed again meanwhile stays outstanding.
const FINISH_CHANGES: &str = "
WITH done AS (
    SELECT e.reader, e.author, done.generation
    FROM unnest($1::integer[], $2::integer[], $3::bigint[]) AS done(reader, author, generation)
    JOIN edges e ON e.reader = done.reader AND e.author = done.author
    WHERE e.due IS NOT NULL ORDER BY e.reader, e.author FOR UPDATE OF e
)
UPDATE edges e SET due = NULL
FROM done WHERE e.reader = done.reader AND e.author = done.author AND e.generation <= done.generation";

const EDGES_DUE: &str = "SELECT author FROM edges WHERE reader = $1 AND due IS NOT NULL ORDER BY author LIMIT $2";

/// Finishes what is addressed to readers up to a record. A record that is addressed during the statement is not seen;
/// then the rest stays outstanding since an earlier time.
const FINISH_DIRECT: &str = "
WITH done AS (
    SELECT r.reader, done.seq
    FROM unnest($1::integer[], $2::bigint[]) AS done(reader, seq) JOIN readers r ON r.reader = done.reader
    WHERE r.direct_due IS NOT NULL ORDER BY r.reader FOR UPDATE OF r
)
UPDATE readers r
SET direct_due = CASE WHEN done.seq >= r.direct THEN NULL ELSE greatest(r.direct_due, (
    SELECT at FROM direct d WHERE d.reader = r.reader AND d.seq = done.seq + 1)) END
FROM done WHERE r.reader = done.reader AND r.direct_due IS NOT NULL";

/// Makes pushes of authors outstanding since 0, so that they are due at once.
const REOPEN: &str = "
WITH closed AS (SELECT author FROM authors WHERE author = ANY($1) AND due IS DISTINCT FROM 0 ORDER BY author FOR UPDATE)
UPDATE authors a SET due = 0 FROM closed WHERE a.author = closed.author";

pub(crate) async fn outstanding(
    connection: &mut PgConnection,
    after: Option<Outstanding>,
    not_after: Millis,
    limit: usize,
) -> sqlx::Result<Vec<Outstanding>> {
    const LAST: i32 = i32::MAX;
    // The place in the order of `OUTSTANDING` to go on from: an author, an edge, and a reader.
    let (since, author, (reader, of), to) = match after {
        None => (i64::MIN, -1, (-1, -1), -1),
        Some(Outstanding { since, event }) => match event {
            Event::Outbox { author, .. } => (since, rows::user(author), (-1, -1), -1),
            Event::Edge { reader, author, .. } => (since, LAST, (rows::user(reader), rows::user(author)), -1),
            Event::Direct { reader, .. } => (since, LAST, (LAST, LAST), rows::user(reader)),
        },
    };
    let read: Vec<(i64, i32, i32, i32, i64)> = sqlx::query_as(OUTSTANDING)
        .bind(not_after)
        .bind(rows::limit(limit))
        .bind(since)
        .bind(author)
        .bind(reader)
        .bind(of)
        .bind(to)
        .fetch_all(connection)
        .await?;
    let line = |(since, kind, one, other, reach)| {
        let (one, reach) = (rows::user_of(one)?, rows::count_of(reach)?);
        let event = match kind {
            0 => Event::Outbox { author: one, seq: reach, redo: 0 },
            1 => Event::Edge { reader: one, author: rows::user_of(other)?, generation: reach },
            _ => Event::Direct { reader: one, seq: reach },
        };
        Ok(Outstanding { since, event })
    };
    read.into_iter().map(line).collect()
}

pub(crate) async fn edges_due(
    connection: &mut PgConnection,
    reader: UserNo,
    limit: usize,
) -> sqlx::Result<Vec<UserNo>> {
    let query = sqlx::query_scalar(EDGES_DUE).bind(rows::user(reader)).bind(rows::limit(limit));
    let read: Vec<i32> = query.fetch_all(connection).await?;
    read.into_iter().map(rows::user_of).collect()
}

pub(crate) async fn finish(connection: &mut PgConnection, events: &[Event]) -> sqlx::Result<Vec<Event>> {
    let mut outboxes: BTreeMap<UserNo, (u64, u64)> = BTreeMap::new();
    let mut changes: BTreeMap<(UserNo, UserNo), u64> = BTreeMap::new();
    let mut addressed: BTreeMap<UserNo, u64> = BTreeMap::new();
    for event in events {
        let furthest = match *event {
            Event::Outbox { author, seq, redo } => {
                let furthest = outboxes.entry(author).or_default();
                *furthest = (seq, redo).max(*furthest);
                continue;
            }
            Event::Edge { reader, author, generation } => (changes.entry((reader, author)).or_default(), generation),
            Event::Direct { reader, seq } => (addressed.entry(reader).or_default(), seq),
        };
        *furthest.0 = furthest.1.max(*furthest.0);
    }
    let mut stay = vec![];
    if !outboxes.is_empty() {
        stay = finish_outboxes(connection, &outboxes).await?;
    }
    if !changes.is_empty() {
        let readers: Vec<i32> = changes.keys().map(|(reader, _)| rows::user(*reader)).collect();
        let authors: Vec<i32> = changes.keys().map(|(_, author)| rows::user(*author)).collect();
        let generations: Vec<i64> = changes.values().copied().map(rows::count).collect();
        sqlx::query(FINISH_CHANGES).bind(readers).bind(authors).bind(generations).execute(&mut *connection).await?;
    }
    if !addressed.is_empty() {
        let (readers, seqs) = columns(&addressed);
        sqlx::query(FINISH_DIRECT).bind(readers).bind(seqs).execute(connection).await?;
    }
    Ok(stay)
}

/// Finishes pushes of authors. Answers the pushes that stay outstanding because they were reopened.
async fn finish_outboxes(
    connection: &mut PgConnection,
    reached: &BTreeMap<UserNo, (u64, u64)>,
) -> sqlx::Result<Vec<Event>> {
    let authors: Vec<i32> = reached.keys().copied().map(rows::user).collect();
    let (seqs, redos): (Vec<i64>, Vec<i64>) =
        reached.values().map(|(seq, redo)| (rows::count(*seq), rows::count(*redo))).unzip();
    let finished: Vec<(i32, i64, Option<i64>)> =
        sqlx::query_as(FINISH_OUTBOXES).bind(authors).bind(seqs).bind(redos).fetch_all(connection).await?;
    let stay = finished.into_iter().filter_map(|(author, head, redo)| Some((author, head, redo?)));
    let event = |(author, head, redo)| {
        Ok(Event::Outbox { author: rows::user_of(author)?, seq: rows::count_of(head)?, redo: rows::count_of(redo)? })
    };
    stay.map(event).collect()
}

fn columns(reached: &BTreeMap<UserNo, u64>) -> (Vec<i32>, Vec<i64>) {
    reached.iter().map(|(user, seq)| (rows::user(*user), rows::count(*seq))).unzip()
}

pub(crate) async fn reopen(connection: &mut PgConnection, authors: &[UserNo]) -> sqlx::Result<()> {
    let authors: Vec<i32> = authors.iter().copied().map(rows::user).collect();
    sqlx::query(REOPEN).bind(authors).execute(connection).await?;
    Ok(())
}
