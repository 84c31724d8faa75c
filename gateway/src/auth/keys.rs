//! Checks credentials: backends have API keys, readers a JWT.
//!
//! A token is verified by a key of its own algorithm: if the token has a `kid`, by a key of this name or a key without
//! a name; else by any key. `exp` is required; `nbf`, `iat`, `iss` and `aud` are checked as [`Keys`] says. A token
//! whose header has `crit` is refused.

use feedgate_common::{DeviceId, Millis, UserId};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde::Serialize;

use super::api_key::{ApiKey, Roles};
use super::claims::{Brought, Claims, Rules, TokenError};
use super::key_set::KeySet;
use super::secret::digest;
use super::token_key::{BAD_SIGNATURE, TokenKey};

/// How many seconds `nbf` and `iat` may lie ahead unless [`Keys::with_leeway`] says otherwise: so a token that is valid
/// from now on is accepted at once, even if the signer's clock is ahead.
const LEEWAY_SECS: u32 = 60;

/// The most keys besides the server's own. A token without `kid` may be tried with all keys of its algorithm.
const TOKEN_KEYS_MAX: usize = 16;

/// The most API keys besides the server's own: each request is compared with all of them.
const API_KEYS_MAX: usize = 64;

/// How many earlier keys of the server are kept. After that many exchanges, a session id of the oldest is not accepted.
const EARLIER_MAX: usize = 4;

/// The name of the server's own API key, which is that of its file.
const OWN: &str = "api_key";

/// What credentials are checked with: the API keys, the keys of readers' tokens, and the rules for the claims.
#[derive(Clone)]
pub struct Keys {
    /// The server's own key first, then the keys that the operator has made.
    api_keys: Vec<ApiKey>,
    pub(super) encoding: EncodingKey,
    /// The earlier keys of the server, the latest first: the session ids that they have signed stay valid.
    pub(super) earlier: Vec<EncodingKey>,
    /// The server's own key first, then the keys of other signers.
    token_keys: Vec<TokenKey>,
    /// The keys of a JWKS; `None` if none is fetched.
    published: Option<Vec<TokenKey>>,
    rules: Rules,
}

/// The claims of a token that is made here.
#[derive(Serialize)]
struct Minted<'a> {
    sub: &'a str,
    /// The time of issue in seconds, with a fraction: a token may be issued in the second in which older ones are
    /// revoked.
    iat: f64,
    exp: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aud: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_id: Option<&'a str>,
}

impl Keys {
    /// Makes the keys from the secrets' bytes as they are in `<data>/secrets`. Tokens may have any audience and issuer.
    pub fn new(api_key: &str, token_key: &[u8]) -> Self {
        Self {
            api_keys: vec![ApiKey::new(OWN, Roles::ADMIN, api_key).expect("this name and this role are valid")],
            encoding: EncodingKey::from_secret(token_key),
            earlier: vec![],
            token_keys: vec![TokenKey::own(token_key)],
            published: None,
            rules: Rules { audience: None, issuer: None, leeway: LEEWAY_SECS.into() },
        }
    }

    /// Accepts a further API key too. Fails if there is a key of the same name, or if there are 64 already.
    pub fn with_api_key(mut self, key: ApiKey) -> Result<Self, String> {
        if self.api_keys.iter().any(|known| known.name() == key.name()) {
            return Err(format!("there is a key {} already; give each key a name of its own", key.name()));
        }
        if self.api_keys.len() > API_KEYS_MAX {
            return Err(format!("there may be {API_KEYS_MAX} such keys; take out those that nobody uses"));
        }
        self.api_keys.push(key);
        Ok(self)
    }

    /// Accepts the tokens of a further key too. `name` is the name of its file, `KID.ALG`, and `contents` what the file
    /// holds: a secret for HS256, HS384 and HS512; a public key as PEM for RS256, RS384, RS512, ES256, ES384 and EdDSA.
    /// Fails if this is no such key, or a weak one, or if there are 16 keys already; the error holds nothing of the
    /// contents.
    pub fn with_token_key(mut self, name: &str, contents: &str) -> Result<Self, String> {
        if self.token_keys.len() > TOKEN_KEYS_MAX {
            return Err(format!("there may be {TOKEN_KEYS_MAX} such keys; take out those that nobody signs with"));
        }
        self.token_keys.push(TokenKey::from_file(name, contents)?);
        Ok(self)
    }

    /// Accepts the tokens of the keys in `set` too, in place of those of an earlier set; `None` stands for a set that
    /// could not be fetched yet.
    pub(super) fn with_published(mut self, set: Option<&KeySet>) -> Self {
        self.published = Some(set.map(|set| set.keys.clone()).unwrap_or_default());
        self
    }

    /// These keys in place of those `before`, for a gateway that goes on. They accept also the tokens of the keys that
    /// `before` had from a published set, and the ids of the sessions that are open.
    pub(super) fn after(mut self, before: &Self) -> Self {
        self.published.clone_from(&before.published);
        self.earlier.clone_from(&before.earlier);
        if !self.signs_as(before) {
            self.earlier.insert(0, before.encoding.clone());
            self.earlier.truncate(EARLIER_MAX);
        }
        self
    }

    /// Whether each API key of `before` is one of these keys too, with the same roles.
    pub(crate) fn keep_api_keys_of(&self, before: &Self) -> bool {
        before.api_keys.iter().all(|key| self.api_keys.contains(key))
    }

    /// Accepts only tokens whose `aud` names `audience`; any token if `audience` is empty.
    pub fn for_audience(mut self, audience: &str) -> Self {
        self.rules.audience = (!audience.is_empty()).then(|| audience.into());
        self
    }

    /// Accepts only tokens whose `iss` is `issuer`; any token if `issuer` is empty.
    pub fn from_issuer(mut self, issuer: &str) -> Self {
        self.rules.issuer = (!issuer.is_empty()).then(|| issuer.into());
        self
    }

    /// Accepts tokens whose `nbf` and `iat` lie up to so many seconds ahead.
    pub fn with_leeway(mut self, secs: u32) -> Self {
        self.rules.leeway = secs.into();
        self
    }

    /// The roles of this API key; `None` if the text is no API key. All keys are compared, each in constant time.
    pub fn roles_of(&self, api_key: &str) -> Option<Roles> {
        let digest = digest(api_key);
        self.api_keys.iter().fold(None, |found, key| if key.is(&digest) { Some(key.roles()) } else { found })
    }

    /// Reads a token at `now`, a Unix time in seconds. Nothing of a refused token is used.
    pub fn verify(&self, token: &str, now: u64) -> Result<Claims, TokenError> {
        self.rules.read(self.open(token)?, now)
    }

    /// The claims of a token that one of the keys has signed. Checks only the signature, `alg`, `kid` and `crit`.
    fn open(&self, token: &str) -> Result<Brought, TokenError> {
        let header =
            jsonwebtoken::decode_header(token).map_err(|_| TokenError::Invalid("token is not a signed JWT"))?;
        // RFC 7515: a reader must understand what a token calls critical, and no extension is understood here.
        if header.crit.is_some() {
            return Err(TokenError::Invalid("token's crit names what is not understood"));
        }
        let mut opened = Err(match self.published {
            Some(_) if header.kid.is_some() => TokenError::UnknownKey,
            _ => TokenError::Invalid("token's alg and kid are those of no key here"),
        });
        let keys = self.token_keys.iter().chain(self.published.iter().flatten());
        for key in keys.filter(|key| key.may_have_signed(&header)) {
            opened = key.open(token);
            if !matches!(opened, Err(BAD_SIGNATURE)) {
                break;
            }
        }
        opened
    }

    /// Makes a token for `user`, issued at `issued_at` in Unix ms, that expires at `expires_at`, a Unix time in
    /// seconds. The server's own key signs it.
    pub fn mint(&self, user: &UserId, device: Option<&DeviceId>, issued_at: Millis, expires_at: u64) -> String {
        let (iss, aud) = (self.rules.issuer.as_deref(), self.rules.audience.as_deref());
        let device_id = device.map(DeviceId::as_str);
        let iat = issued_at as f64 / 1000.0;
        let claims = Minted { sub: user.as_str(), iat, exp: expires_at, iss, aud, device_id };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding)
            .expect("HS256 signs any claims that serialize")
    }
}

#[cfg(test)]
mod tests;
