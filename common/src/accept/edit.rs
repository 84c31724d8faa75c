//! Edits and deletes of items. Each is a record that follows the item's `add`, by the same route and to the same feed.
//!
//! ```text
//!   body   ──▶ an update
//!   rank   ──▶ a delete at the old rank, and then an add at the new one, with the body as it is now
//!   delete ──▶ a delete
//! ```

use super::plan::{Change, Draft};
use super::publish::{VERSION_MAX, goes_aside};
use super::rows::{Door, ItemRow};
use super::{Decision, all};
use crate::archive::{Refused, Written};
use crate::mentions::Remention;
use crate::{Body, DisplayKey, ItemId, Op, Record, UserId};

/// What an edit makes of an item.
pub(super) struct Edit<'a> {
    pub(super) body: Option<&'a Body>,
    pub(super) rank: Option<i64>,
    /// The users whom the item mentions from now on. A list without a body changes nothing.
    pub(super) mentions: Option<&'a [UserId]>,
    /// Whether the old body is kept.
    pub(super) keeps: bool,
}

/// Decides what becomes of a [`Write::Edit`](crate::archive::Write::Edit).
pub(super) fn edit<'a>(
    draft: &mut Draft<'_, 'a>,
    id: ItemId,
    Edit { body, rank, mentions, keeps }: Edit<'a>,
    if_version: Option<u32>,
) -> Decision<Written> {
    let row = draft.rows.item(id)?.filter(|row| row.living).ok_or(Refused::NoSuchItem(id))?;
    same_version(id, row.version, if_version)?;
    let mentions = mentions.filter(|_| body.is_some());
    let changed = mentions.map(|now| Remention::between(&row.mentions, now)).unwrap_or_default();
    all(changed.added.iter().map(|user| draft.rows.number(user)))?;
    let edited = |version| {
        let (readers, mentions, told) = (row.door.readers().to_vec(), changed.clone(), vec![]);
        Written::Edited { author: row.author, version, readers, mentions, told }
    };
    let rank = rank.filter(|rank| *rank != row.rank);
    if body.is_none() && rank.is_none() {
        return Ok(edited(row.version));
    }
    let version = row.version.saturating_add(1).min(VERSION_MAX);
    draft.changes.extend(body.map(|body| Change::Edit { id, version, body, mentions, keeps }));
    match rank {
        Some(rank) => move_to(draft, (id, row), (rank, version), mentions)?,
        None => _ = draft.follow_up(id, row, Op::Update)?,
    }
    Ok(edited(version))
}

/// Moves an item to another rank: its add is deleted, and it gets a new one by the same route.
fn move_to<'r>(
    draft: &mut Draft<'r, '_>,
    (id, row): (ItemId, &'r ItemRow),
    (rank, version): (i64, u32),
    mentions: Option<&[UserId]>,
) -> Decision<()> {
    let (key, author, feed) = (DisplayKey { rank, item: id }, row.author, row.feed);
    // A reader who follows only because everyone does is not pushed to, and has no item from before.
    if matches!(row.door, Door::Outbox(_))
        && draft.rows.author(author)?.everyone_since.is_some_and(|since| row.seq <= since)
    {
        return Err(Refused::OlderThanEveryone(id).into());
    }
    let by = draft.follow_up(id, row, Op::Delete)?;
    let seq = by.map_or(0, |by| by + 1);
    let mentions = mentions.unwrap_or(&row.mentions).to_vec();
    draft.changes.push(Change::Move { id, item: ItemRow { rank, version, seq, mentions, ..row.clone() }, by });
    match &row.door {
        Door::Outbox(route) => {
            let aside = goes_aside(&draft.rows.author(author)?, key, draft.now);
            let record = Record { seq, op: Op::Add, route: *route, feed, key };
            draft.changes.push(Change::Append { author, record, aside });
            Ok(())
        }
        Door::Direct(readers) => draft.address(readers.clone(), Op::Add, (author, feed), key),
    }
}

/// Decides what becomes of a [`Write::Delete`](crate::archive::Write::Delete).
pub(super) fn delete(draft: &mut Draft<'_, '_>, id: ItemId, if_version: Option<u32>) -> Decision<Written> {
    let row = draft.rows.item(id)?.ok_or(Refused::NoSuchItem(id))?;
    if row.living {
        same_version(id, row.version, if_version)?;
        let by = draft.follow_up(id, row, Op::Delete)?;
        draft.end(id, row, by);
    }
    let (readers, repost_of) = (row.door.readers().to_vec(), row.repost_of.filter(|_| row.living));
    let mentions = row.mentions.clone();
    Ok(Written::Deleted { author: row.author, readers, fresh: row.living, repost_of, mentions, told: vec![] })
}

fn same_version(item: ItemId, version: u32, if_version: Option<u32>) -> Result<(), Refused> {
    match if_version {
        Some(wanted) if wanted != version => Err(Refused::VersionMismatch { item, version }),
        _ => Ok(()),
    }
}
