//! What an edge shows of the time before the follow, if that may be any number of adds.
//!
//! A follow that shows the whole past, and an imported one, show all adds from `past` to `from`. A follow step brings
//! the newest of them in display order, and pages bring the rest. Before `past` they show the newest in outbox order,
//! as every follow does.

use std::cmp::Reverse;

use feedgate_common::archive::FeedAdd;
use feedgate_common::{DisplayKey, Generation, InboxKey, OutboxSeq, UserNo};
use sqlx::PgConnection;

use super::span::EdgeOn;
use crate::rows;

/// The newest living adds of each track between two places of an outbox; of narrowed ones, only those whose audience
/// has the reader, and the reader's own. A track is a `lane` in the database. The places are no condition of an index:
/// the order is by rank.
const NEWEST: &str = "
SELECT asked.n, next.seq, next.rank, next.item
FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $7::smallint[])
    WITH ORDINALITY AS asked(author, past, from_seq, lane, n)
CROSS JOIN LATERAL (
    SELECT seq, rank, item FROM records r
    WHERE r.author = asked.author AND r.lane = asked.lane AND r.deleted_by IS NULL
      AND r.seq + 0 > asked.past AND r.seq + 0 <= asked.from_seq AND r.op = 1 AND r.feed = $4
      AND (r.route <> 3 OR r.author = $5
           OR EXISTS (SELECT FROM audiences a WHERE a.item = r.item AND $5 = ANY(a.readers)))
    ORDER BY r.rank DESC, r.item DESC LIMIT $6
) next";

/// The newest adds up to `past` that stood there, without those that were deleted since, and of narrowed ones those
/// whose audience has the reader, and the reader's own.
const BEFORE: &str = "
SELECT asked.n, before.seq, before.rank, before.item
FROM unnest($1::integer[], $2::bigint[]) WITH ORDINALITY AS asked(author, past, n)
CROSS JOIN LATERAL (
    SELECT seq, rank, item, route, deleted_by FROM records
    WHERE author = asked.author AND seq <= asked.past
      AND (deleted_by IS NULL OR deleted_by > asked.past) AND op = 1 AND feed = $3
    ORDER BY seq DESC LIMIT $5
) before
WHERE before.deleted_by IS NULL
  AND (before.route <> 3 OR asked.author = $4
       OR EXISTS (SELECT FROM audiences a WHERE a.item = before.item AND $4 = ANY(a.readers)))";

const TRACKS: [i16; 2] = [0, 1];

/// An edge with such a past.
pub(super) struct LongPast {
    /// The caller's place for the edge.
    at: usize,
    author: UserNo,
    generation: Generation,
    past: OutboxSeq,
    from: OutboxSeq,
    /// How many adds a step brings of either part.
    most: usize,
}

impl LongPast {
    /// The long past of the edge that stands at the place `at` of the caller's list.
    pub(super) fn of(at: usize, shown: &EdgeOn, from: OutboxSeq) -> Self {
        let &EdgeOn { author, generation, past, backfill } = shown;
        Self { at, author, generation, past, from, most: backfill }
    }

    fn add(&self, seq: i64, key: DisplayKey) -> sqlx::Result<FeedAdd> {
        let (author, generation) = (self.author, self.generation);
        Ok(FeedAdd { author, outbox_seq: rows::count_of(seq)?, generation, key })
    }
}

/// For each edge its place, what a step brings of it up to `from` in outbox order, and the key of the next add, if
/// there are more.
pub(super) async fn adds(
    connection: &mut PgConnection,
    inbox: InboxKey,
    pasts: &[LongPast],
) -> sqlx::Result<Vec<(usize, Vec<FeedAdd>, Option<DisplayKey>)>> {
    let Some(most) = pasts.iter().map(|past| past.most).max() else { return Ok(vec![]) };
    let newest = newest(&mut *connection, inbox, pasts, most).await?;
    let mut before = before(connection, inbox, pasts, most).await?;
    for ((past, newest), all) in pasts.iter().zip(newest).zip(&mut before) {
        let mut newest = newest;
        newest.sort_unstable_by_key(|add| Reverse(add.key));
        all.1 = newest.get(past.most).map(|add| add.key);
        all.0.extend(newest.into_iter().take(past.most));
        all.0.sort_unstable_by_key(|add| add.outbox_seq);
    }
    Ok(pasts.iter().zip(before).map(|(past, (adds, floor))| (past.at, adds, floor)).collect())
}

/// Gives for each edge some adds between `past` and `from`, among them the newest `most`, and one more if there is one.
async fn newest(
    connection: &mut PgConnection,
    InboxKey { reader, feed }: InboxKey,
    pasts: &[LongPast],
    most: usize,
) -> sqlx::Result<Vec<Vec<FeedAdd>>> {
    let tracks = || pasts.iter().flat_map(|past| TRACKS.map(|lane| (past, lane)));
    let read: Vec<(i64, i64, i64, i64)> = sqlx::query_as(NEWEST)
        .bind(tracks().map(|(past, _)| rows::user(past.author)).collect::<Vec<i32>>())
        .bind(tracks().map(|(past, _)| rows::count(past.past)).collect::<Vec<i64>>())
        .bind(tracks().map(|(past, _)| rows::count(past.from)).collect::<Vec<i64>>())
        .bind(rows::feed(feed))
        .bind(rows::user(reader))
        .bind(rows::limit(most.saturating_add(1)))
        .bind(tracks().map(|(_, lane)| lane).collect::<Vec<i16>>())
        .fetch_all(connection)
        .await?;
    let mut all = vec![vec![]; pasts.len()];
    for (n, seq, rank, item) in read {
        let at = usize::try_from(n - 1).unwrap_or_default() / TRACKS.len();
        all[at].push(pasts[at].add(seq, rows::key_of(rank, item))?);
    }
    Ok(all)
}

/// Gives for each edge the adds up to `past`, without a floor so far.
async fn before(
    connection: &mut PgConnection,
    InboxKey { reader, feed }: InboxKey,
    pasts: &[LongPast],
    most: usize,
) -> sqlx::Result<Vec<(Vec<FeedAdd>, Option<DisplayKey>)>> {
    let mut all = vec![(vec![], None); pasts.len()];
    let some: Vec<usize> = (0..pasts.len()).filter(|&at| pasts[at].past > 0).collect();
    if some.is_empty() {
        return Ok(all);
    }
    let read: Vec<(i64, i64, i64, i64)> = sqlx::query_as(BEFORE)
        .bind(some.iter().map(|&at| rows::user(pasts[at].author)).collect::<Vec<i32>>())
        .bind(some.iter().map(|&at| rows::count(pasts[at].past)).collect::<Vec<i64>>())
        .bind(rows::feed(feed))
        .bind(rows::user(reader))
        .bind(rows::limit(most))
        .fetch_all(connection)
        .await?;
    for (n, seq, rank, item) in read {
        let at = some[usize::try_from(n - 1).unwrap_or_default()];
        all[at].0.push(pasts[at].add(seq, rows::key_of(rank, item))?);
    }
    Ok(all)
}
