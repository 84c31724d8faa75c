//! Edits and deletes of items. Each is a record that follows the item's `add`, by the same route and to the same feed.

use super::Decision;
use super::plan::{Change, Draft};
use super::publish::VERSION_MAX;
use crate::archive::{Refused, Written};
use crate::{Body, ItemId, Op};

/// Decides what becomes of a [`Write::Edit`](crate::archive::Write::Edit).
pub(super) fn edit<'a>(
    draft: &mut Draft<'_, 'a>,
    id: ItemId,
    body: &'a Body,
    if_version: Option<u32>,
) -> Decision<Written> {
    let row = draft.rows.item(id)?.filter(|row| row.living).ok_or(Refused::NoSuchItem(id))?;
    same_version(id, row.version, if_version)?;
    let version = row.version.saturating_add(1).min(VERSION_MAX);
    draft.changes.push(Change::Edit { id, version, body });
    draft.follow_up(id, row, Op::Update)?;
    Ok(Written::Edited { author: row.author, version, readers: row.door.readers().to_vec() })
}

/// Decides what becomes of a [`Write::Delete`](crate::archive::Write::Delete).
pub(super) fn delete(draft: &mut Draft<'_, '_>, id: ItemId, if_version: Option<u32>) -> Decision<Written> {
    let row = draft.rows.item(id)?.ok_or(Refused::NoSuchItem(id))?;
    if row.living {
        same_version(id, row.version, if_version)?;
        let by = draft.follow_up(id, row, Op::Delete)?;
        draft.changes.push(Change::End { id, by });
    }
    Ok(Written::Deleted { author: row.author, readers: row.door.readers().to_vec(), fresh: row.living, told: vec![] })
}

fn same_version(item: ItemId, version: u32, if_version: Option<u32>) -> Result<(), Refused> {
    match if_version {
        Some(wanted) if wanted != version => Err(Refused::VersionMismatch { item, version }),
        _ => Ok(()),
    }
}
