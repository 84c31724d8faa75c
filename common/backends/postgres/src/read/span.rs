//! The part of one author's outbox that an edge shows, and where it begins.

use std::collections::HashMap;

use feedgate_common::{DisplayKey, FeedId, Generation, OutboxSeq, UserNo};
use quick_cache::sync::Cache;
use sqlx::PgConnection;

use crate::rows;

/// How many starts of backfills are remembered; at most about 80 bytes each.
const REMEMBERED: usize = 50_000;

/// For each (author, past, backfill): the sequence number of the oldest of the newest `backfill` adds up to `past` that
/// no record up to `past` deletes, 1 if there are fewer adds, `past` + 1 if `backfill` is 0. Then the display key of
/// the first add of track 0 from there on.
const LOWS: &str = "
SELECT asked.n, low.seq, first.rank, first.item
FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS asked(author, past, backfill, n)
CROSS JOIN LATERAL (
    SELECT CASE WHEN asked.backfill = 0 THEN asked.past + 1 ELSE coalesce((
        SELECT seq FROM records
        WHERE author = asked.author AND seq <= asked.past
          AND (deleted_by IS NULL OR deleted_by > asked.past) AND op = 1 AND feed = $4
        ORDER BY seq DESC OFFSET greatest(asked.backfill - 1, 0) LIMIT 1
    ), 1) END AS seq
) low
LEFT JOIN LATERAL (
    SELECT rank, item FROM records
    WHERE author = asked.author AND lane = 0 AND seq >= low.seq AND op = 1 AND feed = $4
    ORDER BY seq LIMIT 1
) first ON true";

/// What reading a feed needs of an edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeOn {
    pub(super) author: UserNo,
    pub(super) generation: Generation,
    /// The end of the records from before the follow, of which only the newest are shown.
    pub(super) past: OutboxSeq,
    /// How many adds up to `past` the edge shows.
    pub(super) backfill: usize,
}

/// The adds of one author that an edge shows. Spans that are asked for together are of one feed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) author: UserNo,
    /// The generation of the edge.
    pub(super) generation: Generation,
    /// Where the span begins. Every living add from this start on is shown.
    pub(super) low: Low,
}

/// Where a span begins, in outbox order and in display order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Low {
    /// No add with a smaller sequence number is shown.
    pub(super) seq: OutboxSeq,
    /// No add of track 0 below this key is shown; `None` if track 0 has nothing to show.
    pub(super) key: Option<DisplayKey>,
}

impl Low {
    /// The start of a span that shows everything.
    pub(super) const LEAST: Self = Self { seq: 1, key: Some(DisplayKey::LEAST) };
}

/// Remembers where spans begin. A start depends only on the records at or below `past` and on the first add of track 0
/// after `past`. So a start never changes, and is right for every snapshot that holds these records.
pub(crate) struct Lows(Cache<(FeedId, UserNo, OutboxSeq, usize), Low>);

impl Default for Lows {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Lows {
    /// Where the span of each edge begins, in this feed.
    pub(super) async fn of(
        &self,
        connection: &mut PgConnection,
        feed: FeedId,
        edges: &[EdgeOn],
    ) -> sqlx::Result<Vec<Low>> {
        let known: Vec<Option<Low>> = edges.iter().map(|edge| self.known(feed, edge)).collect();
        let unknown: Vec<usize> = (0..edges.len()).filter(|&at| known[at].is_none()).collect();
        let mut counted = HashMap::new();
        if !unknown.is_empty() {
            counted = count_back(connection, feed, &unknown, edges).await?;
        }
        let remember = |(at, low): (usize, Option<Low>)| {
            low.unwrap_or_else(|| {
                let low = counted[&at];
                // If there is no key yet, the author's next add gives the key; so nothing is remembered.
                if low.key.is_some() {
                    let EdgeOn { author, past, backfill, .. } = edges[at];
                    self.0.insert((feed, author, past, backfill), low);
                }
                low
            })
        };
        Ok(known.into_iter().enumerate().map(remember).collect())
    }

    fn known(&self, feed: FeedId, &EdgeOn { author, past, backfill, .. }: &EdgeOn) -> Option<Low> {
        let everything = backfill > 0 && past <= backfill as OutboxSeq;
        if everything { Some(Low::LEAST) } else { self.0.get(&(feed, author, past, backfill)) }
    }
}

async fn count_back(
    connection: &mut PgConnection,
    feed: FeedId,
    unknown: &[usize],
    edges: &[EdgeOn],
) -> sqlx::Result<HashMap<usize, Low>> {
    let authors: Vec<i32> = unknown.iter().map(|&at| rows::user(edges[at].author)).collect();
    let pasts: Vec<i64> = unknown.iter().map(|&at| rows::count(edges[at].past)).collect();
    let backfills: Vec<i64> = unknown.iter().map(|&at| rows::limit(edges[at].backfill)).collect();
    let query = sqlx::query_as(LOWS).bind(&authors).bind(&pasts).bind(&backfills).bind(rows::feed(feed));
    let read: Vec<(i64, i64, Option<i64>, Option<i64>)> = query.fetch_all(connection).await?;
    read.into_iter()
        .map(|(n, seq, rank, item)| {
            let at = unknown[usize::try_from(n - 1).unwrap_or_default()];
            let low =
                Low { seq: rows::count_of(seq)?, key: rank.zip(item).map(|(rank, item)| rows::key_of(rank, item)) };
            Ok((at, low))
        })
        .collect()
}
