//! Stores items, authors, pushed records and idempotency keys.

use feedgate_common::accept::{Door, ItemRow};
use feedgate_common::change::Route;
use feedgate_common::mentions::text_of;
use feedgate_common::{ItemId, UserNo};
use sqlx::PgConnection;

use crate::rankings;
use crate::rows::{self, column};
use crate::versions::{self, Kept};
use crate::write::batch::{Batch, Made};

/// Stores items, their pushed records and the rows of their authors, and, while search is on, that the items are still
/// to be indexed. An author's push becomes outstanding since the time of the record, unless it was outstanding already.
const APPEND: &str = "
WITH made AS (
    INSERT INTO items (id, author, seq, published_at, rank, version, route, fingerprint, kind, foreign_id, body, feed,
                       repost_of, mentions)
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[], $5::bigint[], $6::integer[],
                         $7::smallint[], $8::bytea[], $9::text[], $10::text[], $11::text[], $12::smallint[],
                         $32::bigint[], $34::text[])
),
due AS (
    INSERT INTO search_due (subject, id)
    SELECT 0, id FROM unnest($1::bigint[]) AS n(id) WHERE EXISTS (SELECT FROM search_state)
),
moved AS (
    UPDATE authors a
    SET head = n.head, last_rank = n.last_rank, last_item = n.last_item, has_aside = n.has_aside,
        last_given = n.last_given, due = coalesce(a.due, n.due), class = n.class, everyone_since = n.everyone_since
    FROM unnest($13::integer[], $14::bigint[], $15::bigint[], $16::bigint[], $17::boolean[], $18::bigint[], $19::bigint[],
                $20::smallint[], $21::bigint[])
        AS n(author, head, last_rank, last_item, has_aside, last_given, due, class, everyone_since)
    WHERE a.author = n.author
)
INSERT INTO records (author, seq, op, feed, route, lane, rank, item, at, deleted_by, history)
SELECT author, seq, op, feed, route, lane, rank, item, at, deleted_by, history
FROM unnest($22::integer[], $23::bigint[], $24::smallint[], $25::smallint[], $26::smallint[], $27::bigint[], $28::bigint[],
            $29::bigint[], $30::bigint[], $31::boolean[], $33::smallint[])
    AS n(author, seq, op, feed, lane, rank, item, at, deleted_by, history, route)";

/// Stores the audiences of narrowed items. Arrays of arrays must be of one length, so each audience comes as text.
const NARROW: &str = "
INSERT INTO audiences (item, readers)
SELECT item, readers::integer[] FROM unnest($1::bigint[], $2::text[]) AS n(item, readers)";

/// Takes the foreign ids from deleted items, so that new items can have them.
const FREE_FOREIGN_IDS: &str = "UPDATE items SET foreign_id = NULL WHERE id = ANY($1)";

/// Stores new versions, which are still to be indexed while search is on. An item without a body is deleted: none of
/// its earlier bodies is left, and its reactions are still to be removed.
const CHANGE_ITEMS: &str = "
WITH n AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[]) AS n(id, version, body, mentions)
), ended AS (
    INSERT INTO reaction_ends (item, at)
    SELECT id, (extract(epoch FROM now()) * 1000)::bigint FROM n WHERE body IS NULL ORDER BY id
    ON CONFLICT DO NOTHING
), forgotten AS (
    DELETE FROM item_versions v USING n WHERE v.item = n.id AND n.body IS NULL
), due AS (
    INSERT INTO search_due (subject, id) SELECT 0, id FROM n WHERE EXISTS (SELECT FROM search_state)
)
UPDATE items i SET version = n.version, body = n.body, mentions = n.mentions FROM n WHERE i.id = n.id";

/// Stores the places and versions of items that have another rank.
const MOVE_ITEMS: &str = "
UPDATE items i SET version = n.version, rank = n.rank, seq = n.seq
FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) AS n(id, version, rank, seq)
WHERE i.id = n.id";

const END_ADDS: &str = "
UPDATE records r SET deleted_by = n.deleted_by
FROM unnest($1::integer[], $2::bigint[], $3::bigint[]) AS n(author, seq, deleted_by)
WHERE r.author = n.author AND r.seq = n.seq";

const KEEP_RETRIES: &str = "
INSERT INTO retries (author, key, item, fingerprint, expires)
SELECT * FROM unnest($1::integer[], $2::text[], $3::bigint[], $4::bytea[], $5::bigint[])
ON CONFLICT (author, key) DO UPDATE
SET item = excluded.item, fingerprint = excluded.fingerprint, expires = excluded.expires";

pub(super) async fn all(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    if !batch.freed.is_empty() {
        let freed: Vec<i64> = batch.freed.iter().copied().map(rows::item).collect();
        sqlx::query(FREE_FOREIGN_IDS).bind(freed).execute(&mut *connection).await?;
    }
    // Whatever makes an item changes its author's row, if only to give the item an id. Only a direct item whose id is
    // given does not.
    if !batch.authors.is_empty() || !batch.made.is_empty() {
        append(connection, batch).await?;
    }
    if !batch.narrowed.is_empty() {
        narrow(connection, batch).await?;
    }
    versions::keep(connection, &replaced(batch)).await?;
    if !batch.edited.is_empty() {
        change_items(connection, batch).await?;
        rankings::changed(connection, batch.edited.keys().copied()).await?;
    }
    if !batch.moved.is_empty() {
        move_items(connection, batch).await?;
    }
    if !batch.edited.is_empty() || !batch.moved.is_empty() {
        end_adds(connection, batch).await?;
    }
    if !batch.retries.is_empty() {
        keep_retries(connection, batch).await?;
    }
    Ok(())
}

async fn narrow(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let items: Vec<i64> = batch.narrowed.iter().map(|(item, _)| rows::item(*item)).collect();
    let text = |readers: &[UserNo]| rows::array(readers.iter().copied().map(rows::user));
    let audiences: Vec<String> = batch.narrowed.iter().map(|(_, readers)| text(readers)).collect();
    sqlx::query(NARROW).bind(items).bind(audiences).execute(connection).await.map(drop)
}

/// The bodies that were replaced of items that live.
fn replaced<'b>(batch: &'b Batch<'_>) -> Vec<Kept<'b>> {
    let lives = |kept: &&Kept<'_>| row(batch, kept.item).is_some_and(|row| row.living);
    batch.replaced.iter().filter(lives).copied().collect()
}

async fn append(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let made: Vec<(i64, &ItemRow, &Made<'_>)> =
        batch.made.iter().filter_map(|(id, made)| Some((rows::item(*id), row(batch, *id)?, made))).collect();
    let authors: Vec<_> =
        batch.authors.iter().map(|(author, due)| (*author, &batch.rows.authors[author], *due)).collect();
    let pushed: Vec<_> = batch.appended.iter().filter(|appended| appended.record.route != Route::Pull).collect();
    sqlx::query(APPEND)
        .bind(column(&made, |(id, ..)| *id))
        .bind(column(&made, |(_, row, _)| rows::user(row.author)))
        .bind(column(&made, |(_, row, _)| rows::count(row.seq)))
        .bind(column(&made, |(_, row, _)| row.published_at))
        .bind(column(&made, |(_, row, _)| row.rank))
        .bind(column(&made, |(_, row, _)| row.version.cast_signed()))
        .bind(column(&made, |(_, row, _)| route(row)))
        .bind(column(&made, |(_, row, _)| row.fingerprint.to_vec()))
        .bind(column(&made, |(.., made)| made.publish.kind.as_deref()))
        .bind(column(&made, |(.., made)| made.foreign_id))
        .bind(column(&made, |(.., made)| made.body))
        .bind(column(&made, |(_, row, _)| rows::feed(row.feed)))
        .bind(column(&authors, |(author, ..)| rows::user(*author)))
        .bind(column(&authors, |(_, row, _)| rows::count(row.head)))
        .bind(column(&authors, |(_, row, _)| row.last_in_step.map(|key| key.rank)))
        .bind(column(&authors, |(_, row, _)| row.last_in_step.map(|key| rows::item(key.item))))
        .bind(column(&authors, |(_, row, _)| row.has_aside))
        .bind(column(&authors, |(author, ..)| batch.last_given[author].map(rows::item)))
        .bind(column(&authors, |(.., due)| *due))
        .bind(column(&authors, |(_, row, _)| row.class as i16))
        .bind(column(&authors, |(_, row, _)| row.everyone_since.map(rows::count)))
        .bind(column(&pushed, |appended| rows::user(appended.author)))
        .bind(column(&pushed, |appended| rows::count(appended.record.seq)))
        .bind(column(&pushed, |appended| appended.record.op as i16))
        .bind(column(&pushed, |appended| rows::feed(appended.record.feed)))
        .bind(column(&pushed, |appended| i16::from(appended.aside)))
        .bind(column(&pushed, |appended| appended.record.key.rank))
        .bind(column(&pushed, |appended| rows::item(appended.record.key.item)))
        .bind(column(&pushed, |appended| appended.at))
        .bind(column(&pushed, |appended| appended.ended(batch)))
        .bind(column(&pushed, |appended| appended.history))
        .bind(column(&made, |(.., made)| made.publish.repost_of.map(rows::item)))
        .bind(column(&pushed, |appended| appended.record.route as i16))
        .bind(column(&made, |(_, row, _)| mentions(row)))
        .execute(connection)
        .await?;
    Ok(())
}

fn row<'b>(batch: &'b Batch<'_>, id: ItemId) -> Option<&'b ItemRow> {
    batch.rows.items.get(&id)?.as_ref()
}

/// The users whom the item mentions, as they are stored.
fn mentions(item: &ItemRow) -> Option<String> {
    text_of(&item.mentions).map(Into::into)
}

fn route(item: &ItemRow) -> i16 {
    match item.door {
        Door::Outbox(route) => route as i16,
        Door::Direct(_) => rows::DIRECT,
    }
}

/// Stores the new versions of items.
async fn change_items(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let edited: Vec<_> = batch.edited.iter().filter_map(|(id, body)| Some((*id, row(batch, *id)?, *body))).collect();
    sqlx::query(CHANGE_ITEMS)
        .bind(column(&edited, |(id, ..)| rows::item(*id)))
        .bind(column(&edited, |(_, row, _)| row.version.cast_signed()))
        .bind(column(&edited, |(.., body)| *body))
        .bind(column(&edited, |(_, row, _)| mentions(row)))
        .execute(connection)
        .await?;
    Ok(())
}

async fn move_items(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let earlier = batch.moved.iter().filter(|id| !batch.made.contains_key(id));
    let moved: Vec<_> = earlier.filter_map(|id| Some((*id, row(batch, *id)?))).collect();
    sqlx::query(MOVE_ITEMS)
        .bind(column(&moved, |(id, _)| rows::item(*id)))
        .bind(column(&moved, |(_, row)| row.version.cast_signed()))
        .bind(column(&moved, |(_, row)| row.rank))
        .bind(column(&moved, |(_, row)| rows::count(row.seq)))
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores for adds of earlier calls the record that deletes each. Adds of this call are stored with that record
/// already.
async fn end_adds(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let ended = batch.ended.iter().filter(|(id, _)| !batch.made.contains_key(id));
    let ended = ended.filter_map(|(id, by)| row(batch, *id).zip(*by).map(|(row, by)| ((row.author, row.seq), by)));
    let ended: Vec<_> = ended.chain(batch.left.iter().map(|(add, by)| (*add, *by))).collect();
    if ended.is_empty() {
        return Ok(());
    }
    sqlx::query(END_ADDS)
        .bind(column(&ended, |((author, _), _)| rows::user(*author)))
        .bind(column(&ended, |((_, seq), _)| rows::count(*seq)))
        .bind(column(&ended, |(_, by)| rows::count(*by)))
        .execute(connection)
        .await?;
    Ok(())
}

async fn keep_retries(connection: &mut PgConnection, batch: &Batch<'_>) -> sqlx::Result<()> {
    let kept: Vec<_> = batch.retries.iter().collect();
    sqlx::query(KEEP_RETRIES)
        .bind(column(&kept, |((author, _), _)| rows::user(*author)))
        .bind(column(&kept, |((_, key), _)| key.as_str()))
        .bind(column(&kept, |(_, retry)| rows::item(retry.item)))
        .bind(column(&kept, |(_, retry)| retry.fingerprint.to_vec()))
        .bind(column(&kept, |(_, retry)| retry.expires))
        .execute(connection)
        .await?;
    Ok(())
}
