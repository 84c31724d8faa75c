//! Which adds a feed shows according to the Archive alone: for a follow step, a rebuild and deep pages.
//!
//! ```text
//!   an author's outbox   1 ─────── low ─────── past ─── from ──────── cut ────── head
//!                            not    │ backfill   │ long   │  since     │  push or pull will bring it
//!                            shown  │            │ past   │  followed  │
//!                                   └────────────┴────────┴────────────┘
//!                                      those that live now are shown
//! ```
//!
//! `from` is the author's head at the follow. `past` is `from`, or an earlier place if the follow was imported, or 0 if
//! it shows the whole past. Of a long past a follow step brings only the newest adds (see `long.rs`). `low` is the
//! oldest of the newest `backfill` adds that stood in the outbox at `past`. Nothing here reads an author's whole
//! outbox: outbox order is read from `low` up, display order downwards until enough is found or the span ends.
//!
//! All functions here run several statements. They must be called over one snapshot.

use feedgate_common::archive::{Below, EDGE_ADDS_MAX, Edge, EdgeState, EdgeStates, FeedAdd, FeedState};
use feedgate_common::feed::first_log;
use feedgate_common::rules::{ahead_of_push, backfill_of};
use feedgate_common::{DisplayKey, FeedId, InboxKey, OutboxSeq, Progress, PullSeq, UserNo, Watermarks};
use sqlx::PgConnection;

use super::graph;
use super::long::{self, LongPast};
use super::merge::{Sources, newest};
use super::span::{EdgeOn, Low, Lows, Span};
use crate::rows;

/// The reader's edges that are on, with the outboxes of their authors.
const EDGES_ON: &str = "
SELECT e.author, e.generation, coalesce(e.past_seq, e.from_seq), a.head, a.has_aside
FROM edges e JOIN authors a ON a.author = e.author
WHERE e.reader = $1 AND e.is_on
UNION ALL
SELECT a.author, 0, a.everyone_since, a.head, a.has_aside
FROM authors a
WHERE a.everyone_since IS NOT NULL AND a.author <> $1
  AND NOT EXISTS (SELECT FROM edges e WHERE e.reader = $1 AND e.author = a.author)";

/// How far the snapshot goes for this reader: edge generations, direct records and records of route pull.
const COUNTS: &str = "
SELECT r.counter, r.direct, c.value
FROM counters c LEFT JOIN readers r ON r.reader = $1 WHERE c.name = 'pull'";

const HAS_ASIDE: &str = "SELECT has_aside FROM authors WHERE author = $1";

/// The living adds from `low` on, in outbox order. Of adds above `from`, only those that push or pull has already
/// passed; of narrowed ones, only those whose audience has the reader, and the reader's own.
const ADDS: &str = "
SELECT asked.n, adds.seq, adds.rank, adds.item
FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[])
    WITH ORDINALITY AS asked(author, low, from_seq, pushed, n)
CROSS JOIN LATERAL (
    SELECT seq, rank, item FROM records
    WHERE author = asked.author AND seq >= asked.low AND deleted_by IS NULL
      AND (seq <= asked.from_seq OR (route <> 2 AND seq <= asked.pushed) OR pull_seq <= $5) AND op = 1 AND feed = $7
      AND (route <> 3 OR author = $8 OR EXISTS (SELECT FROM audiences a WHERE a.item = records.item AND $8 = ANY(a.readers)))
    ORDER BY seq LIMIT $6
) adds";

/// An edge that is on, and the state of the author's outbox.
struct Followed {
    edge: EdgeOn,
    head: OutboxSeq,
    has_aside: bool,
}

/// The reader's edges that are on, by author.
async fn edges_on(connection: &mut PgConnection, reader: UserNo, backfill: usize) -> sqlx::Result<Vec<Followed>> {
    let read: Vec<(i32, i64, i64, i64, bool)> =
        sqlx::query_as(EDGES_ON).bind(rows::user(reader)).fetch_all(connection).await?;
    let followed = |(author, generation, past, head, has_aside)| {
        let (generation, past) = (rows::count_of(generation)?, rows::count_of(past)?);
        let edge =
            EdgeOn { author: rows::user_of(author)?, generation, past, backfill: backfill_of(generation, backfill) };
        Ok(Followed { edge, head: rows::count_of(head)?, has_aside })
    };
    let mut followed: Vec<Followed> = read.into_iter().map(followed).collect::<sqlx::Result<_>>()?;
    followed.sort_unstable_by_key(|f| f.edge.author);
    Ok(followed)
}

/// What a follow step appends for these edges, in each of these feeds. It is one statement if no feed is asked for.
pub(crate) async fn edge_states(
    connection: &mut PgConnection,
    lows: &Lows,
    (reader, of): (UserNo, &[(UserNo, Progress)]),
    pulled: &[(FeedId, PullSeq)],
    backfill: usize,
) -> sqlx::Result<EdgeStates> {
    let (held, feeds) = graph::held_in_feeds(&mut *connection, reader, of.iter().map(|(author, _)| *author)).await?;
    let edge = |(&(author, progress), held): (&(UserNo, Progress), &graph::Held)| Asked {
        shown: EdgeOn {
            author,
            generation: held.edge.generation,
            past: held.past,
            backfill: backfill_of(held.edge.generation, backfill),
        },
        edge: held.edge,
        pushed: progress.cut_for(reader),
    };
    let mut asked: Vec<Asked> = of.iter().zip(&held).map(edge).collect();
    let mut adds = Vec::with_capacity(pulled.len());
    for &(feed, pull) in pulled {
        let of_feed = adds_of(&mut *connection, lows, (InboxKey { reader, feed }, pull), &asked).await?;
        asked.truncate(of_feed.len());
        adds.push(of_feed);
    }
    let state = |((adds, floor), held): (Brought, &graph::Held)| {
        let &graph::Held { edge, quiet, .. } = held;
        EdgeState { edge, adds, floor, quiet }
    };
    let states = adds.into_iter().map(|adds| adds.into_iter().take(asked.len()).zip(&held).map(state).collect());
    Ok(EdgeStates { edges: asked.iter().map(|asked| asked.edge).collect(), feeds, states: states.collect() })
}

/// An edge for which adds are asked.
struct Asked {
    shown: EdgeOn,
    edge: Edge,
    /// How far push has come for the reader in this outbox.
    pushed: OutboxSeq,
}

impl Asked {
    /// Whether the edge shows all from a place before `from` on.
    fn has_long_past(&self) -> bool {
        self.shown.past < self.edge.from
    }
}

/// What a step brings of an edge, in outbox order, and the floor that it raises.
type Brought = (Vec<FeedAdd>, Option<DisplayKey>);

/// The adds that a step brings of the first of these edges, as many edges as bring at most [`EDGE_ADDS_MAX`] adds
/// together, but at least one. If that one brings more, the answer has some of its adds, but more than that number.
async fn adds_of(
    connection: &mut PgConnection,
    lows: &Lows,
    (key, pull): (InboxKey, PullSeq),
    asked: &[Asked],
) -> sqlx::Result<Vec<Brought>> {
    let (mut all, mut room, mut at_once) = (Vec::with_capacity(asked.len()), EDGE_ADDS_MAX + 1, EDGES_AT_FIRST);
    while all.len() < asked.len() {
        let some = &asked[all.len()..asked.len().min(all.len() + at_once)];
        for brought in adds_of_some(&mut *connection, lows, (key, pull), some, room).await? {
            let adds = brought.0.len();
            if adds >= room {
                // This edge alone has too many adds, and the read may have left some out.
                if all.is_empty() {
                    all.push(brought);
                }
                return Ok(all);
            }
            room -= adds;
            all.push(brought);
        }
        at_once = EDGES_AT_MOST.min(2 * at_once);
    }
    Ok(all)
}

/// What a step brings of each of these edges; of the adds outside a long past, only the first `limit`.
async fn adds_of_some(
    connection: &mut PgConnection,
    lows: &Lows,
    (InboxKey { reader, feed }, pull): (InboxKey, PullSeq),
    some: &[Asked],
    limit: usize,
) -> sqlx::Result<Vec<Brought>> {
    let mut all = vec![Brought::default(); some.len()];
    let on: Vec<usize> = (0..some.len()).filter(|&at| some[at].edge.on).collect();
    if on.is_empty() {
        return Ok(all);
    }
    let shown: Vec<EdgeOn> = on.iter().map(|&at| some[at].shown).collect();
    let lows = lows.of(&mut *connection, feed, &shown).await?;
    // What an edge with a long past shows up to `from` is read by itself.
    let low = |(&at, low): (&usize, Low)| if some[at].has_long_past() { some[at].edge.from + 1 } else { low.seq };
    let lows: Vec<i64> = on.iter().zip(lows).map(|from| rows::count(low(from))).collect();
    let column =
        |of: &dyn Fn(&Asked) -> OutboxSeq| -> Vec<i64> { on.iter().map(|&at| rows::count(of(&some[at]))).collect() };
    let mut read: Vec<(i64, i64, i64, i64)> = sqlx::query_as(ADDS)
        .bind(shown.iter().map(|shown| rows::user(shown.author)).collect::<Vec<i32>>())
        .bind(lows)
        .bind(column(&|asked| asked.edge.from))
        .bind(column(&|asked| asked.pushed))
        .bind(rows::count(pull))
        .bind(rows::limit(limit))
        .bind(rows::feed(feed))
        .bind(rows::user(reader))
        .fetch_all(&mut *connection)
        .await?;
    read.sort_unstable();
    for (n, seq, rank, item) in read {
        let at = on[n as usize - 1];
        let EdgeOn { author, generation, .. } = some[at].shown;
        let add = FeedAdd { author, outbox_seq: rows::count_of(seq)?, generation, key: rows::key_of(rank, item) };
        all[at].0.push(add);
    }
    let long = on.iter().filter(|&&at| some[at].has_long_past());
    let pasts: Vec<LongPast> = long.map(|&at| LongPast::of(at, &some[at].shown, some[at].edge.from)).collect();
    for (at, old, floor) in long::adds(connection, InboxKey { reader, feed }, &pasts).await? {
        let (adds, at_floor) = &mut all[at];
        adds.splice(..0, old);
        *at_floor = floor;
    }
    Ok(all)
}

/// How many edges the first statement asks for. Each further one asks for twice as many, since edges may show many adds
/// or none.
const EDGES_AT_FIRST: usize = 16;
const EDGES_AT_MOST: usize = 64;

/// The content of a rebuilt inbox.
pub(crate) async fn build(
    connection: &mut PgConnection,
    lows: &Lows,
    InboxKey { reader, feed }: InboxKey,
    progress: &[(UserNo, Progress)],
    backfill: usize,
    limit: usize,
) -> sqlx::Result<FeedState> {
    let (counter, direct, pull): (Option<i64>, Option<i64>, i64) =
        sqlx::query_as(COUNTS).bind(rows::user(reader)).fetch_one(&mut *connection).await?;
    let built_at = rows::count_of(counter.unwrap_or(0))?;
    let taken = Watermarks { pull: rows::count_of(pull)?, direct: rows::count_of(direct.unwrap_or(0))? };
    let followed = edges_on(&mut *connection, reader, backfill).await?;
    let ahead = ahead_of_push(followed.iter().map(|f| (f.edge.author, f.edge.generation, f.head)), progress);
    let spans = spans(&mut *connection, (lows, feed), &followed).await?;
    let sources = Sources { feed, spans, reader: Some(reader) };
    let newest = newest(connection, sources, Below::newest(limit.saturating_add(1))).await?;
    let (adds, floor) = first_log(newest, limit);
    Ok(FeedState { built_at, adds, floor, taken, ahead })
}

/// A part of the feed in display order, newest first.
pub(crate) async fn feed_below(
    connection: &mut PgConnection,
    lows: &Lows,
    InboxKey { reader, feed }: InboxKey,
    below: Below,
    backfill: usize,
) -> sqlx::Result<Vec<FeedAdd>> {
    let followed = edges_on(&mut *connection, reader, backfill).await?;
    let spans = spans(&mut *connection, (lows, feed), &followed).await?;
    newest(connection, Sources { feed, spans, reader: Some(reader) }, below).await
}

/// An author's living items of a feed, strictly below `before`, newest first.
pub(crate) async fn profile(
    connection: &mut PgConnection,
    author: UserNo,
    feed: FeedId,
    before: Option<DisplayKey>,
    limit: usize,
) -> sqlx::Result<Vec<DisplayKey>> {
    let has_aside: Option<bool> =
        sqlx::query_scalar(HAS_ASIDE).bind(rows::user(author)).fetch_optional(&mut *connection).await?;
    let Some(has_aside) = has_aside else { return Ok(vec![]) };
    let everything = Span { author, generation: 0, low: Low::LEAST };
    let sources = Sources { feed, spans: vec![(everything, has_aside)], reader: None };
    let adds = newest(connection, sources, Below { before, ..Below::newest(limit) }).await?;
    Ok(adds.into_iter().map(|add| add.key).collect())
}

/// The span that each edge shows.
async fn spans(
    connection: &mut PgConnection,
    (lows, feed): (&Lows, FeedId),
    followed: &[Followed],
) -> sqlx::Result<Vec<(Span, bool)>> {
    let edges: Vec<EdgeOn> = followed.iter().map(|f| f.edge).collect();
    let lows = lows.of(connection, feed, &edges).await?;
    let span = |(f, low): (&Followed, Low)| {
        let EdgeOn { author, generation, .. } = f.edge;
        (Span { author, generation, low }, f.has_aside)
    };
    Ok(followed.iter().zip(lows).map(span).collect())
}
