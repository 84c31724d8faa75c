//! Notifications: direct items that follow from another change. [`crate::notify`] says from which.
//!
//! ```text
//!   Notify    a shield is up, or an item with this key lives ──▶ Untold     else: item, direct record, event
//!   Withdraw  no item with this key lives, or it was seen    ──▶ Untold     else: its delete
//! ```

use compact_str::CompactString;

use super::plan::{Change, Draft};
use super::rows::{Door, ItemRow, Rows};
use super::{Decision, edit};
use crate::archive::Written;
use crate::graph::Shields;
use crate::notify::{Notification, passes};
use crate::{DisplayKey, InboxKey, ItemId, Op};

/// Decides what becomes of a [`Write::Notify`](crate::archive::Write::Notify).
pub(super) fn notify<'a>(
    draft: &mut Draft<'_, 'a>,
    wanted: &'a Notification,
    fingerprint: [u8; 16],
) -> Decision<Written> {
    let Notification { reader, actor, publish } = wanted;
    let shields = draft.rows.edge((*reader, *actor))?.map_or(Shields(0), |row| row.shields);
    let told = publish.foreign_id.as_ref().map(|key| living(draft.rows, key)).transpose()?.flatten();
    if !passes(shields) || told.is_some() {
        return Ok(Written::Untold);
    }
    let id = publish.id.map_or_else(|| draft.rows.new_id(*actor), Ok)?;
    let (now, feed, readers) = (draft.now, publish.feed, vec![*reader]);
    draft.address(readers.clone(), Op::Add, (*actor, feed), DisplayKey { rank: now, item: id })?;
    let item = ItemRow {
        author: *actor,
        seq: 0,
        published_at: now,
        rank: now,
        version: 1,
        feed,
        door: Door::Direct(readers.clone()),
        fingerprint,
        living: true,
    };
    draft.changes.push(Change::Make { id, item, publish });
    Ok(Written::Published { id, author: *actor, outbox_seq: 0, published_at: now, readers, fresh: true, told: vec![] })
}

/// Decides what becomes of a [`Write::Withdraw`](crate::archive::Write::Withdraw). A notification counts as seen if it was
/// published no later than the newest item that its reader has seen of the feed.
pub(super) fn withdraw(draft: &mut Draft<'_, '_>, key: &CompactString) -> Decision<Written> {
    let Some((id, row)) = living(draft.rows, key)? else { return Ok(Written::Untold) };
    for &reader in row.door.readers() {
        let seen = draft.rows.sight(InboxKey { reader, feed: row.feed })?;
        if seen.is_some_and(|until| row.published_at <= until) {
            return Ok(Written::Untold);
        }
    }
    edit::delete(draft, id, None)
}

/// The living item that has this key.
fn living<'r>(rows: &'r Rows, key: &CompactString) -> Decision<Option<(ItemId, &'r ItemRow)>> {
    let Some(id) = rows.foreign_id(key)? else { return Ok(None) };
    let row = rows.item_of_key(id)?;
    Ok(row.living.then_some((id, row)))
}
