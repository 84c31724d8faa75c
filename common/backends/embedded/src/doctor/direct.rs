//! The checks of what is addressed to readers: rankings, and lines of notifications.

use feedgate_common::doctor::Check;
use feedgate_common::error::Result;
use feedgate_common::{DisplayKey, Op};

use crate::archive::tables::{
    DirectHeads, DirectShown, Directs, Items, LineGroups, Lines, LinesOf, MemberKeys, Members, RankedIn, RankingDue,
    lives,
};
use crate::view::{Read, View};

/// Checks the records that are addressed to readers, and that none is behind the last number given.
pub(super) fn records(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<Directs>(..) {
        let ((reader, seq), record) = row?;
        check.look();
        let head = view.get::<DirectHeads>(&reader)?.unwrap_or_default().head;
        let of = || format!("record {seq} addressed to reader {}", reader.0);
        check.expect(seq <= head, || format!("{} stands behind the last one, which is {head}", of()));
        let item = record.key.item;
        check.expect(view.has::<Items>(&item)?, || format!("{} is of item {item}, which is not there", of()));
    }
    for row in view.scan::<DirectShown>(..) {
        let ((to, key), _) = row?;
        check.look();
        // A deleted item is removed from rankings in steps.
        let shown = lives(view, key.item)? || view.has::<RankingDue>(&key.item)?;
        check.expect(shown, || format!("item {} is shown to reader {}, and does not live", key.item, to.reader.0));
    }
    Ok(())
}

pub(super) fn rankings(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<RankedIn>(..) {
        let ((item, to), ranked) = row?;
        check.look();
        let key = DisplayKey { rank: ranked.rank, item };
        let add = view.get::<Directs>(&(to.reader, ranked.seq))?;
        let added = add.is_some_and(|add| (add.op, add.key, add.feed) == (Op::Add, key, to.feed));
        let of = || format!("item {item} stands in a ranking of reader {}", to.reader.0);
        check.expect(added, || format!("{}, and record {} does not add it", of(), ranked.seq));
        check.expect(view.has::<DirectShown>(&(to, key))?, || format!("{}, and is not shown there", of()));
    }
    Ok(())
}

/// Checks lines and their members. If the item of a line was deleted by itself, its count may differ from its members.
pub(super) fn lines(view: &View, check: &mut Check) -> Result<()> {
    for row in view.scan::<Lines>(..) {
        let (id, line) = row?;
        check.look();
        let mut members = 0;
        for row in view.scan::<Members>((id, 0)..=(id, u64::MAX)) {
            let ((_, place), member) = row?;
            members += 1;
            let found = view.get::<MemberKeys>(&member.key.0)? == Some((id, place));
            check.expect(found, || format!("member {place} of line {id} is not found by its key"));
        }
        check.expect(members == line.count || !lives(view, line.item)?, || {
            format!("line {id} has {members} members, and {} are counted", line.count)
        });
        check.expect(view.has::<LinesOf>(&(line.reader, id))?, || {
            format!("line {id} is not among those of reader {}", line.reader.0)
        });
    }
    for row in view.scan::<LineGroups>(..) {
        let ((reader, group), id) = row?;
        check.look();
        let same = view.get::<Lines>(&id)?.is_some_and(|line| (line.reader, &line.group) == (reader, &group));
        check.expect(same, || format!("the newest line of reader {} and group {group} is {id}, and is not", reader.0));
    }
    Ok(())
}
