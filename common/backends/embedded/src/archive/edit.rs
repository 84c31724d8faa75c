//! New versions of an item, and its end. Both are records behind its `add`, by the same door.

use feedgate_common::archive::{Refused, Written};
use feedgate_common::error::Result;
use feedgate_common::{Body, DisplayKey, ItemId, Op, StoreError, UserNo};

use super::accept::Outcome;
use super::direct::{self, NO_SEQ};
use super::ledger::{Change, Ledger};
use super::tables::{AddRow, Adds, ItemRow, Items, Life, Shown};
use crate::view::Read;

pub(super) fn edit(ledger: &mut Ledger<'_, '_>, id: ItemId, new_body: &Body, if_version: Option<u32>) -> Outcome {
    let Some(mut row) = ledger.tx.get::<Items>(&id)? else { return Ok(Err(Refused::NoSuchItem(id))) };
    let Life::Living { version, body, rank, .. } = &mut row.life else { return Ok(Err(Refused::NoSuchItem(id))) };
    if let Some(refused) = other_version(id, *version, if_version) {
        return Ok(Err(refused));
    }
    *version = version.saturating_add(1);
    new_body.get().clone_into(body);
    let (version, key) = (*version, DisplayKey { rank: *rank, item: id });
    ledger.tx.put::<Items>(&id, &row);
    let readers = tell(ledger, &row, Op::Update, key)?;
    Ok(Ok(Written::Edited { author: row.author, version, readers }))
}

pub(super) fn delete(ledger: &mut Ledger<'_, '_>, id: ItemId, if_version: Option<u32>) -> Outcome {
    let Some(mut row) = ledger.tx.get::<Items>(&id)? else { return Ok(Err(Refused::NoSuchItem(id))) };
    let Life::Living { version, rank, .. } = row.life else {
        let readers = direct::readers(ledger, id, &row)?;
        return Ok(Ok(Written::Deleted { author: row.author, readers, fresh: false }));
    };
    if let Some(refused) = other_version(id, version, if_version) {
        return Ok(Err(refused));
    }
    row.life = Life::Gone;
    ledger.tx.put::<Items>(&id, &row);
    ledger.counters.living_items -= 1;
    let readers = tell(ledger, &row, Op::Delete, DisplayKey { rank, item: id })?;
    Ok(Ok(Written::Deleted { author: row.author, readers, fresh: true }))
}

/// The record behind the item's `add`; to whom it is addressed, if to anyone.
fn tell(ledger: &mut Ledger<'_, '_>, row: &ItemRow, op: Op, key: DisplayKey) -> Result<Vec<UserNo>> {
    let change = Change { op, author: row.author, feed: row.feed, key };
    if row.seq == NO_SEQ {
        let readers = direct::readers(ledger, key.item, row)?;
        direct::follow_up(ledger, &readers, change)?;
        return Ok(readers);
    }
    let add = add_of(ledger, key.item, row)?;
    let author = ledger.author(row.author)?;
    let seq = ledger.append(author, add.route, change).seq;
    if op == Op::Delete {
        ledger.tx.put::<Adds>(&row.add(), &AddRow { deleted_by: Some(seq), ..add });
        ledger.tx.remove::<Shown>(&(row.add().0, add.lane, key));
    }
    Ok(vec![])
}

/// The record of a delete whose item is gone already.
pub(super) fn delete_record(ledger: &mut Ledger<'_, '_>, row: &ItemRow, add: AddRow) -> Result<Written> {
    let author = ledger.author(row.author)?;
    let change = Change { op: Op::Delete, author: row.author, feed: row.feed, key: add.key };
    let seq = ledger.append(author, add.route, change).seq;
    ledger.tx.put::<Adds>(&row.add(), &AddRow { deleted_by: Some(seq), ..add });
    Ok(Written::Deleted { author: row.author, readers: vec![], fresh: true })
}

fn other_version(item: ItemId, version: u32, if_version: Option<u32>) -> Option<Refused> {
    if_version.is_some_and(|wanted| wanted != version).then_some(Refused::VersionMismatch { item, version })
}

fn add_of(ledger: &Ledger<'_, '_>, id: ItemId, row: &ItemRow) -> Result<AddRow> {
    let found = ledger.tx.get::<Adds>(&row.add())?;
    let UserNo(author) = row.author;
    found.ok_or_else(|| StoreError::corrupt(format_args!("item {id}: record {} of author {author} is no add", row.seq)))
}
