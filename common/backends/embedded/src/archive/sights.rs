//! What readers have seen of their feeds: a row for each reader and feed.

use feedgate_common::error::Result;
use feedgate_common::{InboxKey, ItemId, Millis, Seen, UserNo};

use super::tables::{Items, Sights};
use crate::view::{Read, Tx, View};

/// Stores `seen` if it goes beyond what is stored. Answers whether this changed anything.
pub(super) fn see(tx: &mut Tx<'_>, key: InboxKey, seen: Seen) -> Result<bool> {
    let Some(later) = seen.or_later(tx.get::<Sights>(&key)?) else { return Ok(false) };
    tx.put::<Sights>(&key, &later);
    Ok(true)
}

/// What the reader has seen of this feed; `None` if nothing is stored.
pub(super) fn seen(view: &View, key: InboxKey) -> Result<Option<Seen>> {
    view.get::<Sights>(&key)
}

/// By whom and when each of these items was published.
pub(super) fn published(view: &View, ids: &[ItemId]) -> Result<Vec<Option<(UserNo, Millis)>>> {
    ids.iter().map(|id| Ok(view.get::<Items>(id)?.map(|row| (row.author, row.published_at)))).collect()
}
