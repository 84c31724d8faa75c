//! Rankings of readers. A change of a ranking is stored as records addressed to the reader. Like all such records, they
//! are stored under the lock of the reader's row. After an error the connection is closed, which ends the transaction.
//!
//! ```text
//!   rank   locks the reader, and shares the items that are new in the ranking ──▶ records
//!   edit   locks the item ──▶ a row in ranking_due, if a ranking holds it      same transaction, a later statement
//!   renew  takes that row ──▶ locks readers ──▶ records
//! ```
//!
//! Invariants:
//! - An edit or a delete of an item sees each ranking that has taken the item in before, and a ranking that takes it
//!   in later sees what has become of it: both lock the row of the item.
//! - Once nothing addressed to a reader is outstanding, each inbox of the reader has taken in all its records or is
//!   built later. So the next ranking of a feed removes the records of earlier ones, except the adds that no delete has
//!   ended.

use std::collections::{BTreeMap, HashMap, HashSet};

use feedgate_common::around::Terms;
use feedgate_common::ranking::{NoSuchItem, Ranked, Renewed, changes};
use feedgate_common::{DirectSeq, DisplayKey, InboxKey, ItemId, Millis, Op, UserNo};
use sqlx::PgConnection;

use crate::fault::{corrupt, retried};
use crate::rows::{self, column};

/// Locks readers in the order of their numbers, as all writes do.
const LOCK: &str =
    "SELECT reader, direct, direct_due IS NULL FROM readers WHERE reader = ANY($1) ORDER BY reader FOR UPDATE";

const STORED: &str = "
SELECT rank, item, seq FROM direct
WHERE reader = $1 AND feed = $2 AND ranked AND op = 1 AND NOT deleted ORDER BY rank, item";

/// Locks the items that are new in a ranking, so that nobody edits or deletes them until the ranking is stored.
const SHARE: &str = "SELECT FROM items WHERE id = ANY($1) ORDER BY id FOR SHARE";

const AUTHORS: &str = "SELECT id, author, body IS NOT NULL FROM items WHERE id = ANY($1)";

const MOVE: &str = "
UPDATE readers r SET direct = n.direct, direct_due = coalesce(r.direct_due, $3), direct_quiet = false
FROM unnest($1::integer[], $2::bigint[]) AS n(reader, direct) WHERE r.reader = n.reader";

/// Removes the deletes, updates and ended adds of a ranking up to a number. All inboxes have taken them in.
const TRIM: &str = "
DELETE FROM direct WHERE reader = $1 AND feed = $2 AND ranked AND (op <> 1 OR deleted) AND seq <= $3";

const END: &str = "
UPDATE direct d SET deleted = true FROM unnest($1::integer[], $2::bigint[]) AS n(reader, seq)
WHERE d.reader = n.reader AND d.seq = n.seq";

const ADDRESS: &str = "
INSERT INTO direct (reader, seq, item, rank, at, author, feed, op, deleted, ranked)
SELECT reader, seq, item, rank, $6, author, feed, op, false, true
FROM unnest($1::integer[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $7::smallint[], $8::integer[])
    AS n(reader, seq, item, rank, op, feed, author)";

const RANKING: &str = "
SELECT d.rank, d.item FROM direct d
WHERE d.reader = $1 AND d.feed = $2 AND d.ranked AND d.op = 1 AND NOT d.deleted
  AND EXISTS (SELECT FROM items i WHERE i.id = d.item AND i.body IS NOT NULL)
ORDER BY d.rank DESC, d.item DESC";

/// Gives the pairs of a reader and an item in which a ranking of the reader holds the item, with the shields on the
/// reader's edge to the author, whether that edge is on, and whether the author is private.
const RANKED: &str = "
SELECT n.reader, n.item, coalesce(e.shields, 0::smallint), coalesce(e.is_on, a.everyone_since IS NOT NULL), a.private
FROM unnest($1::integer[], $2::bigint[]) AS n(reader, item)
CROSS JOIN LATERAL (
    SELECT author FROM direct
    WHERE item = n.item AND reader = n.reader AND ranked AND op = 1 AND NOT deleted LIMIT 1
) d
CROSS JOIN LATERAL (SELECT private, everyone_since FROM authors WHERE author = d.author OFFSET 0) a
LEFT JOIN LATERAL (SELECT shields, is_on FROM edges WHERE reader = n.reader AND author = d.author OFFSET 0) e ON true";

const CHANGED: &str = "
INSERT INTO ranking_due (item)
SELECT n.item FROM unnest($1::bigint[]) AS n(item)
WHERE EXISTS (SELECT FROM direct d WHERE d.item = n.item AND d.ranked AND d.op = 1 AND NOT d.deleted)";

const IS_DUE: &str = "SELECT EXISTS (SELECT FROM ranking_due)";

const TAKE: &str = "SELECT n, item, reader, feed FROM ranking_due ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED";

/// The next rankings that hold an item.
const HOLDING: &str = "
SELECT reader, feed FROM direct
WHERE item = $1 AND ranked AND op = 1 AND NOT deleted AND (reader, feed) > ($2, $3)
ORDER BY reader, feed LIMIT $4";

/// The places of an item in the rankings of some readers.
const PLACES: &str = "
SELECT reader, feed, seq, rank FROM direct
WHERE item = $1 AND reader = ANY($2) AND ranked AND op = 1 AND NOT deleted ORDER BY reader, feed";

const GO_ON: &str = "UPDATE ranking_due SET reader = $2, feed = $3 WHERE n = $1";

const DONE: &str = "DELETE FROM ranking_due WHERE n = $1";

/// A record of a ranking that is to be stored.
struct Addressed {
    key: InboxKey,
    seq: DirectSeq,
    op: Op,
    place: DisplayKey,
    author: i32,
}

/// Replaces the ranking of a feed.
pub(crate) async fn rank(
    connection: &mut PgConnection,
    key: InboxKey,
    ranking: &[DisplayKey],
    now: Millis,
) -> sqlx::Result<Result<Ranked, NoSuchItem>> {
    retried!(connection, try_to_rank(connection, key, ranking, now))
}

async fn try_to_rank(
    connection: &mut PgConnection,
    key: InboxKey,
    ranking: &[DisplayKey],
    now: Millis,
) -> sqlx::Result<Result<Ranked, NoSuchItem>> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let [(_, head, is_brought)] = lock(connection, &[key.reader]).await?[..] else {
        return Err(corrupt(format_args!("reader {} has no row", key.reader.0)));
    };
    let stored: Vec<(i64, i64, i64)> = sqlx::query_as(STORED)
        .bind(rows::user(key.reader))
        .bind(rows::feed(key.feed))
        .fetch_all(&mut *connection)
        .await?;
    let places: HashMap<ItemId, i64> = stored.iter().map(|(_, item, seq)| (rows::item_of(*item), *seq)).collect();
    let before: Vec<DisplayKey> = stored.into_iter().map(|(rank, item, _)| rows::key_of(rank, item)).collect();
    let authors = match authors(connection, &places, ranking).await? {
        Ok(authors) => authors,
        Err(refused) => {
            sqlx::query("ROLLBACK").execute(connection).await?;
            return Ok(Err(refused));
        }
    };
    let (ranked, changes) = changes(&before, ranking);
    let (mut ended, mut addressed) = (vec![], vec![]);
    for ((op, place), seq) in changes.into_iter().zip(head + 1..) {
        if op == Op::Delete {
            ended.extend(places.get(&place.item).map(|seq| (rows::user(key.reader), *seq)));
        }
        let author = authors.get(&place.item).copied();
        let author = author.ok_or_else(|| corrupt(format_args!("item {} is ranked and has no row", place.item)))?;
        addressed.push(Addressed { key, seq, op, place, author });
    }
    if ranked.is_change() {
        let trimmed = if is_brought { rows::count(head) } else { -1 };
        let trim = sqlx::query(TRIM).bind(rows::user(key.reader)).bind(rows::feed(key.feed)).bind(trimmed);
        trim.execute(&mut *connection).await?;
        store(connection, &addressed, &ended, now).await?;
    }
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(Ok(ranked))
}

/// Locks readers. Gives for each the number of the last record addressed to it, and whether all of them are brought.
async fn lock(connection: &mut PgConnection, readers: &[UserNo]) -> sqlx::Result<Vec<(i32, DirectSeq, bool)>> {
    let readers: Vec<i32> = readers.iter().copied().map(rows::user).collect();
    let locked: Vec<(i32, i64, bool)> = sqlx::query_as(LOCK).bind(readers).fetch_all(connection).await?;
    locked.into_iter().map(|(reader, head, brought)| Ok((reader, rows::count_of(head)?, brought))).collect()
}

/// The authors of the items of both rankings; or the first item of the new one that does not live.
async fn authors(
    connection: &mut PgConnection,
    stored: &HashMap<ItemId, i64>,
    ranking: &[DisplayKey],
) -> sqlx::Result<Result<HashMap<ItemId, i32>, NoSuchItem>> {
    let wanted = ranking.iter().map(|place| place.item);
    let new: Vec<i64> = wanted.clone().filter(|item| !stored.contains_key(item)).map(rows::item).collect();
    sqlx::query(SHARE).bind(&new).execute(&mut *connection).await?;
    let all: HashSet<i64> = wanted.chain(stored.keys().copied()).map(rows::item).collect();
    let all: Vec<i64> = all.into_iter().collect();
    let found: Vec<(i64, i32, bool)> = sqlx::query_as(AUTHORS).bind(all).fetch_all(connection).await?;
    let living: HashSet<ItemId> =
        found.iter().filter(|(_, _, lives)| *lives).map(|(item, ..)| rows::item_of(*item)).collect();
    if let Some(nth) = ranking.iter().position(|place| !living.contains(&place.item)) {
        return Ok(Err(NoSuchItem { nth, item: ranking[nth].item }));
    }
    Ok(Ok(found.into_iter().map(|(item, author, _)| (rows::item_of(item), author)).collect()))
}

/// Stores records, and marks the adds that they end as deleted. The rows of their readers must be locked.
async fn store(
    connection: &mut PgConnection,
    addressed: &[Addressed],
    ended: &[(i32, i64)],
    now: Millis,
) -> sqlx::Result<()> {
    let heads: BTreeMap<i32, i64> =
        addressed.iter().map(|to| (rows::user(to.key.reader), rows::count(to.seq))).collect();
    let (readers, heads): (Vec<i32>, Vec<i64>) = heads.into_iter().unzip();
    sqlx::query(MOVE).bind(readers).bind(heads).bind(now).execute(&mut *connection).await?;
    if !ended.is_empty() {
        let (readers, seqs): (Vec<i32>, Vec<i64>) = ended.iter().copied().unzip();
        sqlx::query(END).bind(readers).bind(seqs).execute(&mut *connection).await?;
    }
    sqlx::query(ADDRESS)
        .bind(column(addressed, |to| rows::user(to.key.reader)))
        .bind(column(addressed, |to| rows::count(to.seq)))
        .bind(column(addressed, |to| rows::item(to.place.item)))
        .bind(column(addressed, |to| to.place.rank))
        .bind(column(addressed, |to| to.op as i16))
        .bind(now)
        .bind(column(addressed, |to| rows::feed(to.key.feed)))
        .bind(column(addressed, |to| to.author))
        .execute(connection)
        .await?;
    Ok(())
}

/// The ranking of a feed, the greatest key first.
pub(crate) async fn ranking(connection: &mut PgConnection, key: InboxKey) -> sqlx::Result<Vec<DisplayKey>> {
    let query = sqlx::query_as(RANKING).bind(rows::user(key.reader)).bind(rows::feed(key.feed));
    let read: Vec<(i64, i64)> = query.fetch_all(connection).await?;
    Ok(read.into_iter().map(|(rank, item)| rows::key_of(rank, item)).collect())
}

/// Gives the pairs, each a reader and an item, in which the item stands in a ranking of the reader. Each pair comes
/// with the terms between the reader and the author of the item.
pub(crate) async fn ranked(
    connection: &mut PgConnection,
    asked: &[(UserNo, ItemId)],
) -> sqlx::Result<Vec<((UserNo, ItemId), Terms)>> {
    let readers: Vec<i32> = asked.iter().map(|(reader, _)| rows::user(*reader)).collect();
    let items: Vec<i64> = asked.iter().map(|(_, item)| rows::item(*item)).collect();
    let query = sqlx::query_as(RANKED).bind(readers).bind(items);
    let read: Vec<(i32, i64, i16, bool, bool)> = query.fetch_all(connection).await?;
    let found = |(reader, item, shields, follows, private)| {
        let terms = Terms { follows, shields: rows::shields_of(shields)?, private };
        Ok(((rows::user_of(reader)?, rows::item_of(item)), terms))
    };
    read.into_iter().map(found).collect()
}

/// Notes that an earlier statement of this transaction edited or deleted these items, so that [`renew`] brings the
/// change to the rankings that hold them.
pub(crate) async fn changed(connection: &mut PgConnection, items: impl Iterator<Item = ItemId>) -> sqlx::Result<()> {
    let items: Vec<i64> = items.map(rows::item).collect();
    sqlx::query(CHANGED).bind(items).execute(connection).await?;
    Ok(())
}

/// Brings the edit or the delete of one item to some rankings that hold it.
pub(crate) async fn renew(connection: &mut PgConnection, now: Millis, limit: usize) -> sqlx::Result<Renewed> {
    // Workers look several times a second, and mostly nothing is due: then one statement is enough.
    if !sqlx::query_scalar(IS_DUE).fetch_one(&mut *connection).await? {
        return Ok(Renewed::default());
    }
    retried!(connection, renew_next(connection, now, limit))
}

async fn renew_next(connection: &mut PgConnection, now: Millis, limit: usize) -> sqlx::Result<Renewed> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let due: Option<(i64, i64, i32, i16)> = sqlx::query_as(TAKE).fetch_optional(&mut *connection).await?;
    let renewed = match due {
        Some((n, item, reader, feed)) => renew_some(connection, n, (item, reader, feed), now, limit).await?,
        None => Renewed::default(),
    };
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(renewed)
}

async fn renew_some(
    connection: &mut PgConnection,
    n: i64,
    (item, reader, feed): (i64, i32, i16),
    now: Millis,
    limit: usize,
) -> sqlx::Result<Renewed> {
    let next = sqlx::query_as(HOLDING).bind(item).bind(reader).bind(feed).bind(rows::limit(limit));
    let next: Vec<(i32, i16)> = next.fetch_all(&mut *connection).await?;
    let mut readers = next.iter().map(|(reader, _)| rows::user_of(*reader)).collect::<sqlx::Result<Vec<_>>>()?;
    readers.dedup();
    let mut heads: HashMap<i32, DirectSeq> =
        lock(connection, &readers).await?.into_iter().map(|(reader, head, _)| (reader, head)).collect();
    let numbers: Vec<i32> = heads.keys().copied().collect();
    // Rankings may have changed until their readers were locked.
    let places = sqlx::query_as(PLACES).bind(item).bind(numbers);
    let places: Vec<(i32, i16, i64, i64)> = places.fetch_all(&mut *connection).await?;
    let authors: Option<(i64, i32, bool)> =
        sqlx::query_as(AUTHORS).bind(vec![item]).fetch_optional(&mut *connection).await?;
    let (_, author, lives) = authors.ok_or_else(|| corrupt("an item is ranked and has no row"))?;
    let op = if lives { Op::Update } else { Op::Delete };
    let (mut ended, mut addressed) = (vec![], vec![]);
    for (reader, feed, seq, rank) in places.into_iter().filter(|(reader, feed, ..)| next.contains(&(*reader, *feed))) {
        let Some(head) = heads.get_mut(&reader) else { continue };
        *head += 1;
        let key = InboxKey { reader: rows::user_of(reader)?, feed: rows::feed_of(feed)? };
        addressed.push(Addressed { key, seq: *head, op, place: rows::key_of(rank, item), author });
        if op == Op::Delete {
            ended.push((reader, seq));
        }
    }
    if !addressed.is_empty() {
        store(connection, &addressed, &ended, now).await?;
    }
    match next.last() {
        Some((reader, feed)) if next.len() == limit => {
            sqlx::query(GO_ON).bind(n).bind(reader).bind(feed).execute(connection).await?;
        }
        _ => _ = sqlx::query(DONE).bind(n).execute(connection).await?,
    }
    Ok(Renewed { readers, more: true })
}
