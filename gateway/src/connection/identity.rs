//! Who is at the other end, once `connect` has said so.

use compact_str::CompactString;
use feedgate_common::sessions::{SavePosition, Token, User};
use feedgate_common::{DeviceId, InboxKey, Position};

/// Fixed for the life of the connection. 96 bytes, one per connected session.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The token's user.
    pub(crate) user: User,
    /// The token's device, else the one `connect` named, else [`client_name`].
    pub(crate) device: DeviceId,
    /// Whether the device has an id of its own: only then anything of it is stored.
    pub(crate) durable: bool,
    /// Shown with every write to the session pool.
    pub(crate) claim: Token,
}

impl Identity {
    /// The inbox that `feed` means here.
    pub(crate) fn inbox(&self) -> InboxKey {
        InboxKey::main(self.user.no)
    }

    /// `position` as this session may store it; `None` if nothing of this device is stored.
    pub(crate) fn saving(&self, position: Position) -> Option<SavePosition> {
        let Self { user, device, claim, .. } = self;
        self.durable.then(|| SavePosition { user: user.no, device: device.clone(), token: *claim, position })
    }
}

/// What a connection is called: also the device id of who brings none.
pub(crate) fn client_name(node: &str, connection: u64) -> CompactString {
    compact_str::format_compact!("{node}-{connection}")
}
