//! What is addressed to readers by name, and in nobody's outbox.
//!
//! Whoever it reaches is settled when it is accepted: its later versions and its end reach the same readers, whatever
//! became of edges and blocks meanwhile.

use feedgate_common::error::Result;
use feedgate_common::{InboxKey, ItemId, Op, OutboxSeq, UserId, UserNo};

use super::ledger::{Change, Ledger};
use super::tables::{DirectShown, Edges, ItemRow, NOBODY, Recipients};
use crate::view::Read;

/// What stands for the place in the outbox of an item that is in none.
pub(super) const NO_SEQ: OutboxSeq = 0;

/// Gives the new item to everyone named, each once; blocks count unless it is history.
pub(super) fn address(ledger: &mut Ledger<'_, '_>, names: &[UserId], add: Change) -> Result<()> {
    let Change { author, feed, key, .. } = add;
    let mut reached = false;
    for name in names {
        let reader = ledger.intern(name)?;
        let blocked =
            !ledger.history && ledger.tx.get::<Edges>(&(reader, author))?.is_some_and(|row| row.shields.blocks());
        if blocked || ledger.tx.has::<Recipients>(&(key.item, reader))? {
            continue;
        }
        ledger.tx.put::<Recipients>(&(key.item, reader), &author);
        ledger.tx.put::<DirectShown>(&(InboxKey { reader, feed }, key), &author);
        ledger.address(reader, add)?;
        reached = true;
    }
    if !reached {
        ledger.tx.put::<Recipients>(&(key.item, NOBODY), &author);
    }
    Ok(())
}

/// To whom the item was given, by number; nobody if it is for the followers.
pub(super) fn readers(ledger: &Ledger<'_, '_>, id: ItemId, row: &ItemRow) -> Result<Vec<UserNo>> {
    if row.seq != NO_SEQ {
        return Ok(vec![]);
    }
    let all = ledger.tx.scan::<Recipients>((id, UserNo(0))..(id, NOBODY));
    all.map(|row| row.map(|((_, reader), _)| reader)).collect()
}

/// Tells all of them of the item's new version or its end.
pub(super) fn follow_up(ledger: &mut Ledger<'_, '_>, readers: &[UserNo], change: Change) -> Result<()> {
    for &reader in readers {
        ledger.address(reader, change)?;
        if change.op == Op::Delete {
            ledger.tx.remove::<DirectShown>(&(InboxKey { reader, feed: change.feed }, change.key));
        }
    }
    Ok(())
}
