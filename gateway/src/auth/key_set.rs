//! A JWKS: the public keys of a signer, as the signer publishes them (RFC 7517).
//!
//! Invariants: a key is bound to one algorithm, and is strong enough for it. A key that cannot be used is left out, so
//! that a new kind of key in the set does not take the others away. A set is read as a whole or not at all.

use serde::Deserialize;
use serde_json::Value;

use super::token_key::TokenKey;

/// The most keys of a set. A token without `kid` may be tried with all keys of its algorithm.
const KEYS_MAX: usize = 32;

/// The keys of a JWKS that verify tokens.
#[derive(Default)]
pub struct KeySet {
    pub(super) keys: Vec<TokenKey>,
    left_out: Vec<String>,
}

impl KeySet {
    /// Reads the JSON of a set. Fails if the JSON is no set, if the set has more than 32 keys, or if none of its keys
    /// can be used; the error says what would be right.
    pub fn parse(json: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Jwks {
            keys: Vec<Value>,
        }
        let jwks: Jwks =
            serde_json::from_str(json).map_err(|_| "it is no JWKS, which is a JSON object with a list of keys")?;
        if jwks.keys.len() > KEYS_MAX {
            return Err(format!("it has {} keys, and may have {KEYS_MAX}", jwks.keys.len()));
        }
        let mut set = Self::default();
        for (jwk, number) in jwks.keys.iter().zip(1..) {
            match TokenKey::from_jwk(jwk) {
                Ok(key) => set.keys.extend(key),
                Err(why) => set.left_out.push(format!("key {number}: {why}")),
            }
        }
        if set.keys.is_empty() {
            let why = "it has no key for signatures by RS256, RS384, RS512, ES256, ES384 or EdDSA";
            return Err([&[why.to_owned()], &*set.left_out].concat().join("; "));
        }
        Ok(set)
    }

    /// How many keys can be used.
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// What was left out, and why: the number of each such key in the set, and what is wrong with it.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// RFC 8037, appendix A.2.
    fn ed25519() -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "a", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    }

    #[test]
    fn keys_for_other_purposes_and_unknown_kinds_take_no_other_key_away() {
        let with = |more: Value| KeySet::parse(&json!({"keys": [more, ed25519()], "more": 1}).to_string()).unwrap();
        for other in [
            json!({"kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"}),
            json!({"kty": "AKP", "alg": "ML-DSA-44", "pub": "x"}),
            json!({"kty": "OKP", "crv": "X25519", "x": "x"}),
            json!(7),
        ] {
            assert_eq!((with(other.clone()).count(), with(other).left_out()), (1, &[][..]));
        }
        let wrong = [
            (json!({"kty": "oct", "alg": "HS256", "k": "AQAB"}), "a secret is no key"),
            (json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}), "too weak"),
            (json!({"kty": "OKP", "alg": "RS256", "crv": "Ed25519", "x": "11qY"}), "its algorithm's kind"),
        ];
        for (wrong, why) in wrong {
            let set = with(wrong);
            assert_eq!(set.count(), 1);
            assert!(
                set.left_out()[0].starts_with("key 1: ") && set.left_out()[0].contains(why),
                "{:?}",
                set.left_out()
            );
        }
    }

    #[test]
    fn what_is_no_set_of_keys_is_refused_with_what_would_be_right() {
        for (text, wants) in [
            ("<html>".to_owned(), "a JSON object with a list of keys"),
            ("{}".to_owned(), "a JSON object with a list of keys"),
            (json!({"keys": []}).to_string(), "no key for signatures"),
            (json!({"keys": [{"kty": "oct", "alg": "HS256", "k": "AQAB"}]}).to_string(), "key 1: a secret is no key"),
            (json!({"keys": vec![ed25519(); 33]}).to_string(), "may have 32"),
        ] {
            let error = KeySet::parse(&text).err().unwrap();
            assert!(error.contains(wants), "{error}");
        }
    }

    #[test]
    fn a_set_of_32_keys_is_taken_and_a_key_without_alg_has_the_algorithm_of_its_curve() {
        let all = KeySet::parse(&json!({"keys": vec![ed25519(); 32]}).to_string()).unwrap();
        assert_eq!((all.count(), all.left_out()), (32, &[][..]));
        // RFC 7517, appendix A.1, and a key of the other curve.
        let p256 = ("MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM");
        let p384 = (
            "XC5ch3xqalLmFfrKZBwCdK8E3tVWsMmupMQmzxp1YlCL2Pm_kLvPAbr3tmxv95Jm",
            "wxX1vvlM_xpyz4BCFksfOFKQ4Yd66Mr7lWRtK4Gdf34womfRWNBshcj4VaSnDiHx",
        );
        let key = |curve: &str, (x, y): (&str, &str)| json!({"kty": "EC", "crv": curve, "x": x, "y": y});
        let set = json!({"keys": [key("P-256", p256), key("P-384", p384), key("P-521", p384)]}).to_string();
        let set = KeySet::parse(&set).unwrap();
        assert_eq!((set.count(), set.left_out()), (2, &[][..]), "nobody signs by the third curve");
    }
}
