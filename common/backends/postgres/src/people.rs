//! What backends say of users: a row for each user of whom anything is said. All rows of a call are put by one
//! statement, in the order of the users, so that calls that name the same users wait for each other and never in a
//! circle. While search is on, that statement also notes that these users are to be indexed.

use std::collections::HashMap;

use feedgate_common::archive::{Known, which_count};
use feedgate_common::people::{Card, Person};
use feedgate_common::{Body, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;

const REPLACE: &str = r#"
WITH changed AS (
INSERT INTO people AS held ("user", name, avatar, attrs)
SELECT * FROM unnest($1::integer[], $2::text[], $3::text[], $4::text[]) AS new ("user", name, avatar, attrs)
ORDER BY 1
ON CONFLICT ("user") DO UPDATE SET name = excluded.name, avatar = excluded.avatar, attrs = excluded.attrs
WHERE (held.name, held.avatar, held.attrs) IS DISTINCT FROM (excluded.name, excluded.avatar, excluded.attrs)
RETURNING "user"
), due AS (
INSERT INTO search_due (subject, id) SELECT 1, "user" FROM changed WHERE EXISTS (SELECT FROM search_state)
)
SELECT "user" FROM changed"#;

const KEEP: &str = r#"
WITH changed AS (
INSERT INTO people ("user", name, avatar, attrs)
SELECT * FROM unnest($1::integer[], $2::text[], $3::text[], $4::text[]) AS new ("user", name, avatar, attrs)
ORDER BY 1
ON CONFLICT ("user") DO NOTHING
RETURNING "user"
), due AS (
INSERT INTO search_due (subject, id) SELECT 1, "user" FROM changed WHERE EXISTS (SELECT FROM search_state)
)
SELECT "user" FROM changed"#;

const REMOVE: &str = r#"
WITH gone AS (DELETE FROM people WHERE "user" = $1 RETURNING "user"),
due AS (INSERT INTO search_due (subject, id) SELECT 1, "user" FROM gone WHERE EXISTS (SELECT FROM search_state))
SELECT "user" FROM gone"#;

const PERSON: &str = r#"SELECT "user", name, avatar, attrs FROM people WHERE "user" = $1"#;

const CARDS: &str = r#"SELECT "user", name, avatar FROM people WHERE "user" = ANY($1)"#;

const PEOPLE: &str = r#"SELECT "user", name, avatar, attrs FROM people WHERE "user" > $1 ORDER BY "user" LIMIT $2"#;

type Row = (i32, Option<String>, Option<String>, Option<String>);

/// Stores these people in the order given. Answers for each person whether anything changed.
pub(crate) async fn put(
    connection: &mut PgConnection,
    people: &[(UserNo, Person)],
    known: Known,
) -> sqlx::Result<Vec<bool>> {
    let counting = which_count(people, known);
    let users: Vec<i32> = counting.keys().copied().map(rows::user).collect();
    let column = |of: fn(&Person) -> Option<&str>| counting.values().map(|&nth| of(&people[nth].1)).collect::<Vec<_>>();
    let changed: Vec<i32> = sqlx::query_scalar(if known == Known::Kept { KEEP } else { REPLACE })
        .bind(users)
        .bind(column(|person| person.card.name.as_deref()))
        .bind(column(|person| person.card.avatar.as_deref()))
        .bind(column(|person| person.attrs.as_ref().map(Body::get)))
        .fetch_all(connection)
        .await?;
    let mut answers = vec![false; people.len()];
    for user in changed {
        if let Some(&nth) = counting.get(&rows::user_of(user)?) {
            answers[nth] = true;
        }
    }
    Ok(answers)
}

/// Removes the row of `user`. Answers whether there was a row.
pub(crate) async fn remove(connection: &mut PgConnection, user: UserNo) -> sqlx::Result<bool> {
    let gone: Option<i32> = sqlx::query_scalar(REMOVE).bind(rows::user(user)).fetch_optional(connection).await?;
    Ok(gone.is_some())
}

/// All that is stored of `user`.
pub(crate) async fn person(connection: &mut PgConnection, user: UserNo) -> sqlx::Result<Option<Person>> {
    let row: Option<Row> = sqlx::query_as(PERSON).bind(rows::user(user)).fetch_optional(connection).await?;
    row.map(|row| Ok(person_of(row)?.1)).transpose()
}

/// What is to be shown of each of these users, in their order.
pub(crate) async fn cards(connection: &mut PgConnection, users: &[UserNo]) -> sqlx::Result<Vec<Option<Card>>> {
    let asked: Vec<i32> = users.iter().copied().map(rows::user).collect();
    let read: Vec<(i32, Option<String>, Option<String>)> =
        sqlx::query_as(CARDS).bind(asked).fetch_all(connection).await?;
    let mut found: HashMap<UserNo, Card> = HashMap::with_capacity(read.len());
    for (user, name, avatar) in read {
        found.insert(rows::user_of(user)?, card_of(name, avatar));
    }
    Ok(users.iter().map(|user| found.get(user).cloned()).collect())
}

/// The people after `after` by number, at most `limit`.
pub(crate) async fn people(
    connection: &mut PgConnection,
    after: Option<UserNo>,
    limit: usize,
) -> sqlx::Result<Vec<(UserNo, Person)>> {
    let query = sqlx::query_as(PEOPLE).bind(after.map_or(-1, rows::user)).bind(rows::limit(limit));
    let read: Vec<Row> = query.fetch_all(connection).await?;
    read.into_iter().map(person_of).collect()
}

fn person_of((user, name, avatar, attrs): Row) -> sqlx::Result<(UserNo, Person)> {
    let damaged = |why| corrupt(format_args!("the attributes of user {user}: {why}"));
    let attrs = attrs.map(|json| Body::stored(json).map_err(damaged)).transpose()?;
    Ok((rows::user_of(user)?, Person { card: card_of(name, avatar), attrs }))
}

fn card_of(name: Option<String>, avatar: Option<String>) -> Card {
    Card { name: name.map(Into::into), avatar: avatar.map(Into::into) }
}
