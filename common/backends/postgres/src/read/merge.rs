//! Merges the adds of many authors into display order, newest first, and reads only as many as are needed.
//!
//! ```text
//!   author 1  track 0 ■ ■ ■ ·  ┐
//!             track 1 ■ · ·    ├─▶ the greatest of the heads, again and again
//!   author 2  track 0 ■ ■ · ·  │   one runs dry: all that soon would are read on in one statement
//!   what is addressed ■ ·      ┘
//! ```
//!
//! A page of n adds from a authors reads a few more than n + 2a rows, each along an index, and sorts nothing.

use std::collections::{BinaryHeap, VecDeque};

use feedgate_common::archive::{Below, FeedAdd};
use feedgate_common::{DisplayKey, FeedId, InboxKey, ItemId, UserNo};
use sqlx::PgConnection;

use super::span::Span;
use crate::rows;

/// The next rows of each stream, downwards between two keys that both belong to the range. A track is a `lane` in the
/// database. Of narrowed items it gives those whose audience has the reader and the reader's own, or all if the
/// reader is below 0.
const NEXT: &str = "
SELECT asked.n, next.seq, next.rank, next.item
FROM unnest($1::integer[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    WITH ORDINALITY AS asked(author, lane, top_rank, top_item, low_rank, low_item, low, n)
CROSS JOIN LATERAL (
    SELECT seq, rank, item FROM records r
    WHERE r.author = asked.author AND r.lane = asked.lane AND r.deleted_by IS NULL
      AND (r.rank, r.item) <= (asked.top_rank, asked.top_item)
      AND (r.rank, r.item) >= (asked.low_rank, asked.low_item)
      AND r.seq >= asked.low AND r.op = 1 AND r.feed = $9
      AND (r.route <> 3 OR $10 < 0 OR r.author = $10 OR EXISTS (
          SELECT FROM audiences a WHERE a.item = r.item AND $10 = ANY(a.readers)
      ))
    ORDER BY r.rank DESC, r.item DESC LIMIT $8
) next";

/// The next rows of what is addressed to a reader, downwards between two keys that both belong to the range. In a feed
/// that had kinds before, an item may have two rows with one key: one of a ranking, and one by itself.
const NEXT_DIRECT: &str = "
SELECT DISTINCT ON (rank, item) author, rank, item FROM direct
WHERE reader = $1 AND feed = $7 AND op = 1 AND NOT deleted AND (rank, item) <= ($2, $3) AND (rank, item) >= ($4, $5)
ORDER BY rank DESC, item DESC LIMIT $6";

/// How many rows of each stream are read beyond its fair share.
const SPARE: usize = 2;

/// The number that stands for no reader: then all narrowed items are given.
const EVERYTHING: i32 = -1;

/// The sources from which a page is made.
pub(super) struct Sources {
    /// The feed of all adds.
    pub(super) feed: FeedId,
    /// The spans of authors, each with whether the author has anything in track 1.
    pub(super) spans: Vec<(Span, bool)>,
    /// The reader for whom directly addressed items are merged too, and who must be in the audience of narrowed ones.
    pub(super) reader: Option<UserNo>,
}

/// A source of adds in display order.
#[derive(Clone, Copy)]
enum Source {
    Track(Span, i16),
    Direct(UserNo),
}

struct Stream {
    source: Source,
    /// The least key that is read.
    bottom: DisplayKey,
    /// The greatest key that is not read yet; `None` once there is nothing more.
    top: Option<DisplayKey>,
    read: VecDeque<FeedAdd>,
}

/// The part of the adds of all sources that [`Below`] describes, newest first.
pub(super) async fn newest(
    connection: &mut PgConnection,
    sources: Sources,
    Below { before, least_rank, limit }: Below,
) -> sqlx::Result<Vec<FeedAdd>> {
    let top = before.map_or(Some(DisplayKey::GREATEST), DisplayKey::just_below);
    let least = DisplayKey { rank: least_rank.unwrap_or(i64::MIN), item: ItemId(0) };
    let (feed, reader) = (sources.feed, sources.reader.map_or(EVERYTHING, rows::user));
    let mut streams = streams(sources, top, least);
    let mut chunk = (limit / streams.len().max(1)).saturating_add(SPARE).min(limit);
    let mut order: BinaryHeap<(DisplayKey, usize)> = BinaryHeap::new();
    let mut adds = vec![];
    let mut dry = true;
    while adds.len() < limit {
        if dry {
            let has_few = |at: &usize| streams[*at].top.is_some() && streams[*at].read.len() * 4 <= chunk;
            let with_few: Vec<usize> = (0..streams.len()).filter(has_few).collect();
            let empty: Vec<usize> = with_few.iter().copied().filter(|&at| streams[at].read.is_empty()).collect();
            read_on(connection, (feed, reader), &mut streams, &with_few, chunk).await?;
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

fn streams(sources: Sources, top: Option<DisplayKey>, least: DisplayKey) -> Vec<Stream> {
    let stream = |source, bottom| Stream { source, bottom, top, read: VecDeque::new() };
    let tracks = sources.spans.into_iter().flat_map(|(span, aside)| {
        let in_step = span.low.key.map(|low| stream(Source::Track(span, 0), low.max(least)));
        in_step.into_iter().chain(aside.then(|| stream(Source::Track(span, 1), least)))
    });
    let direct = sources.reader.map(|reader| stream(Source::Direct(reader), least));
    tracks.chain(direct).filter(|stream| stream.top.is_some_and(|top| top >= stream.bottom)).collect()
}

/// Reads the next `chunk` adds of the streams at the places `which`.
async fn read_on(
    connection: &mut PgConnection,
    (feed, of): (FeedId, i32),
    streams: &mut [Stream],
    which: &[usize],
    chunk: usize,
) -> sqlx::Result<()> {
    let (mut tracks, mut counts) = (vec![], vec![0; which.len()]);
    for (nth, &at) in which.iter().enumerate() {
        let (stream, count) = (&mut streams[at], &mut counts[nth]);
        match (stream.source, stream.top) {
            (Source::Track(span, track), Some(top)) => tracks.push((nth, span, track, top, stream.bottom)),
            (Source::Direct(reader), Some(top)) => {
                let adds = direct(connection, InboxKey { reader, feed }, (top, stream.bottom), chunk).await?;
                *count = adds.len();
                stream.read.extend(adds);
            }
            (_, None) => {}
        }
    }
    for (nth, add) in in_tracks(connection, (feed, of), &tracks, chunk).await? {
        counts[nth] += 1;
        streams[which[nth]].read.push_back(add);
    }
    for (&at, count) in which.iter().zip(counts) {
        let stream = &mut streams[at];
        stream.top = stream.read.back().filter(|_| count == chunk).and_then(|last| last.key.just_below());
    }
    Ok(())
}

/// A read of a track: the number of its stream, the track, and the two keys between which it reads downwards.
type Asked = (usize, Span, i16, DisplayKey, DisplayKey);

async fn in_tracks(
    connection: &mut PgConnection,
    (feed, reader): (FeedId, i32),
    asked: &[Asked],
    chunk: usize,
) -> sqlx::Result<Vec<(usize, FeedAdd)>> {
    if asked.is_empty() {
        return Ok(vec![]);
    }
    let column = |value: fn(&Asked) -> i64| asked.iter().map(value).collect::<Vec<i64>>();
    let read: Vec<(i64, i64, i64, i64)> = sqlx::query_as(NEXT)
        .bind(asked.iter().map(|(_, span, ..)| rows::user(span.author)).collect::<Vec<_>>())
        .bind(asked.iter().map(|(_, _, track, ..)| *track).collect::<Vec<_>>())
        .bind(column(|(.., top, _)| top.rank))
        .bind(column(|(.., top, _)| rows::item(top.item)))
        .bind(column(|(.., bottom)| bottom.rank))
        .bind(column(|(.., bottom)| rows::item(bottom.item)))
        .bind(column(|(_, span, ..)| rows::count(span.low.seq)))
        .bind(rows::limit(chunk))
        .bind(rows::feed(feed))
        .bind(reader)
        .fetch_all(connection)
        .await?;
    let add = |(n, seq, rank, item): (i64, i64, i64, i64)| {
        let (nth, span, ..) = asked[usize::try_from(n - 1).unwrap_or_default()];
        let (author, generation) = (span.author, span.generation);
        Ok((nth, FeedAdd { author, outbox_seq: rows::count_of(seq)?, generation, key: rows::key_of(rank, item) }))
    };
    read.into_iter().map(add).collect()
}

async fn direct(
    connection: &mut PgConnection,
    InboxKey { reader, feed }: InboxKey,
    (top, bottom): (DisplayKey, DisplayKey),
    chunk: usize,
) -> sqlx::Result<Vec<FeedAdd>> {
    let read: Vec<(i32, i64, i64)> = sqlx::query_as(NEXT_DIRECT)
        .bind(rows::user(reader))
        .bind(top.rank)
        .bind(rows::item(top.item))
        .bind(bottom.rank)
        .bind(rows::item(bottom.item))
        .bind(rows::limit(chunk))
        .bind(rows::feed(feed))
        .fetch_all(connection)
        .await?;
    let add = |(author, rank, item)| {
        let author = rows::user_of(author)?;
        Ok(FeedAdd { author, outbox_seq: 0, generation: 0, key: rows::key_of(rank, item) })
    };
    read.into_iter().map(add).collect()
}
