//! What users have pinned to their profiles: a row for each user.

use async_trait::async_trait;
use feedgate_common::archive;
use feedgate_common::error::Result;
use feedgate_common::pins::{self, NotPinned, Pin, Pinnable};
use feedgate_common::{ItemId, UserNo};

use super::EmbeddedArchive;
use super::tables::{Items, Life, NO_SEQ, Pins, PinsRow};
use crate::request::Durability;
use crate::view::{Read, Tx};

#[async_trait]
impl archive::Pins for EmbeddedArchive {
    async fn pin(&self, user: UserNo, item: ItemId) -> Result<std::result::Result<bool, NotPinned>> {
        self.db.write(Durability::Synced, move |tx| pin(tx, user, item)).await
    }

    async fn unpin(&self, user: UserNo, item: ItemId) -> Result<bool> {
        self.db.write(Durability::Synced, move |tx| unpin(tx, user, item)).await
    }

    async fn pins(&self, user: UserNo) -> Result<Vec<Pin>> {
        Ok(self.db.view()?.get::<Pins>(&user)?.unwrap_or_default().0)
    }
}

/// Removes all pins of a user who is erased.
pub(super) fn forget(tx: &mut Tx<'_>, user: UserNo) {
    tx.remove::<Pins>(&user);
}

fn pin(tx: &mut Tx<'_>, user: UserNo, item: ItemId) -> Result<std::result::Result<bool, NotPinned>> {
    let mut living = vec![];
    for pin in tx.get::<Pins>(&user)?.unwrap_or_default().0 {
        if found(tx, pin.item)?.is_some() {
            living.push(pin);
        }
    }
    let found = found(tx, item)?;
    Ok(pins::pin(user, item, found, &living).map(|pinned| match pinned {
        Some(pinned) => {
            tx.put::<Pins>(&user, &PinsRow(pinned));
            true
        }
        None => false,
    }))
}

fn unpin(tx: &mut Tx<'_>, user: UserNo, item: ItemId) -> Result<bool> {
    let Some(PinsRow(mut pins)) = tx.get::<Pins>(&user)? else { return Ok(false) };
    let before = pins.len();
    pins.retain(|pin| pin.item != item);
    match (pins.len() < before, pins.is_empty()) {
        (false, _) => return Ok(false),
        (true, true) => tx.remove::<Pins>(&user),
        (true, false) => tx.put::<Pins>(&user, &PinsRow(pins)),
    }
    Ok(true)
}

/// What decides whether an item may be pinned; `None` if the item does not live.
fn found(from: &impl Read, item: ItemId) -> Result<Option<Pinnable>> {
    let row = from.get::<Items>(&item)?.filter(|row| row.life != Life::Gone);
    Ok(row.map(|row| Pinnable { author: row.author, feed: row.feed, direct: row.seq == NO_SEQ }))
}
