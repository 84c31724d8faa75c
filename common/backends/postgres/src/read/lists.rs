//! The lists of follows, requests and shields that users see, newest first. Each read is a range of one index.
//!
//! Changes of several readers have no common order, so each line of a list has a number (`listed`), by which the list
//! is sorted. Imported follows of one millisecond may share a number, and the number of the user sorts these. No index
//! has the number of the user: so a read takes all lines of the last number, and then sorts and cuts them. A follow
//! keeps its place when shields go up and down. No list shows the edge of an author to itself.

use std::cmp::Reverse;

use feedgate_common::UserNo;
use feedgate_common::archive::{Follow, ListCursor};
use feedgate_common::graph::Shield;
use sqlx::PgConnection;

use crate::rows;
use crate::users::user_id;

const FOLLOWING: &str = "
SELECT u.name, e.since, e.listed, u.no
FROM edges e JOIN users u ON u.no = e.author
WHERE e.reader = $1 AND e.author <> e.reader AND (e.is_on OR e.held_back)
  AND (e.listed, e.author) < ($2, $3)
ORDER BY e.listed DESC FETCH FIRST ($4) ROWS WITH TIES";

const FOLLOWERS: &str = "
SELECT u.name, e.since, e.listed, u.no
FROM (
    (SELECT reader, since, listed FROM edges
     WHERE author = $1 AND reader <> author AND is_on AND (listed, reader) < ($2, $3)
     ORDER BY listed DESC FETCH FIRST ($4) ROWS WITH TIES)
    UNION ALL
    (SELECT reader, since, listed FROM edges
     WHERE author = $1 AND reader <> author AND held_back AND (listed, reader) < ($2, $3)
     ORDER BY listed DESC FETCH FIRST ($4) ROWS WITH TIES)
    ORDER BY listed DESC FETCH FIRST ($4) ROWS WITH TIES
) e JOIN users u ON u.no = e.reader";

const MUTUAL: &str = "
SELECT u.name, e.since, e.listed, u.no
FROM edges e
JOIN edges back ON back.reader = e.author AND back.author = e.reader AND (back.is_on OR back.held_back)
JOIN users u ON u.no = e.author
WHERE e.reader = $1 AND e.author <> e.reader AND (e.is_on OR e.held_back)
  AND (e.listed, e.author) < ($2, $3)
ORDER BY e.listed DESC FETCH FIRST ($4) ROWS WITH TIES";

const REQUESTS: &str = "
SELECT u.name, e.since, e.listed, u.no
FROM edges e JOIN users u ON u.no = e.reader
WHERE e.author = $1 AND e.asked AND (e.listed, e.reader) < ($2, $3)
ORDER BY e.listed DESC FETCH FIRST ($4) ROWS WITH TIES";

const SHIELDED: &str = "
SELECT u.name, s.since, s.listed, u.no
FROM shields s JOIN users u ON u.no = s.other
WHERE s.owner = $1 AND s.kind = $5 AND (s.listed, s.other) < ($2, $3)
ORDER BY s.listed DESC FETCH FIRST ($4) ROWS WITH TIES";

/// The lists of a user.
#[derive(Debug, Clone, Copy)]
pub(crate) enum List {
    Following,
    Followers,
    /// The followees who follow back.
    Mutual,
    /// The users who have asked to follow and have no answer yet.
    Requests,
    /// The users against whom the user has this shield up.
    Shielded(Shield),
}

/// At most `limit` lines of the list after `cursor`.
pub(crate) async fn list(
    connection: &mut PgConnection,
    list: List,
    user: UserNo,
    cursor: Option<ListCursor>,
    limit: usize,
) -> sqlx::Result<Vec<Follow>> {
    let query = sqlx::query_as(match list {
        List::Following => FOLLOWING,
        List::Followers => FOLLOWERS,
        List::Mutual => MUTUAL,
        List::Requests => REQUESTS,
        List::Shielded(_) => SHIELDED,
    })
    .bind(rows::user(user))
    .bind(cursor.map_or(i64::MAX, |cursor| rows::count(cursor.listed)))
    .bind(cursor.map_or(i32::MAX, |cursor| rows::user(UserNo(cursor.tie))))
    .bind(rows::limit(limit));
    let query = if let List::Shielded(kind) = list { query.bind(kind as i16) } else { query };
    let read: Vec<(String, i64, i64, i32)> = query.fetch_all(connection).await?;
    let follow = |(name, since, listed, user): (String, i64, i64, i32)| {
        let cursor = ListCursor { listed: rows::count_of(listed)?, tie: rows::user_of(user)?.0 };
        Ok(Follow { user: user_id(&name)?, since, cursor })
    };
    let mut lines = read.into_iter().map(follow).collect::<sqlx::Result<Vec<_>>>()?;
    lines.sort_unstable_by_key(|line| Reverse(line.cursor));
    lines.truncate(limit);
    Ok(lines)
}
