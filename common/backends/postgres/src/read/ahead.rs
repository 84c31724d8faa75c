//! What is ahead of the push of an author: the records that are not finished, and the followers who get them.
//!
//! It is one statement and so one snapshot. Calls that wait at the same time share a statement, so a burst of posts of many
//! authors costs few. A statement begins after each of its calls was made.

use std::sync::Arc;

use feedgate_common::UserNo;
use feedgate_common::archive::{Ahead, Outbox};
use feedgate_common::error::Result;
use sqlx::PgConnection;

use super::push;
use crate::groups::{Groups, UpTo};
use crate::pool::{self, Pool, work};
use crate::rows;

/// How many statements are under way at once.
const QUERIES: usize = 4;

/// A statement takes no further call once it has this many.
const AUTHORS_MAX: usize = 32;

/// How many calls may wait for a statement; further calls wait for a place.
const CALLS_MAX: usize = 16 * 1024;

/// Rows of two kinds for each author, at least one row. Rows of kind 0 are records; rows of kind 1 are followers, and there
/// are none if all of the records are pulled (route 2). A push that was reopened has no known end of what is finished.
const AHEAD: &str = "
SELECT asked.n, a.head, a.last_pull, a.finished, r.*
FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS asked(author, records, recipients, n)
CROSS JOIN LATERAL (
    SELECT head, last_pull, CASE WHEN due <= 0 THEN NULL ELSE finished END AS finished
    FROM authors WHERE author = asked.author OFFSET 0
) a
LEFT JOIN LATERAL (
    SELECT * FROM (
        SELECT 0::smallint AS kind, 0 AS reader, seq AS one, rank AS two, item AS three, op, feed, route, history AS flag
        FROM records WHERE author = asked.author AND seq > a.finished ORDER BY seq LIMIT asked.records
    ) records
    UNION ALL
    SELECT * FROM (
        SELECT 1::smallint, e.reader, e.generation, e.from_seq, r.counter, 0::smallint, 0::smallint, 0::smallint, r.listens
        FROM edges e JOIN readers r ON r.reader = e.reader
        WHERE e.is_on AND e.author = asked.author
          AND EXISTS (SELECT FROM records WHERE author = asked.author AND seq > a.finished AND route <> 2)
        LIMIT asked.recipients
    ) recipients
) r ON true";

type Row = (
    i64,
    i64,
    i64,
    Option<i64>,
    Option<i16>,
    Option<i32>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i16>,
    Option<i16>,
    Option<i16>,
    Option<bool>,
);

/// The author of whom is asked, and how many records and recipients are wanted.
#[derive(Debug, Clone, Copy)]
struct Asked {
    author: UserNo,
    records: usize,
    recipients: usize,
}

/// The calls that become one statement.
type Query = UpTo<AUTHORS_MAX, Asked, Option<Ahead>>;

async fn carry_out(query: Query, pool: &Pool) {
    let asked = query.asked();
    let asked = &asked[..];
    let found = pool.read(work!(|connection| read(connection, asked))).await;
    query.answer(found, |_, ahead| Ok(ahead));
}

async fn read(connection: &mut PgConnection, asked: &[Asked]) -> sqlx::Result<Vec<Option<Ahead>>> {
    let read: Vec<Row> = sqlx::query_as(AHEAD)
        .bind(asked.iter().map(|asked| rows::user(asked.author)).collect::<Vec<_>>())
        .bind(asked.iter().map(|asked| rows::limit(asked.records)).collect::<Vec<_>>())
        .bind(asked.iter().map(|asked| rows::limit(asked.recipients)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut found: Vec<Option<Ahead>> = asked.iter().map(|_| None).collect();
    for (n, head, last_pull, finished, kind, reader, one, two, three, op, feed, route, flag) in read {
        let Some(finished) = finished else { continue };
        let of = &mut found[usize::try_from(n - 1).unwrap_or_default()];
        let of = match of {
            Some(of) => of,
            None => of.insert(Ahead {
                finished: rows::count_of(finished)?,
                outbox: Outbox {
                    records: vec![],
                    head: rows::count_of(head)?,
                    last_pull: rows::count_of(last_pull)?,
                    live: 0,
                },
                recipients: vec![],
            }),
        };
        if let (Some(kind), Some(reader), Some(one), Some(two), Some(three)) = (kind, reader, one, two, three)
            && let (Some(op), Some(feed), Some(route), Some(flag)) = (op, feed, route, flag)
        {
            match kind {
                0 => push::add_record(&mut of.outbox, (one, op, feed, route, two, three), flag)?,
                _ => of.recipients.push(push::recipient((reader, one, two, three, flag))?),
            }
        }
    }
    // A union keeps no order by its terms.
    found.iter_mut().flatten().for_each(|ahead| ahead.outbox.records.sort_unstable_by_key(|record| record.seq));
    Ok(found)
}

/// The calls for what is ahead of this process, and the tasks that carry them out.
pub(crate) struct SharedAhead(Groups<Asked, Option<Ahead>>);

impl SharedAhead {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        Self(Groups::start(QUERIES, CALLS_MAX, move |query: Query| {
            let pool = pool.clone();
            async move { carry_out(query, &pool).await }
        }))
    }

    /// What is ahead of an author, as [`Outboxes::ahead`](feedgate_common::archive::Outboxes::ahead) says.
    pub(crate) async fn get(&self, author: UserNo, records: usize, recipients: usize) -> Result<Option<Ahead>> {
        let asked = Asked { author, records, recipients };
        self.0.ask(asked).await.unwrap_or_else(|| Err(pool::unanswered()))
    }
}
