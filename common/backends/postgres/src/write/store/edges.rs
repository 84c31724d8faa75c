//! Stores edges, the followers counts of authors, shields, and which authors are private.

use std::collections::BTreeSet;

use feedgate_common::UserNo;
use sqlx::PgConnection;

use crate::rows::{self, column};
use crate::write::batch::Batch;

/// Computes in SQL what [`feedgate_common::graph::listed_at`] computes from `since` and the next number.
macro_rules! listed_at {
    () => {
        "(least(greatest(since, 0), 2199023255551) << 22) | (nextval('follows') & 4194303)"
    };
}

/// Stores changed edges. The edges come in the order of their follows, which is the order in the lists; they are
/// written in the order in which finished events lock edges. The place in the lists, which is by time, changes only
/// with a follow. The columns `due` and `quiet` change only with the edge's effect. The row of an author says whether
/// the author has an edge to itself; that row was locked for an update before.
const CHANGE_EDGES: &str = concat!(
    "
WITH counted AS (
    UPDATE readers r SET counter = n.counter
    FROM unnest($1::integer[], $2::bigint[]) AS n(reader, counter)
    WHERE r.reader = n.reader
),
changed AS (
    SELECT reader, author, bucket, is_on, generation, from_seq, coalesce(since, 0) AS since, due,
           CASE WHEN since IS NULL THEN 0 ELSE ",
    listed_at!(),
    " END AS listed, shields, held_back, quiet, past_seq, asked
    FROM unnest($3::integer[], $4::integer[], $5::smallint[], $6::boolean[], $7::bigint[], $8::bigint[], $9::bigint[],
                $10::bigint[], $11::smallint[], $12::boolean[], $13::boolean[], $14::bigint[], $15::boolean[])
        AS n(reader, author, bucket, is_on, generation, from_seq, since, due, shields, held_back, quiet, past_seq,
             asked)
),
own AS (
    UPDATE authors a SET own_edge = c.is_on OR c.held_back FROM changed c
    WHERE c.reader = c.author AND a.author = c.author
)
INSERT INTO edges AS e (reader, author, bucket, is_on, generation, from_seq, since, due, listed, shields, held_back, quiet,
                        past_seq, asked)
SELECT * FROM changed ORDER BY reader, author
ON CONFLICT (reader, author) DO UPDATE
SET is_on = excluded.is_on, generation = excluded.generation, from_seq = excluded.from_seq,
    past_seq = excluded.past_seq, asked = excluded.asked,
    listed = CASE WHEN excluded.listed = 0 THEN e.listed ELSE excluded.listed END,
    since = CASE WHEN excluded.listed = 0 THEN e.since ELSE excluded.since END,
    due = coalesce(e.due, excluded.due), shields = excluded.shields, held_back = excluded.held_back,
    quiet = CASE WHEN excluded.due IS NULL THEN e.quiet ELSE excluded.quiet AND (e.due IS NULL OR e.quiet) END"
);

/// Counts followers, and raises `changed`, the number of the state of an author's followers: it becomes the time in
/// microseconds, or one more than before. This runs before the statement of the edges, whose triggers raise the number
/// for the authors that are left out here: so the rows of all authors are locked in one order. Each connection counts
/// in one of sixteen rows of an author, so that few connections wait for each other. With more rows each publish would
/// have more to add up.
const COUNT: &str = "
INSERT INTO follower_counts AS c (author, slot, followers, changed)
SELECT author, pg_backend_pid() % 16, more, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
FROM unnest($1::integer[], $2::bigint[]) AS n(author, more) ORDER BY author
ON CONFLICT (author, slot) DO UPDATE
SET followers = c.followers + excluded.followers, changed = greatest(c.changed + 1, excluded.changed)";

/// Stores shields that went down, and those that went up in the order of the lists.
const SHIELD: &str = concat!(
    "
WITH down AS (
    DELETE FROM shields s USING unnest($1::integer[], $2::smallint[], $3::integer[]) AS n(owner, kind, other)
    WHERE s.owner = n.owner AND s.kind = n.kind AND s.other = n.other
)
INSERT INTO shields (owner, kind, other, since, listed)
SELECT owner, kind, other, since, ",
    listed_at!(),
    "
FROM unnest($4::integer[], $5::smallint[], $6::integer[], $7::bigint[]) AS n(owner, kind, other, since)
ON CONFLICT (owner, kind, other) DO UPDATE SET since = excluded.since, listed = excluded.listed"
);

/// Stores which authors are private. The call has locked the rows of these authors before.
const PRIVATE: &str = "
UPDATE authors a SET private = n.private FROM unnest($1::integer[], $2::boolean[]) AS n(author, private)
WHERE a.author = n.author";

pub(super) async fn all(connection: &mut PgConnection, batch: &Batch<'_>, buckets: u16) -> sqlx::Result<()> {
    if !batch.edges.is_empty() {
        count(connection, batch).await?;
        change_edges(connection, batch, buckets).await?;
    }
    if !batch.shields.is_empty() {
        shield(&mut *connection, batch).await?;
    }
    if !batch.privates.is_empty() {
        let privates: Vec<_> = batch.privates.iter().collect();
        sqlx::query(PRIVATE)
            .bind(column(&privates, |(author, _)| rows::user(**author)))
            .bind(column(&privates, |(_, private)| **private))
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn count(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let authors: BTreeSet<UserNo> = batch.edges.keys().map(|(_, author)| *author).collect();
    let authors: Vec<_> = authors.into_iter().collect();
    sqlx::query(COUNT)
        .bind(column(&authors, |author| rows::user(*author)))
        .bind(column(&authors, |author| batch.counted.get(author).copied().unwrap_or_default()))
        .execute(connection)
        .await?;
    Ok(())
}

async fn change_edges(connection: &mut PgConnection, batch: &Batch<'_>, buckets: u16) -> sqlx::Result<()> {
    let mut readers: Vec<_> = batch.edges.keys().map(|(reader, _)| *reader).collect();
    readers.dedup();
    let row = |edge| batch.rows.edges[edge].unwrap_or_default();
    let mut edges: Vec<_> =
        batch.edges.iter().map(|(edge, change)| (change.followed, *edge, row(edge), change)).collect();
    edges.sort_by_key(|(followed, ..)| *followed);
    sqlx::query(CHANGE_EDGES)
        .bind(column(&readers, |reader| rows::user(*reader)))
        .bind(column(&readers, |reader| rows::count(batch.rows.readers[reader].counter)))
        .bind(column(&edges, |(_, (reader, _), ..)| rows::user(*reader)))
        .bind(column(&edges, |(_, (_, author), ..)| rows::user(*author)))
        .bind(column(&edges, |(_, (reader, _), ..)| reader.bucket(buckets).0.cast_signed()))
        .bind(column(&edges, |(.., held, _)| held.edge().on))
        .bind(column(&edges, |(.., held, _)| rows::count(held.generation)))
        .bind(column(&edges, |(.., held, _)| rows::count(held.from)))
        .bind(column(&edges, |(followed, ..)| followed.map(|(_, at)| at)))
        .bind(column(&edges, |(.., change)| change.due))
        .bind(column(&edges, |(.., held, _)| i16::from(held.shields.0)))
        .bind(column(&edges, |(.., held, _)| held.follows && !held.edge().on))
        .bind(column(&edges, |(.., change)| change.quiet))
        .bind(column(&edges, |(.., held, _)| held.past.map(rows::count)))
        .bind(column(&edges, |(.., held, _)| held.asked))
        .execute(connection)
        .await?;
    Ok(())
}

async fn shield(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let down: Vec<_> = batch.shields.iter().filter(|(_, since)| since.is_none()).map(|(owned, _)| *owned).collect();
    let mut up: Vec<_> = batch.shields.iter().filter_map(|(owned, since)| Some(((*since)?, *owned))).collect();
    up.sort_unstable();
    sqlx::query(SHIELD)
        .bind(column(&down, |(owner, ..)| rows::user(*owner)))
        .bind(column(&down, |(_, kind, _)| *kind as i16))
        .bind(column(&down, |(.., other)| rows::user(*other)))
        .bind(column(&up, |(_, (owner, ..))| rows::user(*owner)))
        .bind(column(&up, |(_, (_, kind, _))| *kind as i16))
        .bind(column(&up, |(_, (.., other))| rows::user(*other)))
        .bind(column(&up, |((_, since), _)| *since))
        .execute(connection)
        .await?;
    Ok(())
}
