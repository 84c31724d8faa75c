//! Erasures of users: their rows, the walks through the stored rows of one user, and the removal of rows for which
//! there is no write. A walk goes along an index and looks at a bounded number of rows, whosever they are: erasures are
//! rare, and an index by user would be written with each reaction and comment.

use feedgate_common::archive::Remains;
use feedgate_common::erase::{Erasure, Mark, Removed, Stage, State, TRACES_LOOKED_AT, TRACES_MAX, Trace, Traces};
use feedgate_common::graph::Shield;
use feedgate_common::{Millis, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::revocations;
use crate::rows;

const OPEN: &str = r#"SELECT id, "user", accepted_at, state FROM erasures WHERE "user" = $1 AND open"#;

const BEGIN: &str = r#"
INSERT INTO erasures ("user", accepted_at, state) VALUES ($1, $2, $3)
ON CONFLICT ("user") WHERE open DO NOTHING
RETURNING id, "user", accepted_at, state"#;

const ONE: &str = r#"SELECT id, "user", accepted_at, state FROM erasures WHERE id = $1"#;

const ALL_OPEN: &str =
    r#"SELECT id, "user", accepted_at, state FROM erasures WHERE open AND id > $1 ORDER BY id LIMIT $2"#;

const MOVE: &str = "UPDATE erasures SET state = $3, open = $4 WHERE id = $1 AND state = $2";

/// A walk. It looks at a bounded number of rows, each with its place and whether it is of the user, and gives those of
/// the user; then the last row that was looked at, if the bound was reached.
macro_rules! walk {
    ($rows:literal, $order:literal, $found:literal) => {
        concat!(
            "WITH looked AS MATERIALIZED (",
            $rows,
            " ORDER BY ",
            $order,
            " LIMIT $5), found AS (SELECT ",
            $found,
            " FROM looked l WHERE l.own ORDER BY ",
            $order,
            " LIMIT $6)
SELECT a, b, c, detail, at, lives, false FROM found
UNION ALL
(SELECT a, b, c, NULL::text, NULL::bigint, false, true FROM looked ORDER BY a DESC, b DESC, c DESC
 LIMIT CASE WHEN (SELECT count(*) FROM looked) = $5 THEN 1 ELSE 0 END)
ORDER BY 7, 1, 2, 3, 4"
        )
    };
}

const DIRECT: &str = walk!(
    "SELECT i.id AS a, 0::bigint AS b, 0::bigint AS c, i.author = $1 AS own, i.body IS NOT NULL AS lives
     FROM items i WHERE i.route = 0 AND (i.id, 0::bigint, 0::bigint) > ($2, $3, $4)",
    "a, b, c",
    "a, b, c, NULL::text AS detail, NULL::bigint AS at, lives"
);

const MEMBERS: &str = walk!(
    "SELECT m.line AS a, m.seq AS b, 0::bigint AS c, m.actor = $1 AS own, m.key AS detail
     FROM line_members m WHERE (m.line, m.seq, 0::bigint) > ($2, $3, $4)",
    "a, b, c",
    "a, b, c, detail, NULL::bigint AS at, true AS lives"
);

/// The notifications among what is addressed to the user.
const NOTIFICATIONS: &str = walk!(
    "SELECT d.seq AS a, d.item AS b, 0::bigint AS c, d.op = 1 AND i.body IS NOT NULL AND starts_with(i.foreign_id, 'feedgate:') AS own,
            true AS lives
     FROM direct d JOIN items i ON i.id = d.item WHERE d.reader = $1 AND d.seq > $2 AND NOT d.ranked AND $3::bigint + $4::bigint IS NOT NULL",
    "a",
    "a, b, c, NULL::text AS detail, NULL::bigint AS at, lives"
);

const COMMENTS: &str = walk!(
    "SELECT m.item AS a, m.at AS b, m.id AS c, m.author = $1 AS own, m.body IS NOT NULL AS lives
     FROM comments m WHERE (m.item, m.at, m.id) > ($2, $3, $4)",
    "a, b, c",
    "a, b, c, NULL::text AS detail, NULL::bigint AS at,
     CASE WHEN EXISTS (SELECT FROM items i WHERE i.id = l.a AND i.body IS NOT NULL) THEN lives END AS lives"
);

/// One row for each item that the user may have reacted to: the index leads with the item and the user, so that each
/// item costs two looks at it, however many others have reacted.
const REACTIONS: &str = "
WITH RECURSIVE looked (a, n) AS (
    (SELECT item, 1 FROM reactions WHERE item >= $2 ORDER BY item LIMIT 1)
    UNION ALL
    SELECT (SELECT item FROM reactions WHERE item > l.a ORDER BY item LIMIT 1), n + 1
    FROM looked l WHERE l.a IS NOT NULL AND n < $3
)
SELECT l.a, r.kind, r.at, false FROM looked l JOIN reactions r ON r.item = l.a AND r.reader = $1
WHERE EXISTS (SELECT FROM items i WHERE i.id = l.a AND i.body IS NOT NULL)
UNION ALL
(SELECT l.a, NULL, NULL, true FROM looked l WHERE l.a IS NOT NULL AND l.n = $3)
ORDER BY 4, 1, 2";

const FOREIGN_IDS: &str = "
WITH looked AS MATERIALIZED (
    SELECT foreign_id, author = $1 AND body IS NULL AS own FROM items
    WHERE foreign_id > $2 ORDER BY foreign_id LIMIT $3
)
SELECT foreign_id, false FROM looked WHERE own
UNION ALL
SELECT max(foreign_id), true FROM looked HAVING count(*) = $3
ORDER BY 2, 1";

const SHIELDED: &str = walk!(
    "SELECT s.owner::bigint AS a, s.kind::bigint AS b, s.other::bigint AS c, s.other = $1 AS own, true AS lives
     FROM shields s WHERE (s.owner, s.kind, s.other) > ($2::integer, $3::smallint, $4::integer)",
    "a, b, c",
    "a, b, c, NULL::text AS detail, NULL::bigint AS at, lives"
);

/// The items of others whose audience has the user, and the deleted items of the user, for which `lives` is false.
const AUDIENCES: &str = walk!(
    "SELECT a.item AS a, 0::bigint AS b, 0::bigint AS c, i.id IS NOT NULL OR $1 = ANY(a.readers) AS own,
            i.id IS NULL AS lives
     FROM audiences a LEFT JOIN items i ON i.id = a.item AND i.author = $1 AND i.body IS NULL
     WHERE (a.item, 0::bigint, 0::bigint) > ($2, $3, $4)",
    "a, b, c",
    "a, b, c, NULL::text AS detail, NULL::bigint AS at, lives"
);

const SCRUB: &str = r"
WITH items_scrubbed AS (
    UPDATE items SET kind = NULL, foreign_id = NULL, repost_of = NULL, mentions = NULL,
        fingerprint = '\x00000000000000000000000000000000'
    WHERE id = ANY($2) AND author = $1 AND body IS NULL
), audiences_gone AS (
    DELETE FROM audiences a USING items i WHERE a.item = ANY($6) AND i.id = a.item AND i.author = $1 AND i.body IS NULL
), left_audiences AS (
    UPDATE audiences SET readers = array_remove(readers, $1::integer) WHERE item = ANY($5)
), keys AS (
    UPDATE items SET foreign_id = NULL
    WHERE foreign_id = ANY($3) AND author = $1 AND body IS NULL AND id <> ALL($2)
)
UPDATE comments SET key = NULL, fingerprint = '\x00000000000000000000000000000000'
WHERE id = ANY($4) AND author = $1 AND body IS NULL";

/// Counts the items of a page of records that are addressed to the user, each at the newest of its adds, and gives the
/// last record of a full page.
const ADDRESSED: &str = "
WITH page AS MATERIALIZED (
    SELECT seq, item, op = 1 AND NOT ranked AS adds FROM direct WHERE reader = $1 AND seq > $2 ORDER BY seq LIMIT $3
)
SELECT count(*) FILTER (WHERE p.adds AND NOT EXISTS (
    SELECT FROM direct d WHERE d.item = p.item AND d.reader = $1 AND d.op = 1 AND NOT d.ranked AND d.seq > p.seq
)), CASE WHEN count(*) = $3 THEN max(p.seq) END FROM page p";

const FORGET_ADDRESSED: &str = "DELETE FROM direct WHERE reader = $1 AND seq <= $2";

const REST: &str = r#"
SELECT ARRAY[
    (SELECT count(*) FROM people WHERE "user" = $1),
    (SELECT count(*) FROM push_devices WHERE reader = $1),
    (SELECT count(*) FROM push_notices WHERE reader = $1) + (SELECT count(*) FROM push_dead WHERE reader = $1),
    (SELECT count(*) FROM sights WHERE reader = $1),
    (SELECT count(*) FROM lists WHERE owner = $1),
    (SELECT count(*) FROM lists WHERE member = $1),
    (SELECT count(*) FROM retries WHERE author = $1)]"#;

/// Locks the row under whose lock records addressed to a reader, and devices of the reader, change.
const LOCK: &str = "SELECT FROM readers WHERE reader = $1 FOR UPDATE";

const FORGET: &str = r#"
WITH person AS (DELETE FROM people WHERE "user" = $1 RETURNING "user"),
due AS (INSERT INTO search_due (subject, id) SELECT 1, "user" FROM person WHERE EXISTS (SELECT FROM search_state)),
devices AS (DELETE FROM push_devices WHERE reader = $1),
notices AS (DELETE FROM push_notices WHERE reader = $1),
dead AS (DELETE FROM push_dead WHERE reader = $1),
seen AS (DELETE FROM sights WHERE reader = $1),
pins AS (DELETE FROM pins WHERE "user" = $1),
reader AS (UPDATE readers SET listens = false, noted = 0, direct_due = NULL, direct_quiet = false WHERE reader = $1),
keys AS (
    DELETE FROM retries r USING (SELECT key FROM retries WHERE author = $1 ORDER BY key LIMIT $2) AS part
    WHERE r.author = $1 AND r.key = part.key RETURNING 1
),
members AS (
    DELETE FROM line_members m USING (
        SELECT m.line, m.seq FROM lines l JOIN line_members m ON m.line = l.id WHERE l.reader = $1 LIMIT $2
    ) AS part
    WHERE m.line = part.line AND m.seq = part.seq RETURNING m.line, m.seq
),
empty AS (
    DELETE FROM lines l
    WHERE l.reader = $1 AND NOT EXISTS (
        SELECT FROM line_members m
        WHERE m.line = l.id AND NOT EXISTS (SELECT FROM members gone WHERE gone.line = m.line AND gone.seq = m.seq)
    )
),
listed AS (
    DELETE FROM lists l USING (
        (SELECT owner, list, member FROM lists WHERE owner = $1 LIMIT $2)
        UNION ALL
        (SELECT owner, list, member FROM lists WHERE member = $1 LIMIT $2)
    ) AS part
    WHERE l.owner = part.owner AND l.list = part.list AND l.member = part.member RETURNING 1
),
addressed AS (
    DELETE FROM direct d USING (SELECT seq FROM direct WHERE reader = $1 ORDER BY seq LIMIT $2) AS part
    WHERE d.reader = $1 AND d.seq = part.seq RETURNING 1
)
SELECT greatest(
    (SELECT count(*) FROM keys), (SELECT count(*) FROM members), (SELECT count(*) FROM listed),
    (SELECT count(*) FROM addressed)
)"#;

type Row = (i64, i32, Millis, String);

/// A row of a walk: its key, whether it lives (`None` if nobody can see it), and whether the row is only the last that
/// was looked at.
type Line = (i64, i64, i64, Option<String>, Option<i64>, Option<bool>, bool);

fn erasure((id, user, accepted_at, state): Row) -> sqlx::Result<Erasure> {
    let state = State::stored(&state).map_err(|why| corrupt(format_args!("the state of erasure {id}: {why}")))?;
    Ok(Erasure { id: rows::count_of(id)?, user: rows::user_of(user)?, accepted_at, state })
}

/// Accepts the erasure of a user, or answers the erasure that is under way. After an error the connection is closed,
/// which ends the transaction.
pub(crate) async fn begin(connection: &mut PgConnection, user: UserNo, now: Millis) -> sqlx::Result<Erasure> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    // Tokens that were issued in the same millisecond are refused too. The revocation locks the counter of revocations,
    // so of two calls for one user the second finds the row of the first.
    revocations::revoke(connection, user, now.saturating_add(1)).await?;
    let begin =
        sqlx::query_as(BEGIN).bind(rows::user(user)).bind(now).bind(State::default().text().as_str().to_owned());
    let begun: Option<Row> = begin.fetch_optional(&mut *connection).await?;
    let row = match begun {
        Some(row) => row,
        None => sqlx::query_as(OPEN).bind(rows::user(user)).fetch_one(&mut *connection).await?,
    };
    sqlx::query("COMMIT").execute(connection).await?;
    erasure(row)
}

/// The erasure with this number.
pub(crate) async fn one(connection: &mut PgConnection, id: u64) -> sqlx::Result<Option<Erasure>> {
    let row: Option<Row> = sqlx::query_as(ONE).bind(rows::count(id)).fetch_optional(connection).await?;
    row.map(erasure).transpose()
}

/// Erasures with a greater number than `after` that are not finished, oldest first.
pub(crate) async fn open(connection: &mut PgConnection, after: u64, limit: usize) -> sqlx::Result<Vec<Erasure>> {
    let open = sqlx::query_as(ALL_OPEN).bind(rows::count(after)).bind(rows::limit(limit));
    let read: Vec<Row> = open.fetch_all(connection).await?;
    read.into_iter().map(erasure).collect()
}

/// Stores a later state, if the stored state is still `before`.
pub(crate) async fn go_on(connection: &mut PgConnection, id: u64, before: &State, now: &State) -> sqlx::Result<bool> {
    let moved = sqlx::query(MOVE)
        .bind(rows::count(id))
        .bind(before.text().as_str().to_owned())
        .bind(now.text().as_str().to_owned())
        .bind(!now.is_finished())
        .execute(connection)
        .await?;
    Ok(moved.rows_affected() > 0)
}

/// A page of the traces of the user that no other read finds.
pub(crate) async fn traces(
    connection: &mut PgConnection,
    user: UserNo,
    of: Stage,
    after: Option<&Mark>,
) -> sqlx::Result<Traces> {
    match of {
        Stage::Lines => members(connection, user, after).await,
        Stage::Direct => direct(connection, user, after).await,
        Stage::Notifications => notifications(connection, user, after).await,
        Stage::ForeignIds => foreign_ids(connection, user, after).await,
        Stage::Comments => comments(connection, user, after).await,
        Stage::Reactions => reactions(connection, user, after).await,
        Stage::Shielded => shielded(connection, user, after).await,
        Stage::Audiences => audiences(connection, user, after).await,
        _ => Ok(Traces::default()),
    }
}

/// The numbers of the row behind which a walk goes on, as columns with the same order.
fn place(after: Option<&Mark>) -> sqlx::Result<[i64; 3]> {
    let Some(mark) = after else { return Ok([i64::MIN; 3]) };
    let numbers = mark.numbers().ok_or_else(|| corrupt(format_args!("an erasure stands at {:?}", mark.0)))?;
    Ok(numbers.map(|number| (number ^ (1 << 63)).cast_signed()))
}

/// The place of a row of which each column orders as bigint does.
fn mark([a, b, c]: [i64; 3]) -> Mark {
    Mark::of([a, b, c].map(|column| column.cast_unsigned() ^ (1 << 63)))
}

async fn lines(
    connection: &mut PgConnection,
    walk: &'static str,
    user: UserNo,
    [a, b, c]: [i64; 3],
) -> sqlx::Result<Vec<Line>> {
    sqlx::query_as(walk)
        .bind(rows::user(user))
        .bind(a)
        .bind(b)
        .bind(c)
        .bind(rows::limit(TRACES_LOOKED_AT))
        .bind(rows::limit(TRACES_MAX))
        .fetch_all(connection)
        .await
}

/// The traces of the lines of a walk. A line that is no trace is skipped.
fn traces_of(lines: Vec<Line>, trace: impl Fn(&Line) -> sqlx::Result<Option<Trace>>) -> sqlx::Result<Traces> {
    let mut traces = Traces::default();
    let (ends, rows): (Vec<Line>, Vec<Line>) = lines.into_iter().partition(|line| line.6);
    let full = rows.len() >= TRACES_MAX;
    let last = if full { rows.last() } else { ends.first() };
    traces.next = last.map(|(a, b, c, ..)| mark([*a, *b, *c]));
    for line in &rows {
        if let Some(trace) = trace(line)? {
            traces.found.push((mark([line.0, line.1, line.2]), trace));
        }
    }
    Ok(traces)
}

async fn direct(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    let lines = lines(connection, DIRECT, user, place(after)?).await?;
    let item = |line: &Line| Trace::Item { id: rows::item_of(line.0), lives: line.5 == Some(true), direct: true };
    traces_of(lines, |line| Ok(Some(item(line))))
}

async fn members(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    let lines = lines(connection, MEMBERS, user, place(after)?).await?;
    traces_of(lines, |line| Ok(line.3.as_deref().map(|key| Trace::Member(key.into()))))
}

async fn notifications(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    // Numbers of addressed records begin at 1.
    let [first, ..] = if after.is_some() { place(after)? } else { [0; 3] };
    let lines = lines(connection, NOTIFICATIONS, user, [first, 0, 0]).await?;
    traces_of(lines, |line| Ok(Some(Trace::Notification(rows::item_of(line.1)))))
}

async fn comments(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    let lines = lines(connection, COMMENTS, user, place(after)?).await?;
    let comment = |line: &Line| {
        line.5.map(|lives| Trace::Comment { item: rows::item_of(line.0), id: rows::item_of(line.2), lives })
    };
    traces_of(lines, |line| Ok(comment(line)))
}

async fn audiences(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    let lines = lines(connection, AUDIENCES, user, place(after)?).await?;
    let trace = |(item, _, _, _, _, lives, _): &Line| {
        let of = if *lives == Some(true) { Trace::Audience } else { Trace::OwnAudience };
        of(rows::item_of(*item))
    };
    traces_of(lines, |line| Ok(Some(trace(line))))
}

async fn shielded(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    let from = match after {
        None => [-1, -1, -1],
        Some(_) => place(after)?,
    };
    let narrow = |column: i64| i32::try_from(column).unwrap_or(i32::MAX);
    let read: Vec<Line> = sqlx::query_as(SHIELDED)
        .bind(rows::user(user))
        .bind(narrow(from[0]))
        .bind(i16::try_from(from[1]).unwrap_or(i16::MAX))
        .bind(narrow(from[2]))
        .bind(rows::limit(TRACES_LOOKED_AT))
        .bind(rows::limit(TRACES_MAX))
        .fetch_all(connection)
        .await?;
    traces_of(read, |line| {
        let shield = u8::try_from(line.1).ok().and_then(Shield::from_u8);
        let shield = shield.ok_or_else(|| corrupt(format_args!("{} where a shield stands", line.1)))?;
        Ok(Some(Trace::Shielded(shield, rows::user_of(narrow(line.0))?)))
    })
}

/// How many items with reactions one call looks at.
const ITEMS_LOOKED_AT: i64 = 1000;

async fn reactions(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    // The walk begins at the id behind the mark; without a mark, at the least id.
    let from = match after {
        Some(_) => place(after)?[0].saturating_add(1),
        None => i64::MIN,
    };
    let query = sqlx::query_as(REACTIONS).bind(rows::user(user)).bind(from).bind(ITEMS_LOOKED_AT);
    let read: Vec<(i64, Option<String>, Option<i64>, bool)> = query.fetch_all(connection).await?;
    let mut traces = Traces::default();
    for (item, kind, at, is_end) in read {
        let here = mark([item, i64::MIN, i64::MIN]);
        let (false, Some(kind), Some(at)) = (is_end, kind, at) else {
            traces.next = Some(here);
            continue;
        };
        let kind = kind.parse().map_err(|why| corrupt(format_args!("a kind of reaction: {why}")))?;
        if let Some((last, Trace::Reactions { kinds, .. })) = traces.found.last_mut()
            && *last == here
        {
            kinds.push((kind, at));
            continue;
        }
        if traces.found.len() == TRACES_MAX {
            break;
        }
        traces.found.push((here, Trace::Reactions { item: rows::item_of(item), kinds: vec![(kind, at)] }));
    }
    if traces.found.len() == TRACES_MAX {
        traces.next = traces.found.last().map(|(mark, _)| mark.clone());
    }
    Ok(traces)
}

async fn foreign_ids(connection: &mut PgConnection, user: UserNo, after: Option<&Mark>) -> sqlx::Result<Traces> {
    let after = after.map_or("", |mark| mark.0.as_str());
    let query = sqlx::query_as(FOREIGN_IDS).bind(rows::user(user)).bind(after).bind(rows::limit(TRACES_MAX * 5));
    let read: Vec<(Option<String>, bool)> = query.fetch_all(connection).await?;
    let mut traces = Traces::default();
    for (key, is_end) in read {
        let Some(key) = key else { continue };
        let mark = Mark(key.as_str().into());
        if is_end {
            traces.next = Some(mark);
        } else {
            traces.found.push((mark, Trace::ForeignId(key.into())));
        }
    }
    Ok(traces)
}

/// Removes what is left of deleted items and comments of the user.
pub(crate) async fn scrub(connection: &mut PgConnection, user: UserNo, remains: &Remains) -> sqlx::Result<()> {
    let items: Vec<i64> = remains.items.iter().copied().map(rows::item).collect();
    let comments: Vec<i64> = remains.comments.iter().copied().map(rows::item).collect();
    let keys: Vec<&str> = remains.foreign_ids.iter().map(|key| key.as_str()).collect();
    let audiences: Vec<i64> = remains.audiences.iter().copied().map(rows::item).collect();
    let own_audiences: Vec<i64> = remains.own_audiences.iter().copied().map(rows::item).collect();
    let scrub = sqlx::query(SCRUB).bind(rows::user(user)).bind(items).bind(keys).bind(comments);
    scrub.bind(audiences).bind(own_audiences).execute(connection).await.map(drop)
}

/// Counts a page of records that are addressed to the user; with the last of them also what [`forget`] would remove of
/// the other kinds. The number is that of the last record, unless it is the last page.
pub(crate) async fn rest(
    connection: &mut PgConnection,
    user: UserNo,
    after: u64,
    limit: usize,
) -> sqlx::Result<(Removed, Option<u64>)> {
    let page = sqlx::query_as(ADDRESSED).bind(rows::user(user)).bind(rows::count(after)).bind(rows::limit(limit));
    let (addressed, last): (i64, Option<i64>) = page.fetch_one(&mut *connection).await?;
    let addressed = rows::count_of(addressed)?;
    if let Some(last) = last {
        return Ok((Removed { addressed, ..Removed::default() }, Some(rows::count_of(last)?)));
    }
    let counted: Vec<i64> = sqlx::query_scalar(REST).bind(rows::user(user)).fetch_one(connection).await?;
    let counted = counted.into_iter().map(rows::count_of).collect::<sqlx::Result<Vec<_>>>()?;
    let [person, devices, notices, seen, listed, listing, keys] = counted[..] else {
        return Err(corrupt(format_args!("{} counts", counted.len())));
    };
    Ok((Removed { person, devices, notices, seen, addressed, listed, listing, keys, ..Removed::default() }, None))
}

/// Removes the records up to this number that are addressed to the user. After an error the connection is closed, which
/// ends the transaction.
pub(crate) async fn forget_addressed(connection: &mut PgConnection, user: UserNo, upto: u64) -> sqlx::Result<()> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query(LOCK).bind(rows::user(user)).execute(&mut *connection).await?;
    sqlx::query(FORGET_ADDRESSED).bind(rows::user(user)).bind(rows::count(upto)).execute(&mut *connection).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(())
}

/// Removes rows of the user for which there is no write. Answers whether there may be more. After an error the
/// connection is closed, which ends the transaction.
pub(crate) async fn forget(connection: &mut PgConnection, user: UserNo, limit: usize) -> sqlx::Result<bool> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    sqlx::query(LOCK).bind(rows::user(user)).execute(&mut *connection).await?;
    let forget = sqlx::query_scalar(FORGET).bind(rows::user(user)).bind(rows::limit(limit));
    let removed: i64 = forget.fetch_one(&mut *connection).await?;
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(removed >= rows::limit(limit))
}
