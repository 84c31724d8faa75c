//! What a token says, and the rules that its claims must follow.

use std::str::FromStr;

use feedgate_common::{DeviceId, Millis, UserId};
use serde::Deserialize;
use serde_json::Value;

/// What a valid token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The user, from `sub`.
    pub user: UserId,
    /// The device, from `device_id`.
    pub device: Option<DeviceId>,
    /// When the token was issued, from `iat`, in Unix ms.
    pub issued_at: Option<Millis>,
    /// When the token expires, from `exp`: a Unix time in seconds.
    pub expires_at: u64,
}

impl Claims {
    /// Fails if `before` is given and the token was issued before that time, or does not say when it was issued.
    pub(crate) fn outlive(&self, before: Option<Millis>) -> Result<(), TokenError> {
        match (before, self.issued_at) {
            (Some(_), None) => Err(TokenError::Undated),
            (Some(before), Some(issued_at)) if issued_at < before => Err(TokenError::Revoked),
            _ => Ok(()),
        }
    }
}

/// Why a token was refused. Its text holds nothing of the token, so it may be told to the client and to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.why())]
pub enum TokenError {
    /// The token was valid once: ask the app for a new one.
    Expired,
    /// The token was valid, until its user's tokens were revoked: ask the app for a new one.
    Revoked,
    /// Tokens of its user were revoked, and the token does not say when it was issued: ask the app for a new one.
    Undated,
    /// The key set from which the server has its keys may have the token's key by now: try again soon.
    UnknownKey,
    /// The token never was valid; the text says what is wrong.
    Invalid(&'static str),
}

impl TokenError {
    /// What is wrong with the token.
    pub fn why(self) -> &'static str {
        match self {
            Self::Expired => "token has expired",
            Self::Revoked => "token was revoked",
            Self::Undated => "token has no iat, and tokens of its user were revoked",
            Self::UnknownKey => "token's kid is that of no key that was fetched so far",
            Self::Invalid(why) => why,
        }
    }
}

/// The claims of a token that was received; each may be any JSON value.
#[derive(Deserialize)]
pub(super) struct Brought {
    sub: Option<Value>,
    exp: Option<Value>,
    nbf: Option<Value>,
    iat: Option<Value>,
    aud: Option<Value>,
    iss: Option<Value>,
    device_id: Option<Value>,
}

/// The rules for the claims of every token.
#[derive(Clone)]
pub(super) struct Rules {
    /// The name that `aud` must contain; `None` allows any.
    pub(super) audience: Option<Box<str>>,
    /// What `iss` must be; `None` allows any.
    pub(super) issuer: Option<Box<str>>,
    /// How many seconds `nbf` and `iat` may lie ahead, because the signer's clock is ahead of ours.
    pub(super) leeway: u64,
}

/// The first `exp` that is taken for a time in milliseconds: in seconds it is in the year 5138.
const IN_MILLIS: u64 = 100_000_000_000;

impl Rules {
    /// Reads the claims at `now`, a Unix time in seconds.
    pub(super) fn read(&self, brought: Brought, now: u64) -> Result<Claims, TokenError> {
        let Brought { sub, exp, nbf, iat, aud, iss, device_id } = brought;
        let exp = exp.ok_or(TokenError::Invalid("token has no exp"))?;
        let expires_at = seconds(&exp).ok_or(TokenError::Invalid("token's exp is not a number"))?;
        // Such a token would never expire, and nobody would notice.
        if expires_at >= IN_MILLIS {
            return Err(TokenError::Invalid("token's exp is in milliseconds; it must be in seconds"));
        }
        let sub = sub.ok_or(TokenError::Invalid("token has no sub"))?;
        let user = name(&sub).ok_or(TokenError::Invalid("token's sub is not a user id"))?;
        let device = device_id.map(|device| name(&device).ok_or(TokenError::Invalid("token's device_id is not one")));
        self.has_come(nbf, now, "token's nbf is not a number", "token's nbf has not come yet")?;
        let issued_at = iat.as_ref().and_then(millis);
        self.has_come(iat, now, "token's iat is not a number", "token's iat has not come yet")?;
        if self.audience.as_ref().is_some_and(|audience| !names(aud.as_ref(), audience)) {
            return Err(TokenError::Invalid("token's aud does not name this server"));
        }
        if self.issuer.as_ref().is_some_and(|issuer| iss.is_none_or(|iss| iss != **issuer)) {
            return Err(TokenError::Invalid("token's iss is not the one that this server trusts"));
        }
        if expires_at <= now {
            return Err(TokenError::Expired);
        }
        Ok(Claims { user, device: device.transpose()?, issued_at, expires_at })
    }

    /// Refuses a date that is no number, or that lies further ahead than the leeway.
    fn has_come(
        &self,
        date: Option<Value>,
        now: u64,
        not_one: &'static str,
        not_yet: &'static str,
    ) -> Result<(), TokenError> {
        let Some(date) = date else { return Ok(()) };
        let date = seconds(&date).ok_or(TokenError::Invalid(not_one))?;
        if date > now.saturating_add(self.leeway) { Err(TokenError::Invalid(not_yet)) } else { Ok(()) }
    }
}

/// A NumericDate of RFC 7519 in whole seconds; its fraction is cut off, and a date before 1970 is 0.
fn seconds(date: &Value) -> Option<u64> {
    date.as_u64().or_else(|| date.as_f64().map(|secs| secs as u64))
}

/// A NumericDate in milliseconds. A date in whole seconds stands for the beginning of its second.
fn millis(date: &Value) -> Option<Millis> {
    date.as_f64().map(|secs| (secs * 1000.0).round() as Millis)
}

/// Whether `aud`, which is a text or a list of texts (RFC 7519), names the audience.
fn names(aud: Option<&Value>, audience: &str) -> bool {
    match aud {
        Some(Value::Array(several)) => several.iter().any(|one| one == audience),
        Some(one) => one == audience,
        None => false,
    }
}

fn name<T: FromStr>(claim: &Value) -> Option<T> {
    claim.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_revoked_if_it_is_older_than_the_revocation_or_says_no_age() {
        let of = |issued_at| Claims { user: "ann".parse().unwrap(), device: None, issued_at, expires_at: 9 };
        for (issued_at, before, wanted) in [
            (Some(5), None, Ok(())),
            (None, None, Ok(())),
            (Some(4), Some(5), Err(TokenError::Revoked)),
            (Some(5), Some(5), Ok(())),
            (Some(6), Some(5), Ok(())),
            (None, Some(5), Err(TokenError::Undated)),
        ] {
            assert_eq!(of(issued_at).outlive(before), wanted, "{issued_at:?} {before:?}");
        }
    }
}
