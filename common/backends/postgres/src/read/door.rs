//! Which adds a feed shows by the truth alone: the follow door, the rebuild and deep pages.
//!
//! ```text
//!   an author's outbox   1 ─────── low ─────── from ─────────── cut ────── head
//!                            not    │ backfill   │  since followed │  push will bring it
//!                            shown  └────────────┴─────────────────┘
//!                                   those that live now are shown
//! ```
//!
//! `low` is the oldest of the newest `backfill` adds that stood in the outbox at `from`. Nothing here reads an author's
//! whole outbox: outbox order is read from `low` up, display order downwards until enough is found or the window ends.
//!
//! All of these are several statements: to be called over one snapshot.

use std::collections::HashMap;

use feedgate_common::archive::{Built, Edge, EdgeState, FeedAdd, FeedState};
use feedgate_common::feed::oldest_first;
use feedgate_common::{DisplayKey, OutboxSeq, Progress, UserNo};
use sqlx::PgConnection;

use super::lists;
use super::merge::newest;
use super::window::{Low, Lows, Shown, Window};
use crate::rows;

/// The reader's edges that are on, by author, with their outboxes.
const EDGES_ON: &str = "
SELECT e.author, e.generation, e.from_seq, a.head, a.has_aside
FROM edges e JOIN authors a ON a.author = e.author
WHERE e.reader = $1 AND e.is_on ORDER BY e.author";

const COUNTER: &str = "SELECT counter FROM readers WHERE reader = $1";

const HAS_ASIDE: &str = "SELECT has_aside FROM authors WHERE author = $1";

/// Living adds of a window in outbox order. Above `from` only those by push come by this door.
const ADDS: &str = "
SELECT seq, rank, item FROM records
WHERE author = $1 AND op = 1 AND seq BETWEEN $2 AND $3 AND deleted_by IS NULL AND (seq <= $4 OR route = 1)
ORDER BY seq";

/// An edge that is on, and the author's outbox.
struct Followed {
    edge: Shown,
    head: OutboxSeq,
    has_aside: bool,
}

async fn edges_on(connection: &mut PgConnection, reader: UserNo) -> sqlx::Result<Vec<Followed>> {
    let read: Vec<(i32, i64, i64, i64, bool)> =
        sqlx::query_as(EDGES_ON).bind(rows::user(reader)).fetch_all(connection).await?;
    let followed = |(author, generation, from, head, has_aside)| {
        let edge = Shown {
            author: rows::user_of(author)?,
            generation: rows::count_of(generation)?,
            from: rows::count_of(from)?,
        };
        Ok(Followed { edge, head: rows::count_of(head)?, has_aside })
    };
    read.into_iter().map(followed).collect()
}

/// What a follow step brings.
pub(crate) async fn edge_state(
    connection: &mut PgConnection,
    lows: &Lows,
    (reader, author): (UserNo, UserNo),
    progress: Progress,
    backfill: usize,
) -> sqlx::Result<EdgeState> {
    let edge = lists::edge(&mut *connection, reader, author).await?;
    if !edge.on {
        return Ok(EdgeState { edge, adds: vec![] });
    }
    let Edge { generation, from, .. } = edge;
    let low = lows.of(&mut *connection, &[Shown { author, generation, from }], backfill).await?;
    let end = progress.cut_for(reader).max(from);
    let read: Vec<(i64, i64, i64)> = sqlx::query_as(ADDS)
        .bind(rows::user(author))
        .bind(rows::count(low[0].seq))
        .bind(rows::count(end))
        .bind(rows::count(from))
        .fetch_all(connection)
        .await?;
    let add = |(seq, rank, item)| {
        Ok(FeedAdd { author, outbox_seq: rows::count_of(seq)?, generation, key: rows::key_of(rank, item) })
    };
    Ok(EdgeState { edge, adds: read.into_iter().map(add).collect::<sqlx::Result<_>>()? })
}

/// What a rebuilt inbox holds.
pub(crate) async fn build(
    connection: &mut PgConnection,
    lows: &Lows,
    reader: UserNo,
    progress: &[(UserNo, Progress)],
    backfill: usize,
    limit: usize,
) -> sqlx::Result<Built> {
    let progress: HashMap<UserNo, Progress> = progress.iter().copied().collect();
    let counter: Option<i64> =
        sqlx::query_scalar(COUNTER).bind(rows::user(reader)).fetch_optional(&mut *connection).await?;
    let built_at = rows::count_of(counter.unwrap_or(0))?;
    let followed = edges_on(&mut *connection, reader).await?;
    let authors = followed.iter().map(|f| f.edge.author);
    let missing: Vec<UserNo> = authors.filter(|author| !progress.contains_key(author)).collect();
    if !missing.is_empty() {
        return Ok(Built::CutsMissing(missing));
    }
    let behind = followed.iter().filter(|f| f.head > progress[&f.edge.author].done);
    let lagging = behind.map(|f| f.edge.author).collect();
    let cut = |author: UserNo| progress[&author].cut_for(reader);
    let windows = windows(&mut *connection, lows, &followed, cut, backfill).await?;
    let mut adds = newest(connection, windows, None, limit.saturating_add(1)).await?;
    let floor = adds.get(limit).map(|add| add.key);
    adds.truncate(limit);
    Ok(Built::State(FeedState { built_at, adds: oldest_first(adds), floor, lagging }))
}

/// A stretch of the feed in display order.
pub(crate) async fn feed_below(
    connection: &mut PgConnection,
    lows: &Lows,
    reader: UserNo,
    before: Option<DisplayKey>,
    backfill: usize,
    limit: usize,
) -> sqlx::Result<Vec<FeedAdd>> {
    let followed = edges_on(&mut *connection, reader).await?;
    let windows = windows(&mut *connection, lows, &followed, |_| OutboxSeq::MAX, backfill).await?;
    newest(connection, windows, before, limit).await
}

/// An author's living items, strictly below `before`, newest first.
pub(crate) async fn profile(
    connection: &mut PgConnection,
    author: UserNo,
    before: Option<DisplayKey>,
    limit: usize,
) -> sqlx::Result<Vec<DisplayKey>> {
    let has_aside: Option<bool> =
        sqlx::query_scalar(HAS_ASIDE).bind(rows::user(author)).fetch_optional(&mut *connection).await?;
    let Some(has_aside) = has_aside else { return Ok(vec![]) };
    let everything = Window { author, generation: 0, low: Low::LEAST, push_up_to: OutboxSeq::MAX };
    let adds = newest(connection, vec![(everything, has_aside)], before, limit).await?;
    Ok(adds.into_iter().map(|add| add.key).collect())
}

/// What each edge shows up to its cut.
async fn windows(
    connection: &mut PgConnection,
    lows: &Lows,
    followed: &[Followed],
    cut: impl Fn(UserNo) -> OutboxSeq,
    backfill: usize,
) -> sqlx::Result<Vec<(Window, bool)>> {
    let edges: Vec<Shown> = followed.iter().map(|f| f.edge).collect();
    let lows = lows.of(connection, &edges, backfill).await?;
    let window = |(f, low): (&Followed, Low)| {
        let Shown { author, generation, from } = f.edge;
        (Window { author, generation, low, push_up_to: cut(author).max(from) }, f.has_aside)
    };
    Ok(followed.iter().zip(lows).map(window).collect())
}
