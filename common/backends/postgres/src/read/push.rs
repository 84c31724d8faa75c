//! The reads of the fan-out: outboxes, recipients, and the numbers of pulled records. Each statement reads a range of
//! one index.

use feedgate_common::archive::{Outbox, PullHead, Recipient};
use feedgate_common::{Bucket, OutboxSeq, PullSeq, Record, UserNo};
use sqlx::PgConnection;

use crate::rows;

const OUTBOX: &str = "
SELECT a.head, a.last_pull, r.history, r.seq, r.op, r.feed, r.route, r.rank, r.item
FROM authors a
LEFT JOIN LATERAL (
    SELECT seq, op, feed, route, rank, item, history FROM records WHERE author = a.author AND seq > $2 ORDER BY seq LIMIT $3
) r ON true
WHERE a.author = $1";

macro_rules! recipients {
    ($condition:literal) => {
        concat!(
            "SELECT e.reader, e.generation, e.from_seq, r.counter, r.listens
             FROM edges e JOIN readers r ON r.reader = e.reader
             WHERE e.is_on AND e.author = $1 ",
            $condition
        )
    };
}

/// The recipients in one bucket, where the buckets are those of the index.
const RECIPIENTS: &str = recipients!("AND e.bucket = $4 AND e.reader > $2 ORDER BY e.reader LIMIT $3");
/// The recipients in one bucket of another division, for which all followers of the author are read.
const RECIPIENTS_DIVIDED: &str = recipients!("AND e.reader % $5 = $4 AND e.reader > $2 ORDER BY e.reader LIMIT $3");
const ALL_RECIPIENTS: &str = recipients!("LIMIT $2");
const RECIPIENTS_AMONG: &str = recipients!("AND e.reader = ANY($2) ORDER BY e.reader");

const PULL_HEAD: &str = "SELECT value FROM counters WHERE name = 'pull'";

const PULL_HEADS: &str = "
SELECT last_told, author FROM authors WHERE last_told > $1 AND last_told > 0 ORDER BY last_told LIMIT $2";

pub(crate) async fn outbox(
    connection: &mut PgConnection,
    author: UserNo,
    after: OutboxSeq,
    limit: usize,
) -> sqlx::Result<Outbox> {
    type Row = (i64, i64, Option<bool>, Option<i64>, Option<i16>, Option<i16>, Option<i16>, Option<i64>, Option<i64>);
    let read: Vec<Row> = sqlx::query_as(OUTBOX)
        .bind(rows::user(author))
        .bind(rows::count(after))
        .bind(rows::limit(limit))
        .fetch_all(connection)
        .await?;
    let (head, last_pull) = read.first().map_or((0, 0), |row| (row.0, row.1));
    let (head, last_pull) = (rows::count_of(head)?, rows::count_of(last_pull)?);
    let mut outbox = Outbox { records: Vec::with_capacity(read.len()), head, last_pull, imported: vec![] };
    for row in read {
        if let (_, _, Some(history), Some(seq), Some(op), Some(feed), Some(route), Some(rank), Some(item)) = row {
            add_record(&mut outbox, (seq, op, feed, route, rank, item), history)?;
        }
    }
    Ok(outbox)
}

/// Adds a row of `records` to an outbox. `history` says whether the record was imported.
pub(super) fn add_record(
    outbox: &mut Outbox,
    (seq, op, feed, route, rank, item): (i64, i16, i16, i16, i64, i64),
    history: bool,
) -> sqlx::Result<()> {
    let (seq, op, feed) = (rows::count_of(seq)?, rows::op_of(op)?, rows::feed_of(feed)?);
    let (route, key) = (rows::route_of(route)?, rows::key_of(rank, item));
    outbox.records.push(Record { seq, op, route, feed, key });
    outbox.imported.extend(history.then_some(seq));
    Ok(())
}

/// A part of an author's followers: those whose number leaves the remainder `bucket` when divided by `buckets`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) author: UserNo,
    pub(crate) bucket: Bucket,
    pub(crate) buckets: u16,
    /// The number of buckets into which the index divides readers.
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

pub(crate) async fn recipients_among(
    connection: &mut PgConnection,
    author: UserNo,
    readers: &[UserNo],
) -> sqlx::Result<Vec<Recipient>> {
    let readers: Vec<i32> = readers.iter().copied().map(rows::user).collect();
    let query = sqlx::query_as(RECIPIENTS_AMONG).bind(rows::user(author)).bind(readers);
    query.fetch_all(connection).await?.into_iter().map(recipient).collect()
}

pub(super) fn recipient(
    (reader, generation, from, counter, listens): (i32, i64, i64, i64, bool),
) -> sqlx::Result<Recipient> {
    Ok(Recipient {
        reader: rows::user_of(reader)?,
        generation: rows::count_of(generation)?,
        from: rows::count_of(from)?,
        counter: rows::count_of(counter)?,
        listens,
    })
}

pub(crate) async fn pull_head(connection: &mut PgConnection) -> sqlx::Result<PullSeq> {
    rows::count_of(sqlx::query_scalar(PULL_HEAD).fetch_one(connection).await?)
}

pub(crate) async fn pull_heads(
    connection: &mut PgConnection,
    after: PullSeq,
    limit: usize,
) -> sqlx::Result<Vec<PullHead>> {
    let query = sqlx::query_as(PULL_HEADS).bind(rows::count(after)).bind(rows::limit(limit));
    let read: Vec<(i64, i32)> = query.fetch_all(connection).await?;
    let head =
        |(pull_seq, author)| Ok(PullHead { pull_seq: rows::count_of(pull_seq)?, author: rows::user_of(author)? });
    read.into_iter().map(head).collect()
}
