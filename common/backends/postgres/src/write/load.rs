//! Locks and reads the rows that the operations of a call name.

use std::collections::{BTreeSet, HashSet};

use compact_str::CompactString;
use feedgate_common::accept::{Ask, AuthorRow, Door, EdgeRow, ItemRow, ReaderRow};
use feedgate_common::archive::Write;
use feedgate_common::change::Route;
use feedgate_common::import::{Import, Place};
use feedgate_common::{InboxKey, ItemId, UserNo};
use sqlx::PgConnection;

use super::batch::Batch;
use super::concerned::Concerned;
use super::look::{self, Edited};
use super::{lines, names};
use crate::fault::corrupt;
use crate::rows;

macro_rules! lock_authors {
    ($followers:literal, $lacks:literal, $mode:literal) => {
        concat!(
            "SELECT author, head, last_rank, last_item, has_aside, last_given, class, everyone_since, private, ",
            $followers,
            ", ",
            $lacks,
            " FROM authors a WHERE author = ANY($1) ORDER BY author FOR ",
            $mode
        )
    };
}

/// Locks authors to append to their outboxes, so that nobody else moves the head. Followers are counted only for class
/// `auto`, where their number decides the route. The last column says whether the author is to have an edge to itself
/// and has none. The author's row says so, and not the table of edges: a publish waits for no lock on that table.
const LOCK_TO_APPEND: &str = lock_authors!(
    "CASE WHEN class = 0 THEN (
        SELECT sum(followers)::bigint FROM follower_counts c WHERE c.author = a.author
     ) END",
    "NOT own_edge AND coalesce((SELECT own_posts FROM own_posts), false)",
    "UPDATE OF a"
);
/// Locks authors to follow them, so that nobody moves the head.
const LOCK_TO_FOLLOW: &str = lock_authors!("NULL::bigint", "false", "SHARE");

const LOCK_READERS: &str =
    "SELECT reader, counter, direct FROM readers WHERE reader = ANY($1) ORDER BY reader FOR UPDATE";

const SIGHTS: &str = "
SELECT s.reader, s.feed, s.until
FROM unnest($1::integer[], $2::smallint[]) AS asked(reader, feed)
JOIN sights s ON s.reader = asked.reader AND s.feed = asked.feed";

const EDGES: &str = "
SELECT e.reader, e.author, e.is_on OR e.held_back, e.asked, e.shields, e.generation, e.from_seq, e.past_seq
FROM unnest($1::integer[], $2::integer[]) AS asked(reader, author)
JOIN edges e ON e.reader = asked.reader AND e.author = asked.author";

/// Takes the locks, and fills the rows of the batch, which has the numbers of users already. To be called in a
/// transaction.
pub(super) async fn all(
    connection: &mut PgConnection,
    batch: &mut Batch<'_>,
    asks: &[Ask],
    edited: Edited,
    concerned: &Concerned,
) -> sqlx::Result<()> {
    let Edited { mut authors, mut readers } = edited;
    let (mut edges, mut keys, mut ids, mut foreign_ids) = (BTreeSet::new(), HashSet::new(), HashSet::new(), vec![]);
    let (mut places, mut publishers) = (vec![], BTreeSet::new());
    let (mut members, mut groups, mut lines) = (concerned.keys.clone(), concerned.groups.clone(), BTreeSet::new());
    let mut appends = !authors.is_empty();
    let no = |name| batch.rows.users.get(name).copied().flatten();
    for ask in asks {
        edges.extend(names::edges_of(ask).into_iter().filter_map(|(one, other)| no(one).zip(no(other))));
        if let Some(publish) = ask.published() {
            appends = true;
            authors.extend(no(&publish.author));
            publishers.extend(no(&publish.author));
            keys.extend(no(&publish.author).zip(publish.idempotency_key.as_deref()));
            ids.extend(publish.id);
            ids.extend(publish.repost_of);
            foreign_ids.extend(publish.foreign_id.as_deref());
        }
        match ask.write() {
            Write::Edit { item, .. } | Write::Delete { item, .. } => _ = ids.insert(*item),
            Write::Import(
                Import::Delete { item } | Import::Follow { from: Place::Add(item) | Place::Delete(item), .. },
            ) => {
                ids.insert(*item);
                places.push(*item);
            }
            Write::Classify { author, .. }
            | Write::OwnPosts { author, .. }
            | Write::Private { author, .. }
            | Write::Import(Import::Private { author })
            | Write::Import(Import::Class { author, .. }) => {
                appends = true;
                authors.extend(no(author));
            }
            Write::Publish(_)
            | Write::Follow { .. }
            | Write::Unfollow { .. }
            | Write::Answer { .. }
            | Write::Shield { .. } => {}
            Write::Import(Import::Member(member)) => {
                readers.extend(no(&member.reader));
                groups.extend(no(&member.reader).map(|reader| (reader, member.group.clone())));
                members.insert(member.key.clone());
                lines.insert(member.line);
                ids.insert(member.item);
            }
            Write::Import(_) => {}
            // These writes follow from other writes, and no caller asks for them.
            Write::Notify(_) | Write::Withdraw { .. } | Write::Line(_) => {}
        }
    }
    authors.extend(edges.iter().map(|(_, author)| *author));
    readers.extend(edges.iter().map(|(reader, _)| *reader));
    readers.extend(concerned.readers());
    // An edge of an author to itself changes the author's row too.
    appends |= edges.iter().any(|(reader, author)| reader == author);
    lock_authors(connection, batch, &authors, appends).await?;
    publishers.retain(|author| batch.rows.authors.get(author).is_some_and(|row| row.lacks_own_edge));
    edges.extend(publishers.iter().map(|author| (*author, *author)));
    readers.extend(&publishers);
    lock_readers(connection, batch, &readers).await?;
    // A user who is notified must not be behind a shield, so these edges are needed too. The author of a notification
    // is not locked, since the id of a notification is drawn at random.
    edges.extend(&concerned.pairs);
    if !edges.is_empty() {
        load_edges(connection, batch, &edges).await?;
    }
    if !members.is_empty() || !groups.is_empty() {
        lines::load(connection, &mut batch.rows, &members, &groups, &lines).await?;
        load_members(connection, batch).await?;
    }
    let told = lines::told(&batch.rows);
    ids.extend(told.items);
    foreign_ids.extend(told.keys.iter().map(CompactString::as_str));
    let rows = &mut batch.rows;
    rows.retries.extend(keys.iter().map(|(author, key)| ((*author, (*key).into()), None)));
    for (key, retry) in look::retries(connection, &keys).await? {
        ids.insert(retry.item);
        rows.retries.insert(key, Some(retry));
    }
    foreign_ids.extend(concerned.keys.iter().map(|key| key.as_str()));
    rows.items.extend(ids.iter().map(|id| (*id, None)));
    rows.foreign_ids.extend(foreign_ids.iter().map(|key| ((*key).into(), None)));
    if !ids.is_empty() || !foreign_ids.is_empty() {
        let ids: Vec<ItemId> = ids.into_iter().collect();
        for (id, foreign_id, item) in look::items(connection, &ids, &foreign_ids).await? {
            rows.foreign_ids.extend(foreign_id.map(|key| (key, Some(id))));
            rows.items.insert(id, Some(item));
        }
    }
    if !places.is_empty() {
        rows.ended.extend(places.iter().map(|id| (*id, None)));
        let ended = look::ended(connection, &places).await?;
        rows.ended.extend(ended.into_iter().map(|(id, by)| (id, Some(by))));
    }
    load_reach(connection, batch, concerned).await?;
    load_told(connection, batch, &concerned.keys).await
}

/// Takes the locks and fills the rows of a batch that only notifies. To be called in a transaction that has no locks
/// of readers yet.
pub(super) async fn notifications(
    connection: &mut PgConnection,
    batch: &mut Batch<'_>,
    concerned: &Concerned,
) -> sqlx::Result<()> {
    lock_readers(connection, batch, &concerned.readers().collect()).await?;
    if !concerned.pairs.is_empty() {
        load_edges(connection, batch, &concerned.pairs).await?;
    }
    lines::load(connection, &mut batch.rows, &concerned.keys, &concerned.groups, &BTreeSet::new()).await?;
    load_members(connection, batch).await?;
    let told = lines::told(&batch.rows);
    let keys: Vec<&str> = concerned.keys.iter().chain(&told.keys).map(CompactString::as_str).collect();
    batch.rows.foreign_ids.extend(keys.iter().map(|key| ((*key).into(), None)));
    let items: Vec<ItemId> = told.items.iter().chain(concerned.sights.keys()).copied().collect();
    batch.rows.items.extend(items.iter().map(|id| (*id, None)));
    for (id, foreign_id, item) in look::items(connection, &items, &keys).await? {
        batch.rows.foreign_ids.extend(foreign_id.map(|key| (key, Some(id))));
        batch.rows.items.insert(id, Some(item));
    }
    load_reach(connection, batch, concerned).await?;
    load_told(connection, batch, &concerned.keys).await
}

/// Loads the audiences, and who is private, of the items in `concerned.sights`: a user is only notified who sees the
/// item.
async fn load_reach(connection: &mut PgConnection, batch: &mut Batch<'_>, concerned: &Concerned) -> sqlx::Result<()> {
    let rows = &mut batch.rows;
    let is_narrowed = |id: &ItemId| {
        rows.items.get(id).and_then(Option::as_ref).is_some_and(|row| row.door == Door::Outbox(Route::Narrow))
    };
    let narrowed: Vec<ItemId> = concerned.sights.keys().copied().filter(is_narrowed).collect();
    if !narrowed.is_empty() {
        rows.audiences.extend(narrowed.iter().map(|id| (*id, vec![])));
        rows.audiences.extend(look::audiences(connection, &narrowed).await?);
    }
    let authors: BTreeSet<UserNo> = concerned.sights.values().copied().collect();
    let unknown: Vec<UserNo> = authors.into_iter().filter(|author| !rows.privates.contains_key(author)).collect();
    if !unknown.is_empty() {
        rows.privates.extend(unknown.iter().map(|author| (*author, false)));
        rows.privates.extend(look::privates(connection, &unknown).await?.into_iter().map(|author| (author, true)));
    }
    Ok(())
}

async fn lock_authors(
    connection: &mut PgConnection,
    batch: &mut Batch<'_>,
    authors: &BTreeSet<UserNo>,
    appends: bool,
) -> sqlx::Result<()> {
    type Row = (i32, i64, Option<i64>, Option<i64>, bool, Option<i64>, i16, Option<i64>, bool, Option<i64>, bool);
    let numbers: Vec<i32> = authors.iter().copied().map(rows::user).collect();
    let lock = if appends { LOCK_TO_APPEND } else { LOCK_TO_FOLLOW };
    let read: Vec<Row> = sqlx::query_as(lock).bind(numbers).fetch_all(connection).await?;
    for (author, head, last_rank, last_item, has_aside, last_given, class, everyone_since, private, followers, lacks) in
        read
    {
        let row = AuthorRow {
            head: rows::count_of(head)?,
            last_in_step: last_rank.zip(last_item).map(|(rank, item)| rows::key_of(rank, item)),
            has_aside,
            class: rows::class_of(class)?,
            everyone_since: everyone_since.map(rows::count_of).transpose()?,
            followers: followers.unwrap_or(0).max(0).cast_unsigned(),
            lacks_own_edge: lacks,
        };
        let author = rows::user_of(author)?;
        batch.rows.authors.insert(author, row);
        batch.rows.privates.insert(author, private);
        batch.last_given.insert(author, last_given.map(rows::item_of));
    }
    match authors.iter().find(|author| !batch.rows.authors.contains_key(author)) {
        Some(author) => Err(corrupt(format_args!("user {} has no row in authors", author.0))),
        None => Ok(()),
    }
}

async fn lock_readers(
    connection: &mut PgConnection,
    batch: &mut Batch<'_>,
    readers: &BTreeSet<UserNo>,
) -> sqlx::Result<()> {
    if readers.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = readers.iter().copied().map(rows::user).collect();
    let read: Vec<(i32, i64, i64)> = sqlx::query_as(LOCK_READERS).bind(numbers).fetch_all(connection).await?;
    for (reader, counter, direct) in read {
        let row = ReaderRow { counter: rows::count_of(counter)?, direct: rows::count_of(direct)? };
        batch.rows.readers.insert(rows::user_of(reader)?, row);
    }
    match readers.iter().find(|reader| !batch.rows.readers.contains_key(reader)) {
        Some(reader) => Err(corrupt(format_args!("user {} has no row in readers", reader.0))),
        None => Ok(()),
    }
}

async fn load_edges(
    connection: &mut PgConnection,
    batch: &mut Batch<'_>,
    edges: &BTreeSet<(UserNo, UserNo)>,
) -> sqlx::Result<()> {
    let (readers, authors): (Vec<i32>, Vec<i32>) =
        edges.iter().map(|(reader, author)| (rows::user(*reader), rows::user(*author))).unzip();
    type Row = (i32, i32, bool, bool, i16, i64, i64, Option<i64>);
    let read: Vec<Row> = sqlx::query_as(EDGES).bind(readers).bind(authors).fetch_all(connection).await?;
    batch.rows.edges.extend(edges.iter().map(|edge| (*edge, None)));
    for (reader, author, follows, asked, shields, generation, from, past) in read {
        let row = EdgeRow {
            follows,
            asked,
            shields: rows::shields_of(shields)?,
            generation: rows::count_of(generation)?,
            from: rows::count_of(from)?,
            past: past.map(rows::count_of).transpose()?,
        };
        batch.rows.edges.insert((rows::user_of(reader)?, rows::user_of(author)?), Some(row));
    }
    Ok(())
}

/// Loads the edges of the readers of loaded lines to the actors of their members: a line that changes names nobody who
/// is behind a shield.
async fn load_members(connection: &mut PgConnection, batch: &mut Batch<'_>) -> sqlx::Result<()> {
    let mut edges = lines::edges(&batch.rows);
    edges.retain(|edge| !batch.rows.edges.contains_key(edge));
    if edges.is_empty() { Ok(()) } else { load_edges(connection, batch, &edges).await }
}

/// Loads what was seen, of the feeds of the living items with these keys and of the items of lines, by the readers to
/// whom these items are addressed. A backend or an import may have made such an item since the call looked up whom to
/// lock. The readers of that item are locked here, behind the other locks.
async fn load_told(
    connection: &mut PgConnection,
    batch: &mut Batch<'_>,
    keys: &BTreeSet<CompactString>,
) -> sqlx::Result<()> {
    let items = &batch.rows.items;
    let of_lines = lines::told(&batch.rows);
    let of_keys = keys.iter().chain(&of_lines.keys).filter_map(|key| batch.rows.foreign_ids.get(key).copied()?);
    let ids = of_keys.chain(of_lines.items);
    let told: Vec<&ItemRow> = ids.filter_map(|id| items.get(&id)?.as_ref()).collect();
    let living = told.iter().filter(|row| row.living);
    let inbox = |row: &ItemRow| {
        let feed = row.feed;
        row.door.readers().iter().map(move |&reader| InboxKey { reader, feed }).collect::<Vec<_>>()
    };
    let asked: BTreeSet<InboxKey> = living.copied().flat_map(inbox).collect();
    let is_locked = |reader: &UserNo| batch.rows.readers.contains_key(reader);
    let late = told.iter().flat_map(|row| row.door.readers()).copied().filter(|reader| !is_locked(reader)).collect();
    lock_readers(connection, batch, &late).await?;
    if asked.is_empty() {
        return Ok(());
    }
    let (readers, feeds): (Vec<i32>, Vec<i16>) =
        asked.iter().map(|key| (rows::user(key.reader), rows::feed(key.feed))).unzip();
    let read: Vec<(i32, i16, i64)> = sqlx::query_as(SIGHTS).bind(readers).bind(feeds).fetch_all(connection).await?;
    batch.rows.sights.extend(asked.into_iter().map(|key| (key, None)));
    for (reader, feed, until) in read {
        let key = InboxKey { reader: rows::user_of(reader)?, feed: rows::feed_of(feed)? };
        batch.rows.sights.insert(key, Some(until));
    }
    Ok(())
}
