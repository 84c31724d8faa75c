//! What accepted writes left to be done: `due` in the rows of authors and edges.
//!
//! ```text
//!   null ── write ──▶ due since t ── finish up to the head ──▶ null
//!                       │    ▲
//!                       └────┘ finish short of the head: due since the next record's time
//! ```
//!
//! Rows are locked in the order in which writes lock them: authors, then edges, each by number.

use std::collections::BTreeMap;

use feedgate_common::archive::{Event, Outstanding};
use feedgate_common::{Millis, UserNo};
use sqlx::PgConnection;

use crate::rows;

/// Authors come before edges of the same time, each by number.
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
    // Behind which author, and behind which edge.
    let (since, author, (reader, of)) = match after {
        None => (i64::MIN, -1, (-1, -1)),
        Some(Outstanding { since, event: Event::Outbox { author, .. } }) => (since, rows::user(author), (-1, -1)),
        Some(Outstanding { since, event: Event::Edge { reader, author, .. } }) => {
            (since, i32::MAX, (rows::user(reader), rows::user(author)))
        }
    };
    let read: Vec<(i64, i32, i32, i32, i64)> = sqlx::query_as(OUTSTANDING)
        .bind(not_after)
        .bind(rows::limit(limit))
        .bind(since)
        .bind(author)
        .bind(reader)
        .bind(of)
        .fetch_all(connection)
        .await?;
    let line = |(since, kind, one, other, reach)| {
        let (one, reach) = (rows::user_of(one)?, rows::count_of(reach)?);
        let event = match kind {
            0 => Event::Outbox { author: one, seq: reach },
            _ => Event::Edge { reader: one, author: rows::user_of(other)?, generation: reach },
        };
        Ok(Outstanding { since, event })
    };
    read.into_iter().map(line).collect()
}

pub(crate) async fn finish(connection: &mut PgConnection, events: &[Event]) -> sqlx::Result<bool> {
    let mut outboxes: BTreeMap<UserNo, u64> = BTreeMap::new();
    let mut changes: BTreeMap<(UserNo, UserNo), u64> = BTreeMap::new();
    for event in events {
        let furthest = match *event {
            Event::Outbox { author, seq } => (outboxes.entry(author).or_default(), seq),
            Event::Edge { reader, author, generation } => (changes.entry((reader, author)).or_default(), generation),
        };
        *furthest.0 = furthest.1.max(*furthest.0);
    }
    let mut reopened = vec![];
    if !outboxes.is_empty() {
        let (authors, seqs): (Vec<i32>, Vec<i64>) =
            outboxes.iter().map(|(author, seq)| (rows::user(*author), rows::count(*seq))).unzip();
        let finished = sqlx::query_scalar(FINISH_OUTBOXES).bind(authors).bind(seqs);
        reopened = finished.fetch_all(&mut *connection).await?;
    }
    if !changes.is_empty() {
        let readers: Vec<i32> = changes.keys().map(|(reader, _)| rows::user(*reader)).collect();
        let authors: Vec<i32> = changes.keys().map(|(_, author)| rows::user(*author)).collect();
        let generations: Vec<i64> = changes.values().copied().map(rows::count).collect();
        sqlx::query(FINISH_CHANGES).bind(readers).bind(authors).bind(generations).execute(connection).await?;
    }
    Ok(reopened.contains(&true))
}

pub(crate) async fn reopen(connection: &mut PgConnection, authors: &[UserNo]) -> sqlx::Result<()> {
    let authors: Vec<i32> = authors.iter().copied().map(rows::user).collect();
    sqlx::query(REOPEN).bind(authors).execute(connection).await?;
    Ok(())
}
