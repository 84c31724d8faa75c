//! The newest of what an edge shows from before the follow, if that may be any number of adds.
//!
//! A follow that shows the whole past, and an imported one, show all adds from `past` to `from`. A follow step brings
//! the newest of them in display order; pages bring the rest.

use std::cmp::Reverse;

use feedgate_common::archive::{Edge, FeedAdd};
use feedgate_common::{DisplayKey, Generation, InboxKey, OutboxSeq, UserNo};
use sqlx::PgConnection;

use super::span::EdgeOn;
use crate::rows;

/// The newest living adds of each track between two places of an outbox; of narrowed ones, only those whose audience
/// has the reader. A track is a `lane` in the database.
const NEWEST: &str = "
SELECT asked.n, next.seq, next.rank, next.item
FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $7::smallint[])
    WITH ORDINALITY AS asked(author, past, from_seq, lane, n)
CROSS JOIN LATERAL (
    SELECT seq, rank, item FROM records r
    WHERE r.author = asked.author AND r.lane = asked.lane AND r.deleted_by IS NULL
      AND r.seq > asked.past AND r.seq <= asked.from_seq AND r.op = 1 AND r.feed = $4
      AND (r.route <> 3 OR EXISTS (SELECT FROM audiences a WHERE a.item = r.item AND $5 = ANY(a.readers)))
    ORDER BY r.rank DESC, r.item DESC LIMIT $6
) next";

const TRACKS: [i16; 2] = [0, 1];

/// An edge with such a past.
pub(super) struct LongPast {
    /// The caller's place for the edge.
    at: usize,
    author: UserNo,
    generation: Generation,
    past: OutboxSeq,
    from: OutboxSeq,
    /// How many adds a step brings.
    most: usize,
}

impl LongPast {
    /// That of an edge; `None` if only the newest of before the follow are shown.
    pub(super) fn of(at: usize, shown: &EdgeOn, edge: Edge) -> Option<Self> {
        let &EdgeOn { author, generation, past, backfill } = shown;
        (past < edge.from).then_some(Self { at, author, generation, past, from: edge.from, most: backfill })
    }
}

/// For each edge its place, the newest adds of its past, and the key of the next one, if there are more.
pub(super) async fn newest(
    connection: &mut PgConnection,
    InboxKey { reader, feed }: InboxKey,
    pasts: &[LongPast],
) -> sqlx::Result<Vec<(usize, Vec<FeedAdd>, Option<DisplayKey>)>> {
    let Some(most) = pasts.iter().map(|past| past.most).max() else { return Ok(vec![]) };
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
        let LongPast { author, generation, .. } = pasts[at];
        let key = rows::key_of(rank, item);
        all[at].push(FeedAdd { author, outbox_seq: rows::count_of(seq)?, generation, key });
    }
    let brought = |(past, mut adds): (&LongPast, Vec<FeedAdd>)| {
        adds.sort_unstable_by_key(|add| Reverse(add.key));
        let floor = adds.get(past.most).map(|add| add.key);
        adds.truncate(past.most);
        (past.at, adds, floor)
    };
    Ok(pasts.iter().zip(all).map(brought).collect())
}
