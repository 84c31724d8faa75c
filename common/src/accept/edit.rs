//! New versions of an item, and its end. Both are records behind its `add`, by the same door.

use super::Decision;
use super::plan::{Change, Draft};
use super::publish::VERSION_MAX;
use crate::archive::{Refused, Written};
use crate::{Body, ItemId, Op};

/// See [`crate::archive::Write::Edit`].
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

/// See [`crate::archive::Write::Delete`].
pub(super) fn delete(draft: &mut Draft<'_, '_>, id: ItemId, if_version: Option<u32>) -> Decision<Written> {
    let row = draft.rows.item(id)?.ok_or(Refused::NoSuchItem(id))?;
    if row.living {
        same_version(id, row.version, if_version)?;
        let by = draft.follow_up(id, row, Op::Delete)?;
        draft.changes.push(Change::End { id, by });
    }
    Ok(Written::Deleted { author: row.author, readers: row.door.readers().to_vec(), fresh: row.living })
}

fn same_version(item: ItemId, version: u32, if_version: Option<u32>) -> Result<(), Refused> {
    match if_version {
        Some(wanted) if wanted != version => Err(Refused::VersionMismatch { item, version }),
        _ => Ok(()),
    }
}
