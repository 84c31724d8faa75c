//! The user and the device of a connection, known after its `connect`.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use compact_str::CompactString;
use feedgate_common::sessions::{Claim, Held, SavePosition, Token, User};
use feedgate_common::{DeviceId, FeedId, InboxKey, Millis, Position};

/// The time of issue of a token that does not say when it was issued: before any other time.
const UNKNOWN: Millis = Millis::MIN;

/// The user and the device of a connected session, which never change, and when its newest token was issued. It takes
/// 104 bytes, and is shared by the connection's task and its seat in the pool.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The user that the token names.
    pub(crate) user: User,
    /// The device that the token names, else the one that `connect` named, else [`client_name`].
    pub(crate) device: DeviceId,
    /// Whether the device has an id of its own: only then anything is stored for it.
    pub(crate) durable: bool,
    /// When the device connected.
    pub(crate) since: Millis,
    /// When the newest token that the device has shown was issued, in Unix ms; [`UNKNOWN`] if it does not say.
    issued_at: AtomicI64,
    /// The token that the session pool has answered the claim with; it goes with every later write to the pool.
    token: OnceLock<Token>,
}

impl Identity {
    /// The identity of a device that has not claimed its session yet.
    pub(crate) fn new(user: User, device: DeviceId, durable: bool, since: Millis) -> Arc<Self> {
        Arc::new(Self { user, device, durable, since, issued_at: AtomicI64::new(UNKNOWN), token: OnceLock::new() })
    }

    /// Keeps when the token was issued that the device has just shown, in Unix ms, unless it has shown a newer one.
    pub(crate) fn shows(&self, issued_at: Option<Millis>) {
        self.issued_at.fetch_max(issued_at.unwrap_or(UNKNOWN), Ordering::AcqRel);
    }

    /// Whether the device's token was issued before this time, in Unix ms, or does not say when.
    pub(crate) fn is_revoked(&self, before: Millis) -> bool {
        self.issued_at.load(Ordering::Acquire) < before
    }

    /// The claim of its session, for a connection of `node`.
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

    /// Keeps the `token` that the claim was answered with. Only the first call counts.
    pub(crate) fn claimed(&self, token: Token) {
        self.token.get_or_init(|| token);
    }

    /// The token that the claim was answered with; `None` before.
    pub(crate) fn token(&self) -> Option<Token> {
        self.token.get().copied()
    }

    /// The session as `node` holds it; `None` while its claim has no answer.
    pub(crate) fn held(&self, node: &str, connection: u64) -> Option<Held> {
        self.token().map(|token| Held { claim: self.claim(node, connection), token })
    }

    /// The user's inbox in this feed.
    pub(crate) fn inbox(&self, feed: FeedId) -> InboxKey {
        InboxKey { reader: self.user.no, feed }
    }

    /// What to store so that this device is at `position` in the feed; `None` if nothing is stored for this device.
    pub(crate) fn saving(&self, feed: FeedId, position: Position) -> Option<SavePosition> {
        let token = self.token().filter(|_| self.durable)?;
        Some(SavePosition { user: self.user.no, device: self.device.clone(), token, feed, position })
    }
}

/// The name of a connection, which is also the device id of a device that gives none.
pub(crate) fn client_name(node: &str, connection: u64) -> CompactString {
    compact_str::format_compact!("{node}-{connection}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_token_does_not_make_a_device_older() {
        let user = User { no: feedgate_common::UserNo(7), id: "ann".parse().unwrap() };
        let who = Identity::new(user, "phone".parse().unwrap(), true, 0);
        assert!(who.is_revoked(1), "the token does not say when it was issued");
        for shown in [Some(5), Some(3), None] {
            who.shows(shown);
            assert!(who.is_revoked(6) && !who.is_revoked(5), "{shown:?}");
        }
    }
}
