//! Lists of users, and the audiences of items. A change of a list locks the row of its owner, so that the list never
//! has too many members. After an error the connection is closed, which ends the transaction.

use std::collections::{BTreeMap, HashMap, HashSet};

use feedgate_common::archive::ListCursor;
use feedgate_common::audience::{ListChange, ListRefused, Listed, has_room};
use feedgate_common::ids::ListName;
use feedgate_common::{ItemId, Millis, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;

/// In the order of the owners, so that calls that name the same ones wait for each other and never in a circle.
const LOCK: &str = "SELECT FROM readers WHERE reader = ANY($1) ORDER BY reader FOR UPDATE";

/// Which of these users are on which of these lists.
const ON: &str = "
SELECT l.owner, l.list, l.member
FROM unnest($1::integer[], $2::text[], $3::integer[]) AS asked(owner, list, member)
JOIN lists l ON l.owner = asked.owner AND l.list = asked.list AND l.member = asked.member";

/// How many members each list of these users has.
const COUNTS: &str = "SELECT owner, list, count(*) FROM lists WHERE owner = ANY($1) GROUP BY owner, list";

const PUT_ON: &str = "
INSERT INTO lists (owner, list, member, since)
SELECT * FROM unnest($1::integer[], $2::text[], $3::integer[], $4::bigint[])";

const TAKE_OFF: &str = "
DELETE FROM lists l USING unnest($1::integer[], $2::text[], $3::integer[]) AS gone(owner, list, member)
WHERE l.owner = gone.owner AND l.list = gone.list AND l.member = gone.member";

const LISTS: &str = "SELECT list, count(*) FROM lists WHERE owner = $1 GROUP BY list ORDER BY list";

const MEMBERS: &str = "
SELECT member, since FROM lists WHERE owner = $1 AND list = $2 AND member > $3 ORDER BY member LIMIT $4";

const MEMBER_NOS: &str = "SELECT list, member FROM lists WHERE owner = $1 AND list = ANY($2)";

const LISTED: &str = "
SELECT owner, list, member, since FROM lists WHERE (owner, list, member) > ($1, $2, $3)
ORDER BY owner, list, member LIMIT $4";

const LISTING: &str = "
SELECT owner, list, member, since FROM lists WHERE member = $1 AND (owner, list) > ($2, $3)
ORDER BY owner, list LIMIT $4";

const AUDIENCE: &str = "SELECT readers FROM audiences WHERE item = $1";

type Line = (i32, String, i32, Millis);

/// Carries out these changes in order: some statements, however many changes there are.
pub(crate) async fn change(
    connection: &mut PgConnection,
    changes: &[ListChange],
) -> sqlx::Result<Vec<Result<bool, ListRefused>>> {
    let owners: Vec<i32> = changes.iter().map(|change| rows::user(change.owner)).collect();
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query(LOCK).bind(&owners).execute(&mut *connection).await?;
    let places = columns(changes.iter().map(place));
    let on = sqlx::query_as(ON).bind(places.0).bind(places.1).bind(places.2);
    let on: Vec<(i32, String, i32)> = on.fetch_all(&mut *connection).await?;
    let counts: Vec<(i32, String, i64)> = sqlx::query_as(COUNTS).bind(&owners).fetch_all(&mut *connection).await?;
    let mut lists = Lists::default();
    lists.on.extend(on.iter().map(|(owner, list, member)| (*owner, list.as_str(), *member)));
    for (owner, list, members) in &counts {
        lists.members.insert((*owner, list), rows::count_of(*members)?);
    }
    let answers = changes.iter().map(|change| lists.change(change)).collect();
    let (gone, new) = lists.differences();
    if !gone.is_empty() {
        let (owners, names, members) = columns(gone.into_iter());
        let query = sqlx::query(TAKE_OFF).bind(owners).bind(names).bind(members);
        query.execute(&mut *connection).await?;
    }
    if !new.is_empty() {
        let times: Vec<i64> = new.iter().map(|(_, at)| *at).collect();
        let (owners, names, members) = columns(new.into_iter().map(|(place, _)| place));
        let query = sqlx::query(PUT_ON).bind(owners).bind(names).bind(members).bind(times);
        query.execute(&mut *connection).await?;
    }
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(answers)
}

/// The owner of a list, the name of the list, and a member.
type Place<'a> = (i32, &'a str, i32);

fn place(change: &ListChange) -> Place<'_> {
    (rows::user(change.owner), change.list.as_str(), rows::user(change.member))
}

fn columns<'a>(places: impl Iterator<Item = Place<'a>>) -> (Vec<i32>, Vec<&'a str>, Vec<i32>) {
    let (mut owners, mut lists, mut members) = (vec![], vec![], vec![]);
    for (owner, list, member) in places {
        owners.push(owner);
        lists.push(list);
        members.push(member);
    }
    (owners, lists, members)
}

/// The lists of some owners, as far as changes need them, while these are carried out.
#[derive(Default)]
struct Lists<'a> {
    /// The members of lists, as far as the changes name these users.
    on: HashSet<Place<'a>>,
    /// How many members each list has; none has 0.
    members: HashMap<(i32, &'a str), u64>,
    /// The members that the changes have put on a list, with the time, or taken off (`None`).
    changed: BTreeMap<Place<'a>, Option<Millis>>,
}

impl<'a> Lists<'a> {
    fn change(&mut self, change: &'a ListChange) -> Result<bool, ListRefused> {
        let place @ (owner, list, _) = place(change);
        let is_on = self.changed.get(&place).map_or_else(|| self.on.contains(&place), Option::is_some);
        if is_on == change.on {
            return Ok(false);
        }
        let members = self.members.get(&(owner, list)).copied().unwrap_or(0);
        if change.on {
            has_room(members, self.members.keys().filter(|(of, _)| *of == owner).count())?;
        }
        match if change.on { members + 1 } else { members - 1 } {
            0 => _ = self.members.remove(&(owner, list)),
            now => _ = self.members.insert((owner, list), now),
        }
        self.changed.insert(place, change.on.then_some(change.at));
        Ok(true)
    }

    /// The rows to remove, and the rows to make. A member who was taken off and put on again has a new time.
    fn differences(self) -> (Vec<Place<'a>>, Vec<(Place<'a>, Millis)>) {
        let gone = self.changed.keys().filter(|place| self.on.contains(place)).copied().collect();
        (gone, self.changed.into_iter().filter_map(|(place, at)| Some((place, at?))).collect())
    }
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
    after: Option<ListCursor>,
    limit: usize,
) -> sqlx::Result<Vec<(UserNo, Millis)>> {
    let after = after.map_or(-1, |after| i32::try_from(after.listed).unwrap_or(i32::MAX));
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

/// The lines that have a user, after the line of this list.
pub(crate) async fn listing(
    connection: &mut PgConnection,
    member: UserNo,
    after: Option<&(UserNo, ListName)>,
    limit: usize,
) -> sqlx::Result<Vec<Listed>> {
    let (owner, list) = after.map_or((-1, ""), |(owner, list)| (rows::user(*owner), list.as_str()));
    let query = sqlx::query_as(LISTING).bind(rows::user(member)).bind(owner).bind(list);
    let read: Vec<Line> = query.bind(rows::limit(limit)).fetch_all(connection).await?;
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
