//! Reads edges, what is known of an author, and which items are addressed to a reader.

use std::collections::{BTreeSet, HashSet};

use feedgate_common::archive::{Author, Edge};
use feedgate_common::{FeedId, ItemId, OutboxSeq, UserNo};
use sqlx::{PgConnection, Row as _};

use crate::fault::corrupt;
use crate::rows;

/// Several edges, each with its place among those asked, and in each row the numbers of all named feeds. If an edge has
/// no row, the reader follows if everyone follows the author, unless the reader is the author. If there is no edge, one
/// row holds the feeds alone.
const EDGES_AND_FEEDS: &str = "
SELECT f.ids, e.* FROM (SELECT array(SELECT id FROM feeds ORDER BY id) AS ids) f LEFT JOIN (
    SELECT asked.n, coalesce(e.is_on, true), coalesce(e.generation, 0), coalesce(e.from_seq, a.everyone_since),
           coalesce(e.past_seq, e.from_seq, a.everyone_since), coalesce(e.quiet, false)
    FROM unnest($2::integer[]) WITH ORDINALITY AS asked(author, n)
    CROSS JOIN LATERAL (SELECT everyone_since FROM authors WHERE author = asked.author OFFSET 0) a
    LEFT JOIN LATERAL (
        SELECT reader, is_on, generation, from_seq, past_seq, quiet FROM edges
        WHERE reader = $1 AND author = asked.author OFFSET 0
    ) e ON true
    WHERE e.reader IS NOT NULL OR (a.everyone_since IS NOT NULL AND asked.author <> $1)
) e ON true";

const FOLLOWEES: &str = "
SELECT author FROM edges WHERE reader = $1 AND is_on
UNION ALL
SELECT a.author FROM authors a
WHERE a.everyone_since IS NOT NULL AND a.author <> $1
  AND NOT EXISTS (SELECT FROM edges e WHERE e.reader = $1 AND e.author = a.author)";

/// Which of some readers follow an author. It reads all followers if they are fewer than the readers asked about, else
/// it looks up each reader.
const AMONG: &str = "
WITH of AS MATERIALIZED (
    SELECT a.everyone_since IS NOT NULL AS everyone, a.everyone_since IS NULL AND cardinality($2::integer[]) >
        (SELECT coalesce(sum(followers), 0) FROM follower_counts WHERE author = $1) AS few
    FROM authors a WHERE a.author = $1
)
SELECT e.reader FROM of CROSS JOIN LATERAL (SELECT reader FROM edges WHERE of.few AND author = $1 AND is_on) e
UNION ALL
SELECT asked.reader
FROM of CROSS JOIN unnest($2::integer[]) AS asked(reader)
LEFT JOIN LATERAL (SELECT is_on FROM edges WHERE reader = asked.reader AND author = $1 OFFSET 0) e ON true
WHERE NOT of.few AND coalesce(e.is_on, of.everyone AND asked.reader <> $1)";

const FOLLOWED_AMONG: &str = "
SELECT asked.author FROM unnest($2::integer[]) AS asked(author)
CROSS JOIN LATERAL (
    SELECT is_on OR held_back AS follows FROM edges WHERE reader = $1 AND author = asked.author OFFSET 0
) e WHERE e.follows";

const FOLLOWEES_AMONG: &str = "
SELECT asked.author
FROM unnest($2::integer[]) AS asked(author)
CROSS JOIN LATERAL (SELECT everyone_since FROM authors WHERE author = asked.author OFFSET 0) a
LEFT JOIN LATERAL (SELECT is_on FROM edges WHERE reader = $1 AND author = asked.author OFFSET 0) e ON true
WHERE coalesce(e.is_on, a.everyone_since IS NOT NULL AND asked.author <> $1)";

/// The users with whom each of some users is in a block, which stands on the edges in both directions. 12 is the bits
/// of a block by either side.
const BLOCKED_WITH: &str = "
SELECT asked.n, e.author FROM unnest($1::integer[]) WITH ORDINALITY AS asked(reader, n)
CROSS JOIN LATERAL (SELECT author FROM edges WHERE reader = asked.reader AND shields & 12 <> 0 LIMIT $2) e";

/// The users whom each of some users follows and who follow that user, whatever shields are up.
const MUTUAL_WITH: &str = "
SELECT asked.n, m.author FROM unnest($1::integer[]) WITH ORDINALITY AS asked(reader, n)
CROSS JOIN LATERAL (
    SELECT e.author FROM edges e
    JOIN edges back ON back.reader = e.author AND back.author = e.reader AND (back.is_on OR back.held_back)
    WHERE e.reader = asked.reader AND e.author <> e.reader AND (e.is_on OR e.held_back) LIMIT $2
) m";

const AUTHOR: &str = "
SELECT class, head, everyone_since, private, (SELECT sum(followers)::bigint FROM follower_counts c WHERE c.author = a.author)
FROM authors a WHERE author = $1";

/// The items that are addressed to a reader or whose audience has the reader, and whose author is in no block with the
/// reader. 12 is the bits of a block by either side.
const ADDRESSED: &str = "
SELECT d.item FROM (
    SELECT item, author FROM direct WHERE item = ANY($2) AND reader = $1 AND op = 1 AND NOT ranked
    UNION ALL
    SELECT i.id, i.author FROM audiences a JOIN items i ON i.id = a.item
    WHERE a.item = ANY($2) AND $1 = ANY(a.readers)
) d
LEFT JOIN LATERAL (SELECT shields FROM edges WHERE reader = $1 AND author = d.author OFFSET 0) e ON true
WHERE coalesce(e.shields, 0) & 12 = 0";

/// What is stored of an edge, or what a missing row means.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub(crate) edge: Edge,
    /// The end of the records from before the follow, of which only the newest are shown.
    pub(crate) past: OutboxSeq,
    /// Whether all that is outstanding of the edge was imported.
    pub(crate) quiet: bool,
}

/// Several edges in the order asked, and the numbers of all feeds: the main one first, then all named ones by number.
pub(crate) async fn held_in_feeds(
    connection: &mut PgConnection,
    reader: UserNo,
    authors: impl Iterator<Item = UserNo>,
) -> sqlx::Result<(Vec<Held>, Vec<FeedId>)> {
    let authors: Vec<i32> = authors.map(rows::user).collect();
    let mut all = vec![Held::default(); authors.len()];
    let read = sqlx::query(EDGES_AND_FEEDS).bind(rows::user(reader)).bind(authors).fetch_all(connection).await?;
    let mut feeds = vec![FeedId::MAIN];
    for (at, row) in read.iter().enumerate() {
        if at == 0 {
            for named in row.try_get::<Vec<i16>, _>(0)? {
                feeds.push(rows::feed_of(named)?);
            }
        }
        if let Some(place) = row.try_get::<Option<i64>, _>(1)? {
            let held = (row.try_get(2)?, row.try_get(3)?, row.try_get(4)?, row.try_get(5)?, row.try_get(6)?);
            all[place as usize - 1] = held_of(held)?;
        }
    }
    Ok((all, feeds))
}

type Row = (bool, i64, i64, i64, bool);

fn held_of((on, generation, from, past, quiet): Row) -> sqlx::Result<Held> {
    let edge = Edge { on, generation: rows::count_of(generation)?, from: rows::count_of(from)? };
    Ok(Held { edge, past: rows::count_of(past)?, quiet })
}

/// The authors whom the reader follows, by number.
pub(crate) async fn followees(connection: &mut PgConnection, reader: UserNo) -> sqlx::Result<Vec<UserNo>> {
    let read: Vec<i32> = sqlx::query_scalar(FOLLOWEES).bind(rows::user(reader)).fetch_all(connection).await?;
    let mut followees = read.into_iter().map(rows::user_of).collect::<sqlx::Result<Vec<_>>>()?;
    followees.sort_unstable();
    Ok(followees)
}

pub(crate) async fn followers_among(
    connection: &mut PgConnection,
    author: UserNo,
    readers: &[UserNo],
) -> sqlx::Result<Vec<UserNo>> {
    let asked: HashSet<i32> = readers.iter().copied().map(rows::user).collect();
    let numbers: Vec<i32> = asked.iter().copied().collect();
    let query = sqlx::query_scalar(AMONG).bind(rows::user(author)).bind(numbers);
    let read: Vec<i32> = query.fetch_all(connection).await?;
    read.into_iter().filter(|reader| asked.contains(reader)).map(rows::user_of).collect()
}

/// Gives those of `others` whom `user` follows, whatever shields are up.
pub(crate) async fn followed_among(
    connection: &mut PgConnection,
    user: UserNo,
    others: &[UserNo],
) -> sqlx::Result<Vec<UserNo>> {
    among(connection, FOLLOWED_AMONG, user, others).await
}

pub(crate) async fn followees_among(
    connection: &mut PgConnection,
    reader: UserNo,
    authors: &[UserNo],
) -> sqlx::Result<Vec<UserNo>> {
    among(connection, FOLLOWEES_AMONG, reader, authors).await
}

/// Runs a statement about `user` and `others`, and gives the users that it finds.
async fn among(
    connection: &mut PgConnection,
    statement: &'static str,
    user: UserNo,
    others: &[UserNo],
) -> sqlx::Result<Vec<UserNo>> {
    let others: Vec<i32> = others.iter().copied().map(rows::user).collect();
    let read: Vec<i32> =
        sqlx::query_scalar(statement).bind(rows::user(user)).bind(others).fetch_all(connection).await?;
    read.into_iter().map(rows::user_of).collect()
}

/// For each of these users, in the order given, the other users with whom this user is in a block.
pub(crate) async fn blocked_with(
    connection: &mut PgConnection,
    users: &[UserNo],
    limit: usize,
) -> sqlx::Result<Vec<Vec<UserNo>>> {
    others(connection, BLOCKED_WITH, users, limit).await
}

/// For each of these users, in the order given, the other users whom this user follows and who follow back.
pub(crate) async fn mutual_with(
    connection: &mut PgConnection,
    users: &[UserNo],
    limit: usize,
) -> sqlx::Result<Vec<Vec<UserNo>>> {
    others(connection, MUTUAL_WITH, users, limit).await
}

/// For each of these users, in the order given, the other users that a statement finds.
async fn others(
    connection: &mut PgConnection,
    statement: &'static str,
    users: &[UserNo],
    limit: usize,
) -> sqlx::Result<Vec<Vec<UserNo>>> {
    let numbers: Vec<i32> = users.iter().copied().map(rows::user).collect();
    let query = sqlx::query_as(statement).bind(numbers).bind(rows::limit(limit));
    let read: Vec<(i64, i32)> = query.fetch_all(connection).await?;
    let mut found = vec![vec![]; users.len()];
    for (nth, other) in read {
        let nth = usize::try_from(nth - 1).ok().and_then(|nth| found.get_mut(nth));
        nth.ok_or_else(|| corrupt("a place that was not asked for"))?.push(rows::user_of(other)?);
    }
    Ok(found)
}

pub(crate) async fn author(connection: &mut PgConnection, author: UserNo) -> sqlx::Result<Author> {
    type Row = (i16, i64, Option<i64>, bool, Option<i64>);
    let query = sqlx::query_as(AUTHOR).bind(rows::user(author));
    let read: Option<Row> = query.fetch_optional(connection).await?;
    let Some((class, head, everyone_since, private, followers)) = read else { return Ok(Author::default()) };
    let followers = followers.unwrap_or(0).max(0).cast_unsigned();
    let everyone_since = everyone_since.map(rows::count_of).transpose()?;
    let class = rows::class_of(class)?;
    Ok(Author { class, followers, head: rows::count_of(head)?, everyone_since, private })
}

pub(crate) async fn addressed(
    connection: &mut PgConnection,
    reader: UserNo,
    items: &[ItemId],
) -> sqlx::Result<Vec<ItemId>> {
    let items: Vec<i64> = items.iter().copied().map(rows::item).collect();
    let query = sqlx::query_scalar(ADDRESSED).bind(rows::user(reader)).bind(items);
    let read: Vec<i64> = query.fetch_all(connection).await?;
    // An item that has moved was addressed to the reader with each rank that it had.
    let items: BTreeSet<ItemId> = read.into_iter().map(rows::item_of).collect();
    Ok(items.into_iter().collect())
}
