//! Items as readers get them. They are read from the server each time: an item may be edited or deleted through another
//! node, and nobody may get the old one once that is answered.

use std::collections::HashMap;
use std::sync::Arc;

use feedgate_common::error::Result;
use feedgate_common::{Body, Item, ItemId};
use sqlx::PgConnection;

use crate::fault::{self, corrupt};
use crate::rows;
use crate::users::user_id;

const LIVING: &str = "
SELECT i.id, i.author, u.name, i.kind, i.foreign_id, i.body, i.published_at, i.rank, i.version, i.seq, i.route
FROM items i JOIN users u ON u.no = i.author
WHERE i.id = ANY($1) AND i.body IS NOT NULL";

const BY_FOREIGN_ID: &str = "SELECT id FROM items WHERE foreign_id = $1";

type Row = (i64, i32, String, Option<String>, Option<String>, String, i64, i64, i32, i64, i16);

/// The items of `ids` that live. An item whose row is damaged has the error in its place.
pub(super) async fn items(
    connection: &mut PgConnection,
    ids: &[i64],
) -> sqlx::Result<HashMap<ItemId, Result<Arc<Item>>>> {
    let read: Vec<Row> = sqlx::query_as(LIVING).bind(ids).fetch_all(connection).await?;
    let found = |row: Row| (rows::item_of(row.0), item(row).map(Arc::new).map_err(fault::store_error));
    Ok(read.into_iter().map(found).collect())
}

fn item(row: Row) -> sqlx::Result<Item> {
    let (id, author_no, author, kind, foreign_id, body, published_at, rank, version, seq, route) = row;
    let id = rows::item_of(id);
    Ok(Item {
        id,
        author: user_id(&author)?,
        author_no: rows::user_of(author_no)?,
        kind: kind.map(Into::into),
        foreign_id: foreign_id.map(Into::into),
        body: Body::stored(body).map_err(|error| corrupt(format_args!("item {id}: {error}")))?,
        published_at,
        rank,
        direct: route == rows::DIRECT,
        version: version.cast_unsigned(),
        outbox_seq: rows::count_of(seq)?,
    })
}

pub(crate) async fn by_foreign_id(connection: &mut PgConnection, foreign_id: &str) -> sqlx::Result<Option<ItemId>> {
    let found: Option<i64> = sqlx::query_scalar(BY_FOREIGN_ID).bind(foreign_id).fetch_optional(connection).await?;
    Ok(found.map(rows::item_of))
}
