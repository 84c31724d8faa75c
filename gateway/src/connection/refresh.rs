//! `refresh`: the app brings a new token for the same user and device.

use super::outcome::{Outcome, Stop, Then};
use crate::auth::TokenError;
use crate::identity::Identity;
use crate::protocol::{Close, ErrorCode};
use crate::{Gateway, clock};

/// Carries it out at once; nothing is awaited.
pub(crate) fn refresh(gateway: &Gateway, who: &Identity, token: &str) -> Outcome {
    let now = (clock::now() / 1000).unsigned_abs();
    let claims = gateway.parts.keys.verify(token, now).map_err(|error| match error {
        TokenError::Expired => ErrorCode::TokenExpired.into(),
        TokenError::Invalid(_) => Stop::Close(Close::InvalidToken),
    })?;
    if claims.user != who.user.id {
        return Err(ErrorCode::PermissionDenied.because("refresh: the token is another user's; connect anew").into());
    }
    if claims.device.is_some_and(|device| device != who.device) {
        return Err(ErrorCode::PermissionDenied.because("refresh: the token is another device's; connect anew").into());
    }
    Ok(Then::Refreshed(claims.expires_at))
}
