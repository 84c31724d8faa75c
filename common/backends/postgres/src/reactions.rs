//! Reactions: each change is one statement, which changes the set and the counters together.
//!
//! ```text
//!   reaction ──▶ set (item, reader, kind) ──┬ changed ──▶ counter of (item, kind, shard of the reader)
//!                                           └ was so before: no counter is touched
//! ```
//!
//! Calls that come at the same time share the statement, and if users are told of reactions, it is a part of a
//! transaction: [`crate::reacting`].
//!
//! No row of the item itself is locked, so a hot item has no row for which all wait. A reaction that races with the
//! delete of its item counts as before the delete, and nobody sees it after. The sweep removes the rows of a deleted
//! item, and begins long after no such race can be under way any more.

use std::collections::{HashMap, HashSet};

use feedgate_common::around::{
    Around, COMMENTS, KINDS_MAX, Onlooker, Place, REPOSTS, Reacted, Reaction, ReactionKind, Unreacted,
};
use feedgate_common::error::Result;
use feedgate_common::{ItemId, Millis, UserNo};
use sqlx::PgConnection;

use crate::fault::{corrupt, retried};
use crate::pool::{Pool, work};
use crate::rows::{self, column};
use crate::users::user_id;

/// Into how many rows the counter of one item and kind is divided.
const SHARDS: i32 = 32;

/// The number of a viewer who is no user.
const NOBODY: i32 = -1;

/// How long after the delete of an item its reactions are removed, in ms: longer than any statement takes.
const REST_MS: i64 = 60_000;

/// The most reactions to deleted items, the most comments on them, and the most members of lines of notifications, that
/// one sweep removes.
const SWEEP_MAX: i64 = 512;

/// Gives reactions. Answers the place in the call of each whose item lives, whether the item takes its kind, and
/// whether it was not there before; and the author of the item. Rows are locked in the order of their keys.
const REACT: &str = "
WITH asked AS MATERIALIZED (
    SELECT a.*, i.author FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[]) WITH ORDINALITY
        AS a(item, kind, reader, at, nth)
    JOIN items i ON i.id = a.item AND i.body IS NOT NULL
), judged AS (
    SELECT a.*, EXISTS (SELECT FROM reaction_counts c WHERE c.item = a.item AND c.kind = a.kind) AS known FROM asked a
), ranked AS (
    SELECT j.*, dense_rank() OVER (PARTITION BY item, known ORDER BY kind) AS rank FROM judged j
), fits AS MATERIALIZED (
    SELECT * FROM ranked a
    WHERE known OR (SELECT count(DISTINCT c.kind) FROM reaction_counts c WHERE c.item = a.item) + rank <= $5
), made AS (
    INSERT INTO reactions (item, kind, reader, at)
    SELECT item, kind, reader, at FROM fits ORDER BY item, reader, kind
    ON CONFLICT DO NOTHING RETURNING item, kind, reader
), counted AS (
    INSERT INTO reaction_counts AS known (item, kind, shard, count)
    SELECT item, kind, (reader % $6)::smallint, count(*) FROM made GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (item, kind, shard) DO UPDATE SET count = known.count + excluded.count
)
SELECT a.nth - 1, EXISTS (SELECT FROM fits f WHERE f.nth = a.nth),
       EXISTS (SELECT FROM made m WHERE (m.item, m.kind, m.reader) = (a.item, a.kind, a.reader)), a.author
FROM asked a";

/// Takes reactions back. Answers as [`REACT`] does, and locks rows in the order of [`REACT`].
const UNREACT: &str = "
WITH asked AS MATERIALIZED (
    SELECT a.*, i.author FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::bigint[]) WITH ORDINALITY
        AS a(item, kind, reader, at, nth)
    JOIN items i ON i.id = a.item AND i.body IS NOT NULL
), held AS MATERIALIZED (
    SELECT r.item, r.kind, r.reader FROM reactions r JOIN asked a USING (item, kind, reader)
    ORDER BY item, reader, kind FOR UPDATE OF r
), gone AS (
    DELETE FROM reactions r USING held h
    WHERE r.item = h.item AND r.kind = h.kind AND r.reader = h.reader
    RETURNING r.item, r.kind, r.reader
), less AS MATERIALIZED (
    SELECT item, kind, (reader % $6)::smallint AS shard, count(*) FROM gone GROUP BY 1, 2, 3
), locked AS MATERIALIZED (
    SELECT l.* FROM less l JOIN reaction_counts c USING (item, kind, shard)
    ORDER BY item, kind, shard FOR UPDATE OF c
), counted AS (
    UPDATE reaction_counts c SET count = c.count - l.count FROM locked l
    WHERE (c.item, c.kind, c.shard) = (l.item, l.kind, l.shard)
)
SELECT a.nth - 1, $5::bigint IS NOT NULL,
       EXISTS (SELECT FROM gone g WHERE (g.item, g.kind, g.reader) = (a.item, a.kind, a.reader)), a.author
FROM asked a";

/// Counts and own of reactions, by kind, and the numbers of comments and of reposts, by the names that no kind has.
const AROUND: &str = "
SELECT c.item, c.kind, sum(c.count)::bigint,
       EXISTS (SELECT FROM reactions r WHERE r.item = c.item AND r.kind = c.kind AND r.reader = $2)
FROM reaction_counts c JOIN items i ON i.id = c.item AND i.body IS NOT NULL
WHERE c.item = ANY($1) GROUP BY c.item, c.kind HAVING sum(c.count) > 0
UNION ALL
SELECT t.item, 'comments'::text COLLATE \"C\", t.count, false
FROM talks t JOIN items i ON i.id = t.item AND i.body IS NOT NULL
WHERE t.item = ANY($1) AND t.count > 0
UNION ALL
SELECT p.item, 'reposts'::text COLLATE \"C\", sum(p.count)::bigint, false
FROM repost_counts p JOIN items i ON i.id = p.item AND i.body IS NOT NULL
WHERE p.item = ANY($1) GROUP BY p.item HAVING sum(p.count) > 0
ORDER BY 1, 2";

/// Whose reactions `$viewer` sees where only those of mutual friends are seen, as
/// [`feedgate_common::around::shows_reaction`] says, but for those of the author of an item: `near` are the viewer and
/// its friends, `blocked` those in a block with it. 12 is the bits of a block by either side.
macro_rules! circle {
    ($viewer:literal) => {
        concat!(
            "blocked AS MATERIALIZED (
    SELECT author AS reader FROM edges WHERE reader = ",
            $viewer,
            " AND shields & 12 <> 0
), near AS MATERIALIZED (
    SELECT e.author AS reader FROM edges e
    JOIN edges back ON back.reader = e.author AND back.author = e.reader AND (back.is_on OR back.held_back)
    WHERE e.reader = ",
            $viewer,
            " AND (e.is_on OR e.held_back) AND e.shields & 12 = 0
    UNION SELECT ",
            $viewer,
            "
)"
        )
    };
}

/// Counts and own of reactions by kind, as [`AROUND`] gives them, of those whose reactions the viewer sees. Of its own
/// items it sees all but those of users in a block with it: these are few, so they are counted and taken off.
const AROUND_OF_SOME: &str = concat!(
    "WITH asked AS MATERIALIZED (
    SELECT id AS item, author FROM items WHERE id = ANY($1) AND body IS NOT NULL
), ",
    circle!("$2"),
    ", seen AS (
    SELECT a.item, n.reader FROM asked a CROSS JOIN near n WHERE a.author <> $2
    UNION SELECT a.item, a.author FROM asked a
    WHERE a.author <> $2 AND a.author NOT IN (SELECT reader FROM blocked)
)
SELECT r.item, r.kind, count(*), bool_or(r.reader = $2)
FROM seen s JOIN reactions r ON r.item = s.item AND r.reader = s.reader GROUP BY r.item, r.kind
UNION ALL
SELECT c.item, c.kind, c.count - o.count, EXISTS (
    SELECT FROM reactions r WHERE r.item = c.item AND r.kind = c.kind AND r.reader = $2)
FROM (SELECT item, kind, sum(count)::bigint AS count FROM reaction_counts JOIN asked USING (item)
      WHERE author = $2 GROUP BY item, kind) c
CROSS JOIN LATERAL (
    SELECT count(*) FROM blocked b JOIN reactions r ON r.item = c.item AND r.reader = b.reader AND r.kind = c.kind) o
WHERE c.count > o.count
ORDER BY 1, 2"
);

/// The newest of each kind, and of these the newest of all, of those readers whom the condition takes.
macro_rules! listed {
    ($of:literal) => {
        concat!(
            "SELECT r.at, r.reader, k.kind, u.name
FROM (SELECT DISTINCT c.kind FROM reaction_counts c JOIN items i ON i.id = c.item AND i.body IS NOT NULL
      WHERE c.item = $1 AND ($2::text IS NULL OR c.kind = $2)) k
CROSS JOIN LATERAL (
    SELECT at, reader FROM reactions
    WHERE item = $1 AND kind = k.kind AND (at, reader) <= ($3, $4) AND ((at, reader) < ($3, $4) OR kind < $5)",
            $of,
            "
    ORDER BY at DESC, reader DESC LIMIT $6) r
JOIN users u ON u.no = r.reader
ORDER BY r.at DESC, r.reader DESC, k.kind DESC LIMIT $6"
        )
    };
}

const LISTED: &str = listed!("");

/// The list as the author of the item, `$7`, sees it where the reactions of some are seen.
const LISTED_FOR_OWNER: &str =
    listed!(" AND reader NOT IN (SELECT author FROM edges e WHERE e.reader = $7 AND shields & 12 <> 0)");

/// The list as another user, `$7`, sees it then.
const LISTED_OF_SOME: &str = concat!(
    "WITH ",
    circle!("$7"),
    ", seen AS (
    SELECT reader FROM near
    UNION SELECT author FROM items WHERE id = $1 AND author NOT IN (SELECT reader FROM blocked)
)
SELECT r.at, r.reader, r.kind, u.name FROM seen s JOIN reactions r ON r.item = $1 AND r.reader = s.reader
JOIN users u ON u.no = r.reader
WHERE ($2::text IS NULL OR r.kind = $2) AND (r.at, r.reader) <= ($3, $4) AND ((r.at, r.reader) < ($3, $4) OR r.kind < $5)
  AND EXISTS (SELECT FROM items WHERE id = $1 AND body IS NOT NULL)
ORDER BY r.at DESC, r.reader DESC, r.kind DESC LIMIT $6"
);

/// Reads the author of an item that lives.
const OWNER: &str = "SELECT author FROM items WHERE id = $1 AND body IS NOT NULL";

const REACTED_ITEM: &str = "
SELECT c.item FROM reaction_counts c JOIN items i ON i.id = c.item AND i.body IS NOT NULL
WHERE c.item >= $1 AND c.count > 0 ORDER BY c.item LIMIT 1";

/// Whether the line `l` is over: the item that told of it last does not live.
macro_rules! line_is_over {
    () => {
        "NOT EXISTS (SELECT FROM items i WHERE i.id = l.item AND i.body IS NOT NULL)"
    };
}

/// Removes reactions to items that were deleted until then, comments on them, and lines of notifications that began
/// with them and are over. Lines change under the lock of their readers. Answers how many rows of one kind there were,
/// of the most frequent one.
const SWEEP: &str = concat!(
    "
WITH ended AS MATERIALIZED (
    SELECT item FROM reaction_ends WHERE at <= $1 ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
), over AS MATERIALIZED (
    SELECT r.item, r.reader, r.kind FROM ended JOIN reactions r USING (item) LIMIT $2
), said AS MATERIALIZED (
    SELECT c.id FROM ended JOIN comments c USING (item) LIMIT $2
), lines_over AS MATERIALIZED (
    SELECT l.id FROM ended JOIN lines l ON l.id = ended.item JOIN readers r ON r.reader = l.reader
    WHERE ",
    line_is_over!(),
    " FOR UPDATE OF r SKIP LOCKED
), told AS MATERIALIZED (
    SELECT m.line, m.seq FROM lines_over l JOIN line_members m ON m.line = l.id LIMIT $2
), members_gone AS (
    DELETE FROM line_members m USING told t WHERE (m.line, m.seq) = (t.line, t.seq) RETURNING 1
), lines_gone AS (
    DELETE FROM lines l USING lines_over o
    WHERE l.id = o.id AND NOT EXISTS (
        SELECT FROM line_members m
        WHERE m.line = l.id AND NOT EXISTS (SELECT FROM told t WHERE (t.line, t.seq) = (m.line, m.seq)))
), reactions_gone AS (
    DELETE FROM reactions r USING over o WHERE (r.item, r.reader, r.kind) = (o.item, o.reader, o.kind) RETURNING 1
), comments_gone AS (
    DELETE FROM comments c USING said s WHERE c.id = s.id RETURNING 1
)
SELECT greatest((SELECT count(*) FROM reactions_gone), (SELECT count(*) FROM comments_gone),
                (SELECT count(*) FROM members_gone))"
);

/// Forgets such items around which nothing is left, with their counters. Answers how many.
const FORGET: &str = concat!(
    "
WITH ended AS MATERIALIZED (
    SELECT e.item FROM reaction_ends e
    WHERE e.at <= $1 AND NOT EXISTS (SELECT FROM reactions r WHERE r.item = e.item)
      AND NOT EXISTS (SELECT FROM comments c WHERE c.item = e.item)
      AND NOT EXISTS (SELECT FROM lines l WHERE l.id = e.item AND ",
    line_is_over!(),
    ")
    ORDER BY e.at LIMIT $2 FOR UPDATE SKIP LOCKED
), counters AS (
    DELETE FROM reaction_counts c USING ended WHERE c.item = ended.item
), talks AS (
    DELETE FROM talks t USING ended WHERE t.item = ended.item
)
DELETE FROM reaction_ends e USING ended WHERE e.item = ended.item"
);

/// The place of a reaction in the call, whether the item takes its kind, whether it has changed something, and the
/// author of the item.
type Row = (i64, bool, bool, i32);

/// The outcome of a change of one reaction.
type Outcome = std::result::Result<bool, Unreacted>;

/// Gives reactions (`on`), or takes them back.
pub(crate) async fn change(
    connection: &mut PgConnection,
    reactions: &[Reaction],
    on: bool,
) -> sqlx::Result<Vec<Outcome>> {
    let done = retried!(connection, carry_out(connection, reactions, on))?;
    Ok(done.into_iter().map(|(outcome, _)| outcome).collect())
}

/// Gives reactions (`on`) or takes them back, in one statement. Answers each in its place, with the author of the item
/// if that lives.
pub(crate) async fn carry_out(
    connection: &mut PgConnection,
    reactions: &[Reaction],
    on: bool,
) -> sqlx::Result<Vec<(Outcome, Option<UserNo>)>> {
    let rows = sqlx::query_as(if on { REACT } else { UNREACT })
        .bind(column(reactions, |reaction| rows::item(reaction.item)))
        .bind(column(reactions, |reaction| reaction.kind.as_str()))
        .bind(column(reactions, |reaction| rows::user(reaction.user)))
        .bind(column(reactions, |reaction| reaction.at))
        .bind(rows::limit(KINDS_MAX))
        .bind(SHARDS)
        .fetch_all(connection)
        .await?;
    outcomes(reactions, rows)
}

/// The outcomes in the order of the call, each with the author of the item if that lives.
fn outcomes(reactions: &[Reaction], rows: Vec<Row>) -> sqlx::Result<Vec<(Outcome, Option<UserNo>)>> {
    let of = |reaction: &Reaction| (Err(Unreacted::NoSuchItem(reaction.item)), None);
    let mut outcomes: Vec<(Outcome, Option<UserNo>)> = reactions.iter().map(of).collect();
    let mut changed: HashSet<(ItemId, &ReactionKind, UserNo)> = HashSet::new();
    for (place, fits, fresh, author) in rows {
        let place = usize::try_from(place).map_err(|_| corrupt("a place below the first"))?;
        let (Some(reaction), Some(outcome)) = (reactions.get(place), outcomes.get_mut(place)) else { continue };
        // If a call has equal reactions, only the first of them has changed something.
        let fresh = fresh && changed.insert((reaction.item, &reaction.kind, reaction.user));
        let answer = if fits { Ok(fresh) } else { Err(Unreacted::TooManyKinds(reaction.item)) };
        *outcome = (answer, Some(rows::user_of(author)?));
    }
    Ok(outcomes)
}

/// What stands around these items, in the order asked.
pub(crate) async fn around(
    connection: &mut PgConnection,
    items: &[ItemId],
    onlooker: Onlooker,
) -> sqlx::Result<Vec<Around>> {
    let asked: Vec<i64> = items.iter().copied().map(rows::item).collect();
    let statement = if onlooker.sees_some() { AROUND_OF_SOME } else { AROUND };
    let query = sqlx::query_as(statement).bind(&asked).bind(onlooker.viewer.user().map_or(NOBODY, rows::user));
    let read: Vec<(i64, String, i64, bool)> = query.fetch_all(connection).await?;
    let mut found: HashMap<i64, Around> = HashMap::new();
    for (item, kind, count, own) in read {
        let around = found.entry(item).or_default();
        let count = rows::count_of(count)?;
        match kind.as_str() {
            COMMENTS => around.comments = count,
            REPOSTS => around.reposts = count,
            kind => {
                let kind = kind_of(kind)?;
                if own {
                    around.own.push(kind.clone());
                }
                around.counts.push((kind, count));
            }
        }
    }
    Ok(asked.iter().map(|item| found.get(item).cloned().unwrap_or_default()).collect())
}

/// The users who have reacted to an item, as far as the onlooker sees their reactions, newest first.
pub(crate) async fn listed(
    connection: &mut PgConnection,
    item: ItemId,
    onlooker: Onlooker,
    kind: Option<&ReactionKind>,
    before: Option<&Place>,
    limit: usize,
) -> sqlx::Result<Vec<Reacted>> {
    let viewer = onlooker.viewer.user().map_or(NOBODY, rows::user);
    let statement = match onlooker.sees_some() {
        true => {
            let query = sqlx::query_scalar(OWNER).bind(rows::item(item));
            let owner: Option<i32> = query.fetch_optional(&mut *connection).await?;
            if owner == Some(viewer) { LISTED_FOR_OWNER } else { LISTED_OF_SOME }
        }
        false => LISTED,
    };
    let (at, user) = before.map_or((Millis::MAX, i32::MAX), |before| (before.at, rows::user(before.user)));
    let mut query = sqlx::query_as(statement)
        .bind(rows::item(item))
        .bind(kind.map(ReactionKind::as_str))
        .bind(at)
        .bind(user)
        .bind(before.map_or("", |before| before.kind.as_str()))
        .bind(rows::limit(limit));
    if statement != LISTED {
        query = query.bind(viewer);
    }
    let read: Vec<(i64, i32, String, String)> = query.fetch_all(connection).await?;
    let line = |(at, user, kind, name): (i64, i32, String, String)| {
        let place = Place { at, user: rows::user_of(user)?, kind: kind_of(&kind)? };
        Ok(Reacted { user: user_id(&name)?, place })
    };
    read.into_iter().map(line).collect()
}

/// The first living item after `after` that has reactions.
pub(crate) async fn reacted_item(connection: &mut PgConnection, after: Option<ItemId>) -> sqlx::Result<Option<ItemId>> {
    let Some(first) = after.map_or(Some(0), |after| after.0.checked_add(1)) else { return Ok(None) };
    let query = sqlx::query_scalar(REACTED_ITEM).bind(rows::item(ItemId(first)));
    let found: Option<i64> = query.fetch_optional(connection).await?;
    Ok(found.map(rows::item_of))
}

fn kind_of(text: &str) -> sqlx::Result<ReactionKind> {
    text.parse().map_err(|why| corrupt(format_args!("a kind of reaction: {why}")))
}

/// Removes some reactions and comments of items that were deleted some time before `now`. Answers whether there may be
/// more.
pub(crate) async fn sweep(pool: &Pool, now: Millis) -> Result<bool> {
    let until = now.saturating_sub(REST_MS);
    let sweep = sqlx::query_scalar(SWEEP).bind(until).bind(SWEEP_MAX);
    let removed: i64 = pool.write(work!(|connection| sweep.fetch_one(connection))).await?;
    let forget = sqlx::query(FORGET).bind(until).bind(SWEEP_MAX);
    let forgotten = pool.write(work!(|connection| forget.execute(connection))).await?.rows_affected();
    Ok(removed >= SWEEP_MAX || forgotten >= SWEEP_MAX.unsigned_abs())
}
