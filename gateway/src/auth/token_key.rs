//! One key that verifies readers' tokens.
//!
//! Invariants: a key is bound to one algorithm when it is made. So a token cannot choose how its key is used, and a
//! public key never serves as the secret of an HMAC. A key that is too weak for its algorithm is refused.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header, Validation, crypto};

use super::claims::{Brought, TokenError};

/// The algorithms that a key may have.
const ALGORITHMS: [(&str, Algorithm); 9] = [
    ("HS256", Algorithm::HS256),
    ("HS384", Algorithm::HS384),
    ("HS512", Algorithm::HS512),
    ("RS256", Algorithm::RS256),
    ("RS384", Algorithm::RS384),
    ("RS512", Algorithm::RS512),
    ("ES256", Algorithm::ES256),
    ("ES384", Algorithm::ES384),
    ("EdDSA", Algorithm::EdDSA),
];

/// The bytes of an RSA modulus: 2048 to 4096 bits. A shorter one can be broken, and a longer one costs too much.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=512;

/// The refusal of a token that another key may have signed.
pub(super) const BAD_SIGNATURE: TokenError = TokenError::Invalid("token's signature does not match");

/// A key that verifies tokens of one algorithm.
#[derive(Clone)]
pub(super) struct TokenKey {
    /// The `kid` of the tokens that this key verifies; `None` if any token may be tried with this key.
    kid: Option<Box<str>>,
    algorithm: Algorithm,
    decoding: DecodingKey,
}

impl TokenKey {
    /// The key without a name: the secret by which the server itself signs tokens, with HS256.
    pub(super) fn own(secret: &[u8]) -> Self {
        Self { kid: None, algorithm: Algorithm::HS256, decoding: DecodingKey::from_secret(secret) }
    }

    /// Reads the key of a file whose name is `KID.ALG`. For HS256, HS384 and HS512 the `contents` are the secret, whose
    /// line end does not count. For the other algorithms they are a public key as PEM. The error says what would be
    /// right, and holds nothing of the contents.
    pub(super) fn from_file(name: &str, contents: &str) -> Result<Self, String> {
        let named = name.rsplit_once('.').filter(|(kid, _)| !kid.is_empty());
        let (kid, algorithm) = named.and_then(|(kid, alg)| Some((kid, algorithm(alg)?))).ok_or_else(|| {
            let known = ALGORITHMS.map(|(name, _)| name).join(", ");
            format!("the name of a key's file is KID.ALG, where ALG is one of {known}")
        })?;
        if contents.contains("PRIVATE KEY") {
            return Err("it holds a private key, which belongs to the signer alone; give its public key".to_owned());
        }
        if contents.contains("-----BEGIN") && algorithm.family() == AlgorithmFamily::Hmac {
            return Err(format!("it holds a public key, which is no secret; it must hold {}", wanted(algorithm)));
        }
        let (secret, pem) = (contents.trim_end_matches(['\r', '\n']), contents.as_bytes());
        let decoding = match algorithm.family() {
            AlgorithmFamily::Hmac => Ok(DecodingKey::from_secret(secret.as_bytes())),
            AlgorithmFamily::Rsa => DecodingKey::from_rsa_pem(pem),
            AlgorithmFamily::Ec => DecodingKey::from_ec_pem(pem),
            AlgorithmFamily::Ed => DecodingKey::from_ed_pem(pem),
        };
        let wrong = || format!("it must hold {}", wanted(algorithm));
        let decoding = decoding.map_err(|_| wrong())?;
        if !fits(algorithm, &decoding) {
            return Err(wrong());
        }
        Ok(Self { kid: Some(kid.into()), algorithm, decoding })
    }

    /// Reads one key of a JWKS (RFC 7517). Gives `None` for a key that is not for signatures of these algorithms: a set
    /// may hold keys for other purposes. For a key that is, the error says what is wrong, and holds nothing of the key.
    ///
    /// A key that names no `alg` has the algorithm of its kind: RS256, ES256, ES384 or EdDSA.
    pub(super) fn from_jwk(jwk: &serde_json::Value) -> Result<Option<Self>, String> {
        let text = |field: &str| jwk.get(field).and_then(serde_json::Value::as_str);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return Ok(None);
        }
        let named = text("alg").or(match (text("kty"), text("crv")) {
            (Some("RSA"), _) => Some("RS256"),
            (Some("EC"), Some("P-256")) => Some("ES256"),
            (Some("EC"), Some("P-384")) => Some("ES384"),
            (Some("OKP"), Some("Ed25519")) => Some("EdDSA"),
            _ => None,
        });
        let Some(algorithm) = named.and_then(algorithm) else { return Ok(None) };
        if algorithm.family() == AlgorithmFamily::Hmac {
            return Err("a secret is no key for a public set".to_owned());
        }
        let wrong = || "it is not of its algorithm's kind, or too weak for it".to_owned();
        let jwk = serde_json::from_value::<Jwk>(jwk.clone()).map_err(|_| wrong())?;
        let decoding = DecodingKey::from_jwk(&jwk).map_err(|_| wrong())?;
        if !fits(algorithm, &decoding) {
            return Err(wrong());
        }
        Ok(Some(Self { kid: jwk.common.key_id.map(String::into), algorithm, decoding }))
    }

    /// Whether this key may have signed a token with this header. A token without `kid` may be of any key, and a token
    /// whose `kid` no key has may be of a key without a name; the signature decides.
    pub(super) fn may_have_signed(&self, header: &Header) -> bool {
        let named = match (&self.kid, &header.kid) {
            (Some(mine), Some(kid)) => **mine == **kid,
            _ => true,
        };
        named && header.alg == self.algorithm
    }

    /// The claims of a token that this key has signed. Checks the signature alone.
    pub(super) fn open(&self, token: &str) -> Result<Brought, TokenError> {
        let mut rules = Validation::new(self.algorithm);
        rules.required_spec_claims.clear();
        rules.validate_aud = false;
        // The caller checks this by a clock of its own.
        rules.validate_exp = false;
        let read = jsonwebtoken::decode(token, &self.decoding, &rules);
        read.map(|read| read.claims).map_err(|error| match error.kind() {
            ErrorKind::Json(_) | ErrorKind::Utf8(_) => TokenError::Invalid("token's claims are not a JSON object"),
            ErrorKind::InvalidSignature => BAD_SIGNATURE,
            _ => TokenError::Invalid("token is not a signed JWT"),
        })
    }
}

fn algorithm(name: &str) -> Option<Algorithm> {
    ALGORITHMS.into_iter().find(|(known, _)| *known == name).map(|(_, algorithm)| algorithm)
}

/// Says in words what a key of this algorithm must be, for an error.
fn wanted(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::HS256 => "a secret of at least 32 bytes",
        Algorithm::HS384 => "a secret of at least 48 bytes",
        Algorithm::HS512 => "a secret of at least 64 bytes",
        Algorithm::ES256 => "the public key of an EC key pair on P-256, as PEM",
        Algorithm::ES384 => "the public key of an EC key pair on P-384, as PEM",
        Algorithm::EdDSA => "the public key of an Ed25519 key pair, as PEM",
        _ => "the public key of an RSA key pair of 2048 to 4096 bits, as PEM",
    }
}

/// Whether a key is of its algorithm's kind, and strong enough for it (RFC 7518, sections 3.2 to 3.4).
fn fits(algorithm: Algorithm, key: &DecodingKey) -> bool {
    let described = Jwk::from_decoding_key(key, Some(algorithm)).map(|jwk| jwk.algorithm);
    let fits = match (algorithm, described) {
        (Algorithm::HS256, Ok(AlgorithmParameters::OctetKey(secret))) => length(&secret.value) >= 32,
        (Algorithm::HS384, Ok(AlgorithmParameters::OctetKey(secret))) => length(&secret.value) >= 48,
        (Algorithm::HS512, Ok(AlgorithmParameters::OctetKey(secret))) => length(&secret.value) >= 64,
        (Algorithm::ES256, Ok(AlgorithmParameters::EllipticCurve(ec))) => ec.curve == EllipticCurve::P256,
        (Algorithm::ES384, Ok(AlgorithmParameters::EllipticCurve(ec))) => ec.curve == EllipticCurve::P384,
        (Algorithm::EdDSA, Ok(AlgorithmParameters::OctetKeyPair(_))) => true,
        (_, Ok(AlgorithmParameters::RSA(rsa))) => RSA_BYTES.contains(&length(&rsa.n)),
        _ => false,
    };
    // The verifier of a curve checks, when it is made, that the key is a point on that curve.
    fits && crypto::verify("", b"", key, algorithm).is_ok()
}

/// How many bytes a value of a JWK has, without leading zeros.
fn length(base64: &str) -> usize {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(base64).unwrap_or_default();
    bytes.iter().skip_while(|byte| **byte == 0).count()
}
