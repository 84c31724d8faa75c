//! The rows of lines of notifications: loads them for decisions, and stores how they change.
//!
//! Invariants: each member has a row by its place and one by its key; a line has as many members as it counts, unless
//! its item was deleted by itself. Then later writes remove the line.

use std::ops::Bound::{Excluded, Unbounded};

use compact_str::CompactString;
use feedgate_common::error::Result;
use feedgate_common::notify::lines::{Line, LineRow, Member};
use feedgate_common::{Body, ItemId, StoreError, UserNo};

use super::tables::{self, LineGroups, Lines, LinesOf, MemberKeys, MemberRow, Members, ReactionEnds, lives};
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
    let members = rows.map(|row| row.and_then(member)).collect::<Result<_>>()?;
    let mut line = LineRow { line: self::row(row), newest: members };
    line.correct_count(newest);
    Ok(Some(line))
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
        room = take_apart(tx, *id, room)?;
        if room == 0 {
            return Ok(true);
        }
    }
    Ok(lines.len() == limit)
}

/// Removes at most `room` members of a line, and the line with the last of them. Answers the room that is left; if none
/// is left, there may be more to remove.
fn take_apart(tx: &mut Tx<'_>, id: ItemId, room: usize) -> Result<usize> {
    let rows: Vec<_> = tx.scan::<Members>((id, 0)..=(id, u64::MAX)).take(room).collect::<Result<_>>()?;
    for (place, row) in &rows {
        tx.remove::<Members>(place);
        tx.remove::<MemberKeys>(&row.key.0);
    }
    let left = room - rows.len();
    if left > 0
        && let Some(row) = tx.get::<Lines>(&id)?
    {
        remove(tx, id, (row.reader, row.group))?;
    }
    Ok(left)
}

/// Says that a notification with this key was deleted. If it was the item of a line, the line is over, and later writes
/// remove its rows.
pub(super) fn end(tx: &mut Tx<'_>, item: ItemId, key: &CompactString) -> Result<()> {
    if let Some((line, _)) = tx.get::<MemberKeys>(key)?
        && tx.get::<Lines>(&line)?.is_some_and(|row| row.item == item)
    {
        tx.put::<ReactionEnds>(&line, &());
    }
    Ok(())
}

/// Removes some members of the line that began with this item, if the line is over, and the line with the last of them.
/// Answers whether there may be more.
pub(super) fn sweep(tx: &mut Tx<'_>, first: ItemId, limit: usize) -> Result<bool> {
    let Some(row) = tx.get::<Lines>(&first)? else { return Ok(false) };
    // The line lives on if another item has replaced its first one.
    Ok(!lives(tx, row.item)? && take_apart(tx, first, limit)? == 0)
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

#[cfg(test)]
mod tests {
    use feedgate_common::archive::{Audience, Notifications, Publish, Write, Writes};
    use feedgate_common::import::{Import, PastMember};
    use feedgate_common::notify::KEY_PREFIX;

    use super::*;
    use crate::archive::EmbeddedArchive;
    use crate::archive::fixture::open;
    use crate::archive::reactions::SWEEP_MAX as SOME;

    fn key(nth: usize) -> CompactString {
        compact_str::format_compact!("{KEY_PREFIX}{nth}")
    }

    /// A line of ann with so many members, whose first item is the item 7.
    async fn imported(archive: &EmbeddedArchive, members: usize) {
        let told = || Body::stored(r#"{"actor":"bob"}"#.into()).unwrap();
        let publish = Publish::new("bob".parse().unwrap(), told());
        let (foreign_id, audience) = (Some(key(members)), Audience::Users(vec!["ann".parse().unwrap()]));
        let publish = Publish { id: Some(ItemId(7)), foreign_id, audience, ..publish };
        let member = |nth| PastMember {
            line: ItemId(7),
            item: ItemId(7),
            reader: "ann".parse().unwrap(),
            group: "g".into(),
            kind: "like".into(),
            actor: "bob".parse().unwrap(),
            seq: nth as u64,
            key: key(nth),
            told: told(),
        };
        let members = (1..=members).map(|nth| Import::Member(Box::new(member(nth))));
        let lines = [Import::Item { publish, version: 1, deleted: false }].into_iter().chain(members);
        for written in archive.write(lines.map(Write::Import).collect(), 1).await.unwrap() {
            assert!(written.unwrap().is_fresh());
        }
    }

    fn left(archive: &EmbeddedArchive) -> [usize; 6] {
        let view = archive.db.view().unwrap();
        let lines = [view.scan::<Lines>(..).count(), view.scan::<LinesOf>(..).count()];
        let members = [view.scan::<Members>(..).count(), view.scan::<MemberKeys>(..).count()];
        let ends = view.scan::<ReactionEnds>(..).count();
        [lines[0], lines[1], view.scan::<LineGroups>(..).count(), members[0], members[1], ends]
    }

    #[tokio::test]
    async fn s6_the_rows_of_a_line_whose_item_was_deleted_are_removed_some_with_each_write() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        imported(&archive, SOME + 2).await;
        archive.write(vec![Write::Delete { item: ItemId(7), if_version: None }], 2).await.unwrap();
        assert_eq!(left(&archive), [1, 1, 1, SOME + 2, SOME + 2, 1]);
        let follow = || Write::Follow { reader: "cid".parse().unwrap(), author: "ann".parse().unwrap() };
        archive.write(vec![follow()], 3).await.unwrap();
        assert_eq!(left(&archive), [1, 1, 1, 2, 2, 1], "so many with a write");
        assert_eq!(archive.leave_lines(vec![key(SOME + 2)], 3).await.unwrap(), [], "nobody sees it");
        assert_eq!(left(&archive), [1, 1, 1, 1, 1, 1], "a line that lacks members is changed as any other");
        archive.write(vec![follow()], 3).await.unwrap();
        assert_eq!(left(&archive), [0; 6]);
    }

    #[tokio::test]
    async fn s6_a_line_of_which_another_item_tells_is_not_over() {
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path()).await;
        imported(&archive, 2).await;
        assert_eq!(archive.leave_lines(vec![key(2)], 2).await.unwrap().len(), 1, "another item tells of the other");
        for now in [3, 4] {
            let follow = Write::Follow { reader: "cid".parse().unwrap(), author: "ann".parse().unwrap() };
            archive.write(vec![follow], now).await.unwrap();
        }
        assert_eq!(left(&archive), [1, 1, 1, 1, 1, 0]);
        assert_eq!(archive.leave_lines(vec![key(1)], 5).await.unwrap().len(), 1);
        assert_eq!(left(&archive), [0; 6]);
    }
}
