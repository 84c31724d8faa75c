//! Lists of users, and the audiences of items. A change of a list locks the row of its owner, so that the list never has
//! too many members. After an error the connection is closed, which ends the transaction.

use std::collections::HashMap;

use feedgate_common::audience::{ListChange, ListRefused, Listed, has_room};
use feedgate_common::ids::ListName;
use feedgate_common::{ItemId, Millis, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;

/// In the order of the owners, so that calls that name the same ones wait for each other and never in a circle.
const LOCK: &str = "SELECT FROM readers WHERE reader = ANY($1) ORDER BY reader FOR UPDATE";

const IS_ON: &str = "SELECT EXISTS (SELECT FROM lists WHERE owner = $1 AND list = $2 AND member = $3)";

/// How many members the list has, and how many lists its owner has.
const ROOM: &str = "
SELECT (SELECT count(*) FROM lists WHERE owner = $1 AND list = $2),
       (SELECT count(DISTINCT list) FROM lists WHERE owner = $1)";

const PUT_ON: &str = "INSERT INTO lists (owner, list, member, since) VALUES ($1, $2, $3, $4)";

const TAKE_OFF: &str = "DELETE FROM lists WHERE owner = $1 AND list = $2 AND member = $3";

const LISTS: &str = "SELECT list, count(*) FROM lists WHERE owner = $1 GROUP BY list ORDER BY list";

const MEMBERS: &str = "
SELECT member, since FROM lists WHERE owner = $1 AND list = $2 AND member > $3 ORDER BY member LIMIT $4";

const MEMBER_NOS: &str = "SELECT list, member FROM lists WHERE owner = $1 AND list = ANY($2)";

const LISTED: &str = "
SELECT owner, list, member, since FROM lists WHERE (owner, list, member) > ($1, $2, $3)
ORDER BY owner, list, member LIMIT $4";

const LISTING: &str = "SELECT owner, list, member, since FROM lists WHERE member = $1 ORDER BY owner, list";

const AUDIENCE: &str = "SELECT readers FROM audiences WHERE item = $1";

type Line = (i32, String, i32, Millis);

/// Carries out these changes in order.
pub(crate) async fn change(
    connection: &mut PgConnection,
    changes: &[ListChange],
) -> sqlx::Result<Vec<Result<bool, ListRefused>>> {
    let owners: Vec<i32> = changes.iter().map(|change| rows::user(change.owner)).collect();
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query(LOCK).bind(owners).execute(&mut *connection).await?;
    let mut answers = Vec::with_capacity(changes.len());
    for change in changes {
        answers.push(change_one(&mut *connection, change).await?);
    }
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(answers)
}

async fn change_one(connection: &mut PgConnection, change: &ListChange) -> sqlx::Result<Result<bool, ListRefused>> {
    let ListChange { owner, list, member, on, at } = change;
    let (owner, list, member) = (rows::user(*owner), list.as_str(), rows::user(*member));
    if !on {
        let gone = sqlx::query(TAKE_OFF).bind(owner).bind(list).bind(member).execute(connection).await?;
        return Ok(Ok(gone.rows_affected() > 0));
    }
    let is_on = sqlx::query_scalar(IS_ON).bind(owner).bind(list).bind(member);
    if is_on.fetch_one(&mut *connection).await? {
        return Ok(Ok(false));
    }
    let (members, lists): (i64, i64) = sqlx::query_as(ROOM).bind(owner).bind(list).fetch_one(&mut *connection).await?;
    let lists = usize::try_from(lists).map_err(|_| corrupt("a count below zero"))?;
    if let Err(refused) = has_room(rows::count_of(members)?, lists) {
        return Ok(Err(refused));
    }
    sqlx::query(PUT_ON).bind(owner).bind(list).bind(member).bind(at).execute(connection).await?;
    Ok(Ok(true))
}

/// The lists of a user by name, each with the number of its members.
pub(crate) async fn lists(connection: &mut PgConnection, owner: UserNo) -> sqlx::Result<Vec<(ListName, u64)>> {
    let read: Vec<(String, i64)> = sqlx::query_as(LISTS).bind(rows::user(owner)).fetch_all(connection).await?;
    read.into_iter().map(|(list, members)| Ok((name(&list)?, rows::count_of(members)?))).collect()
}

/// The members of a list after a number, by number, each with the time since when it is on the list.
pub(crate) async fn members(
    connection: &mut PgConnection,
    owner: UserNo,
    list: &ListName,
    after: Option<u64>,
    limit: usize,
) -> sqlx::Result<Vec<(UserNo, Millis)>> {
    let after = after.map_or(-1, |after| i32::try_from(after).unwrap_or(i32::MAX));
    let query = sqlx::query_as(MEMBERS).bind(rows::user(owner)).bind(list.as_str()).bind(after);
    let read: Vec<(i32, Millis)> = query.bind(rows::limit(limit)).fetch_all(connection).await?;
    read.into_iter().map(|(member, since)| Ok((rows::user_of(member)?, since))).collect()
}

/// The members of each of these lists.
pub(crate) async fn member_nos(
    connection: &mut PgConnection,
    owner: UserNo,
    lists: &[ListName],
) -> sqlx::Result<Vec<Vec<UserNo>>> {
    let names: Vec<&str> = lists.iter().map(ListName::as_str).collect();
    let query = sqlx::query_as(MEMBER_NOS).bind(rows::user(owner)).bind(&names);
    let read: Vec<(String, i32)> = query.fetch_all(connection).await?;
    let mut found: HashMap<String, Vec<UserNo>> = HashMap::new();
    for (list, member) in read {
        found.entry(list).or_default().push(rows::user_of(member)?);
    }
    Ok(names.iter().map(|list| found.get(*list).cloned().unwrap_or_default()).collect())
}

/// The lines of all lists after this one.
pub(crate) async fn listed(
    connection: &mut PgConnection,
    after: Option<&(UserNo, ListName, UserNo)>,
    limit: usize,
) -> sqlx::Result<Vec<Listed>> {
    let query = match after {
        Some((owner, list, member)) => {
            sqlx::query_as(LISTED).bind(rows::user(*owner)).bind(list.as_str()).bind(rows::user(*member))
        }
        None => sqlx::query_as(LISTED).bind(-1).bind("").bind(-1),
    };
    let read: Vec<Line> = query.bind(rows::limit(limit)).fetch_all(connection).await?;
    read.into_iter().map(line).collect()
}

/// The lines that have a user.
pub(crate) async fn listing(connection: &mut PgConnection, member: UserNo) -> sqlx::Result<Vec<Listed>> {
    let read: Vec<Line> = sqlx::query_as(LISTING).bind(rows::user(member)).fetch_all(connection).await?;
    read.into_iter().map(line).collect()
}

/// The readers in the audience of an item.
pub(crate) async fn audience(connection: &mut PgConnection, item: ItemId) -> sqlx::Result<Vec<UserNo>> {
    let query = sqlx::query_scalar(AUDIENCE).bind(rows::item(item));
    let readers: Option<Vec<i32>> = query.fetch_optional(connection).await?;
    readers.unwrap_or_default().into_iter().map(rows::user_of).collect()
}

fn line((owner, list, member, since): Line) -> sqlx::Result<Listed> {
    Ok(Listed { owner: rows::user_of(owner)?, list: name(&list)?, member: rows::user_of(member)?, since })
}

fn name(list: &str) -> sqlx::Result<ListName> {
    list.parse().map_err(|why| corrupt(format_args!("the list {list:?}: {why}")))
}
