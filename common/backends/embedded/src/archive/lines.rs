//! The rows of lines of notifications: loads them for decisions, and stores how they change.
//!
//! Invariants: each member has a row by its place and one by its key; a line has as many members as it counts, unless
//! its item was deleted otherwise.

use std::ops::Bound::{Excluded, Unbounded};

use compact_str::CompactString;
use feedgate_common::error::Result;
use feedgate_common::notify::lines::{Line, LineRow, Member};
use feedgate_common::{Body, ItemId, StoreError, UserNo};

use super::tables::{self, LineGroups, Lines, LinesOf, MemberKeys, MemberRow, Members};
use crate::codec::Short;
use crate::view::{Read, Tx};

/// The line of which the deed with this key is a member.
pub(super) fn of_member(from: &impl Read, key: &CompactString) -> Result<Option<ItemId>> {
    Ok(from.get::<MemberKeys>(key)?.map(|(line, _)| line))
}

/// The newest line of a reader and a group.
pub(super) fn of_group(from: &impl Read, group: &(UserNo, CompactString)) -> Result<Option<ItemId>> {
    from.get::<LineGroups>(group)
}

/// A line with its `newest` newest members; `None` if there is no such line.
pub(super) fn line(from: &impl Read, id: ItemId, newest: usize) -> Result<Option<LineRow>> {
    let Some(row) = from.get::<Lines>(&id)? else { return Ok(None) };
    let rows = from.scan::<Members>((id, 0)..=(id, u64::MAX)).rev().take(newest);
    let newest = rows.map(|row| row.and_then(member)).collect::<Result<_>>()?;
    Ok(Some(LineRow { line: self::row(row), newest }))
}

fn row(row: tables::LineRow) -> Line {
    let tables::LineRow { reader, item, count, next, kind: Short(kind), group } = row;
    Line { reader, group, kind, item, count, next }
}

fn member(((_, seq), row): ((ItemId, u64), MemberRow)) -> Result<Member> {
    let MemberRow { actor, key: Short(key), told } = row;
    let damaged = |why| StoreError::corrupt(format_args!("what the member {key:?} of a line tells: {why}"));
    let told = Body::stored(told.into()).map_err(damaged)?;
    Ok(Member { seq, key, actor, told })
}

/// Stores a change of a line.
pub(super) fn store(
    tx: &mut Tx<'_>,
    id: ItemId,
    line: &Line,
    begins: bool,
    (joined, left): (&[Member], &[CompactString]),
) -> Result<()> {
    for key in left.iter().chain(joined.iter().map(|member| &member.key)) {
        if let Some(place) = tx.get::<MemberKeys>(key)? {
            tx.remove::<Members>(&place);
            tx.remove::<MemberKeys>(key);
        }
    }
    for Member { seq, key, actor, told } in joined {
        let row = MemberRow { actor: *actor, key: Short(key.clone()), told: told.get().into() };
        tx.put::<Members>(&(id, *seq), &row);
        tx.put::<MemberKeys>(key, &(id, *seq));
    }
    let Line { reader, group, kind, item, count, next } = line.clone();
    if count == 0 {
        return remove(tx, id, (reader, group));
    }
    if begins {
        tx.put::<LineGroups>(&(reader, group.clone()), &id);
    }
    tx.put::<LinesOf>(&(reader, id), &());
    tx.put::<Lines>(&id, &tables::LineRow { reader, item, count, next, kind: Short(kind), group });
    Ok(())
}

fn remove(tx: &mut Tx<'_>, id: ItemId, group: (UserNo, CompactString)) -> Result<()> {
    tx.remove::<Lines>(&id);
    tx.remove::<LinesOf>(&(group.0, id));
    if tx.get::<LineGroups>(&group)? == Some(id) {
        tx.remove::<LineGroups>(&group);
    }
    Ok(())
}

/// Removes lines of a reader, with at most `limit` members. Answers whether there may be more.
pub(super) fn forget(tx: &mut Tx<'_>, reader: UserNo, limit: usize) -> Result<bool> {
    let lines: Vec<_> =
        tx.scan::<LinesOf>((reader, ItemId(0))..=(reader, ItemId(u64::MAX))).take(limit).collect::<Result<_>>()?;
    let mut room = limit;
    for ((_, id), ()) in &lines {
        let rows: Vec<_> = tx.scan::<Members>((*id, 0)..=(*id, u64::MAX)).take(room).collect::<Result<_>>()?;
        for (place, row) in &rows {
            tx.remove::<Members>(place);
            tx.remove::<MemberKeys>(&row.key.0);
        }
        room -= rows.len();
        if room == 0 {
            return Ok(true);
        }
        if let Some(row) = tx.get::<Lines>(id)? {
            remove(tx, *id, (reader, row.group))?;
        }
    }
    Ok(lines.len() == limit)
}

/// Members, each with its line, behind the place `after`, at most `limit`.
pub(super) fn members(
    from: &impl Read,
    after: Option<(ItemId, u64)>,
    limit: usize,
) -> Result<Vec<(ItemId, Line, Member)>> {
    let mut found = vec![];
    for row in from.scan::<Members>((after.map_or(Unbounded, Excluded), Unbounded)).take(limit) {
        let row = row?;
        let (id, _) = row.0;
        let line = from.get::<Lines>(&id)?;
        let line = line.ok_or_else(|| StoreError::corrupt(format_args!("line {id} has members but no row")))?;
        found.push((id, self::row(line), member(row)?));
    }
    Ok(found)
}
