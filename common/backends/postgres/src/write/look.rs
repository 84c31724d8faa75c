//! Looks up items and keys. What is read here without a lock never changes, except the foreign id of a deleted item. A
//! new item may take that; of two that do so at once, the unique key of foreign ids lets one commit.

use std::collections::{BTreeSet, HashMap, HashSet};

use compact_str::CompactString;
use feedgate_common::accept::{Ask, Door, ItemRow, RetryRow};
use feedgate_common::archive::Write;
use feedgate_common::import::Import;
use feedgate_common::{ItemId, OutboxSeq, UserId, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;
use crate::users::user_id;

const EDITED: &str = "
SELECT i.author, d.reader FROM items i LEFT JOIN direct d ON i.route = 0 AND d.item = i.id AND d.op = 1 AND NOT d.ranked
WHERE i.id = ANY($1)";

const AUTHORS: &str = "SELECT id, author FROM items WHERE id = ANY($1)";

const MENTIONING: &str = "
SELECT i.id, i.author, u.name, i.mentions FROM items i JOIN users u ON u.no = i.author
WHERE i.id = ANY($1) AND i.body IS NOT NULL";

const AUDIENCES: &str = "SELECT item, readers FROM audiences WHERE item = ANY($1)";

const PRIVATES: &str = "SELECT author FROM authors WHERE author = ANY($1) AND private";

const ADDRESSEES: &str = "
SELECT DISTINCT d.reader FROM items i JOIN direct d ON d.item = i.id AND d.op = 1 AND NOT d.ranked
WHERE i.foreign_id = ANY($1) AND i.body IS NOT NULL";

const RETRIES: &str = "
SELECT r.author, r.key, r.item, r.fingerprint, r.expires
FROM unnest($1::integer[], $2::text[]) AS asked(author, key)
JOIN retries r ON r.author = asked.author AND r.key = asked.key";

macro_rules! items {
    ($column:literal, $array:literal) => {
        concat!(
            "SELECT id, author, seq, published_at, rank, version, feed, route, fingerprint, foreign_id, body IS NOT NULL,
                    repost_of, mentions
             FROM items WHERE ",
            $column,
            " = ANY(",
            $array,
            ")"
        )
    };
}

const ITEMS: &str = concat!(items!("id", "$1"), " UNION ALL ", items!("foreign_id", "$2"));

/// Gives each reader of an item once. An item that has moved has an add for each rank that it had.
const RECIPIENTS: &str =
    "SELECT DISTINCT item, reader FROM direct WHERE item = ANY($1) AND op = 1 AND NOT ranked ORDER BY item, reader";

const ENDED: &str = "
SELECT i.id, r.deleted_by FROM items i JOIN records r ON r.author = i.author AND r.seq = i.seq
WHERE i.id = ANY($1) AND r.deleted_by IS NOT NULL";

/// The authors and readers whose rows edits and deletes change.
#[derive(Default)]
pub(super) struct Edited {
    pub(super) authors: BTreeSet<UserNo>,
    /// The readers to whom direct items among them are addressed.
    pub(super) readers: BTreeSet<UserNo>,
}

/// Looks up the authors and readers of the items that are to be edited or deleted.
pub(super) async fn edited(connection: &mut PgConnection, asks: &[Ask]) -> sqlx::Result<Edited> {
    let id = |ask: &Ask| match *ask.write() {
        Write::Edit { item, .. } | Write::Delete { item, .. } | Write::Import(Import::Delete { item }) => {
            Some(rows::item(item))
        }
        _ => None,
    };
    let ids: Vec<i64> = asks.iter().filter_map(id).collect();
    let mut edited = Edited::default();
    if !ids.is_empty() {
        let read: Vec<(i32, Option<i32>)> = sqlx::query_as(EDITED).bind(ids).fetch_all(connection).await?;
        for (author, reader) in read {
            edited.authors.insert(rows::user_of(author)?);
            edited.readers.extend(reader.map(rows::user_of).transpose()?);
        }
    }
    Ok(edited)
}

/// The authors of these items, which never change.
pub(super) async fn authors(
    connection: &mut PgConnection,
    items: impl Iterator<Item = ItemId>,
) -> sqlx::Result<HashMap<ItemId, UserNo>> {
    let ids: Vec<i64> = items.map(rows::item).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let read: Vec<(i64, i32)> = sqlx::query_as(AUTHORS).bind(ids).fetch_all(connection).await?;
    read.into_iter().map(|(id, author)| Ok((rows::item_of(id), rows::user_of(author)?))).collect()
}

/// A living item with its author and the users whom it mentions.
pub(super) struct Mentioning {
    pub(super) item: ItemId,
    pub(super) author: UserNo,
    pub(super) name: UserId,
    pub(super) mentions: Vec<UserId>,
}

/// Looks up whom these items mention, and who has published them. A deleted item is left out. The list of an item may
/// change until the item is locked.
pub(super) async fn mentioning(connection: &mut PgConnection, items: &[ItemId]) -> sqlx::Result<Vec<Mentioning>> {
    let ids: Vec<i64> = items.iter().copied().map(rows::item).collect();
    if ids.is_empty() {
        return Ok(vec![]);
    }
    let read: Vec<(i64, i32, String, Option<String>)> =
        sqlx::query_as(MENTIONING).bind(ids).fetch_all(connection).await?;
    let found = |(item, author, name, mentions): (i64, i32, String, Option<String>)| {
        Ok(Mentioning {
            item: rows::item_of(item),
            author: rows::user_of(author)?,
            name: user_id(&name)?,
            mentions: rows::mentions_of(mentions.as_deref())?,
        })
    };
    read.into_iter().map(found).collect()
}

/// Looks up the audience of each of these items that is narrowed. Only an erasure changes an audience.
pub(super) async fn audiences(
    connection: &mut PgConnection,
    items: &[ItemId],
) -> sqlx::Result<Vec<(ItemId, Vec<UserNo>)>> {
    let ids: Vec<i64> = items.iter().copied().map(rows::item).collect();
    let read: Vec<(i64, Vec<i32>)> = sqlx::query_as(AUDIENCES).bind(ids).fetch_all(connection).await?;
    let found = |(item, readers): (i64, Vec<i32>)| {
        Ok((rows::item_of(item), readers.into_iter().map(rows::user_of).collect::<sqlx::Result<_>>()?))
    };
    read.into_iter().map(found).collect()
}

/// Picks the private ones of these authors.
pub(super) async fn privates(connection: &mut PgConnection, authors: &[UserNo]) -> sqlx::Result<Vec<UserNo>> {
    let authors: Vec<i32> = authors.iter().copied().map(rows::user).collect();
    let read: Vec<i32> = sqlx::query_scalar(PRIVATES).bind(authors).fetch_all(connection).await?;
    read.into_iter().map(rows::user_of).collect()
}

/// The readers to whom the living items with these foreign ids are addressed.
pub(super) async fn addressees(
    connection: &mut PgConnection,
    foreign_ids: impl Iterator<Item = &CompactString>,
) -> sqlx::Result<Vec<UserNo>> {
    let keys: Vec<&str> = foreign_ids.map(CompactString::as_str).collect();
    if keys.is_empty() {
        return Ok(vec![]);
    }
    let read: Vec<i32> = sqlx::query_scalar(ADDRESSEES).bind(keys).fetch_all(connection).await?;
    read.into_iter().map(rows::user_of).collect()
}

/// The idempotency keys that are stored, also those whose time is over.
pub(super) async fn retries(
    connection: &mut PgConnection,
    keys: &HashSet<(UserNo, &str)>,
) -> sqlx::Result<Vec<((UserNo, CompactString), RetryRow)>> {
    if keys.is_empty() {
        return Ok(vec![]);
    }
    let (authors, keys): (Vec<i32>, Vec<&str>) = keys.iter().map(|(author, key)| (rows::user(*author), *key)).unzip();
    let read: Vec<(i32, String, i64, Vec<u8>, i64)> =
        sqlx::query_as(RETRIES).bind(authors).bind(keys).fetch_all(connection).await?;
    let retry = |(author, key, item, fingerprint, expires): (i32, String, i64, Vec<u8>, i64)| {
        let retry = RetryRow { item: rows::item_of(item), fingerprint: print_of(&fingerprint)?, expires };
        Ok(((rows::user_of(author)?, key.into()), retry))
    };
    read.into_iter().map(retry).collect()
}

/// Items by id or foreign id, each with its foreign id. An item that was asked for by both may come twice.
pub(super) async fn items(
    connection: &mut PgConnection,
    ids: &[ItemId],
    foreign_ids: &[&str],
) -> sqlx::Result<Vec<(ItemId, Option<CompactString>, ItemRow)>> {
    type Row = (i64, i32, i64, i64, i64, i32, i16, i16, Vec<u8>, Option<String>, bool, Option<i64>, Option<String>);
    let ids: Vec<i64> = ids.iter().copied().map(rows::item).collect();
    let read: Vec<Row> = sqlx::query_as(ITEMS).bind(ids).bind(foreign_ids).fetch_all(&mut *connection).await?;
    let direct: Vec<i64> = read.iter().filter(|row| row.7 == rows::DIRECT).map(|row| row.0).collect();
    let recipients = recipients(connection, &direct).await?;
    let item = |row: Row| {
        let (
            id,
            author,
            seq,
            published_at,
            rank,
            version,
            feed,
            route,
            fingerprint,
            foreign_id,
            living,
            repost_of,
            named,
        ) = row;
        let door = match route {
            rows::DIRECT => Door::Direct(recipients.get(&id).cloned().unwrap_or_default()),
            route => Door::Outbox(rows::route_of(route)?),
        };
        let item = ItemRow {
            author: rows::user_of(author)?,
            seq: rows::count_of(seq)?,
            published_at,
            rank,
            version: version.cast_unsigned(),
            feed: rows::feed_of(feed)?,
            door,
            fingerprint: print_of(&fingerprint)?,
            living,
            repost_of: repost_of.map(rows::item_of),
            mentions: if living { rows::mentions_of(named.as_deref())? } else { vec![] },
        };
        Ok((rows::item_of(id), foreign_id.map(Into::into), item))
    };
    read.into_iter().map(item).collect()
}

/// The items among these whose adds are deleted, each with the record that did it.
pub(super) async fn ended(connection: &mut PgConnection, ids: &[ItemId]) -> sqlx::Result<Vec<(ItemId, OutboxSeq)>> {
    let ids: Vec<i64> = ids.iter().copied().map(rows::item).collect();
    let read: Vec<(i64, i64)> = sqlx::query_as(ENDED).bind(ids).fetch_all(connection).await?;
    read.into_iter().map(|(id, by)| Ok((rows::item_of(id), rows::count_of(by)?))).collect()
}

/// The readers to whom each direct item is addressed, by number.
async fn recipients(connection: &mut PgConnection, direct: &[i64]) -> sqlx::Result<HashMap<i64, Vec<UserNo>>> {
    let mut recipients: HashMap<i64, Vec<UserNo>> = HashMap::new();
    if !direct.is_empty() {
        let read: Vec<(i64, i32)> = sqlx::query_as(RECIPIENTS).bind(direct).fetch_all(connection).await?;
        for (item, reader) in read {
            recipients.entry(item).or_default().push(rows::user_of(reader)?);
        }
    }
    Ok(recipients)
}

fn print_of(column: &[u8]) -> sqlx::Result<[u8; 16]> {
    column.try_into().map_err(|_| corrupt(format_args!("a fingerprint of {} bytes instead of 16", column.len())))
}
