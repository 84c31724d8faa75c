//! What the operations of a call speak of, locked and read.

use std::collections::{BTreeSet, HashSet};

use feedgate_common::archive::Write;
use feedgate_common::graph::Shields;
use feedgate_common::import::{Import, Place};
use feedgate_common::{ItemId, UserNo};
use sqlx::PgConnection;

use super::ledger::{Author, Held, Ledger, Reader};
use super::look::{self, Edited};
use super::{Ask, Numbers, names};
use crate::fault::corrupt;
use crate::rows;

macro_rules! lock_authors {
    ($followers:literal, $mode:literal) => {
        concat!(
            "SELECT author, head, last_rank, last_item, has_aside, last_given, class, everyone_since, ",
            $followers,
            " FROM authors a WHERE author = ANY($1) ORDER BY author FOR ",
            $mode
        )
    };
}

/// To append: nobody else moves the head. The followers decide the route, and only where the class does not.
const LOCK_TO_APPEND: &str = lock_authors!(
    "CASE WHEN class = 0 THEN (
        SELECT sum(followers)::bigint FROM follower_counts c WHERE c.author = a.author
     ) END",
    "UPDATE OF a"
);
/// To follow: nobody moves the head at all.
const LOCK_TO_FOLLOW: &str = lock_authors!("NULL::bigint", "SHARE");

const LOCK_READERS: &str =
    "SELECT reader, counter, direct FROM readers WHERE reader = ANY($1) ORDER BY reader FOR UPDATE";

const EDGES: &str = "
SELECT e.reader, e.author, e.is_on OR e.held_back, e.shields, e.generation, e.from_seq, e.past_seq
FROM unnest($1::integer[], $2::integer[]) AS asked(reader, author)
JOIN edges e ON e.reader = asked.reader AND e.author = asked.author";

/// Takes the locks and fills the ledger. In a transaction.
pub(super) async fn all(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    asks: &[Ask],
    numbers: &Numbers,
    edited: Edited,
) -> sqlx::Result<()> {
    let Edited { mut authors, mut readers } = edited;
    let (mut edges, mut keys, mut ids, mut foreign_ids) = (BTreeSet::new(), HashSet::new(), HashSet::new(), vec![]);
    let mut places = vec![];
    let mut appends = !authors.is_empty();
    let no = |name| numbers.get(name).copied();
    for ask in asks {
        edges.extend(names::edges_of(&ask.write).into_iter().filter_map(|(one, other)| no(one).zip(no(other))));
        match &ask.write {
            Write::Import(Import::Item { publish, .. }) => {
                appends = true;
                authors.extend(no(&publish.author));
                ids.extend(publish.id);
                foreign_ids.extend(publish.foreign_id.as_deref());
            }
            Write::Publish(publish) => {
                appends = true;
                authors.extend(no(&publish.author));
                keys.extend(no(&publish.author).zip(publish.idempotency_key.as_deref()));
                ids.extend(publish.id);
                foreign_ids.extend(publish.foreign_id.as_deref());
            }
            Write::Edit { item, .. } | Write::Delete { item, .. } => _ = ids.insert(*item),
            Write::Import(
                Import::Delete { item } | Import::Follow { from: Place::Add(item) | Place::Delete(item), .. },
            ) => {
                ids.insert(*item);
                places.push(*item);
            }
            Write::Classify { author, .. } | Write::Import(Import::Class { author, .. }) => {
                appends = true;
                authors.extend(no(author));
            }
            Write::Follow { .. } | Write::Unfollow { .. } | Write::Shield { .. } | Write::Import(_) => {}
        }
    }
    authors.extend(edges.iter().map(|(_, author)| *author));
    readers.extend(edges.iter().map(|(reader, _)| *reader));
    lock_authors(connection, ledger, &authors, appends).await?;
    if !readers.is_empty() {
        lock_readers(connection, ledger, &readers).await?;
    }
    if !edges.is_empty() {
        load_edges(connection, ledger, &edges).await?;
    }
    for ((author, key), retry) in look::retries(connection, &keys).await? {
        ids.insert(retry.item);
        ledger.retries.insert((author, key.into()), retry);
    }
    if !ids.is_empty() || !foreign_ids.is_empty() {
        let ids: Vec<ItemId> = ids.into_iter().collect();
        for (id, row) in look::items(connection, &ids, &foreign_ids).await? {
            ledger.foreign_ids.extend(row.foreign_id.clone().map(|key| (key, id)));
            ledger.items.insert(id, row);
        }
    }
    if !places.is_empty() {
        ledger.ended_before.extend(look::ended(connection, &places).await?);
    }
    Ok(())
}

async fn lock_authors(
    connection: &mut PgConnection,
    ledger: &mut Ledger,
    authors: &BTreeSet<UserNo>,
    appends: bool,
) -> sqlx::Result<()> {
    type Row = (i32, i64, Option<i64>, Option<i64>, bool, Option<i64>, i16, Option<i64>, Option<i64>);
    let numbers: Vec<i32> = authors.iter().copied().map(rows::user).collect();
    let lock = if appends { LOCK_TO_APPEND } else { LOCK_TO_FOLLOW };
    let read: Vec<Row> = sqlx::query_as(lock).bind(numbers).fetch_all(connection).await?;
    for (author, head, last_rank, last_item, has_aside, last_given, class, everyone_since, followers) in read {
        let row = Author {
            head: rows::count_of(head)?,
            last_in_step: last_rank.zip(last_item).map(|(rank, item)| rows::key_of(rank, item)),
            has_aside,
            last_given: last_given.map(rows::item_of),
            class: rows::class_of(class)?,
            everyone_since: everyone_since.map(rows::count_of).transpose()?,
            followers: followers.unwrap_or(0),
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
    let read: Vec<(i32, i64, i64)> = sqlx::query_as(LOCK_READERS).bind(numbers).fetch_all(connection).await?;
    for (reader, counter, direct) in read {
        let row = Reader { counter: rows::count_of(counter)?, direct: rows::count_of(direct)?, quiet: true };
        ledger.readers.insert(rows::user_of(reader)?, row);
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
    type Row = (i32, i32, bool, i16, i64, i64, Option<i64>);
    let read: Vec<Row> = sqlx::query_as(EDGES).bind(readers).bind(authors).fetch_all(connection).await?;
    for (reader, author, follows, shields, generation, from, past) in read {
        let held = Held {
            follows,
            shields: Shields(u8::try_from(shields).map_err(|_| corrupt("shields beyond a byte"))?),
            generation: rows::count_of(generation)?,
            from: rows::count_of(from)?,
            past: past.map(rows::count_of).transpose()?,
        };
        ledger.edges.insert((rows::user_of(reader)?, rows::user_of(author)?), held);
    }
    Ok(())
}
