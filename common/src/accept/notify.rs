//! Notifications: direct items that follow from another change. [`crate::notify`] says from which.
//!
//! ```text
//!   Notify    a shield is up, the reader may not see what
//!             it is of, or an item with this key lives       ──▶ Untold     else: item, direct record, event
//!   Withdraw  no item with this key lives, or it was seen    ──▶ Untold     else: its delete
//! ```
//!
//! A notification with a group does not come here: it becomes a part of a [line](super::lines).

use compact_str::CompactString;

use super::plan::{Change, Draft};
use super::rows::{Door, EdgeRow, ItemRow, Rows};
use super::{Decision, all, edit};
use crate::archive::{Publish, Written};
use crate::around::{Reach, Terms, shows_original};
use crate::change::Route;
use crate::graph::Shields;
use crate::notify::{Notification, passes};
use crate::{DisplayKey, InboxKey, ItemId, Op, UserNo};

/// Decides what becomes of a [`Write::Notify`](crate::archive::Write::Notify).
pub(super) fn notify<'a>(
    draft: &mut Draft<'_, 'a>,
    wanted: &'a Notification,
    fingerprint: [u8; 16],
) -> Decision<Written> {
    let Notification { reader, actor, publish, .. } = wanted;
    let open = is_open(draft.rows, wanted)?;
    let told = publish.foreign_id.as_ref().map(|key| living(draft.rows, key)).transpose()?.flatten();
    if !open || told.is_some() {
        return Ok(Written::Untold);
    }
    let id = make(draft, (*reader, *actor), publish, fingerprint)?;
    let (published_at, readers) = (draft.now, vec![*reader]);
    let (outbox_seq, fresh, own_edge, told) = (0, true, false, vec![]);
    Ok(Written::Published { id, author: *actor, outbox_seq, published_at, readers, fresh, own_edge, told })
}

/// The edges, as (reader, author), that decide whether the reader of a notification is told.
pub(super) fn edges_of(told: &Notification) -> impl Iterator<Item = (UserNo, UserNo)> {
    let edge = (told.reader, told.actor);
    let back = told.mutual.then_some((edge.1, edge.0));
    [Some(edge), back, told.sees.map(|(_, author)| (told.reader, author))].into_iter().flatten()
}

/// Whether a notification may reach its reader, by the shields, the follows and what the reader may see.
pub(super) fn is_open(rows: &Rows, told: &Notification) -> Decision<bool> {
    all(edges_of(told).map(|edge| rows.edge(edge)))?;
    let (to, back) = (rows.edge((told.reader, told.actor))?, told.mutual.then_some((told.actor, told.reader)));
    let follows = |row: Option<EdgeRow>| row.is_some_and(|row| row.follows);
    let mutual = match back {
        Some(back) => follows(to) && follows(rows.edge(back)?),
        None => true,
    };
    Ok(passes(to.map_or(Shields(0), |row| row.shields), mutual) && sees(rows, told)?)
}

/// Whether the reader of a notification may see the item in `sees`, as a repost would show the item. True if `sees` is
/// `None`.
fn sees(rows: &Rows, told: &Notification) -> Decision<bool> {
    let (reader, Some((id, author))) = (told.reader, told.sees) else { return Ok(true) };
    let Some(item) = rows.item(id)?.filter(|item| item.living) else { return Ok(false) };
    let reach = match &item.door {
        Door::Outbox(Route::Narrow) => Reach::Narrowed(rows.audience(id)?.contains(&reader)),
        Door::Outbox(_) => Reach::Followers,
        Door::Direct(readers) => Reach::Named(readers.contains(&reader)),
    };
    let edge = rows.edge((reader, author))?.unwrap_or_default();
    let terms = Terms { follows: edge.edge().on, shields: edge.shields, private: rows.private(author)? };
    Ok(shows_original(reader == author, terms, reach))
}

/// Makes the item by which a reader is told what an actor did. It is published now, unless `publish` says another time.
pub(super) fn make<'a>(
    draft: &mut Draft<'_, 'a>,
    (reader, author): (UserNo, UserNo),
    publish: &'a Publish,
    fingerprint: [u8; 16],
) -> Decision<ItemId> {
    let id = publish.id.map_or_else(|| draft.rows.new_id(author), Ok)?;
    let published_at = publish.published_at.unwrap_or(draft.now);
    let (rank, feed, readers) = (publish.rank.unwrap_or(published_at), publish.feed, vec![reader]);
    draft.address(readers.clone(), Op::Add, (author, feed), DisplayKey { rank, item: id })?;
    let door = Door::Direct(readers);
    let (seq, version, living, repost_of, mentions) = (0, 1, true, None, vec![]);
    let item =
        ItemRow { author, seq, published_at, rank, version, feed, door, fingerprint, living, repost_of, mentions };
    draft.changes.push(Change::Make { id, item, publish });
    Ok(id)
}

/// Decides what becomes of a [`Write::Withdraw`](crate::archive::Write::Withdraw). A notification counts as seen if it
/// was published no later than the newest item that its reader has seen of the feed.
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
