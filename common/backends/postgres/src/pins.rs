//! What users have pinned to their profiles: a row for each user. The pins of a user change under the lock of that row.
//! After an error the connection is closed, which ends the transaction.

use std::collections::HashMap;

use feedgate_common::pins::{NotPinned, Pin, Pinnable, pin as pinned};
use feedgate_common::{ItemId, UserNo};
use sqlx::PgConnection;

use crate::rows;

/// Makes the row of the user if there is none, and locks the row.
const LOCK: &str = r#"
INSERT INTO pins ("user", items, feeds) VALUES ($1, '{}', '{}')
ON CONFLICT ("user") DO UPDATE SET "user" = EXCLUDED."user"
RETURNING items, feeds"#;

const LIVING: &str = "SELECT id, author, feed, route FROM items WHERE id = ANY($1) AND body IS NOT NULL";

const PUT: &str = r#"UPDATE pins SET items = $2, feeds = $3 WHERE "user" = $1"#;

const UNPIN: &str = r#"
UPDATE pins SET items = array_remove(items, $2),
    feeds = feeds[:array_position(items, $2) - 1] || feeds[array_position(items, $2) + 1:]
WHERE "user" = $1 AND $2 = ANY(items)"#;

const PINS: &str = r#"SELECT items, feeds FROM pins WHERE "user" = $1"#;

pub(crate) async fn pin(
    connection: &mut PgConnection,
    user: UserNo,
    item: ItemId,
) -> sqlx::Result<Result<bool, NotPinned>> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let (items, feeds): (Vec<i64>, Vec<i16>) =
        sqlx::query_as(LOCK).bind(rows::user(user)).fetch_one(&mut *connection).await?;
    let before = pins_of(&items, &feeds)?;
    let asked: Vec<i64> = items.into_iter().chain([rows::item(item)]).collect();
    let found: Vec<(i64, i32, i16, i16)> = sqlx::query_as(LIVING).bind(asked).fetch_all(&mut *connection).await?;
    let mut living = HashMap::new();
    for (id, author, feed, route) in found {
        let direct = route == rows::DIRECT;
        let pinnable = Pinnable { author: rows::user_of(author)?, feed: rows::feed_of(feed)?, direct };
        living.insert(rows::item_of(id), pinnable);
    }
    let before: Vec<Pin> = before.into_iter().filter(|pin| living.contains_key(&pin.item)).collect();
    let answer = pinned(user, item, living.get(&item).copied(), &before);
    let Ok(Some(after)) = &answer else {
        sqlx::query("ROLLBACK").execute(connection).await?;
        return Ok(answer.map(|_| false));
    };
    let items: Vec<i64> = after.iter().map(|pin| rows::item(pin.item)).collect();
    let feeds: Vec<i16> = after.iter().map(|pin| rows::feed(pin.feed)).collect();
    sqlx::query(PUT).bind(rows::user(user)).bind(items).bind(feeds).execute(&mut *connection).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(Ok(true))
}

pub(crate) async fn unpin(connection: &mut PgConnection, user: UserNo, item: ItemId) -> sqlx::Result<bool> {
    let done = sqlx::query(UNPIN).bind(rows::user(user)).bind(rows::item(item)).execute(connection).await?;
    Ok(done.rows_affected() > 0)
}

pub(crate) async fn pins(connection: &mut PgConnection, user: UserNo) -> sqlx::Result<Vec<Pin>> {
    let query = sqlx::query_as(PINS).bind(rows::user(user));
    let row: Option<(Vec<i64>, Vec<i16>)> = query.fetch_optional(connection).await?;
    row.map_or(Ok(vec![]), |(items, feeds)| pins_of(&items, &feeds))
}

fn pins_of(items: &[i64], feeds: &[i16]) -> sqlx::Result<Vec<Pin>> {
    let of = |(item, feed): (&i64, &i16)| Ok(Pin { feed: rows::feed_of(*feed)?, item: rows::item_of(*item) });
    items.iter().zip(feeds).map(of).collect()
}
