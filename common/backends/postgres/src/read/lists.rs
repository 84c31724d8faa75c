//! The lists of follows, requests and shields that users see, newest first. Each read is a range of one index.
//!
//! Changes of several readers have no common order, so each line of a list has a number (`listed`), which is the
//! cursor. A follow keeps its place whatever shields go up and down. No list shows the edge of an author to itself.

use feedgate_common::UserNo;
use feedgate_common::archive::Follow;
use feedgate_common::graph::Shield;
use sqlx::PgConnection;

use crate::rows;
use crate::users::user_id;

const FOLLOWING: &str = "
SELECT u.name, e.since, e.listed
FROM edges e JOIN users u ON u.no = e.author
WHERE e.reader = $1 AND e.author <> e.reader AND (e.is_on OR e.held_back) AND e.listed < $2
ORDER BY e.listed DESC LIMIT $3";

const FOLLOWERS: &str = "
SELECT u.name, e.since, e.listed
FROM (
    (SELECT reader, since, listed FROM edges
     WHERE author = $1 AND reader <> author AND is_on AND listed < $2 ORDER BY listed DESC LIMIT $3)
    UNION ALL
    (SELECT reader, since, listed FROM edges
     WHERE author = $1 AND reader <> author AND held_back AND listed < $2 ORDER BY listed DESC LIMIT $3)
    ORDER BY listed DESC LIMIT $3
) e JOIN users u ON u.no = e.reader ORDER BY e.listed DESC";

const MUTUAL: &str = "
SELECT u.name, e.since, e.listed
FROM edges e
JOIN edges back ON back.reader = e.author AND back.author = e.reader AND (back.is_on OR back.held_back)
JOIN users u ON u.no = e.author
WHERE e.reader = $1 AND e.author <> e.reader AND (e.is_on OR e.held_back) AND e.listed < $2
ORDER BY e.listed DESC LIMIT $3";

const REQUESTS: &str = "
SELECT u.name, e.since, e.listed
FROM edges e JOIN users u ON u.no = e.reader
WHERE e.author = $1 AND e.asked AND e.listed < $2
ORDER BY e.listed DESC LIMIT $3";

const SHIELDED: &str = "
SELECT u.name, s.since, s.listed
FROM shields s JOIN users u ON u.no = s.other
WHERE s.owner = $1 AND s.listed < $2 AND s.kind = $4 ORDER BY s.listed DESC LIMIT $3";

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
    cursor: Option<u64>,
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
    .bind(cursor.map_or(i64::MAX, rows::count))
    .bind(rows::limit(limit));
    let query = if let List::Shielded(kind) = list { query.bind(kind as i16) } else { query };
    let read: Vec<(String, i64, i64)> = query.fetch_all(connection).await?;
    let follow = |(name, since, cursor): (String, i64, i64)| {
        Ok(Follow { user: user_id(&name)?, since, cursor: rows::count_of(cursor)? })
    };
    read.into_iter().map(follow).collect()
}
