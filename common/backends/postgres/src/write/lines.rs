//! The rows of lines of notifications: what decisions load of them, and what becomes of them. They change under the
//! lock of their reader's row in `readers`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use compact_str::CompactString;
use feedgate_common::accept::Rows;
use feedgate_common::notify::lines::{ACTORS, Line, LineRow, Member};
use feedgate_common::{Body, ItemId, UserNo};
use sqlx::PgConnection;

use crate::fault::corrupt;
use crate::rows;

/// Finds the readers of the lines in which these deeds are members. The reader of a line never changes.
const READERS: &str = "
SELECT l.reader FROM line_members m JOIN lines l ON l.id = m.line WHERE m.key = ANY($1)";

const MEMBERS: &str = "SELECT key, line FROM line_members WHERE key = ANY($1)";

const GROUPS: &str = "
SELECT l.reader, l.grp, l.id
FROM unnest($1::integer[], $2::text[]) AS asked(reader, grp)
JOIN lines l ON l.reader = asked.reader AND l.grp = asked.grp AND l.newest";

const LINES: &str = "
SELECT l.id, l.reader, l.grp, l.kind, l.item, l.count, l.next, m.seq, m.key, m.actor, m.told
FROM lines l
LEFT JOIN LATERAL (SELECT * FROM line_members m WHERE m.line = l.id ORDER BY m.seq DESC LIMIT $2) AS m ON true
WHERE l.id = ANY($1)
ORDER BY l.id, m.seq DESC";

const AFTER: &str = "
SELECT l.id, l.reader, l.grp, l.kind, l.item, l.count, l.next, m.seq, m.key, m.actor, m.told
FROM line_members m JOIN lines l ON l.id = m.line
WHERE (m.line, m.seq) > ($1, $2)
ORDER BY m.line, m.seq LIMIT $3";

/// Removes members and lines. [`JOIN`] is a second statement, since members that leave may have the places and keys of
/// those that join.
const LEAVE: &str = "
WITH ended AS (DELETE FROM lines WHERE id = ANY($2)),
older AS (
    UPDATE lines l SET newest = false
    FROM unnest($3::integer[], $4::text[]) AS n(reader, grp)
    WHERE l.reader = n.reader AND l.grp = n.grp AND l.newest AND l.id <> ALL($2)
)
DELETE FROM line_members WHERE key = ANY($1)";

const JOIN: &str = "
WITH changed AS (
    INSERT INTO lines (id, reader, grp, kind, item, count, next, newest)
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
                         $13::boolean[])
    ON CONFLICT (id) DO UPDATE SET item = excluded.item, count = excluded.count, next = excluded.next
)
INSERT INTO line_members (line, seq, key, actor, told)
SELECT * FROM unnest($8::bigint[], $9::bigint[], $10::text[], $11::integer[], $12::text[])";

/// Says of the lines of which these deleted items told that they are over, so that the sweep removes them. A line is
/// noted by its first item. It may be noted already, by the delete of that item, which another one had replaced: then
/// the time must be the later one.
const END: &str = "
INSERT INTO reaction_ends (item, at)
SELECT DISTINCT l.id, (extract(epoch FROM now()) * 1000)::bigint
FROM items i JOIN line_members m ON m.key = i.foreign_id JOIN lines l ON l.id = m.line AND l.item = i.id
WHERE i.id = ANY($1)
ORDER BY 1
ON CONFLICT (item) DO UPDATE SET at = excluded.at";

/// A line, and one of its members if it has any.
type Row = (i64, i32, String, String, i64, i64, i64, Option<i64>, Option<String>, Option<i32>, Option<String>);

fn line_of(row: &Row) -> sqlx::Result<(ItemId, Line)> {
    let (id, reader, group, kind, item, count, next, ..) = row;
    let line = Line {
        reader: rows::user_of(*reader)?,
        group: group.as_str().into(),
        kind: kind.as_str().into(),
        item: rows::item_of(*item),
        count: rows::count_of(*count)?,
        next: rows::count_of(*next)?,
    };
    Ok((rows::item_of(*id), line))
}

fn member_of(row: Row) -> sqlx::Result<Option<Member>> {
    let (.., Some(seq), Some(key), Some(actor), Some(told)) = row else { return Ok(None) };
    let told =
        Body::stored(told).map_err(|why| corrupt(format_args!("what the member {key:?} of a line tells: {why}")))?;
    Ok(Some(Member { seq: rows::count_of(seq)?, key: key.into(), actor: rows::user_of(actor)?, told }))
}

/// The readers of the lines in which these deeds are members.
pub(super) async fn readers(
    connection: &mut PgConnection,
    keys: impl Iterator<Item = &CompactString>,
) -> sqlx::Result<Vec<UserNo>> {
    let keys: Vec<&str> = keys.map(CompactString::as_str).collect();
    if keys.is_empty() {
        return Ok(vec![]);
    }
    let read: Vec<i32> = sqlx::query_scalar(READERS).bind(keys).fetch_all(connection).await?;
    read.into_iter().map(rows::user_of).collect()
}

/// Loads the lines in which these deeds are members and those of these groups, with so many of their newest members.
pub(super) async fn load(
    connection: &mut PgConnection,
    loaded: &mut Rows,
    keys: &BTreeSet<CompactString>,
    groups: &BTreeSet<(UserNo, CompactString)>,
    named: &BTreeSet<ItemId>,
) -> sqlx::Result<()> {
    loaded.members.extend(keys.iter().map(|key| (key.clone(), None)));
    loaded.groups.extend(groups.iter().map(|group| (group.clone(), None)));
    loaded.lines.extend(named.iter().map(|id| (*id, None)));
    let asked: Vec<&str> = keys.iter().map(CompactString::as_str).collect();
    let read: Vec<(String, i64)> = sqlx::query_as(MEMBERS).bind(asked).fetch_all(&mut *connection).await?;
    loaded.members.extend(read.into_iter().map(|(key, line)| (key.into(), Some(rows::item_of(line)))));
    if !groups.is_empty() {
        let (readers, asked): (Vec<i32>, Vec<&str>) =
            groups.iter().map(|(reader, group)| (rows::user(*reader), group.as_str())).unzip();
        let query = sqlx::query_as(GROUPS).bind(readers).bind(asked);
        let read: Vec<(i32, String, i64)> = query.fetch_all(&mut *connection).await?;
        for (reader, group, line) in read {
            loaded.groups.insert((rows::user_of(reader)?, group.into()), Some(rows::item_of(line)));
        }
    }
    let lines = loaded.members.values().chain(loaded.groups.values()).flatten().chain(named).copied();
    let lines: BTreeSet<i64> = lines.map(rows::item).collect();
    if lines.is_empty() {
        return Ok(());
    }
    let lines: Vec<i64> = lines.into_iter().collect();
    let newest = ACTORS + keys.len();
    let read: Vec<Row> = sqlx::query_as(LINES).bind(lines).bind(rows::limit(newest)).fetch_all(connection).await?;
    for row in read {
        let (id, line) = line_of(&row)?;
        let stored = loaded.lines.entry(id).or_default().get_or_insert_with(|| LineRow { line, newest: vec![] });
        stored.newest.extend(member_of(row)?);
    }
    loaded.lines.values_mut().flatten().for_each(|row| row.correct_count(newest));
    Ok(())
}

/// Says that these direct items were deleted. The lines of which they told are over.
pub(super) async fn end(connection: &mut PgConnection, items: &BTreeSet<ItemId>) -> sqlx::Result<()> {
    if items.is_empty() {
        return Ok(());
    }
    let items: Vec<i64> = items.iter().copied().map(rows::item).collect();
    sqlx::query(END).bind(items).execute(connection).await.map(drop)
}

/// The items of loaded lines, and the keys of their members, one of which an item may get as its foreign id.
pub(super) struct Told {
    pub(super) items: Vec<ItemId>,
    pub(super) keys: Vec<CompactString>,
}

/// The items and keys of all lines that are loaded.
pub(super) fn told(rows: &Rows) -> Told {
    let lines = || rows.lines.values().flatten();
    let keys = lines().flat_map(|row| &row.newest).map(|member| member.key.clone()).collect();
    Told { items: lines().map(|row| row.line.item).collect(), keys }
}

/// The edges from the readers of loaded lines to the actors of the loaded members.
pub(super) fn edges(rows: &Rows) -> BTreeSet<(UserNo, UserNo)> {
    let of_row = |row: &LineRow| row.newest.iter().map(|member| (row.line.reader, member.actor)).collect::<Vec<_>>();
    rows.lines.values().flatten().flat_map(of_row).collect()
}

/// The lines that a call changes, as they are then, and how their members change.
#[derive(Debug, Default)]
pub(super) struct Changed<'a> {
    lines: BTreeMap<ItemId, Line>,
    begun: Vec<ItemId>,
    joined: Vec<(ItemId, Member)>,
    left: Vec<&'a str>,
}

impl<'a> Changed<'a> {
    /// Keeps a change of a line.
    pub(super) fn note(&mut self, id: ItemId, line: &Line, begins: bool, joined: &[Member], left: &'a [CompactString]) {
        self.lines.insert(id, line.clone());
        if begins {
            self.begun.push(id);
        }
        self.joined.extend(joined.iter().map(|member| (id, member.clone())));
        self.left.extend(left.iter().map(CompactString::as_str));
    }

    /// Stores all changes. Each line changes once in a call, but for imports, by which members only join.
    pub(super) async fn store(&self, connection: &mut PgConnection) -> sqlx::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let away: Vec<&str> =
            self.left.iter().copied().chain(self.joined.iter().map(|(_, member)| member.key.as_str())).collect();
        let (ended, stay): (Vec<_>, Vec<_>) = self.lines.iter().partition(|(_, line)| line.count == 0);
        let ended: Vec<i64> = ended.iter().map(|(id, _)| rows::item(**id)).collect();
        let begun: Vec<&Line> = self.begun.iter().map(|id| &self.lines[id]).collect();
        let group = |line: &Line| (line.reader, line.group.clone());
        let newest: HashMap<_, ItemId> = self.begun.iter().map(|id| (group(&self.lines[id]), *id)).collect();
        sqlx::query(LEAVE)
            .bind(away)
            .bind(ended)
            .bind(begun.iter().map(|line| rows::user(line.reader)).collect::<Vec<_>>())
            .bind(begun.iter().map(|line| line.group.as_str()).collect::<Vec<_>>())
            .execute(&mut *connection)
            .await?;
        let joined = &self.joined;
        sqlx::query(JOIN)
            .bind(stay.iter().map(|(id, _)| rows::item(**id)).collect::<Vec<_>>())
            .bind(stay.iter().map(|(_, line)| rows::user(line.reader)).collect::<Vec<_>>())
            .bind(stay.iter().map(|(_, line)| line.group.as_str()).collect::<Vec<_>>())
            .bind(stay.iter().map(|(_, line)| line.kind.as_str()).collect::<Vec<_>>())
            .bind(stay.iter().map(|(_, line)| rows::item(line.item)).collect::<Vec<_>>())
            .bind(stay.iter().map(|(_, line)| rows::count(line.count)).collect::<Vec<_>>())
            .bind(stay.iter().map(|(_, line)| rows::count(line.next)).collect::<Vec<_>>())
            .bind(joined.iter().map(|(id, _)| rows::item(*id)).collect::<Vec<_>>())
            .bind(joined.iter().map(|(_, member)| rows::count(member.seq)).collect::<Vec<_>>())
            .bind(joined.iter().map(|(_, member)| member.key.as_str()).collect::<Vec<_>>())
            .bind(joined.iter().map(|(_, member)| rows::user(member.actor)).collect::<Vec<_>>())
            .bind(joined.iter().map(|(_, member)| member.told.get()).collect::<Vec<_>>())
            .bind(stay.iter().map(|(id, line)| newest.get(&group(line)) == Some(*id)).collect::<Vec<_>>())
            .execute(connection)
            .await
            .map(drop)
    }
}

/// The next members after the place `after`, with their lines.
pub(crate) async fn members(
    connection: &mut PgConnection,
    after: Option<(ItemId, u64)>,
    limit: usize,
) -> sqlx::Result<Vec<(ItemId, Line, Member)>> {
    let (line, seq) = after.map_or((i64::MIN, 0), |(line, seq)| (rows::item(line), rows::count(seq)));
    let query = sqlx::query_as(AFTER).bind(line).bind(seq).bind(rows::limit(limit));
    let read: Vec<Row> = query.fetch_all(connection).await?;
    let mut found = vec![];
    for row in read {
        let (id, line) = line_of(&row)?;
        found.extend(member_of(row)?.map(|member| (id, line, member)));
    }
    Ok(found)
}
