//! What the operations of a call speak of, locked and read.

use std::collections::{BTreeSet, HashMap, HashSet};

use feedgate_common::archive::{Edge, Write};
use feedgate_common::{ItemId, UserNo};
use sqlx::PgConnection;

use super::ledger::{Author, Change, EdgeState, ItemState, Ledger, Retry};
use super::{Ask, Numbers};
use crate::fault::corrupt;
use crate::rows;

const OWNERS: &str = "SELECT id, author FROM items WHERE id = ANY($1)";

macro_rules! lock_authors {
    ($mode:literal) => {
        concat!(
            "SELECT author, head, last_rank, last_item, has_aside, last_given FROM authors
             WHERE author = ANY($1) ORDER BY author FOR ",
            $mode
        )
    };
}

/// To append: nobody else moves the head.
const LOCK_TO_APPEND: &str = lock_authors!("UPDATE");
/// To follow: nobody moves the head at all.
const LOCK_TO_FOLLOW: &str = lock_authors!("SHARE");

const LOCK_READERS: &str = "SELECT reader, counter FROM readers WHERE reader = ANY($1) ORDER BY reader FOR UPDATE";

const RETRIES: &str = "
SELECT r.author, r.key, r.item, r.fingerprint, r.expires
FROM unnest($1::integer[], $2::text[]) AS asked(author, key)
JOIN retries r ON r.author = asked.author AND r.key = asked.key";

macro_rules! items {
    ($column:literal, $array:literal) => {
        concat!(
            "SELECT id, author, seq, published_at, rank, version, route, fingerprint, foreign_id, body IS NOT NULL
             FROM items WHERE ",
            $column,
            " = ANY(",
            $array,
            ")"
        )
    };
}

const ITEMS: &str = concat!(items!("id", "$1"), " UNION ALL ", items!("foreign_id", "$2"));

const EDGES: &str = "
SELECT e.reader, e.author, e.is_on, e.generation, e.from_seq
FROM unnest($1::integer[], $2::integer[]) AS asked(reader, author)
JOIN edges e ON e.reader = asked.reader AND e.author = asked.author";

/// Whose items are to be edited and deleted. An item's author never changes, so no lock is needed.
pub(super) async fn owners(connection: &mut PgConnection, asks: &[Ask]) -> sqlx::Result<HashMap<ItemId, UserNo>> {
    let ids: Vec<i64> = asks.iter().filter_map(edited).map(rows::item).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let read: Vec<(i64, i32)> = sqlx::query_as(OWNERS).bind(ids).fetch_all(connection).await?;
    read.into_iter().map(|(id, author)| Ok((rows::item_of(id), rows::user_of(author)?))).collect()
}

fn edited(ask: &Ask) -> Option<ItemId> {
    match ask.write {
        Write::Edit { item, .. } | Write::Delete { item, .. } => Some(item),
        Write::Publish(_) | Write::Follow { .. } | Write::Unfollow { .. } => None,
    }
}

/// Takes the locks and fills the ledger. In a transaction.
pub(super) async fn all(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    asks: &[Ask],
    numbers: &Numbers,
    owners: &HashMap<ItemId, UserNo>,
) -> sqlx::Result<()> {
    let mut authors: BTreeSet<UserNo> = owners.values().copied().collect();
    let (mut edges, mut keys, mut ids, mut foreign_ids) = (BTreeSet::new(), HashSet::new(), HashSet::new(), vec![]);
    let mut appends = !authors.is_empty();
    for ask in asks {
        match &ask.write {
            Write::Publish(publish) => {
                appends = true;
                let author = numbers.get(&publish.author).copied();
                authors.extend(author);
                keys.extend(author.zip(publish.idempotency_key.as_deref()));
                ids.extend(publish.id);
                foreign_ids.extend(publish.foreign_id.as_deref());
            }
            Write::Edit { item, .. } | Write::Delete { item, .. } => _ = ids.insert(*item),
            Write::Follow { reader, author } | Write::Unfollow { reader, author } => {
                edges.extend(numbers.get(reader).copied().zip(numbers.get(author).copied()));
            }
        }
    }
    authors.extend(edges.iter().map(|(_, author)| *author));
    lock_authors(connection, ledger, &authors, appends).await?;
    if !edges.is_empty() {
        lock_readers(connection, ledger, &edges.iter().map(|(reader, _)| *reader).collect()).await?;
        load_edges(connection, ledger, &edges).await?;
    }
    if !keys.is_empty() {
        retries(connection, ledger, &keys).await?;
        ids.extend(ledger.retries.values().map(|retry| retry.item));
    }
    if !ids.is_empty() || !foreign_ids.is_empty() {
        let ids: Vec<ItemId> = ids.into_iter().collect();
        for (id, row) in items(connection, &ids, &foreign_ids).await? {
            ledger.foreign_ids.extend(row.foreign_id.clone().map(|key| (key, id)));
            ledger.items.insert(id, row);
        }
    }
    Ok(())
}

async fn lock_authors(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    authors: &BTreeSet<UserNo>,
    appends: bool,
) -> sqlx::Result<()> {
    type Row = (i32, i64, Option<i64>, Option<i64>, bool, Option<i64>);
    let numbers: Vec<i32> = authors.iter().copied().map(rows::user).collect();
    let lock = if appends { LOCK_TO_APPEND } else { LOCK_TO_FOLLOW };
    let read: Vec<Row> = sqlx::query_as(lock).bind(numbers).fetch_all(connection).await?;
    for (author, head, last_rank, last_item, has_aside, last_given) in read {
        let row = Author {
            head: rows::count_of(head)?,
            last_in_step: last_rank.zip(last_item).map(|(rank, item)| rows::key_of(rank, item)),
            has_aside,
            last_given: last_given.map(rows::item_of),
        };
        ledger.authors.insert(rows::user_of(author)?, row);
    }
    match authors.iter().find(|author| !ledger.authors.contains_key(author)) {
        Some(author) => Err(corrupt(format_args!("user {} has no row in authors", author.0))),
        None => Ok(()),
    }
}

async fn lock_readers(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    readers: &BTreeSet<UserNo>,
) -> sqlx::Result<()> {
    let numbers: Vec<i32> = readers.iter().copied().map(rows::user).collect();
    let read: Vec<(i32, i64)> = sqlx::query_as(LOCK_READERS).bind(numbers).fetch_all(connection).await?;
    for (reader, counter) in read {
        ledger.readers.insert(rows::user_of(reader)?, rows::count_of(counter)?);
    }
    match readers.iter().find(|reader| !ledger.readers.contains_key(reader)) {
        Some(reader) => Err(corrupt(format_args!("user {} has no row in readers", reader.0))),
        None => Ok(()),
    }
}

async fn load_edges(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    edges: &BTreeSet<(UserNo, UserNo)>,
) -> sqlx::Result<()> {
    let (readers, authors): (Vec<i32>, Vec<i32>) =
        edges.iter().map(|(reader, author)| (rows::user(*reader), rows::user(*author))).unzip();
    let read: Vec<(i32, i32, bool, i64, i64)> =
        sqlx::query_as(EDGES).bind(readers).bind(authors).fetch_all(connection).await?;
    for (reader, author, on, generation, from) in read {
        let edge = Edge { on, generation: rows::count_of(generation)?, from: rows::count_of(from)? };
        let edge = EdgeState { edge, changed: None };
        ledger.edges.insert((rows::user_of(reader)?, rows::user_of(author)?), edge);
    }
    Ok(())
}

async fn retries(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    keys: &HashSet<(UserNo, &str)>,
) -> sqlx::Result<()> {
    let (authors, keys): (Vec<i32>, Vec<&str>) = keys.iter().map(|(author, key)| (rows::user(*author), *key)).unzip();
    let read: Vec<(i32, String, i64, Vec<u8>, i64)> =
        sqlx::query_as(RETRIES).bind(authors).bind(keys).fetch_all(connection).await?;
    for (author, key, item, fingerprint, expires) in read {
        let retry = Retry { item: rows::item_of(item), fingerprint: print_of(&fingerprint)?, expires, changed: false };
        ledger.retries.insert((rows::user_of(author)?, key.into()), retry);
    }
    Ok(())
}

/// Items by id or foreign id; one that was asked for by both may come twice.
pub(super) async fn items(
    connection: &mut PgConnection,
    ids: &[ItemId],
    foreign_ids: &[&str],
) -> sqlx::Result<Vec<(ItemId, ItemState)>> {
    type Row = (i64, i32, i64, i64, i64, i32, i16, Vec<u8>, Option<String>, bool);
    let ids: Vec<i64> = ids.iter().copied().map(rows::item).collect();
    let read: Vec<Row> = sqlx::query_as(ITEMS).bind(ids).bind(foreign_ids).fetch_all(connection).await?;
    let item = |row: Row| {
        let (id, author, seq, published_at, rank, version, route, fingerprint, foreign_id, alive) = row;
        let state = ItemState {
            author: rows::user_of(author)?,
            seq: rows::count_of(seq)?,
            published_at,
            rank,
            version: version.cast_unsigned(),
            route: rows::route_of(route)?,
            fingerprint: print_of(&fingerprint)?,
            kind: None,
            foreign_id: foreign_id.map(Into::into),
            alive,
            body: None,
            change: Change::Nothing,
        };
        Ok((rows::item_of(id), state))
    };
    read.into_iter().map(item).collect()
}

fn print_of(column: &[u8]) -> sqlx::Result<[u8; 16]> {
    column.try_into().map_err(|_| corrupt(format_args!("a fingerprint of {} bytes instead of 16", column.len())))
}
