//! Items as readers get them. They are read from the server each time: an item may be edited or deleted through another
//! node, and nobody may get the old version once the edit or the delete was answered.

use std::collections::HashMap;
use std::sync::Arc;

use feedgate_common::around::{Reach, Terms, shows_original};
use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::{Body, Item, ItemId, UserNo};
use sqlx::{FromRow, PgConnection, Row as _};

use crate::fault::{self, corrupt};
use crate::rows;
use crate::users::user_id;

macro_rules! living {
    ($columns:literal, $joins:literal) => {
        concat!(
            "SELECT i.id, i.author, u.name, i.kind, i.foreign_id, i.body, i.published_at, i.rank, i.version, i.seq, ",
            "i.route, i.repost_of, i.mentions",
            $columns,
            " FROM items i JOIN users u ON u.no = i.author",
            $joins,
            " WHERE i.id = ANY($1) AND i.body IS NOT NULL"
        )
    };
}

const LIVING: &str = living!("", "");

/// Items with the shields on the edge from a user to their author, whether that edge is on, whether the author is
/// private, and, for an item that is not for all followers, whether the user is one of its readers. An edge that is not
/// stored is on if everyone follows the author.
const ORIGINALS: &str = living!(
    ", coalesce(e.shields, 0::smallint), coalesce(e.is_on, a.everyone_since IS NOT NULL), a.private, CASE i.route
        WHEN 0 THEN EXISTS (SELECT FROM direct d WHERE d.item = i.id AND d.reader = $2 AND d.op = 1 AND NOT d.ranked)
        WHEN 3 THEN EXISTS (SELECT FROM audiences a WHERE a.item = i.id AND $2 = ANY(a.readers))
        ELSE false END",
    " CROSS JOIN LATERAL (SELECT private, everyone_since FROM authors WHERE author = i.author OFFSET 0) a
      LEFT JOIN LATERAL (SELECT shields, is_on FROM edges WHERE reader = $2 AND author = i.author OFFSET 0) e ON true"
);

const BY_FOREIGN_ID: &str = "SELECT id FROM items WHERE foreign_id = $1";

type Row =
    (i64, i32, String, Option<String>, Option<String>, String, i64, i64, i32, i64, i16, Option<i64>, Option<String>);

/// How many columns a [`Row`] has.
const COLUMNS: usize = 13;

/// The number that no user has.
const NOBODY: i32 = -1;

/// The items of `ids` that live. An item whose row is damaged has the error in its place.
pub(super) async fn items(
    connection: &mut PgConnection,
    ids: &[i64],
) -> sqlx::Result<HashMap<ItemId, Result<Arc<Item>>>> {
    let read: Vec<Row> = sqlx::query_as(LIVING).bind(ids).fetch_all(connection).await?;
    let found = |row: Row| (rows::item_of(row.0), item(row).map(Arc::new).map_err(fault::store_error));
    Ok(read.into_iter().map(found).collect())
}

/// The items of `ids` in the order asked, as a user may see them as originals of reposts; `None` for the others. The
/// user is `None` if it was never named. Fails if a row that is asked for is damaged.
pub(crate) async fn originals(
    connection: &mut PgConnection,
    ids: &[ItemId],
    user: Option<UserNo>,
) -> sqlx::Result<Vec<Option<Arc<Item>>>> {
    let asked: Vec<i64> = ids.iter().copied().map(rows::item).collect();
    let query = sqlx::query(ORIGINALS).bind(asked).bind(user.map_or(NOBODY, rows::user));
    let mut found = HashMap::new();
    for row in query.fetch_all(connection).await? {
        let (follows, private, has) = (row.try_get(COLUMNS + 1)?, row.try_get(COLUMNS + 2)?, row.try_get(COLUMNS + 3)?);
        let terms = Terms { follows, shields: rows::shields_of(row.try_get(COLUMNS)?)?, private };
        let item = item(Row::from_row(&row)?)?;
        if shows_original(user == Some(item.author_no), terms, Reach::of(&item, has)) {
            found.insert(item.id, Arc::new(item));
        }
    }
    Ok(ids.iter().map(|id| found.get(id).cloned()).collect())
}

fn item(row: Row) -> sqlx::Result<Item> {
    let (id, author_no, author, kind, foreign_id, body, published_at, rank, version, seq, route, repost_of, mentions) =
        row;
    let id = rows::item_of(id);
    Ok(Item {
        id,
        author: user_id(&author)?,
        author_no: rows::user_of(author_no)?,
        kind: kind.map(Into::into),
        foreign_id: foreign_id.map(Into::into),
        repost_of: repost_of.map(rows::item_of),
        mentions: rows::mentions_of(mentions.as_deref())?,
        body: Body::stored(body).map_err(|error| corrupt(format_args!("item {id}: {error}")))?,
        published_at,
        rank,
        direct: route == rows::DIRECT,
        narrowed: route == Route::Narrow as i16,
        version: version.cast_unsigned(),
        outbox_seq: rows::count_of(seq)?,
    })
}

pub(crate) async fn by_foreign_id(connection: &mut PgConnection, foreign_id: &str) -> sqlx::Result<Option<ItemId>> {
    let found: Option<i64> = sqlx::query_scalar(BY_FOREIGN_ID).bind(foreign_id).fetch_optional(connection).await?;
    Ok(found.map(rows::item_of))
}
