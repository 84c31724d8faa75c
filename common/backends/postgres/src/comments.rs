//! Comments: a change locks the row that the comments of its item have in common, loads what it names, decides in
//! memory, and stores what has changed by one statement.
//!
//! ```text
//!   BEGIN ─▶ lock talks, by id ─▶ comments and keys that are named ─▶ feedgate_common::around::CommentRows ─▶ store
//!         ─▶ what they tell users, if they tell any (see `write`) ─▶ COMMIT
//! ```
//!
//! - Comments on one item wait for each other, so their places are in the order of commits: a client that reads towards
//!   the newest misses none. Comments on different items do not wait. No row of the item itself is locked.
//! - A comment that races with the delete of its item counts as before the delete, and nobody sees it after. Its rows
//!   go with those of the reactions to the item, long after no such race can be under way any more.

use std::collections::{BTreeSet, HashMap, HashSet};

use compact_str::CompactString;
use feedgate_common::around::{
    COMMENTS_LOOKED_AT, Comment, CommentOrder, CommentPage, CommentPlace, CommentRow, CommentRows, CommentWrite,
    Commented, Onlooker, Talk, Uncommented, comment_id,
};
use feedgate_common::mentions::text_of;
use feedgate_common::notify::{Known, Notified, Rules};
use feedgate_common::{Body, ItemId, Millis, UserId, UserNo};
use sqlx::PgConnection;

use crate::fault::{corrupt, retried};
use crate::rows;
use crate::users::user_id;
use crate::write::{self, Settings};

const BEGIN_TALKS: &str = "
INSERT INTO talks (item) SELECT i.id FROM items i WHERE i.id = ANY($1) AND i.body IS NOT NULL ORDER BY i.id
ON CONFLICT DO NOTHING";

const LOCK_TALKS: &str = "
SELECT t.item, i.author, t.count, t.last_at, t.last_id
FROM talks t JOIN items i ON i.id = t.item AND i.body IS NOT NULL
WHERE t.item = ANY($1) ORDER BY t.item FOR UPDATE OF t";

/// The columns of a [`Row`].
macro_rules! columns {
    () => {
        "c.id, c.item, c.at, c.author, c.reply_to, c.replies, c.version, c.fingerprint, c.key, c.body, c.mentions"
    };
}

/// The comments of these ids, those that they answer, and further up as long as such a comment does not stand; and the
/// comments that these keys have made.
const LOOK: &str = concat!(
    "WITH RECURSIVE upwards AS (
    SELECT ",
    columns!(),
    ", true AS named FROM comments c WHERE c.id = ANY($1)
UNION
    SELECT ",
    columns!(),
    ", false FROM upwards u JOIN comments c ON c.id = u.reply_to WHERE u.named OR (u.body IS NULL AND u.replies = 0)
)
SELECT ",
    columns!(),
    " FROM upwards c
UNION ALL SELECT ",
    columns!(),
    " FROM unnest($2::bigint[], $3::integer[], $4::text[]) AS k(item, author, key)
JOIN comments c ON c.item = k.item AND c.author = k.author AND c.key = k.key"
);

const NUMBERS: &str = "SELECT nextval('comment_ids') FROM generate_series(1, $1)";

const STORE: &str = "
WITH made AS (
    INSERT INTO comments (id, item, at, author, reply_to, replies, version, fingerprint, key, body, mentions)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::integer[], $5::bigint[], $6::bigint[],
                         $7::integer[], $8::bytea[], $9::text[], $10::text[], $19::text[])
), changed AS (
    UPDATE comments c SET replies = n.replies, version = n.version, body = n.body, mentions = n.mentions
    FROM unnest($11::bigint[], $12::bigint[], $13::integer[], $14::text[], $20::text[])
        AS n(id, replies, version, body, mentions)
    WHERE c.id = n.id
)
UPDATE talks t SET count = n.count, last_at = n.last_at, last_id = n.last_id
FROM unnest($15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[]) AS n(item, count, last_at, last_id)
WHERE t.item = n.item";

/// Whether the viewer `$viewer` sees the comment `c` that stands, as [`feedgate_common::around::shows_comment`] says.
/// `e` is the viewer's edge to its author. 12 is the bits of a block by either side. If `$some`, the viewer sees only
/// the comments of mutual friends, and what is from or for the author of the item `$1`.
macro_rules! seen {
    ($viewer:literal, $some:literal) => {
        concat!(
            "CASE WHEN c.body IS NULL THEN c.replies > 0 ELSE c.author = ",
            $viewer,
            " OR (coalesce(e.shields, 0) & 12 = 0 AND (NOT ",
            $some,
            "::boolean OR (SELECT author FROM items WHERE id = $1) IN (c.author, ",
            $viewer,
            ") OR (coalesce(e.follows, false) AND EXISTS (
        SELECT FROM edges b WHERE b.reader = c.author AND b.author = ",
            $viewer,
            " AND (b.is_on OR b.held_back)
    )))) END"
        )
    };
}

/// The viewer's edge to the author of the comment `c`.
macro_rules! edge {
    ($viewer:literal) => {
        concat!(
            "LEFT JOIN LATERAL (
    SELECT shields, is_on OR held_back AS follows FROM edges WHERE reader = ",
            $viewer,
            " AND author = c.author OFFSET 0
) e ON true"
        )
    };
}

/// A page: the comments that stand and that the viewer sees, as [`feedgate_common::around::stands`] and `seen` say, and
/// the last row that may be looked at, if there are so many.
macro_rules! page {
    ($beyond:literal, $within:literal, $order:literal) => {
        concat!(
            "WITH edge AS MATERIALIZED (
    SELECT c.at, c.id FROM comments c WHERE c.item = $1 AND (c.at, c.id) ",
            $beyond,
            " ($3, $4) ORDER BY c.at ",
            $order,
            ", c.id ",
            $order,
            " OFFSET $6 - 1 LIMIT 1
)
(SELECT c.at, c.id, c.author, u.name, c.reply_to, c.version, c.body, c.mentions, false
FROM comments c JOIN users u ON u.no = c.author
",
            edge!("$2"),
            "
WHERE c.item = $1 AND (c.at, c.id) ",
            $beyond,
            " ($3, $4)
  AND (c.at, c.id) ",
            $within,
            " (coalesce((SELECT at FROM edge), $7), coalesce((SELECT id FROM edge), $7))
  AND EXISTS (SELECT FROM items i WHERE i.id = $1 AND i.body IS NOT NULL)
  AND ",
            seen!("$2", "$8"),
            "
ORDER BY c.at ",
            $order,
            ", c.id ",
            $order,
            " LIMIT $5)
UNION ALL
SELECT at, id, 0, '', NULL, 0, NULL, NULL, true FROM edge"
        )
    };
}

const NEWEST: &str = page!("<", ">=", "DESC");

const OLDEST: &str = page!(">", "<=", "ASC");

/// One comment that stands and that the viewer sees.
const ONE: &str = concat!(
    "SELECT c.at, c.id, c.author, u.name, c.reply_to, c.version, c.body, c.mentions, false
FROM comments c JOIN users u ON u.no = c.author JOIN items i ON i.id = c.item AND i.body IS NOT NULL
",
    edge!("$3"),
    "
WHERE c.id = $2 AND c.item = $1 AND ",
    seen!("$3", "$4")
);

/// Comments that stand, of these items and ids, each with its place among those asked.
const SEVERAL: &str = "
SELECT asked.n, c.at, c.id, c.author, u.name, c.reply_to, c.version, c.body, c.mentions
FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS asked(item, id, n)
JOIN comments c ON c.id = asked.id AND c.item = asked.item
JOIN users u ON u.no = c.author JOIN items i ON i.id = c.item AND i.body IS NOT NULL
WHERE c.body IS NOT NULL OR c.replies > 0";

const COMMENTED_ITEM: &str = "
SELECT t.item FROM talks t JOIN items i ON i.id = t.item AND i.body IS NOT NULL
WHERE t.item >= $1 AND t.last_at IS NOT NULL ORDER BY t.item LIMIT 1";

/// What is stored of a comment.
type Row = (i64, i64, i64, i32, Option<i64>, i64, i32, Vec<u8>, Option<String>, Option<String>, Option<String>);

/// What is stored of the comments of an item together: item, author of the item, count, last place.
type TalkRow = (i64, i32, i64, Option<i64>, Option<i64>);

/// A comment as it is shown, or the last row that was looked at.
type Line = (i64, i64, i32, String, Option<i64>, i32, Option<String>, Option<String>, bool);

/// A comment as it is shown, behind its place among those asked.
type NthLine = (i64, i64, i64, i32, String, Option<i64>, i32, Option<String>, Option<String>);

/// The outcome of a change.
type Outcome = std::result::Result<Commented, Uncommented>;

/// Makes changes in order, in one transaction, and answers each in its place.
pub(crate) async fn change(
    connection: &mut PgConnection,
    writes: &[CommentWrite],
    now: Millis,
) -> sqlx::Result<Vec<Outcome>> {
    Ok(change_and_notify(connection, writes, now, None).await?.answers)
}

/// What notifications of comments need: settings, rules, the names of the users who write comments, and the numbers of
/// the users whom comments mention.
pub(crate) type Telling<'a> = (Settings, &'a Rules, &'a HashMap<UserNo, UserId>, &'a HashMap<UserId, UserNo>);

/// Makes changes in order and tells users of them, in one transaction, and answers each in its place.
pub(crate) async fn change_and_notify(
    connection: &mut PgConnection,
    writes: &[CommentWrite],
    now: Millis,
    telling: Option<Telling<'_>>,
) -> sqlx::Result<Notified<Outcome>> {
    retried!(connection, attempt(connection, writes, now, telling))
}

async fn attempt(
    connection: &mut PgConnection,
    writes: &[CommentWrite],
    now: Millis,
    telling: Option<Telling<'_>>,
) -> sqlx::Result<Notified<Outcome>> {
    sqlx::query("BEGIN").execute(&mut *connection).await?;
    let mut all = CommentRows::default();
    lock(connection, writes, &mut all).await?;
    look(connection, writes, &mut all).await?;
    let known: HashSet<ItemId> = all.comments.keys().copied().collect();
    let mut ids = fresh(connection, writes, now).await?;
    let (mut answers, mut follows) = (Vec::with_capacity(writes.len()), vec![]);
    for write in writes {
        let fresh = if write.needs_id() { ids.next().unwrap_or(ItemId(0)) } else { ItemId(0) };
        let answer = all.apply(write, now, fresh);
        if let (Ok(done), Some((_, rules, names, numbers))) = (&answer, telling) {
            let (name, number) = (|no| names.get(&no).cloned(), |user: &UserId| numbers.get(user).copied());
            let known = Known { author_of: &|_| None, number: &number, name: &name };
            follows.extend(rules.of_comment(write, done, &all, known));
        }
        answers.push(answer);
    }
    if !all.changed.is_empty() {
        store(connection, &all, &known).await?;
    }
    let told = match telling {
        Some((settings, ..)) => write::follow(connection, follows, now, settings).await?.concat(),
        None => vec![],
    };
    sqlx::query("COMMIT").execute(connection).await?;
    Ok(Notified { answers, told })
}

/// Locks the row that the comments of each item have in common, in the order of the items' ids.
async fn lock(connection: &mut PgConnection, writes: &[CommentWrite], all: &mut CommentRows) -> sqlx::Result<()> {
    let items: BTreeSet<ItemId> = writes.iter().map(CommentWrite::item).collect();
    let asked: Vec<i64> = items.iter().copied().map(rows::item).collect();
    for again in [false, true] {
        let query = sqlx::query_as(LOCK_TALKS).bind(&asked);
        let read: Vec<TalkRow> = query.fetch_all(&mut *connection).await?;
        for (item, owner, count, last_at, last_id) in read {
            let last = last_at.zip(last_id).map(|(at, id)| CommentPlace { at, id: rows::item_of(id) });
            let talk = Talk { owner: rows::user_of(owner)?, count: rows::count_of(count)?, last };
            all.talks.insert(rows::item_of(item), talk);
        }
        if again || all.talks.len() == items.len() {
            break;
        }
        // If another transaction makes the same rows, this waits for it, and makes none.
        sqlx::query(BEGIN_TALKS).bind(&asked).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Loads the comments that are named.
async fn look(connection: &mut PgConnection, writes: &[CommentWrite], all: &mut CommentRows) -> sqlx::Result<()> {
    let ids: BTreeSet<ItemId> = writes.iter().flat_map(CommentWrite::comments).collect();
    let keys: BTreeSet<(ItemId, UserNo, CompactString)> = writes.iter().filter_map(CommentWrite::key).collect();
    let read: Vec<Row> = sqlx::query_as(LOOK)
        .bind(ids.into_iter().map(rows::item).collect::<Vec<_>>())
        .bind(keys.iter().map(|(item, ..)| rows::item(*item)).collect::<Vec<_>>())
        .bind(keys.iter().map(|(_, author, _)| rows::user(*author)).collect::<Vec<_>>())
        .bind(keys.iter().map(|(.., key)| key.as_str()).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    for (id, item, at, author, reply_to, replies, version, fingerprint, key, body, named) in read {
        let (id, item, author) = (rows::item_of(id), rows::item_of(item), rows::user_of(author)?);
        let key: Option<CompactString> = key.map(Into::into);
        if let Some(key) = &key {
            all.keys.insert((item, author, key.clone()), id);
        }
        let fingerprint = <[u8; 16]>::try_from(fingerprint).map_err(|_| corrupt("a fingerprint of another length"))?;
        let (reply_to, replies) = (reply_to.map(rows::item_of), rows::count_of(replies)?);
        let (version, body) = (version.cast_unsigned(), body.map(body_of).transpose()?);
        let mentions = rows::mentions_of(named.as_deref())?;
        let row = CommentRow { item, at, author, reply_to, replies, version, body, key, fingerprint, mentions };
        all.comments.insert(id, row);
    }
    Ok(())
}

/// An id for each change that needs one: by the clock, with a number that does not come again soon.
async fn fresh(
    connection: &mut PgConnection,
    writes: &[CommentWrite],
    now: Millis,
) -> sqlx::Result<impl Iterator<Item = ItemId> + use<>> {
    let many = writes.iter().filter(|write| write.needs_id()).count();
    let numbers: Vec<i64> = if many == 0 {
        vec![]
    } else {
        sqlx::query_scalar(NUMBERS).bind(rows::limit(many)).fetch_all(connection).await?
    };
    Ok(numbers.into_iter().map(move |number| comment_id(now, number.cast_unsigned())))
}

/// Stores what has changed. Only rows that are not `known` are new.
async fn store(connection: &mut PgConnection, all: &CommentRows, known: &HashSet<ItemId>) -> sqlx::Result<()> {
    let rows = all.changed.iter().map(|id| (*id, &all.comments[id]));
    let (changed, made): (Vec<_>, Vec<_>) = rows.partition(|(id, _)| known.contains(id));
    let talks: Vec<_> = all.talked.iter().map(|item| (*item, all.talks[item])).collect();
    fn column<'a, T, R>(rows: &'a [(ItemId, R)], of: impl Fn(ItemId, &'a R) -> T) -> Vec<T> {
        rows.iter().map(|(id, row)| of(*id, row)).collect()
    }
    sqlx::query(STORE)
        .bind(column(&made, |id, _| rows::item(id)))
        .bind(column(&made, |_, row| rows::item(row.item)))
        .bind(column(&made, |_, row| row.at))
        .bind(column(&made, |_, row| rows::user(row.author)))
        .bind(column(&made, |_, row| row.reply_to.map(rows::item)))
        .bind(column(&made, |_, row| rows::count(row.replies)))
        .bind(column(&made, |_, row| row.version.cast_signed()))
        .bind(column(&made, |_, row| row.fingerprint.to_vec()))
        .bind(column(&made, |_, row| row.key.as_deref()))
        .bind(column(&made, |_, row| row.body.as_ref().map(Body::get)))
        .bind(column(&changed, |id, _| rows::item(id)))
        .bind(column(&changed, |_, row| rows::count(row.replies)))
        .bind(column(&changed, |_, row| row.version.cast_signed()))
        .bind(column(&changed, |_, row| row.body.as_ref().map(Body::get)))
        .bind(column(&talks, |item, _| rows::item(item)))
        .bind(column(&talks, |_, talk| rows::count(talk.count)))
        .bind(column(&talks, |_, talk| talk.last.map(|last| last.at)))
        .bind(column(&talks, |_, talk| talk.last.map(|last| rows::item(last.id))))
        .bind(column(&made, |_, row| text_of(&row.mentions).map(String::from)))
        .bind(column(&changed, |_, row| text_of(&row.mentions).map(String::from)))
        .execute(connection)
        .await?;
    Ok(())
}

fn body_of(text: String) -> sqlx::Result<Body> {
    Body::stored(text).map_err(corrupt)
}

fn comment((at, id, author, name, reply_to, version, body, mentions, _): Line) -> sqlx::Result<Comment> {
    Ok(Comment {
        place: CommentPlace { at, id: rows::item_of(id) },
        author: user_id(&name)?,
        author_no: rows::user_of(author)?,
        reply_to: reply_to.map(rows::item_of),
        version: version.cast_unsigned(),
        body: body.map(body_of).transpose()?,
        mentions: rows::mentions_of(mentions.as_deref())?,
    })
}

/// A page of the comments of an item.
pub(crate) async fn page(
    connection: &mut PgConnection,
    item: ItemId,
    onlooker: Onlooker,
    order: CommentOrder,
    from: Option<CommentPlace>,
    limit: usize,
) -> sqlx::Result<CommentPage> {
    let (statement, start, end) = match order {
        CommentOrder::Newest => (NEWEST, i64::MAX, i64::MIN),
        CommentOrder::Oldest => (OLDEST, i64::MIN, i64::MAX),
    };
    let (at, id) = from.map_or((start, start), |from| (from.at, rows::item(from.id)));
    let read: Vec<Line> = sqlx::query_as(statement)
        .bind(rows::item(item))
        .bind(viewer_of(onlooker))
        .bind(at)
        .bind(id)
        .bind(rows::limit(limit + 1))
        .bind(rows::limit(COMMENTS_LOOKED_AT))
        .bind(end)
        .bind(onlooker.sees_some())
        .fetch_all(connection)
        .await?;
    let (ends, lines): (Vec<Line>, Vec<Line>) = read.into_iter().partition(|line| line.8);
    let more = lines.len() > limit;
    let comments = lines.into_iter().take(limit).map(comment).collect::<sqlx::Result<Vec<_>>>()?;
    let looked_at = ends.first().map(|(at, id, ..)| CommentPlace { at: *at, id: rows::item_of(*id) });
    let next = if more { comments.last().map(|comment| comment.place) } else { looked_at };
    Ok(CommentPage { comments, next })
}

/// One comment of an item.
pub(crate) async fn one(
    connection: &mut PgConnection,
    item: ItemId,
    id: ItemId,
    onlooker: Onlooker,
) -> sqlx::Result<Option<Comment>> {
    let query = sqlx::query_as(ONE).bind(rows::item(item)).bind(rows::item(id));
    let query = query.bind(viewer_of(onlooker)).bind(onlooker.sees_some());
    let read: Option<Line> = query.fetch_optional(connection).await?;
    read.map(comment).transpose()
}

/// The number of the user who looks; -1, which no user has, if there is no such user.
fn viewer_of(onlooker: Onlooker) -> i32 {
    onlooker.viewer.user().map_or(-1, rows::user)
}

/// Comments of these items and ids, each in its place.
pub(crate) async fn several(
    connection: &mut PgConnection,
    of: &[(ItemId, ItemId)],
) -> sqlx::Result<Vec<Option<Comment>>> {
    let read: Vec<NthLine> = sqlx::query_as(SEVERAL)
        .bind(of.iter().map(|(item, _)| rows::item(*item)).collect::<Vec<_>>())
        .bind(of.iter().map(|(_, id)| rows::item(*id)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    let mut found = vec![None; of.len()];
    for (nth, at, id, author, name, reply_to, version, body, mentions) in read {
        let place = usize::try_from(nth - 1).ok().and_then(|nth| found.get_mut(nth));
        let line = (at, id, author, name, reply_to, version, body, mentions, false);
        *place.ok_or_else(|| corrupt("a place that was not asked for"))? = Some(comment(line)?);
    }
    Ok(found)
}

/// The first living item after `after` that has had comments.
pub(crate) async fn commented_item(
    connection: &mut PgConnection,
    after: Option<ItemId>,
) -> sqlx::Result<Option<ItemId>> {
    let Some(first) = after.map_or(Some(0), |after| after.0.checked_add(1)) else { return Ok(None) };
    let query = sqlx::query_scalar(COMMENTED_ITEM).bind(rows::item(ItemId(first)));
    let found: Option<i64> = query.fetch_optional(connection).await?;
    Ok(found.map(rows::item_of))
}
