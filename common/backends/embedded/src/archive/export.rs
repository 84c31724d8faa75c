//! The reads of an export: users, what is stored of their edges, and items addressed to readers by name.

use std::ops::Bound::{Excluded, Included, Unbounded};

use feedgate_common::accept;
use feedgate_common::archive::Held;
use feedgate_common::error::Result;
use feedgate_common::graph::Shields;
use feedgate_common::{ItemId, Op, OutboxSeq, Record, UserId, UserNo};

use super::tables::{
    Adds, AuthorFeed, EdgeRow, Edges, Everyones, FollowingList, Items, Life, NOBODY, Recipients, RequestList, Users,
};
use super::users::KnownUsers;
use crate::view::{Read, View};

pub(super) fn users(
    view: &View,
    known: &KnownUsers,
    after: Option<UserNo>,
    limit: usize,
) -> Result<Vec<(UserNo, UserId)>> {
    let from = after.map_or(Unbounded, Excluded);
    let rows = view.scan::<Users>((from, Unbounded)).take(limit);
    rows.map(|row| row.and_then(|(no, _)| Ok((no, known.learn_id(view, no)?)))).collect()
}

pub(super) fn held(view: &View, reader: UserNo, after: Option<UserNo>, limit: usize) -> Result<Vec<Held>> {
    let from = after.map_or(Included((reader, UserNo(0))), |after| Excluded((reader, after)));
    let mut found = vec![];
    for row in view.scan::<Edges>((from, Included((reader, UserNo(u32::MAX))))) {
        if found.len() >= limit {
            break;
        }
        let ((_, author), EdgeRow { held, listed, .. }) = row?;
        let (past, accept::EdgeRow { follows, asked, shields, generation, .. }) = (held.past(), held);
        if !follows && !asked && shields == Shields(0) && !view.has::<Everyones>(&author)? {
            continue;
        }
        let line = match asked {
            true => view.get::<RequestList>(&(author, listed))?,
            false => view.get::<FollowingList>(&(reader, listed))?,
        };
        found.push(Held {
            author,
            follows,
            asked,
            shields,
            generation,
            past,
            since: line.map_or(0, |line| line.since),
        });
    }
    Ok(found)
}

pub(super) fn direct_items(view: &View, after: Option<ItemId>, limit: usize) -> Result<Vec<(ItemId, Vec<UserNo>)>> {
    let mut found: Vec<(ItemId, Vec<UserNo>)> = vec![];
    let mut from = after.map_or(Unbounded, |after| Excluded((after, NOBODY)));
    while found.len() < limit {
        let Some(row) = view.scan::<Recipients>((from, Unbounded)).next() else { break };
        let ((id, _), _) = row?;
        let all = view.scan::<Recipients>((id, UserNo(0))..(id, NOBODY));
        if view.get::<Items>(&id)?.is_some_and(|row| row.life != Life::Gone) {
            found.push((id, all.map(|row| row.map(|((_, reader), _)| reader)).collect::<Result<_>>()?));
        }
        from = Excluded((id, NOBODY));
    }
    Ok(found)
}

pub(super) fn moves(view: &View, author: UserNo, records: &[Record]) -> Result<Vec<Option<OutboxSeq>>> {
    records.iter().map(|record| moved(view, author, record)).collect()
}

/// If the item of this record moved to another rank: the record that ended this add, or this delete itself; else
/// `None`.
fn moved(view: &View, author: UserNo, record: &Record) -> Result<Option<OutboxSeq>> {
    let Some(item) = view.get::<Items>(&record.key.item)? else { return Ok(None) };
    let ended = |at| -> Result<_> { Ok(view.get::<Adds>(&at)?.and_then(|add| add.deleted_by)) };
    match record.op {
        Op::Add if item.seq != record.seq => ended((AuthorFeed { feed: record.feed, author }, record.seq)),
        Op::Delete => Ok((ended(item.add())? != Some(record.seq)).then_some(record.seq)),
        Op::Add | Op::Update | Op::Forget => Ok(None),
    }
}
