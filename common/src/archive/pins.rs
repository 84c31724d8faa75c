//! What users have pinned to their profiles.

use async_trait::async_trait;

use crate::error::Result;
use crate::pins::{NotPinned, Pin};
use crate::{ItemId, UserNo};

/// Keeps for each user the [pinned](crate::pins) items.
#[async_trait]
pub trait Pins: Send + Sync + 'static {
    /// Pins an item of `user` before the items that are pinned already, in one durable transaction. Gives whether the
    /// item was not pinned before, or why the pin is refused. Pins of deleted items do not count, and the next pin
    /// removes them. A dropped future leaves the pin made or not made.
    async fn pin(&self, user: UserNo, item: ItemId) -> Result<std::result::Result<bool, NotPinned>>;

    /// Takes away a pin, in one durable transaction. Gives whether the item was pinned.
    async fn unpin(&self, user: UserNo, item: ItemId) -> Result<bool>;

    /// What `user` has pinned, the last first. Items that were deleted since may be among them.
    async fn pins(&self, user: UserNo) -> Result<Vec<Pin>>;
}
