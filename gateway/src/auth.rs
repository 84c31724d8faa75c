//! Who may come in: backends by the API key, readers by a JWT.
//!
//! The algorithm list is fixed to HS256, whatever a token's header says; `exp` is required, and `nbf` is kept to
//! where a token has one.

use feedgate_common::{DeviceId, UserId};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The two secrets of an installation.
#[derive(Clone)]
pub struct Keys {
    api_key_digest: [u8; 32],
    encoding: EncodingKey,
    decoding: DecodingKey,
}

/// What a valid token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// `sub`.
    pub user: UserId,
    /// `device_id`.
    pub device: Option<DeviceId>,
    /// `exp`, in Unix seconds.
    pub expires_at: u64,
}

/// Why a token was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It was good once: ask the app for a new one.
    #[error("the token has expired")]
    Expired,
    /// It never was good; the text says what is wrong.
    #[error("{0}")]
    Invalid(String),
}

/// How far the clock of whoever signs may be ahead of ours, in seconds: a token that begins now is good at once.
const AHEAD_MAX_SECS: u64 = 60;

#[derive(Serialize, Deserialize)]
struct Wire {
    sub: String,
    exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device_id: Option<String>,
}

impl Keys {
    /// From the secrets' bytes as they stand in `<data>/secrets`.
    pub fn new(api_key: &str, token_key: &[u8]) -> Self {
        Self {
            api_key_digest: Sha256::digest(api_key.as_bytes()).into(),
            encoding: EncodingKey::from_secret(token_key),
            decoding: DecodingKey::from_secret(token_key),
        }
    }

    /// Whether this is the API key, compared in constant time.
    pub fn is_api_key(&self, candidate: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(candidate.as_bytes()).into();
        digest.ct_eq(&self.api_key_digest).into()
    }

    /// Reads a token at `now` (Unix seconds). Nothing of a refused token is used.
    pub fn verify(&self, token: &str, now: u64) -> Result<Claims, TokenError> {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.required_spec_claims = ["exp".to_owned(), "sub".to_owned()].into();
        rules.validate_aud = false;
        // Checked below against the caller's clock.
        rules.validate_exp = false;
        let invalid = |why: &dyn std::fmt::Display| TokenError::Invalid(format!("the token is not valid: {why}"));
        let wire = jsonwebtoken::decode::<Wire>(token, &self.decoding, &rules).map_err(|e| invalid(&e))?.claims;
        let user = wire.sub.parse().map_err(|e| invalid(&format_args!("sub: {e}")))?;
        let device =
            wire.device_id.map(|d| d.parse()).transpose().map_err(|e| invalid(&format_args!("device_id: {e}")))?;
        if wire.nbf.is_some_and(|begins| begins > now.saturating_add(AHEAD_MAX_SECS)) {
            return Err(invalid(&"its time (nbf) has not come yet"));
        }
        if wire.exp <= now {
            return Err(TokenError::Expired);
        }
        Ok(Claims { user, device, expires_at: wire.exp })
    }

    /// Makes a token for `user` that expires at `expires_at` (Unix seconds).
    pub fn mint(&self, user: &UserId, device: Option<&DeviceId>, expires_at: u64) -> String {
        let wire = Wire {
            sub: user.as_str().to_owned(),
            exp: expires_at,
            nbf: None,
            device_id: device.map(|d| d.as_str().to_owned()),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &wire, &self.encoding)
            .expect("HS256 signs any claims that serialize")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new("api", b"0123456789abcdef0123456789abcdef")
    }

    #[test]
    fn a_minted_token_verifies_until_it_expires() {
        let (user, device) = ("ann".parse().unwrap(), "ios-1".parse().unwrap());
        let token = keys().mint(&user, Some(&device), 100);
        assert_eq!(keys().verify(&token, 99), Ok(Claims { user, device: Some(device), expires_at: 100 }));
        assert_eq!(keys().verify(&token, 100), Err(TokenError::Expired));
    }

    #[test]
    fn a_token_of_another_key_or_algorithm_or_shape_is_refused() {
        let user = "ann".parse().unwrap();
        let foreign = Keys::new("api", b"another key").mint(&user, None, 100);
        let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJleHAiOjEwMH0.";
        let sign = |algorithm, claims: serde_json::Value| {
            let key = EncodingKey::from_secret(b"0123456789abcdef0123456789abcdef");
            jsonwebtoken::encode(&Header::new(algorithm), &claims, &key).unwrap()
        };
        let hs512 = sign(Algorithm::HS512, serde_json::json!({"sub": "ann", "exp": 100}));
        let no_exp = sign(Algorithm::HS256, serde_json::json!({"sub": "ann"}));
        let text_exp = sign(Algorithm::HS256, serde_json::json!({"sub": "ann", "exp": "100"}));
        let bad_sub = sign(Algorithm::HS256, serde_json::json!({"sub": "a n", "exp": 100}));
        let not_yet = sign(Algorithm::HS256, serde_json::json!({"sub": "ann", "exp": 100, "nbf": 62}));
        let text_nbf = sign(Algorithm::HS256, serde_json::json!({"sub": "ann", "exp": 100, "nbf": "1"}));
        let no_device = sign(Algorithm::HS256, serde_json::json!({"sub": "ann", "exp": 100, "device_id": ""}));
        let skewed = sign(Algorithm::HS256, serde_json::json!({"sub": "ann", "exp": 100, "nbf": 61}));
        assert!(keys().verify(&skewed, 1).is_ok(), "clocks differ a little");
        for token in
            [&foreign, none, &hs512, &no_exp, &text_exp, &bad_sub, &not_yet, &text_nbf, &no_device, "", "x.y.z"]
        {
            assert!(matches!(keys().verify(token, 1), Err(TokenError::Invalid(_))), "{token}");
        }
    }

    #[test]
    fn the_api_key_is_recognised() {
        assert!(keys().is_api_key("api"));
        assert!(!keys().is_api_key("apj"));
    }
}
