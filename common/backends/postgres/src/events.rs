//! What accepted writes left to be done: `due` in the rows of authors and edges, `direct_due` in those of readers.
//!
//! ```text
//!   null ── write ──▶ due since t ── finish up to the head ──▶ null
//!                       │    ▲
//!                       └────┘ finish short of the head: due since the next record's time
//! ```
//!
//! Each statement is a transaction, and locks its rows by number, as writes do.

use std::collections::BTreeMap;

use feedgate_common::archive::{Event, Outstanding};
use feedgate_common::{Millis, UserNo};
use sqlx::PgConnection;

use crate::rows;

/// Authors come before edges before readers of the same time, each by number.
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

/// A record that is appended meanwhile is not seen; then the rest stays outstanding since earlier, which is no harm.
/// Reopened work is finished as a whole; whether it was stands in the locked row, never in an older one.
const FINISH_OUTBOXES: &str = "
WITH done AS (
    SELECT a.author, done.seq, a.due AS was
    FROM unnest($1::integer[], $2::bigint[]) AS done(author, seq) JOIN authors a ON a.author = done.author
    WHERE a.due IS NOT NULL ORDER BY a.author FOR UPDATE OF a
)
UPDATE authors a
SET due = CASE WHEN done.seq >= a.head THEN NULL
               WHEN a.due = 0 THEN 0
               ELSE greatest(a.due, (SELECT at FROM records r WHERE r.author = a.author AND r.seq = done.seq + 1)) END
FROM done WHERE a.author = done.author AND a.due IS NOT NULL
RETURNING done.was = 0 AND a.due IS NULL";

/// An edge that has changed again meanwhile stays outstanding.
const FINISH_CHANGES: &str = "
WITH done AS (
    SELECT e.reader, e.author, done.generation
    FROM unnest($1::integer[], $2::integer[], $3::bigint[]) AS done(reader, author, generation)
    JOIN edges e ON e.reader = done.reader AND e.author = done.author
    WHERE e.due IS NOT NULL ORDER BY e.reader, e.author FOR UPDATE OF e
)
UPDATE edges e SET due = NULL
FROM done WHERE e.reader = done.reader AND e.author = done.author AND e.generation <= done.generation";

/// As with outboxes.
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

/// 0: due at once.
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
    // Behind which author, which edge, and which reader.
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
            0 => Event::Outbox { author: one, seq: reach },
            1 => Event::Edge { reader: one, author: rows::user_of(other)?, generation: reach },
            _ => Event::Direct { reader: one, seq: reach },
        };
        Ok(Outstanding { since, event })
    };
    read.into_iter().map(line).collect()
}

pub(crate) async fn finish(connection: &mut PgConnection, events: &[Event]) -> sqlx::Result<bool> {
    let mut outboxes: BTreeMap<UserNo, u64> = BTreeMap::new();
    let mut changes: BTreeMap<(UserNo, UserNo), u64> = BTreeMap::new();
    let mut addressed: BTreeMap<UserNo, u64> = BTreeMap::new();
    for event in events {
        let furthest = match *event {
            Event::Outbox { author, seq } => (outboxes.entry(author).or_default(), seq),
            Event::Edge { reader, author, generation } => (changes.entry((reader, author)).or_default(), generation),
            Event::Direct { reader, seq } => (addressed.entry(reader).or_default(), seq),
        };
        *furthest.0 = furthest.1.max(*furthest.0);
    }
    let mut reopened = vec![];
    if !outboxes.is_empty() {
        let (authors, seqs) = columns(&outboxes);
        let finished = sqlx::query_scalar(FINISH_OUTBOXES).bind(authors).bind(seqs);
        reopened = finished.fetch_all(&mut *connection).await?;
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
    Ok(reopened.contains(&true))
}

fn columns(reached: &BTreeMap<UserNo, u64>) -> (Vec<i32>, Vec<i64>) {
    reached.iter().map(|(user, seq)| (rows::user(*user), rows::count(*seq))).unzip()
}

pub(crate) async fn reopen(connection: &mut PgConnection, authors: &[UserNo]) -> sqlx::Result<()> {
    let authors: Vec<i32> = authors.iter().copied().map(rows::user).collect();
    sqlx::query(REOPEN).bind(authors).execute(connection).await?;
    Ok(())
}
