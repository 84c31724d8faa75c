//! Who is at the other end, once `connect` has said so.

use std::sync::{Arc, OnceLock};

use compact_str::CompactString;
use feedgate_common::sessions::{Claim, Held, SavePosition, Token, User};
use feedgate_common::{DeviceId, FeedId, InboxKey, Millis, Position};

/// Fixed for the life of the connection. 96 bytes, one per connected session, shared by its task and its seat
/// in the pool.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The token's user.
    pub(crate) user: User,
    /// The token's device, else the one `connect` named, else [`client_name`].
    pub(crate) device: DeviceId,
    /// Whether the device has an id of its own: only then anything of it is stored.
    pub(crate) durable: bool,
    /// When it connected.
    since: Millis,
    /// Shown with every write to the session pool; there once that has answered the claim.
    token: OnceLock<Token>,
}

impl Identity {
    /// Of a device that has not claimed its session yet.
    pub(crate) fn new(user: User, device: DeviceId, durable: bool, since: Millis) -> Arc<Self> {
        Arc::new(Self { user, device, durable, since, token: OnceLock::new() })
    }

    /// What it claims for a connection of `node`.
    pub(crate) fn claim(&self, node: &str, connection: u64) -> Claim {
        Claim {
            user: self.user.no,
            device: self.device.clone(),
            durable: self.durable,
            node: node.to_owned(),
            connection,
            since: self.since,
        }
    }

    /// The claim was answered with `token`. Only the first counts.
    pub(crate) fn claimed(&self, token: Token) {
        self.token.get_or_init(|| token);
    }

    /// What the claim was answered with, if it was.
    pub(crate) fn token(&self) -> Option<Token> {
        self.token.get().copied()
    }

    /// The session as `node` holds it; `None` while its claim has no answer.
    pub(crate) fn held(&self, node: &str, connection: u64) -> Option<Held> {
        self.token().map(|token| Held { claim: self.claim(node, connection), token })
    }

    /// The inbox that the feed's channel means here.
    pub(crate) fn inbox(&self, feed: FeedId) -> InboxKey {
        InboxKey { reader: self.user.no, feed }
    }

    /// A position in a feed as this session may store it; `None` if nothing of this device is stored.
    pub(crate) fn saving(&self, feed: FeedId, position: Position) -> Option<SavePosition> {
        let token = self.token().filter(|_| self.durable)?;
        Some(SavePosition { user: self.user.no, device: self.device.clone(), token, feed, position })
    }
}

/// What a connection is called: also the device id of who brings none.
pub(crate) fn client_name(node: &str, connection: u64) -> CompactString {
    compact_str::format_compact!("{node}-{connection}")
}
