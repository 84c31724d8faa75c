//! The reads of an export: users, what is stored of their edges, and items addressed to readers by name. Each is read
//! in pages along one index.

use feedgate_common::archive::Held;
use feedgate_common::{ItemId, OutboxSeq, Record, UserId, UserNo};
use sqlx::PgConnection;

use crate::rows;
use crate::users::user_id;

const USERS: &str = "SELECT no, name FROM users WHERE no > $1 ORDER BY no LIMIT $2";

const HELD: &str = "
SELECT e.author, e.is_on OR e.held_back, e.asked, e.shields, e.generation, coalesce(e.past_seq, e.from_seq),
       CASE WHEN e.is_on OR e.held_back OR e.asked THEN e.since ELSE 0 END
FROM edges e
WHERE e.reader = $1 AND e.author > $2
  AND (e.is_on OR e.held_back OR e.asked OR e.shields <> 0
       OR EXISTS (SELECT FROM authors a WHERE a.author = e.author AND a.everyone_since IS NOT NULL))
ORDER BY e.author LIMIT $3";

const DIRECT_ITEMS: &str = "
SELECT i.id, ARRAY(SELECT DISTINCT reader FROM direct d WHERE d.item = i.id AND d.op = 1 AND NOT d.ranked ORDER BY reader)
FROM items i WHERE i.route = 0 AND i.body IS NOT NULL AND i.id >= $1 ORDER BY i.id LIMIT $2";

/// For each of these records, the delete by which its item moved to another rank: for an add, the delete that ended it;
/// for such a delete, the delete itself. NULL for the newest add of an item and for the delete that ended the item.
const MOVES: &str = "
SELECT asked.n, CASE WHEN r.op = 1 AND r.seq <> i.seq THEN r.deleted_by
                     WHEN r.op = 3 AND last.deleted_by IS DISTINCT FROM r.seq THEN r.seq END
FROM unnest($2::bigint[]) WITH ORDINALITY AS asked(seq, n)
JOIN records r ON r.author = $1 AND r.seq = asked.seq
JOIN items i ON i.id = r.item
JOIN records last ON last.author = $1 AND last.seq = i.seq";

pub(crate) async fn users(
    connection: &mut PgConnection,
    after: Option<UserNo>,
    limit: usize,
) -> sqlx::Result<Vec<(UserNo, UserId)>> {
    let query = sqlx::query_as(USERS).bind(after.map_or(-1, rows::user)).bind(rows::limit(limit));
    let read: Vec<(i32, String)> = query.fetch_all(connection).await?;
    read.into_iter().map(|(no, name)| Ok((rows::user_of(no)?, user_id(&name)?))).collect()
}

pub(crate) async fn held(
    connection: &mut PgConnection,
    reader: UserNo,
    after: Option<UserNo>,
    limit: usize,
) -> sqlx::Result<Vec<Held>> {
    let read: Vec<(i32, bool, bool, i16, i64, i64, i64)> = sqlx::query_as(HELD)
        .bind(rows::user(reader))
        .bind(after.map_or(-1, rows::user))
        .bind(rows::limit(limit))
        .fetch_all(connection)
        .await?;
    let held = |(author, follows, asked, shields, generation, past, since)| {
        let shields = rows::shields_of(shields)?;
        let (generation, past) = (rows::count_of(generation)?, rows::count_of(past)?);
        Ok(Held { author: rows::user_of(author)?, follows, asked, shields, generation, past, since })
    };
    read.into_iter().map(held).collect()
}

pub(crate) async fn direct_items(
    connection: &mut PgConnection,
    after: Option<ItemId>,
    limit: usize,
) -> sqlx::Result<Vec<(ItemId, Vec<UserNo>)>> {
    let Some(first) = after.map_or(Some(0), |after| after.0.checked_add(1)) else { return Ok(vec![]) };
    let query = sqlx::query_as(DIRECT_ITEMS).bind(rows::item(ItemId(first))).bind(rows::limit(limit));
    let read: Vec<(i64, Vec<i32>)> = query.fetch_all(connection).await?;
    let item = |(id, readers): (i64, Vec<i32>)| {
        Ok((rows::item_of(id), readers.into_iter().map(rows::user_of).collect::<sqlx::Result<_>>()?))
    };
    read.into_iter().map(item).collect()
}

pub(crate) async fn moves(
    connection: &mut PgConnection,
    author: UserNo,
    records: &[Record],
) -> sqlx::Result<Vec<Option<OutboxSeq>>> {
    let seqs: Vec<i64> = records.iter().map(|record| rows::count(record.seq)).collect();
    let query = sqlx::query_as(MOVES).bind(rows::user(author)).bind(seqs);
    let read: Vec<(i64, Option<i64>)> = query.fetch_all(connection).await?;
    let mut moves = vec![None; records.len()];
    for (n, by) in read {
        moves[n as usize - 1] = by.map(rows::count_of).transpose()?;
    }
    Ok(moves)
}
