//! Many authors' adds as one display order, newest first, read as far as they are needed.
//!
//! ```text
//!   author 1  lane 0  ■ ■ ■ ·  ┐
//!             lane 1  ■ · ·    ├─▶ the greatest of the heads, again and again
//!   author 2  lane 0  ■ ■ · ·  ┘   one runs dry: all that soon would are read on in one statement
//! ```
//!
//! A page of n from a authors reads a few more than n + 2a rows, each the next one of an index, and sorts nothing.

use std::collections::{BinaryHeap, VecDeque};

use feedgate_common::archive::FeedAdd;
use feedgate_common::{DisplayKey, ItemId};
use sqlx::PgConnection;

use super::window::Window;
use crate::rows;

/// A stretch of each stream, downwards. Both bounds are inclusive. Adds by pull come at once, nobody pushes them.
const NEXT: &str = "
SELECT asked.n, next.seq, next.rank, next.item
FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
    WITH ORDINALITY AS asked(author, lane, top_rank, top_item, low_rank, low_item, low, push_up_to, n)
CROSS JOIN LATERAL (
    SELECT seq, rank, item FROM records r
    WHERE r.author = asked.author AND r.lane = asked.lane AND r.op = 1 AND r.deleted_by IS NULL
      AND (r.rank, r.item) <= (asked.top_rank, asked.top_item)
      AND (r.rank, r.item) >= (asked.low_rank, asked.low_item)
      AND r.seq >= asked.low AND (r.seq <= asked.push_up_to OR r.route = 2)
    ORDER BY r.rank DESC, r.item DESC LIMIT $9
) next";

/// Rows of each stream that are read beyond its fair share.
const SPARE: usize = 2;

/// One lane of one window.
struct Stream {
    window: Window,
    lane: i16,
    low: DisplayKey,
    /// The greatest key that is not read yet; `None` once there is nothing more.
    top: Option<DisplayKey>,
    read: VecDeque<FeedAdd>,
}

/// The newest `limit` adds of all windows strictly below `before`, newest first. A window comes with whether its author
/// has anything in lane 1.
pub(super) async fn newest(
    connection: &mut PgConnection,
    windows: Vec<(Window, bool)>,
    before: Option<DisplayKey>,
    limit: usize,
) -> sqlx::Result<Vec<FeedAdd>> {
    let top = before.map_or(Some(DisplayKey { rank: i64::MAX, item: ItemId(u64::MAX) }), below);
    let mut streams: Vec<Stream> = windows.into_iter().flat_map(|(window, aside)| lanes(window, aside, top)).collect();
    let mut chunk = (limit / streams.len().max(1)).saturating_add(SPARE).min(limit);
    let mut order: BinaryHeap<(DisplayKey, usize)> = BinaryHeap::new();
    let mut adds = vec![];
    let mut dry = true;
    while adds.len() < limit {
        if dry {
            let low = |at: &usize| streams[*at].top.is_some() && streams[*at].read.len() * 4 <= chunk;
            let low: Vec<usize> = (0..streams.len()).filter(low).collect();
            let empty: Vec<usize> = low.iter().copied().filter(|&at| streams[at].read.is_empty()).collect();
            read_on(connection, &mut streams, &low, chunk).await?;
            order.extend(empty.into_iter().filter_map(|at| Some((streams[at].read.front()?.key, at))));
            chunk = chunk.saturating_mul(2).min(limit);
        }
        let Some((_, at)) = order.pop() else { break };
        let stream = &mut streams[at];
        adds.extend(stream.read.pop_front());
        order.extend(stream.read.front().map(|next| (next.key, at)));
        dry = stream.read.is_empty() && stream.top.is_some();
    }
    Ok(adds)
}

fn lanes(window: Window, aside: bool, top: Option<DisplayKey>) -> impl Iterator<Item = Stream> {
    let least = DisplayKey { rank: i64::MIN, item: ItemId(0) };
    let stream = move |lane, low| Stream { window, lane, low, top, read: VecDeque::new() };
    let in_step = window.low.key.map(|low| stream(0, low));
    in_step.into_iter().chain(aside.then(|| stream(1, least))).filter(|stream| stream.top.is_some())
}

/// Reads the next `chunk` adds of these streams.
async fn read_on(
    connection: &mut PgConnection,
    streams: &mut [Stream],
    low: &[usize],
    chunk: usize,
) -> sqlx::Result<()> {
    if low.is_empty() {
        return Ok(());
    }
    let asked: Vec<(&Stream, DisplayKey)> =
        low.iter().filter_map(|&at| Some((&streams[at], streams[at].top?))).collect();
    let column = |value: fn(&Stream) -> i64| asked.iter().map(|(stream, _)| value(stream)).collect::<Vec<i64>>();
    let read: Vec<(i64, i64, i64, i64)> = sqlx::query_as(NEXT)
        .bind(asked.iter().map(|(stream, _)| rows::user(stream.window.author)).collect::<Vec<_>>())
        .bind(asked.iter().map(|(stream, _)| stream.lane).collect::<Vec<_>>())
        .bind(asked.iter().map(|(_, top)| top.rank).collect::<Vec<_>>())
        .bind(asked.iter().map(|(_, top)| rows::item(top.item)).collect::<Vec<_>>())
        .bind(column(|stream| stream.low.rank))
        .bind(column(|stream| rows::item(stream.low.item)))
        .bind(column(|stream| rows::count(stream.window.low.seq)))
        .bind(column(|stream| rows::count(stream.window.push_up_to)))
        .bind(rows::limit(chunk))
        .fetch_all(connection)
        .await?;
    let mut counts = vec![0; low.len()];
    for (n, seq, rank, item) in read {
        let nth = usize::try_from(n - 1).unwrap_or_default();
        let stream = &mut streams[low[nth]];
        counts[nth] += 1;
        stream.read.push_back(FeedAdd {
            author: stream.window.author,
            outbox_seq: rows::count_of(seq)?,
            generation: stream.window.generation,
            key: rows::key_of(rank, item),
        });
    }
    for (&at, count) in low.iter().zip(counts) {
        let stream = &mut streams[at];
        stream.top = stream.read.back().filter(|_| count == chunk).and_then(|last| below(last.key));
    }
    Ok(())
}

/// The greatest key below this one.
fn below(key: DisplayKey) -> Option<DisplayKey> {
    match key.item.0.checked_sub(1) {
        Some(item) => Some(DisplayKey { rank: key.rank, item: ItemId(item) }),
        None => key.rank.checked_sub(1).map(|rank| DisplayKey { rank, item: ItemId(u64::MAX) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_below_is_the_next_one_down() {
        let key = |rank, item| DisplayKey { rank, item: ItemId(item) };
        assert_eq!(below(key(5, 7)), Some(key(5, 6)));
        assert_eq!(below(key(5, 0)), Some(key(4, u64::MAX)));
        assert_eq!(below(key(i64::MIN, 0)), None);
    }
}
