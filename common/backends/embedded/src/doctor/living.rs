//! Whether an item lives, which most checks ask.

use feedgate_common::ItemId;
use feedgate_common::error::Result;

use crate::archive::tables::{Items, Life};
use crate::view::{Read, View};

/// Whether the item is there and was not deleted. Fails if its row cannot be read.
pub(super) fn lives(view: &View, item: ItemId) -> Result<bool> {
    Ok(view.get::<Items>(&item)?.is_some_and(|row| row.life != Life::Gone))
}
