//! New versions of an item, and its end. Both are records behind its `add`, by the same door.

use feedgate_common::archive::{Refused, Written};
use feedgate_common::{Body, DisplayKey, ItemId, Op, OutboxSeq};

use super::ledger::{Change, Door, ItemState, Ledger};

type Answer = std::result::Result<Written, Refused>;

/// `None` if a row it needs is not locked: the item came into being after the locks were chosen.
pub(super) fn edit(ledger: &mut Ledger, id: ItemId, body: &Body, if_version: Option<u32>) -> Option<Answer> {
    let Some(row) = ledger.items.get_mut(&id).filter(|row| row.alive) else {
        return Some(Err(Refused::NoSuchItem(id)));
    };
    if let Some(refused) = other_version(id, row.version, if_version) {
        return Some(Err(refused));
    }
    row.version = row.version.saturating_add(1).min(i32::MAX as u32);
    row.body = Some(body.get().to_owned());
    touch(row);
    let (author, version, readers) = (row.author, row.version, row.door.readers().to_vec());
    follow_up(ledger, id, Op::Update)?;
    Some(Ok(Written::Edited { author, version, readers }))
}

/// `None` as with [`edit`].
pub(super) fn delete(ledger: &mut Ledger, id: ItemId, if_version: Option<u32>) -> Option<Answer> {
    let Some(row) = ledger.items.get_mut(&id) else { return Some(Err(Refused::NoSuchItem(id))) };
    let deleted = |row: &ItemState, fresh| {
        Some(Ok(Written::Deleted { author: row.author, readers: row.door.readers().to_vec(), fresh }))
    };
    if !row.alive {
        return deleted(row, false);
    }
    if let Some(refused) = other_version(id, row.version, if_version) {
        return Some(Err(refused));
    }
    row.alive = false;
    row.body = None;
    touch(row);
    let (add, answer) = ((row.author, row.seq), deleted(row, true));
    match follow_up(ledger, id, Op::Delete)? {
        Some(seq) => _ = ledger.ended.insert(add, seq),
        None => _ = ledger.ended_direct.insert(id),
    }
    answer
}

/// The item's next record, by its door; where it stands, if in an outbox.
#[allow(clippy::option_option, reason = "the outer one is: start over")]
fn follow_up(ledger: &mut Ledger, item: ItemId, op: Op) -> Option<Option<OutboxSeq>> {
    let row = ledger.items.get(&item)?;
    let (author, feed, door) = (row.author, row.feed, row.door.clone());
    let key = DisplayKey { rank: row.rank, item };
    match door {
        Door::Outbox(route) => ledger.append(author, op, (route, feed), key).map(Some),
        Door::Direct(readers) => ledger.address(&readers, op, (author, feed), key).map(|()| None),
    }
}

fn other_version(item: ItemId, version: u32, if_version: Option<u32>) -> Option<Refused> {
    if_version.is_some_and(|wanted| wanted != version).then_some(Refused::VersionMismatch { item, version })
}

fn touch(row: &mut ItemState) {
    if row.change == Change::Nothing {
        row.change = Change::Changed;
    }
}
