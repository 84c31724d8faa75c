//! Reads the news that no push brings: records that a reader pulls, and records addressed to the reader.
//!
//! ```text
//!   authors beyond where the reader has pulled ─┐  the fewer of the two drive
//!   the reader's edges in effect ───────────────┴─▶ their records beyond, by number, as many as are wanted
//! ```
//!
//! One statement reads all, and so one snapshot: edges, records, and the counters that say how far the records go.
//! Numbers are given in the order of commits, so a snapshot that shows a number shows every record below it.
//!
//! Readers who ask at the same moment share a statement, as they do when a popular author wakes them: a million wakes
//! are not a million queries. Each reader gets the same news as by a statement of its own. A statement begins after
//! each of its calls was made.

use std::sync::Arc;

use feedgate_common::archive::News;
use feedgate_common::error::Result;
use feedgate_common::{Entry, InboxKey, Watermarks};
use sqlx::PgConnection;

use crate::fault::{self, corrupt};
use crate::groups::{Groups, UpTo, Weight};
use crate::pool::{self, Pool, work};
use crate::rows;

/// How many statements are under way at once.
const QUERIES: usize = 4;

/// A statement takes no further call once it has this many calls.
const READERS_MAX: usize = 128;

/// How many calls may wait for a statement; further calls wait for a place.
const CALLS_MAX: usize = 16 * 1024;

/// Rows of three kinds for each reader who asks:
/// - kind 0, one row: `number`, `seq` and `generation` say how far the pulled records, the direct records and the edges
///   go. `rank` is 1 if all direct records that are outstanding were imported. `item` is up to where direct records
///   were noted for a reader who listens, else -1.
/// - kind 1: pulled records, and kind 2: direct records; both of the feed that is asked for, by number, as many as are
///   wanted.
///
/// If at most 256 authors have news, the statement goes through these; else through the reader's edges. OFFSET 0 and
/// LIMIT keep the planner, which cannot know which are fewer this time, from changing that.
const NEWS: &str = "
WITH asked AS MATERIALIZED (
    SELECT a.*, (SELECT count(*) FROM (
        SELECT FROM authors h WHERE h.last_pull > a.pull AND h.last_pull > 0 ORDER BY h.last_pull LIMIT 257
    ) hot) <= 256 AS few
    FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[])
        WITH ORDINALITY AS a(reader, pull, direct, most, feed, n)
)
SELECT a.n, 0::smallint AS kind, c.value AS number, 0 AS author, coalesce(r.direct, 0) AS seq,
       coalesce(r.counter, 0) AS generation, 0::smallint AS op, coalesce(r.direct_quiet, false)::integer AS rank,
       CASE WHEN r.listens THEN r.noted ELSE -1 END AS item
FROM asked a JOIN counters c ON c.name = 'pull' LEFT JOIN readers r ON r.reader = a.reader
UNION ALL
SELECT a.n, 1::smallint, p.*
FROM asked a CROSS JOIN LATERAL (
    SELECT r.pull_seq, f.author, r.seq, f.generation, r.op, r.rank, r.item
    FROM (
        SELECT h.author, coalesce(e.generation, 0) AS generation, coalesce(e.from_seq, h.everyone_since) AS from_seq
        FROM (
            SELECT author, everyone_since FROM authors
            WHERE a.few AND last_pull > a.pull AND last_pull > 0 ORDER BY last_pull LIMIT 256
        ) h
        LEFT JOIN LATERAL (
            SELECT is_on, generation, from_seq FROM edges WHERE reader = a.reader AND author = h.author OFFSET 0
        ) e ON true
        WHERE coalesce(e.is_on, h.everyone_since IS NOT NULL AND h.author <> a.reader)
        UNION ALL
        SELECT e.author, e.generation, e.from_seq
        FROM (
            SELECT author, generation, from_seq FROM edges WHERE NOT a.few AND reader = a.reader AND is_on OFFSET 0
        ) e
        CROSS JOIN LATERAL (SELECT FROM authors WHERE author = e.author AND last_pull > a.pull OFFSET 0) h
        UNION ALL
        SELECT h.author, 0, h.everyone_since
        FROM authors h LEFT JOIN edges e ON e.reader = a.reader AND e.author = h.author
        WHERE NOT a.few AND h.everyone_since IS NOT NULL AND h.last_pull > a.pull AND e.reader IS NULL
          AND h.author <> a.reader
    ) f
    CROSS JOIN LATERAL (
        SELECT r.pull_seq, r.seq, r.op, r.rank, r.item FROM records r
        WHERE r.author = f.author AND r.feed = a.feed AND r.pull_seq > a.pull AND r.seq > f.from_seq
        ORDER BY r.pull_seq LIMIT a.most
    ) r
    ORDER BY r.pull_seq LIMIT a.most
) p
UNION ALL
SELECT a.n, 2::smallint, d.*
FROM asked a CROSS JOIN LATERAL (
    SELECT d.seq, d.author, 0::bigint, 0::bigint, d.op, d.rank, d.item FROM direct d
    WHERE d.reader = a.reader AND d.feed = a.feed AND d.seq > a.direct ORDER BY d.seq LIMIT a.most
) d";

type Row = (i64, i16, i64, i32, i64, i64, i16, i64, i64);

/// What one reader asks for, in one feed.
#[derive(Debug, Clone, Copy)]
struct Asked {
    key: InboxKey,
    after: Watermarks,
    limit: usize,
}

impl Weight for Asked {}

/// The calls that become one statement.
type Query = UpTo<READERS_MAX, Asked, News>;

async fn carry_out(query: Query, pool: &Pool) {
    let asked = query.asked();
    let asked = &asked[..];
    let found = pool.read(work!(|connection| read(connection, asked))).await;
    query.answer(found, |asked, found: Found| found.cut(asked).map_err(fault::store_error));
}

/// What a statement has found for one reader, by number.
#[derive(Default)]
struct Found {
    /// How far the counts of pulled records, of direct records and of edges go, and whether all that is direct and
    /// outstanding was imported, and how far what is direct was noted.
    counters: Option<(u64, u64, u64, bool, Option<u64>)>,
    pulled: Vec<(u64, Entry)>,
    direct: Vec<(u64, Entry)>,
}

impl Found {
    /// Cuts what was found to the limit, pulled records first, and says how far the rest goes.
    fn cut(mut self, Asked { after, limit, .. }: Asked) -> sqlx::Result<News> {
        let (pull, direct, counter, quiet, noted) =
            self.counters.ok_or_else(|| corrupt("no counter of what is pulled"))?;
        let pull = cut(&mut self.pulled, limit, after.pull, pull);
        let direct = cut(&mut self.direct, limit - self.pulled.len(), after.direct, direct);
        let entries = self.pulled.into_iter().chain(self.direct).map(|(_, entry)| entry).collect();
        Ok(News { entries, upto: Watermarks { pull, direct }, counter, quiet, noted })
    }
}

/// Keeps the first `limit` entries. Answers the number up to which they are complete: `head` if nothing was cut off.
fn cut(numbered: &mut Vec<(u64, Entry)>, limit: usize, after: u64, head: u64) -> u64 {
    if numbered.len() <= limit {
        return head;
    }
    numbered.truncate(limit);
    numbered.last().map_or(after, |(number, _)| *number)
}

async fn read(connection: &mut PgConnection, asked: &[Asked]) -> sqlx::Result<Vec<Found>> {
    let column = |value: fn(&Asked) -> i64| asked.iter().map(value).collect::<Vec<i64>>();
    let read: Vec<Row> = sqlx::query_as(NEWS)
        .bind(asked.iter().map(|asked| rows::user(asked.key.reader)).collect::<Vec<_>>())
        .bind(column(|asked| rows::count(asked.after.pull)))
        .bind(column(|asked| rows::count(asked.after.direct)))
        // One row more than wanted shows whether there are more.
        .bind(column(|asked| rows::limit(asked.limit.saturating_add(1))))
        .bind(asked.iter().map(|asked| rows::feed(asked.key.feed)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut found: Vec<Found> = asked.iter().map(|_| Found::default()).collect();
    for (n, kind, number, author, seq, generation, op, rank, item) in read {
        let of = &mut found[usize::try_from(n - 1).unwrap_or_default()];
        let (number, outbox_seq, generation) =
            (rows::count_of(number)?, rows::count_of(seq)?, rows::count_of(generation)?);
        if kind == 0 {
            of.counters = Some((number, outbox_seq, generation, rank != 0, u64::try_from(item).ok()));
            continue;
        }
        let (op, author, key) = (rows::op_of(op)?, rows::user_of(author)?, rows::key_of(rank, item));
        match kind {
            1 => of.pulled.push((number, Entry { op, author, outbox_seq, generation, key })),
            _ => of.direct.push((number, Entry::direct(op, author, key))),
        }
    }
    Ok(found)
}

/// The calls for news of this process, and the tasks that carry them out.
pub(crate) struct SharedNews(Groups<Asked, News>);

impl SharedNews {
    /// Starts the tasks on the current runtime.
    pub(crate) fn start(pool: Arc<Pool>) -> Self {
        Self(Groups::start(QUERIES, CALLS_MAX, move |query: Query| {
            let pool = pool.clone();
            async move { carry_out(query, &pool).await }
        }))
    }

    /// The news of one inbox, as [`Content::news`](feedgate_common::archive::Content::news) says.
    pub(crate) async fn get(&self, key: InboxKey, after: Watermarks, limit: usize) -> Result<News> {
        self.0.ask(Asked { key, after, limit }).await.unwrap_or_else(|| Err(pool::unanswered()))
    }
}
