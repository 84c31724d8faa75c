//! New versions of an item, and its end. Both are records behind its `add`, by the same door.

use feedgate_common::archive::{Refused, Written};
use feedgate_common::{Body, DisplayKey, ItemId, Op};

use super::ledger::{Change, ItemState, Ledger};

type Answer = std::result::Result<Written, Refused>;

/// `None` if the author's row is not locked: the item came into being after the locks were chosen.
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
    let (author, version, route) = (row.author, row.version, row.route);
    let key = DisplayKey { rank: row.rank, item: id };
    ledger.append(author, Op::Update, route, key)?;
    Some(Ok(Written::Edited { author, version }))
}

/// `None` as with [`edit`].
pub(super) fn delete(ledger: &mut Ledger, id: ItemId, if_version: Option<u32>) -> Option<Answer> {
    let Some(row) = ledger.items.get_mut(&id) else { return Some(Err(Refused::NoSuchItem(id))) };
    let author = row.author;
    if !row.alive {
        return Some(Ok(Written::Deleted { author, fresh: false }));
    }
    if let Some(refused) = other_version(id, row.version, if_version) {
        return Some(Err(refused));
    }
    row.alive = false;
    row.body = None;
    touch(row);
    let (add, route) = (row.seq, row.route);
    let key = DisplayKey { rank: row.rank, item: id };
    let seq = ledger.append(author, Op::Delete, route, key)?;
    ledger.ended.insert((author, add), seq);
    Some(Ok(Written::Deleted { author, fresh: true }))
}

fn other_version(item: ItemId, version: u32, if_version: Option<u32>) -> Option<Refused> {
    if_version.is_some_and(|wanted| wanted != version).then_some(Refused::VersionMismatch { item, version })
}

fn touch(row: &mut ItemState) {
    if row.change == Change::Nothing {
        row.change = Change::Changed;
    }
}
