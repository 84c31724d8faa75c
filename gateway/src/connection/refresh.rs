//! Carries out `refresh`: the app brings a new token for the same user and device.

use std::sync::Arc;

use super::connect::not_revoked;
use super::outcome::{Outcome, Then, bad};
use super::shared::Shared;
use crate::net::address::Client;
use crate::node::identity::Identity;
use crate::protocol::ErrorCode;

/// Carries out `refresh`. It waits only if it is not known yet whether the token was revoked. Cancel safe.
pub(crate) async fn refresh(shared: Arc<Shared>, who: Arc<Identity>, token: Box<str>, client: Client) -> Outcome {
    if token.is_empty() {
        return Err(bad("refresh needs a token: a JWT of the same user"));
    }
    let claims = shared.verifier.verify(&token, client)?;
    if claims.user != who.user.id {
        return Err(ErrorCode::PermissionDenied.because("refresh: the token is another user's; connect anew").into());
    }
    if claims.device.as_ref().is_some_and(|device| *device != who.device) {
        return Err(ErrorCode::PermissionDenied.because("refresh: the token is another device's; connect anew").into());
    }
    not_revoked(&shared.revocations, who.user.no, &claims).await?;
    who.shows(claims.issued_at);
    Ok(Then::Refreshed(claims.expires_at))
}
