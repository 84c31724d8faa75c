//! Checks readers' tokens by the clock of this machine, and logs which ones are refused.

use std::sync::Arc;

use crate::auth::{Claims, Keys, TokenError};
use crate::clock;
use crate::net::address::Client;
use crate::net::refusals::Refusals;

/// The keys of the installation, and the log of the tokens that they refuse.
pub(crate) struct Verifier {
    pub(crate) keys: Keys,
    refusals: Refusals,
}

impl Verifier {
    pub(crate) fn new(keys: Keys) -> Arc<Self> {
        Arc::new(Self { keys, refusals: Refusals::of("a token") })
    }

    /// Checks a token now, and gives its claims. A refusal is logged with the client that brought the token.
    pub(crate) fn verify(&self, token: &str, client: Client) -> Result<Claims, TokenError> {
        let now = u64::try_from(clock::now() / 1000).unwrap_or(0);
        self.keys.verify(token, now).inspect_err(|error| self.refusals.log(client, error.why()))
    }
}
