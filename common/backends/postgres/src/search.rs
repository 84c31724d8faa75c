//! The index of search: the marks of each thing that can be found in one row, and a GIN index over them.
//!
//! ```text
//!   write of an item or person ─▶ search_due, in the same transaction, while there is a search_state
//!   index()  locks search_state ─▶ takes from search_due, or goes on building ─▶ reads what is there now ─▶ search_marks
//!   find()   the newest rows, one after the other ─▶ if these are too few, the GIN index
//! ```
//!
//! Invariants:
//! - One process indexes at a time: the one that has locked the state. So the rows that it reads are never older than
//!   those in the index.
//! - A thing that was written after it was read has a row in `search_due` once that is visible, and is read again.
//! - Search is turned on while nobody writes items or people: each write either was visible by then, and is found by
//!   the building, or sees the state.

use std::collections::BTreeSet;

use feedgate_common::search::{Hits, Look, Mark, SearchPlace, Subject, TextFields, marks_of_item, marks_of_user};
use feedgate_common::{Body, ItemId, Millis, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::pool::WAIT_BRIEFLY;
use crate::rows;
use crate::users::user_id;

/// How many things one step indexes.
const STEP: i64 = 200;

/// How many of the newest rows a look goes through before it asks the GIN index, which would read all rows of a word.
const NEAR: i64 = 1000;

const BUILT: i16 = 0;
const ITEMS: i16 = 1;
const USERS: i16 = 2;

const RECIPE: &str = "SELECT recipe FROM search_state";

/// Ends an earlier index. No write of an item or a person is under way once the locks are taken.
const CLEAR: &str = "
LOCK TABLE items, people IN SHARE MODE;
TRUNCATE search_marks, search_due;
DELETE FROM search_state";

const BEGIN: &str = "INSERT INTO search_state (recipe, stage, at) VALUES ($1, $2, $3)";

/// Locks the state of the index, if there is something to index and no other process has locked it.
const TAKE: &str = "
SELECT stage, at FROM search_state WHERE recipe = $1 AND (stage > 0 OR EXISTS (SELECT FROM search_due))
FOR UPDATE SKIP LOCKED";

const TAKE_DUE: &str = "
WITH part AS MATERIALIZED (SELECT n FROM search_due ORDER BY n LIMIT $1)
DELETE FROM search_due d USING part WHERE d.n = part.n RETURNING d.subject, d.id";

const NEXT_ITEMS: &str = "SELECT id FROM items WHERE id <= $1 ORDER BY id DESC LIMIT $2";

const NEXT_USERS: &str = r#"SELECT "user"::bigint FROM people WHERE "user" > $1 ORDER BY "user" LIMIT $2"#;

const MOVE: &str = "UPDATE search_state SET stage = $1, at = $2";

const LIVING: &str = "SELECT id, published_at, author, kind, body FROM items WHERE id = ANY($1) AND body IS NOT NULL";

const PEOPLE: &str = r#"
SELECT p."user", u.name, p.name FROM people p JOIN users u ON u.no = p."user" WHERE p."user" = ANY($1)"#;

const PUT: &str = "
INSERT INTO search_marks AS held (subject, id, at, marks)
SELECT subject, id, at, marks::integer[]
FROM unnest($1::smallint[], $2::bigint[], $3::bigint[], $4::text[]) AS n(subject, id, at, marks)
ORDER BY subject, id
ON CONFLICT (subject, id) DO UPDATE SET marks = excluded.marks WHERE held.marks <> excluded.marks";

const REMOVE: &str = "
DELETE FROM search_marks m USING unnest($1::smallint[], $2::bigint[]) AS n(subject, id)
WHERE m.subject = n.subject AND m.id = n.id";

const STAGE: &str = "SELECT stage FROM search_state WHERE recipe = $1";

/// Of the $6 newest rows from a place on, the newest that have all marks, at most $7; and the last of those rows, if
/// there were so many.
const NEWEST: &str = "
WITH near AS MATERIALIZED (
    SELECT at, id, marks @> $1 AS found FROM search_marks
    WHERE subject = $2 AND (at, id) <= ($3, $4) AND at >= $5
    ORDER BY at DESC, id DESC LIMIT $6
)
(SELECT at, id, found FROM near WHERE found ORDER BY at DESC, id DESC LIMIT $7)
UNION ALL
(SELECT at, id, false FROM near WHERE (SELECT count(*) FROM near) = $6 ORDER BY at, id LIMIT 1)";

/// Allows bitmap scans to the next statement, since PostgreSQL can read a GIN index in no other way.
const ALLOW_BITMAPS: &str = "SET LOCAL enable_bitmapscan = on";

/// The rows from a place on that have all marks, by the GIN index.
const FOUND: &str = "
WITH found AS MATERIALIZED (SELECT subject, at, id FROM search_marks WHERE marks @> $1)
SELECT at, id FROM found
WHERE subject = $2 AND (at, id) <= ($3, $4) AND at >= $5
ORDER BY at DESC, id DESC LIMIT $6";

fn subject(subject: Subject) -> i16 {
    subject as i16
}

/// The value of the column `id`. The id of an item may be any u64, and is stored as in all tables.
fn id(subject: Subject, id: u64) -> i64 {
    match subject {
        Subject::Items => rows::item(ItemId(id)),
        Subject::Users => rows::count(id),
    }
}

fn place(subject: Subject, (at, column): (Millis, i64)) -> sqlx::Result<SearchPlace> {
    let id = match subject {
        Subject::Items => rows::item_of(column).0,
        Subject::Users => rows::count_of(column)?,
    };
    Ok(SearchPlace { at, id })
}

/// Makes the index one of `recipe`, or ends it. After an error the connection is closed, which ends the transaction.
pub(crate) async fn index_of(connection: &mut PgConnection, recipe: Option<&str>) -> sqlx::Result<()> {
    let held: Option<String> = sqlx::query_scalar(RECIPE).fetch_optional(&mut *connection).await?;
    if held.as_deref() == recipe {
        return Ok(());
    }
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query("LOCK TABLE search_state IN EXCLUSIVE MODE").execute(&mut *connection).await?;
    let held: Option<String> = sqlx::query_scalar(RECIPE).fetch_optional(&mut *connection).await?;
    if held.as_deref() != recipe {
        sqlx::query(WAIT_BRIEFLY).execute(&mut *connection).await?;
        sqlx::raw_sql(CLEAR).execute(&mut *connection).await?;
        if let Some(recipe) = recipe {
            sqlx::query(BEGIN).bind(recipe).bind(ITEMS).bind(i64::MAX).execute(&mut *connection).await?;
        }
    }
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(())
}

/// Takes a step of what is outstanding. Answers whether there may be more.
pub(crate) async fn index(connection: &mut PgConnection, fields: &TextFields) -> sqlx::Result<bool> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let taken: Option<(i16, i64)> = sqlx::query_as(TAKE).bind(fields.recipe()).fetch_optional(&mut *connection).await?;
    let more = match taken {
        Some(state) => step(connection, fields, state).await?,
        None => false,
    };
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(more)
}

async fn step(connection: &mut PgConnection, fields: &TextFields, (stage, at): (i16, i64)) -> sqlx::Result<bool> {
    let taken: Vec<(i16, i64)> = sqlx::query_as(TAKE_DUE).bind(STEP).fetch_all(&mut *connection).await?;
    let full = taken.len() as i64 >= STEP;
    // An item or user that was written more than once has more than one row, and is indexed once.
    let mut due: BTreeSet<(i16, i64)> = taken.into_iter().collect();
    let mut built = stage == BUILT;
    if !full && !built {
        let of = if stage == ITEMS { Subject::Items } else { Subject::Users };
        let next = if stage == ITEMS { NEXT_ITEMS } else { NEXT_USERS };
        let next: Vec<i64> = sqlx::query_scalar(next).bind(at).bind(STEP).fetch_all(&mut *connection).await?;
        due.extend(next.iter().map(|id| (subject(of), *id)));
        let last = next.last().copied().filter(|_| next.len() as i64 == STEP);
        let (stage, at) = match (stage, last) {
            (ITEMS, Some(last)) if last > i64::MIN => (ITEMS, last - 1),
            (ITEMS, _) => (USERS, 0),
            (_, Some(last)) => (USERS, last),
            (_, None) => (BUILT, 0),
        };
        built = stage == BUILT;
        if built {
            tracing::info!("the index of search is built");
        }
        sqlx::query(MOVE).bind(stage).bind(at).execute(&mut *connection).await?;
    }
    take_in(connection, fields, &due).await?;
    Ok(full || !built)
}

/// A row of `search_marks`.
struct Row {
    subject: Subject,
    id: i64,
    at: Millis,
    marks: BTreeSet<Mark>,
}

/// Indexes these things as they are now. Things that do not exist any more are removed from the index.
async fn take_in(
    connection: &mut PgConnection,
    fields: &TextFields,
    things: &BTreeSet<(i16, i64)>,
) -> sqlx::Result<()> {
    let of = |wanted: Subject| things.iter().filter(move |(of, _)| *of == subject(wanted)).map(|(_, id)| *id);
    let (items, users): (Vec<i64>, Vec<i64>) = (of(Subject::Items).collect(), of(Subject::Users).collect());
    let mut found = vec![];
    if !items.is_empty() {
        found.extend(living(connection, fields, &items).await?);
    }
    if !users.is_empty() {
        found.extend(people(connection, &users).await?);
    }
    let there: BTreeSet<(i16, i64)> = found.iter().map(|row| (subject(row.subject), row.id)).collect();
    let (subjects, ids): (Vec<i16>, Vec<i64>) = things.difference(&there).copied().unzip();
    if !ids.is_empty() {
        sqlx::query(REMOVE).bind(subjects).bind(ids).execute(&mut *connection).await?;
    }
    if !found.is_empty() {
        sqlx::query(PUT)
            .bind(found.iter().map(|row| subject(row.subject)).collect::<Vec<_>>())
            .bind(found.iter().map(|row| row.id).collect::<Vec<_>>())
            .bind(found.iter().map(|row| row.at).collect::<Vec<_>>())
            .bind(
                found
                    .iter()
                    .map(|row| rows::array(row.marks.iter().map(|mark| mark.cast_signed())))
                    .collect::<Vec<_>>(),
            )
            .execute(connection)
            .await?;
    }
    Ok(())
}

async fn living(connection: &mut PgConnection, fields: &TextFields, ids: &[i64]) -> sqlx::Result<Vec<Row>> {
    let read: Vec<(i64, Millis, i32, Option<String>, String)> =
        sqlx::query_as(LIVING).bind(ids).fetch_all(connection).await?;
    let row = |(id, at, author, kind, body): (i64, Millis, i32, Option<String>, String)| {
        let body = Body::stored(body).map_err(|why| corrupt(format_args!("item {}: {why}", rows::item_of(id))))?;
        let marks = marks_of_item(fields, rows::user_of(author)?, kind.as_deref(), &body);
        Ok(Row { subject: Subject::Items, id, at, marks })
    };
    read.into_iter().map(row).collect()
}

async fn people(connection: &mut PgConnection, users: &[i64]) -> sqlx::Result<Vec<Row>> {
    let users: Vec<i32> = users.iter().filter_map(|user| i32::try_from(*user).ok()).collect();
    let read: Vec<(i32, String, Option<String>)> = sqlx::query_as(PEOPLE).bind(users).fetch_all(connection).await?;
    let row = |(user, id, name): (i32, String, Option<String>)| {
        let SearchPlace { at, .. } = SearchPlace::of_user(UserNo(0));
        let marks = marks_of_user(&user_id(&id)?, name.as_deref());
        Ok(Row { subject: Subject::Users, id: user.into(), at, marks })
    };
    read.into_iter().map(row).collect()
}

/// The candidates of a look. To be called within a transaction that reads.
pub(crate) async fn find(connection: &mut PgConnection, recipe: &str, look: &Look) -> sqlx::Result<Hits> {
    let stage: Option<i16> = sqlx::query_scalar(STAGE).bind(recipe).fetch_optional(&mut *connection).await?;
    let Some(stage) = stage else { return Ok(Hits { building: true, ..Hits::default() }) };
    let mut hits = Hits { building: stage != BUILT, ..Hits::default() };
    let marks: Vec<i32> = look.marks.iter().map(|mark| mark.cast_signed()).collect();
    let (of, first) = (look.subject, look.first());
    let newest: Vec<(Millis, i64, bool)> = sqlx::query_as(NEWEST)
        .bind(&marks)
        .bind(subject(of))
        .bind(first.at)
        .bind(id(of, first.id))
        .bind(look.since)
        .bind(NEAR)
        .bind(rows::limit(look.limit + 1))
        .fetch_all(&mut *connection)
        .await?;
    let mut last = None;
    for (at, id, found) in newest {
        let place = place(of, (at, id))?;
        match found {
            true if hits.places.len() == look.limit => {
                hits.next = hits.places.last().copied();
                return Ok(hits);
            }
            true => hits.places.push(place),
            false => last = Some(place),
        }
    }
    let Some(last) = last else { return Ok(hits) };
    // Few of the newest rows have the marks, so the marks are rare, and the GIN index finds few rows.
    let first = last.behind();
    sqlx::query(ALLOW_BITMAPS).execute(&mut *connection).await?;
    let found: Vec<(Millis, i64)> = sqlx::query_as(FOUND)
        .bind(&marks)
        .bind(subject(of))
        .bind(first.at)
        .bind(id(of, first.id))
        .bind(look.since)
        .bind(rows::limit(look.limit - hits.places.len() + 1))
        .fetch_all(connection)
        .await?;
    for row in found {
        if hits.places.len() == look.limit {
            hits.next = hits.places.last().copied().or(Some(last));
            return Ok(hits);
        }
        hits.places.push(place(of, row)?);
    }
    Ok(hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_from_its_columns_and_keeps_its_order() {
        for of in [Subject::Items, Subject::Users] {
            let ids = [0, 1, 1 << 31];
            assert!(ids.map(|n| id(of, n)).is_sorted());
            for n in ids {
                assert_eq!(place(of, (5, id(of, n))).unwrap(), SearchPlace { at: 5, id: n });
            }
        }
        assert_eq!(id(Subject::Users, u64::MAX), i64::MAX, "the place before the first user");
    }

    #[test]
    fn numbers_are_written_as_an_array() {
        assert_eq!(rows::array([1, -1].into_iter()), "{1,-1}");
    }
}
