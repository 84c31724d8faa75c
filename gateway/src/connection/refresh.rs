//! Carries out `refresh`: the app brings a new token for the same user and device.

use super::outcome::{Outcome, Then, bad};
use crate::auth::verifier::Verifier;
use crate::net::address::Client;
use crate::node::identity::Identity;
use crate::protocol::ErrorCode;

/// Carries out `refresh` at once, without waiting for anything.
pub(crate) fn refresh(verifier: &Verifier, who: &Identity, token: &str, client: Client) -> Outcome {
    if token.is_empty() {
        return Err(bad("refresh needs a token: a JWT of the same user"));
    }
    let claims = verifier.verify(token, client)?;
    if claims.user != who.user.id {
        return Err(ErrorCode::PermissionDenied.because("refresh: the token is another user's; connect anew").into());
    }
    if claims.device.is_some_and(|device| device != who.device) {
        return Err(ErrorCode::PermissionDenied.because("refresh: the token is another device's; connect anew").into());
    }
    Ok(Then::Refreshed(claims.expires_at))
}
