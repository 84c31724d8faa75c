//! Whether the items of authors stand in their own feeds, and which items a user has sent.
//!
//! Invariant: a new setting is stored while nobody appends to an outbox. So each write of a new author either was
//! visible by then, and the walk finds the author, or the write sees the new setting and gives the author its edge.

use feedgate_common::{DisplayKey, UserId, UserNo};
use sqlx::PgConnection;

use crate::pool::WAIT_BRIEFLY;
use crate::rows;
use crate::users::user_id;

const IS_ON: &str = "SELECT own_posts FROM own_posts";

/// Writers of outboxes lock rows of this table. All writers that were under way have ended once the table is locked.
const LOCK: &str = "LOCK TABLE authors IN EXCLUSIVE MODE";

const SET: &str = "
INSERT INTO own_posts AS o (own_posts, at) VALUES ($1, 0)
ON CONFLICT (one) DO UPDATE SET own_posts = excluded.own_posts, at = excluded.at
WHERE o.own_posts <> excluded.own_posts";

/// Gives one row without an author if the walk is under way and there is no further author.
const DUE: &str = "
SELECT a.author, a.name FROM own_posts o
LEFT JOIN LATERAL (
    SELECT w.author, u.name
    FROM (SELECT author FROM authors WHERE author > o.at AND head > 0 ORDER BY author LIMIT $2) w
    JOIN users u ON u.no = w.author
) a ON true
WHERE o.own_posts = $1 AND o.at IS NOT NULL
ORDER BY a.author";

const DONE: &str = "UPDATE own_posts SET at = $2 WHERE own_posts = $1 AND at < coalesce($2, 2147483647)";

/// The index has the same condition. The length of the prefix is that of `feedgate_common::notify::KEY_PREFIX`.
const SENT: &str = "
SELECT rank, id FROM items
WHERE author = $1 AND route = 0 AND body IS NOT NULL AND (foreign_id IS NULL OR left(foreign_id, 9) <> 'feedgate:')
  AND (rank, id) < ($2, $3)
ORDER BY rank DESC, id DESC LIMIT $4";

/// Stores whether the items of authors stand in their own feeds. After an error the connection is closed, which ends
/// the transaction.
pub(crate) async fn set(connection: &mut PgConnection, on: bool) -> sqlx::Result<()> {
    let stored: Option<bool> = sqlx::query_scalar(IS_ON).fetch_optional(&mut *connection).await?;
    if stored.unwrap_or(false) == on {
        return Ok(());
    }
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query(WAIT_BRIEFLY).execute(&mut *connection).await?;
    sqlx::query(LOCK).execute(&mut *connection).await?;
    sqlx::query(SET).bind(on).execute(&mut *connection).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(())
}

/// The next authors for whom `on` is still to be carried out; `None` if there is no such walk under way.
pub(crate) async fn due(
    connection: &mut PgConnection,
    on: bool,
    limit: usize,
) -> sqlx::Result<Option<Vec<(UserNo, UserId)>>> {
    let query = sqlx::query_as(DUE).bind(on).bind(rows::limit(limit));
    let read: Vec<(Option<i32>, Option<String>)> = query.fetch_all(connection).await?;
    if read.is_empty() {
        return Ok(None);
    }
    let authors = read.into_iter().filter_map(|(author, name)| author.zip(name));
    authors.map(|(author, name)| Ok((rows::user_of(author)?, user_id(&name)?))).collect::<sqlx::Result<_>>().map(Some)
}

/// Stores up to which author `on` is carried out; `None` ends the walk.
pub(crate) async fn done(connection: &mut PgConnection, on: bool, upto: Option<UserNo>) -> sqlx::Result<()> {
    sqlx::query(DONE).bind(on).bind(upto.map(rows::user)).execute(connection).await?;
    Ok(())
}

/// What the user has addressed to readers, strictly below `before`, newest first.
pub(crate) async fn sent(
    connection: &mut PgConnection,
    user: UserNo,
    before: Option<DisplayKey>,
    limit: usize,
) -> sqlx::Result<Vec<DisplayKey>> {
    let before = before.unwrap_or(DisplayKey::GREATEST);
    let query = sqlx::query_as(SENT).bind(rows::user(user)).bind(before.rank).bind(rows::item(before.item));
    let read: Vec<(i64, i64)> = query.bind(rows::limit(limit)).fetch_all(connection).await?;
    Ok(read.into_iter().map(|(rank, item)| rows::key_of(rank, item)).collect())
}
