//! Checks readers' tokens by the clock of this machine, and logs which tokens are refused. The keys may be replaced
//! while the gateway runs.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use crate::auth::{Claims, KeySet, Keys, TokenError};
use crate::clock;
use crate::net::address::Client;
use crate::net::refusals::Refusals;

/// The keys of the installation, and the log of the tokens that they refuse.
pub struct Verifier {
    keys: ArcSwap<Keys>,
    refusals: Refusals,
    /// Wakes the task that fetches the keys that a signer publishes.
    unknown: Notify,
}

impl Verifier {
    pub(crate) fn new(keys: Keys) -> Arc<Self> {
        Arc::new(Self { keys: ArcSwap::from_pointee(keys), refusals: Refusals::of("a token"), unknown: Notify::new() })
    }

    /// The keys that are in use now.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        self.keys.load_full()
    }

    /// Checks a token now, and gives its claims. A refusal is logged with the client that brought the token.
    pub(crate) fn verify(&self, token: &str, client: Client) -> Result<Claims, TokenError> {
        let now = u64::try_from(clock::now() / 1000).unwrap_or(0);
        self.keys.load().verify(token, now).inspect_err(|error| {
            self.refusals.log(client, error.why());
            if *error == TokenError::UnknownKey {
                self.unknown.notify_one();
            }
        })
    }

    /// Accepts the tokens of the keys in `set` too from now on, in place of those of an earlier set. `None` stands for
    /// a set whose keys are not known yet. Sessions that are open go on.
    pub fn publish(&self, set: Option<&KeySet>) {
        self.keys.rcu(|keys| Keys::clone(keys).with_published(set));
    }

    /// Uses these keys from now on. The keys that a signer publishes stay, and the ids of open sessions stay valid.
    pub(crate) fn replace(&self, keys: &Keys) {
        self.keys.rcu(|before| keys.clone().after(before));
    }

    /// Waits until a token was refused since the last call because no key has its `kid`, while a set is published. For
    /// one caller at a time. Cancel safe.
    pub async fn unknown_key(&self) {
        self.unknown.notified().await;
    }
}
