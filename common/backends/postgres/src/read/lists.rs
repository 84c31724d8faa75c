//! Outboxes, recipients and the lists of follows: each a stretch of one index.

use feedgate_common::archive::{Edge, Follow, Outbox, Recipient};
use feedgate_common::{Bucket, OutboxSeq, Record, UserNo};
use sqlx::PgConnection;

use crate::rows;
use crate::users::user_id;

const OUTBOX: &str = "
SELECT a.head, r.seq, r.op, r.route, r.rank, r.item
FROM authors a
LEFT JOIN LATERAL (
    SELECT seq, op, route, rank, item FROM records WHERE author = a.author AND seq > $2 ORDER BY seq LIMIT $3
) r ON true
WHERE a.author = $1";

const EDGE: &str = "SELECT is_on, generation, from_seq FROM edges WHERE reader = $1 AND author = $2";

const FOLLOWEES: &str = "SELECT author FROM edges WHERE reader = $1 AND is_on ORDER BY author";

macro_rules! recipients {
    ($condition:literal) => {
        concat!(
            "SELECT e.reader, e.generation, e.from_seq, r.counter
             FROM edges e JOIN readers r ON r.reader = e.reader
             WHERE e.is_on AND e.author = $1 ",
            $condition
        )
    };
}

/// In the division that the index has.
const RECIPIENTS: &str = recipients!("AND e.bucket = $4 AND e.reader > $2 ORDER BY e.reader LIMIT $3");
/// In another: reads all followers of the author.
const RECIPIENTS_DIVIDED: &str = recipients!("AND e.reader % $5 = $4 AND e.reader > $2 ORDER BY e.reader LIMIT $3");
const ALL_RECIPIENTS: &str = recipients!("LIMIT $2");

const FOLLOWING: &str = "
SELECT u.name, e.since, e.generation
FROM edges e JOIN users u ON u.no = e.author
WHERE e.reader = $1 AND e.is_on AND e.generation < $2 ORDER BY e.generation DESC LIMIT $3";

const FOLLOWERS: &str = "
SELECT u.name, e.since, e.listed
FROM edges e JOIN users u ON u.no = e.reader
WHERE e.author = $1 AND e.is_on AND e.listed < $2 ORDER BY e.listed DESC LIMIT $3";

pub(crate) async fn outbox(
    connection: &mut PgConnection,
    author: UserNo,
    after: OutboxSeq,
    limit: usize,
) -> sqlx::Result<Outbox> {
    type Row = (i64, Option<i64>, Option<i16>, Option<i16>, Option<i64>, Option<i64>);
    let read: Vec<Row> = sqlx::query_as(OUTBOX)
        .bind(rows::user(author))
        .bind(rows::count(after))
        .bind(rows::limit(limit))
        .fetch_all(connection)
        .await?;
    let head = rows::count_of(read.first().map_or(0, |row| row.0))?;
    let mut records = Vec::with_capacity(read.len());
    for row in read {
        if let (_, Some(seq), Some(op), Some(route), Some(rank), Some(item)) = row {
            let (op, route) = (rows::op_of(op)?, rows::route_of(route)?);
            records.push(Record { seq: rows::count_of(seq)?, op, route, key: rows::key_of(rank, item) });
        }
    }
    Ok(Outbox { records, head })
}

pub(crate) async fn edge(connection: &mut PgConnection, reader: UserNo, author: UserNo) -> sqlx::Result<Edge> {
    let query = sqlx::query_as(EDGE).bind(rows::user(reader)).bind(rows::user(author));
    let read: Option<(bool, i64, i64)> = query.fetch_optional(connection).await?;
    let Some((on, generation, from)) = read else { return Ok(Edge::default()) };
    Ok(Edge { on, generation: rows::count_of(generation)?, from: rows::count_of(from)? })
}

pub(crate) async fn followees(connection: &mut PgConnection, reader: UserNo) -> sqlx::Result<Vec<UserNo>> {
    let read: Vec<i32> = sqlx::query_scalar(FOLLOWEES).bind(rows::user(reader)).fetch_all(connection).await?;
    read.into_iter().map(rows::user_of).collect()
}

/// Some of an author's followers: those whose number leaves `bucket` when divided by `buckets`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) author: UserNo,
    pub(crate) bucket: Bucket,
    pub(crate) buckets: u16,
    /// By how many the index divides.
    pub(crate) layout: u16,
}

pub(crate) async fn recipients(
    connection: &mut PgConnection,
    share: Share,
    after: Option<UserNo>,
    limit: usize,
) -> sqlx::Result<Vec<Recipient>> {
    let divided = share.buckets != share.layout;
    let query = sqlx::query_as(if divided { RECIPIENTS_DIVIDED } else { RECIPIENTS })
        .bind(rows::user(share.author))
        .bind(after.map_or(-1, rows::user))
        .bind(rows::limit(limit));
    let query = match divided {
        true => query.bind(i32::from(share.bucket.0)).bind(i32::from(share.buckets)),
        false => query.bind(share.bucket.0.cast_signed()),
    };
    query.fetch_all(connection).await?.into_iter().map(recipient).collect()
}

pub(crate) async fn all_recipients(
    connection: &mut PgConnection,
    author: UserNo,
    limit: usize,
) -> sqlx::Result<Vec<Recipient>> {
    let query = sqlx::query_as(ALL_RECIPIENTS).bind(rows::user(author)).bind(rows::limit(limit));
    query.fetch_all(connection).await?.into_iter().map(recipient).collect()
}

fn recipient((reader, generation, from, counter): (i32, i64, i64, i64)) -> sqlx::Result<Recipient> {
    Ok(Recipient {
        reader: rows::user_of(reader)?,
        generation: rows::count_of(generation)?,
        from: rows::count_of(from)?,
        counter: rows::count_of(counter)?,
    })
}

/// Whom a user follows, newest edge first. The cursor is the edge's generation, which is the reader's own count.
pub(crate) async fn following(
    connection: &mut PgConnection,
    reader: UserNo,
    cursor: Option<u64>,
    limit: usize,
) -> sqlx::Result<Vec<Follow>> {
    follows(connection, FOLLOWING, reader, cursor, limit).await
}

/// Who follows a user, newest edge first. Generations of several readers have no order, so edges are numbered besides.
pub(crate) async fn followers(
    connection: &mut PgConnection,
    author: UserNo,
    cursor: Option<u64>,
    limit: usize,
) -> sqlx::Result<Vec<Follow>> {
    follows(connection, FOLLOWERS, author, cursor, limit).await
}

async fn follows(
    connection: &mut PgConnection,
    list: &'static str,
    user: UserNo,
    cursor: Option<u64>,
    limit: usize,
) -> sqlx::Result<Vec<Follow>> {
    let read: Vec<(String, i64, i64)> = sqlx::query_as(list)
        .bind(rows::user(user))
        .bind(cursor.map_or(i64::MAX, rows::count))
        .bind(rows::limit(limit))
        .fetch_all(connection)
        .await?;
    let follow = |(name, since, cursor): (String, i64, i64)| {
        Ok(Follow { user: user_id(&name)?, since, cursor: rows::count_of(cursor)? })
    };
    read.into_iter().map(follow).collect()
}
