//! The bodies that items had before they were edited: a row for each of the newest bodies, written by the operation
//! that replaces the body and removed by the operation that deletes the item. An item that was never edited has no such
//! row.

use std::ops::RangeInclusive;

use feedgate_common::error::Result;
use feedgate_common::{BODIES_KEPT, Body, ItemId, Millis, Replaced, StoreError};

use super::tables::{VersionRow, Versions};
use crate::view::{Read, Tx};

fn all_of(item: ItemId) -> RangeInclusive<(ItemId, u32)> {
    (item, 0)..=(item, u32::MAX)
}

/// Keeps a body that is replaced at `at`. `version` is the version of the item until then. If too many bodies are kept,
/// the oldest is removed.
pub(super) fn keep(tx: &mut Tx<'_>, (item, version): (ItemId, u32), body: &str, at: Millis) -> Result<()> {
    // An item whose version is the greatest number keeps this version with further edits.
    if !tx.has::<Versions>(&(item, version))? {
        tx.put::<Versions>(&(item, version), &VersionRow { at, body: body.into() });
    }
    let kept: Vec<_> = tx.scan::<Versions>(all_of(item)).collect::<Result<_>>()?;
    let over = kept.len().saturating_sub(BODIES_KEPT);
    kept.iter().take(over).for_each(|(key, _)| tx.remove::<Versions>(key));
    Ok(())
}

/// Removes the bodies that a deleted item had.
pub(super) fn forget(tx: &mut Tx<'_>, item: ItemId) -> Result<()> {
    let kept: Vec<_> = tx.scan::<Versions>(all_of(item)).collect::<Result<_>>()?;
    kept.iter().for_each(|(key, _)| tx.remove::<Versions>(key));
    Ok(())
}

/// The bodies that an item had, the newest first.
pub(super) fn listed(from: &impl Read, item: ItemId) -> Result<Vec<Replaced>> {
    let rows = from.scan::<Versions>(all_of(item)).rev();
    let replaced = |((_, version), VersionRow { at, body }): ((ItemId, u32), VersionRow)| {
        let body = Body::stored(body.into()).map_err(StoreError::corrupt)?;
        Ok(Replaced { version, body, at })
    };
    rows.map(|row| row.and_then(replaced)).collect()
}
