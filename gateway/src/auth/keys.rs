//! Checks credentials: backends have the API key, readers a JWT.
//!
//! The only algorithm is HS256, whatever a token's header says. `exp` is required, and `nbf` is respected if a token
//! has one. A token whose header calls anything critical is refused; so is one for another audience, if an audience is
//! set.

use std::str::FromStr;

use feedgate_common::{DeviceId, UserId};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The two secrets of an installation, and the audience of its tokens.
#[derive(Clone)]
pub struct Keys {
    api_key_digest: [u8; 32],
    encoding: EncodingKey,
    decoding: DecodingKey,
    /// The name that `aud` must contain; `None` allows any.
    audience: Option<Box<str>>,
}

/// What a valid token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The user, from `sub`.
    pub user: UserId,
    /// The device, from `device_id`.
    pub device: Option<DeviceId>,
    /// When the token expires, from `exp`: a Unix time in seconds.
    pub expires_at: u64,
}

/// Why a token was refused. Its text holds nothing of the token, so it may be told to the client and to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.why())]
pub enum TokenError {
    /// The token was valid once: ask the app for a new one.
    Expired,
    /// The token never was valid; the text says what is wrong.
    Invalid(&'static str),
}

impl TokenError {
    /// What is wrong with the token.
    pub fn why(self) -> &'static str {
        match self {
            Self::Expired => "token has expired",
            Self::Invalid(why) => why,
        }
    }
}

/// How many seconds the signer's clock may be ahead of ours, so that a token whose `nbf` is now is valid at once.
const AHEAD_MAX_SECS: u64 = 60;

/// The claims of a token that is made here.
#[derive(Serialize)]
struct Minted<'a> {
    sub: &'a str,
    exp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a str>,
}

/// The claims of a token that was received; each may be any JSON value.
#[derive(Deserialize)]
struct Brought {
    sub: Option<Value>,
    exp: Option<Value>,
    nbf: Option<Value>,
    aud: Option<Value>,
    device_id: Option<Value>,
}

impl Keys {
    /// Makes the keys from the secrets' bytes as they are in `<data>/secrets`. Tokens may have any audience.
    pub fn new(api_key: &str, token_key: &[u8]) -> Self {
        Self {
            api_key_digest: Sha256::digest(api_key.as_bytes()).into(),
            encoding: EncodingKey::from_secret(token_key),
            decoding: DecodingKey::from_secret(token_key),
            audience: None,
        }
    }

    /// Accepts only tokens whose `aud` names `audience`; any token if `audience` is empty.
    pub fn for_audience(self, audience: &str) -> Self {
        Self { audience: (!audience.is_empty()).then(|| audience.into()), ..self }
    }

    /// Whether this is the API key, compared in constant time.
    pub fn is_api_key(&self, candidate: &str) -> bool {
        let digest: [u8; 32] = Sha256::digest(candidate.as_bytes()).into();
        digest.ct_eq(&self.api_key_digest).into()
    }

    /// Reads a token at `now`, a Unix time in seconds. Nothing of a refused token is used.
    pub fn verify(&self, token: &str, now: u64) -> Result<Claims, TokenError> {
        let Brought { sub, exp, nbf, aud, device_id } = self.claims(token)?;
        let exp = exp.ok_or(TokenError::Invalid("token has no exp"))?;
        let expires_at = seconds(&exp).ok_or(TokenError::Invalid("token's exp is not a number"))?;
        let sub = sub.ok_or(TokenError::Invalid("token has no sub"))?;
        let user = name(&sub).ok_or(TokenError::Invalid("token's sub is not a user id"))?;
        let device = device_id.map(|device| name(&device).ok_or(TokenError::Invalid("token's device_id is not one")));
        let begins =
            nbf.map(|nbf| seconds(&nbf).ok_or(TokenError::Invalid("token's nbf is not a number"))).transpose()?;
        if begins.is_some_and(|begins| begins > now.saturating_add(AHEAD_MAX_SECS)) {
            return Err(TokenError::Invalid("token's nbf has not come yet"));
        }
        if self.audience.as_ref().is_some_and(|audience| !names(aud.as_ref(), audience)) {
            return Err(TokenError::Invalid("token's aud does not name this server"));
        }
        if expires_at <= now {
            return Err(TokenError::Expired);
        }
        Ok(Claims { user, device: device.transpose()?, expires_at })
    }

    /// The claims of a token that is signed with our key; nothing else of it is checked.
    fn claims(&self, token: &str) -> Result<Brought, TokenError> {
        let header =
            jsonwebtoken::decode_header(token).map_err(|_| TokenError::Invalid("token is not a signed JWT"))?;
        if header.alg != Algorithm::HS256 {
            return Err(TokenError::Invalid("token's alg is not HS256"));
        }
        // RFC 7515: a reader must understand what a token calls critical, and no extension is understood here.
        if header.crit.is_some() {
            return Err(TokenError::Invalid("token's crit names what is not understood"));
        }
        let mut rules = Validation::new(Algorithm::HS256);
        rules.required_spec_claims.clear();
        rules.validate_aud = false;
        // The caller checks this against its own clock.
        rules.validate_exp = false;
        let read = jsonwebtoken::decode(token, &self.decoding, &rules);
        read.map(|read| read.claims).map_err(|error| match error.kind() {
            ErrorKind::Json(_) | ErrorKind::Utf8(_) => TokenError::Invalid("token's claims are not a JSON object"),
            ErrorKind::InvalidSignature => TokenError::Invalid("token's signature does not match"),
            _ => TokenError::Invalid("token is not a signed JWT"),
        })
    }

    /// Makes a token for `user` that expires at `expires_at`, a Unix time in seconds.
    pub fn mint(&self, user: &UserId, device: Option<&DeviceId>, expires_at: u64) -> String {
        let (aud, device_id) = (self.audience.as_deref(), device.map(DeviceId::as_str));
        let claims = Minted { sub: user.as_str(), exp: expires_at, aud, device_id };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .expect("HS256 signs any claims that serialize")
    }
}

/// A NumericDate of RFC 7519, which may have a fraction, in whole seconds; 0 for a date before 1970.
fn seconds(date: &Value) -> Option<u64> {
    date.as_u64().or_else(|| date.as_f64().map(|secs| secs as u64))
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
    use serde_json::json;

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

    fn signed(header: serde_json::Value, claims: serde_json::Value) -> String {
        use base64::Engine;
        let part = |json: serde_json::Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &keys().encoding, Algorithm::HS256).unwrap();
        format!("{message}.{signature}")
    }

    #[test]
    fn a_token_that_is_refused_says_why() {
        let hs256 = json!({"alg": "HS256"});
        let refused = [
            (Keys::new("api", b"another key").mint(&"ann".parse().unwrap(), None, 100), "signature does not match"),
            ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJleHAiOjEwMH0.".to_owned(), "not a signed JWT"),
            (String::new(), "not a signed JWT"),
            ("x.y.z".to_owned(), "not a signed JWT"),
            (signed(json!({"alg": "HS512"}), json!({"sub": "ann", "exp": 100})), "alg is not HS256"),
            (signed(json!({"alg": "RS256"}), json!({"sub": "ann", "exp": 100})), "alg is not HS256"),
            (signed(json!({"alg": "HS256", "crit": ["b64"], "b64": true}), json!({"sub": "ann", "exp": 100})), "crit"),
            (signed(json!({"alg": "HS256", "crit": []}), json!({"sub": "ann", "exp": 100})), "crit"),
            (signed(hs256.clone(), json!([])), "not a JSON object"),
            (signed(hs256.clone(), json!({"sub": "ann"})), "no exp"),
            (signed(hs256.clone(), json!({"sub": "ann", "exp": null})), "no exp"),
            (signed(hs256.clone(), json!({"sub": "ann", "exp": "100"})), "exp is not a number"),
            (signed(hs256.clone(), json!({"exp": 100})), "no sub"),
            (signed(hs256.clone(), json!({"sub": "a n", "exp": 100})), "sub is not a user id"),
            (signed(hs256.clone(), json!({"sub": "ann", "exp": 100, "nbf": 62})), "nbf has not come"),
            (signed(hs256.clone(), json!({"sub": "ann", "exp": 100, "nbf": "1"})), "nbf is not a number"),
            (signed(hs256, json!({"sub": "ann", "exp": 100, "device_id": "my phone"})), "device_id"),
        ];
        for (token, why) in refused {
            let Err(TokenError::Invalid(said)) = keys().verify(&token, 1) else { panic!("{token} is to be refused") };
            assert!(said.contains(why) && said.starts_with("token") && said.len() < 60, "{why}: {said}");
        }
    }

    #[test]
    fn a_date_may_have_a_fraction_and_clocks_may_differ_a_little() {
        let verify = |claims, now| keys().verify(&signed(json!({"alg": "HS256"}), claims), now);
        assert_eq!(verify(json!({"sub": "ann", "exp": 100.9}), 99).unwrap().expires_at, 100);
        assert_eq!(verify(json!({"sub": "ann", "exp": 100.9}), 100), Err(TokenError::Expired));
        assert_eq!(verify(json!({"sub": "ann", "exp": -1.5}), 1), Err(TokenError::Expired));
        assert_eq!(verify(json!({"sub": "ann", "exp": 1e300}), 99).unwrap().expires_at, u64::MAX);
        assert!(verify(json!({"sub": "ann", "exp": 100, "nbf": 61}), 1).is_ok());
        assert!(verify(json!({"sub": "ann", "exp": 100, "nbf": 61.5}), 1).is_ok());
    }

    #[test]
    fn where_an_audience_is_set_a_token_has_to_name_it() {
        let verify = |keys: &Keys, aud| keys.verify(&signed(json!({"alg": "HS256"}), aud), 1);
        let (any, ours) = (keys().for_audience(""), keys().for_audience("feed"));
        for aud in [json!("feed"), json!(["shop", "feed"])] {
            let claims = json!({"sub": "ann", "exp": 100, "aud": aud});
            assert!(verify(&any, claims.clone()).is_ok() && verify(&ours, claims).is_ok());
        }
        for aud in [json!("shop"), json!("Feed"), json!(["shop"]), json!([]), json!(7), json!({"feed": 1}), json!(null)]
        {
            let claims = json!({"sub": "ann", "exp": 100, "aud": aud});
            assert_eq!(
                verify(&ours, claims.clone()),
                Err(TokenError::Invalid("token's aud does not name this server"))
            );
            assert!(verify(&any, claims).is_ok());
        }
        let minted = ours.mint(&"ann".parse().unwrap(), None, 100);
        assert!(ours.verify(&minted, 1).is_ok(), "its own tokens are for it");
        assert!(keys().for_audience("shop").verify(&minted, 1).is_err());
    }

    #[test]
    fn the_api_key_is_recognised() {
        assert!(keys().is_api_key("api"));
        assert!(!keys().is_api_key("apj"));
    }
}
