//! The tests of the keys of tokens: which tokens they take, and what is said of the others.

use serde_json::json;

use super::super::api_key::Role;
use super::*;

fn keys() -> Keys {
    Keys::new("api", b"0123456789abcdef0123456789abcdef")
}

#[test]
fn a_minted_token_verifies_until_it_expires() {
    let (user, device) = ("ann".parse().unwrap(), "ios-1".parse().unwrap());
    let token = keys().mint(&user, Some(&device), 250, 100);
    assert_eq!(
        keys().verify(&token, 99),
        Ok(Claims { user, device: Some(device), issued_at: Some(250), expires_at: 100 })
    );
    assert_eq!(keys().verify(&token, 100), Err(TokenError::Expired));
}

/// A token with this header and these claims, signed with the server's own key.
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
        (Keys::new("api", b"another key").mint(&"ann".parse().unwrap(), None, 0, 100), "signature does not match"),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJleHAiOjEwMH0.".to_owned(), "not a signed JWT"),
        (String::new(), "not a signed JWT"),
        ("x.y.z".to_owned(), "not a signed JWT"),
        (signed(json!({"alg": "HS512"}), json!({"sub": "ann", "exp": 100})), "alg and kid are those of no key"),
        (signed(json!({"alg": "RS256"}), json!({"sub": "ann", "exp": 100})), "alg and kid are those of no key"),
        (signed(json!({"alg": "HS256", "crit": ["b64"], "b64": true}), json!({"sub": "ann", "exp": 100})), "crit"),
        (signed(json!({"alg": "HS256", "crit": []}), json!({"sub": "ann", "exp": 100})), "crit"),
        (signed(hs256.clone(), json!([])), "not a JSON object"),
        (signed(hs256.clone(), json!({"sub": "ann"})), "no exp"),
        (signed(hs256.clone(), json!({"sub": "ann", "exp": null})), "no exp"),
        (signed(hs256.clone(), json!({"sub": "ann", "exp": "100"})), "exp is not a number"),
        (signed(hs256.clone(), json!({"sub": "ann", "exp": 100_000_000_000_u64})), "must be in seconds"),
        (signed(hs256.clone(), json!({"sub": "ann", "exp": 1e300})), "must be in seconds"),
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
    assert_eq!(verify(json!({"sub": "ann", "exp": 99_999_999_999_u64}), 99).unwrap().expires_at, 99_999_999_999);
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
    for aud in [json!("shop"), json!("Feed"), json!(["shop"]), json!([]), json!(7), json!({"feed": 1}), json!(null)] {
        let claims = json!({"sub": "ann", "exp": 100, "aud": aud});
        assert_eq!(verify(&ours, claims.clone()), Err(TokenError::Invalid("token's aud does not name this server")));
        assert!(verify(&any, claims).is_ok());
    }
    let minted = ours.mint(&"ann".parse().unwrap(), None, 0, 100);
    assert!(ours.verify(&minted, 1).is_ok(), "its own tokens are for it");
    assert!(keys().for_audience("shop").verify(&minted, 1).is_err());
}

#[test]
fn an_api_key_is_recognised_with_its_roles_and_has_a_name_of_its_own() {
    let read: Roles = [Role::Read].into_iter().collect();
    let with = keys().with_api_key(ApiKey::new("shop", read, "the key of the shop").unwrap()).unwrap();
    assert_eq!(with.roles_of("api"), Some(Roles::ADMIN));
    assert_eq!(with.roles_of("the key of the shop"), Some(read));
    assert_eq!(["apj", "", "the key of the shop "].map(|key| with.roles_of(key)), [None; 3]);
    for taken in ["shop", "api_key"] {
        let error = with.clone().with_api_key(ApiKey::new(taken, read, "another").unwrap()).err().unwrap();
        assert!(error.contains(taken) && error.contains("a name of its own"), "{error}");
    }
}

/// A secret of 64 bytes: long enough for each of the HMAC algorithms.
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Pairs of keys: the algorithm, what the server holds, and what signs.
fn pairs() -> Vec<(&'static str, &'static str, EncodingKey)> {
    let (rsa, rsa_private) = (include_str!("fixtures/rsa.pem"), include_bytes!("fixtures/rsa.private.pem"));
    let (p256, p256_private) = (include_str!("fixtures/p256.pem"), include_bytes!("fixtures/p256.private.pem"));
    let (p384, p384_private) = (include_str!("fixtures/p384.pem"), include_bytes!("fixtures/p384.private.pem"));
    let (ed, ed_private) = (include_str!("fixtures/ed25519.pem"), include_bytes!("fixtures/ed25519.private.pem"));
    let rsa_private = EncodingKey::from_rsa_pem(rsa_private).unwrap();
    vec![
        ("HS256", SECRET, EncodingKey::from_secret(SECRET.as_bytes())),
        ("HS384", SECRET, EncodingKey::from_secret(SECRET.as_bytes())),
        ("HS512", SECRET, EncodingKey::from_secret(SECRET.as_bytes())),
        ("RS256", rsa, rsa_private.clone()),
        ("RS384", rsa, rsa_private.clone()),
        ("RS512", include_str!("fixtures/rsa.pkcs1.pem"), rsa_private),
        ("ES256", p256, EncodingKey::from_ec_pem(p256_private).unwrap()),
        ("ES384", p384, EncodingKey::from_ec_pem(p384_private).unwrap()),
        ("EdDSA", ed, EncodingKey::from_ed_pem(ed_private).unwrap()),
    ]
}

/// A token of ann with this `alg` and `kid`.
fn by(key: &EncodingKey, alg: &str, kid: Option<&str>) -> String {
    let header = Header { kid: kid.map(str::to_owned), ..Header::new(alg.parse().unwrap()) };
    jsonwebtoken::encode(&header, &json!({"sub": "ann", "exp": 100}), key).unwrap()
}

fn refusal(keys: &Keys, token: &str) -> &'static str {
    keys.verify(token, 1).expect_err("this token is to be refused").why()
}

#[test]
fn each_algorithm_verifies_what_its_key_has_signed_and_nothing_that_another_has() {
    for (alg, public, private) in pairs() {
        let with = keys().with_token_key(&format!("app.{alg}"), public).unwrap();
        for kid in [None, Some("app")] {
            let token = by(&private, alg, kid);
            assert_eq!(with.verify(&token, 1).unwrap().user.as_str(), "ann", "{alg}");
            assert_eq!(with.verify(&token, 100), Err(TokenError::Expired), "{alg}");
            let (message, signature) = token.rsplit_once('.').unwrap();
            let other = if signature.starts_with('A') { 'B' } else { 'A' };
            let forged = format!("{message}.{other}{}", &signature[1..]);
            assert_eq!(refusal(&with, &forged), "token's signature does not match", "{alg}");
        }
        let own = with.mint(&"ann".parse().unwrap(), None, 0, 100);
        assert!(with.verify(&own, 1).is_ok(), "the server's own tokens stay valid beside {alg}");
    }
}

#[test]
fn a_public_key_is_no_secret_and_a_key_serves_its_own_algorithm_alone() {
    for (alg, public, private) in pairs() {
        let with = keys().with_token_key(&format!("app.{alg}"), public).unwrap();
        let confused = by(&EncodingKey::from_secret(public.as_bytes()), "HS256", Some("app"));
        if alg != "HS256" {
            assert!(with.verify(&confused, 1).is_err(), "{alg} as the secret of an HMAC");
        }
        for other in ["RS256", "RS384", "RS512", "HS384", "HS512"] {
            if other != alg && other[..2] == alg[..2] {
                assert_eq!(
                    refusal(&with, &by(&private, other, Some("app"))),
                    "token's alg and kid are those of no key here"
                );
            }
        }
    }
}

#[test]
fn two_keys_are_valid_while_one_replaces_the_other_and_kid_tells_them_apart() {
    let (old, new) = ("an old secret of 32 bytes or more", "a new secret of 32 bytes or more");
    let [by_old, by_new] = [old, new].map(|secret| EncodingKey::from_secret(secret.as_bytes()));
    let both = keys().with_token_key("old.HS256", old).unwrap().with_token_key("new.HS256", new).unwrap();
    for (key, kid) in [(&by_old, Some("old")), (&by_new, Some("new")), (&by_old, None), (&by_new, None)] {
        assert!(both.verify(&by(key, "HS256", kid), 1).is_ok(), "{kid:?}");
    }
    assert_eq!(refusal(&both, &by(&by_new, "HS256", Some("old"))), "token's signature does not match");
    assert_eq!(refusal(&both, &by(&by_new, "HS256", Some("never"))), "token's signature does not match");
    let after = keys().with_token_key("new.HS256", new).unwrap();
    assert!(after.verify(&by(&by_old, "HS256", Some("old")), 1).is_err(), "the old key is gone");
}

#[test]
fn a_key_that_is_weak_or_of_another_kind_is_refused_with_what_would_be_right() {
    let (rsa, p256) = (include_str!("fixtures/rsa.pem"), include_str!("fixtures/p256.pem"));
    for (name, contents, wants) in [
        ("app", SECRET, "KID.ALG"),
        (".HS256", SECRET, "KID.ALG"),
        ("app.pem", rsa, "one of HS256, HS384"),
        ("app.none", "", "KID.ALG"),
        ("app.PS256", rsa, "KID.ALG"),
        ("app.HS256", &SECRET[..31], "at least 32 bytes"),
        ("app.HS384", &SECRET[..47], "at least 48 bytes"),
        ("app.HS512", &SECRET[..63], "at least 64 bytes"),
        ("app.HS256", rsa, "at least 32 bytes"),
        ("app.RS256", include_str!("fixtures/weak.pem"), "2048 to 4096 bits"),
        ("app.RS256", p256, "an RSA key pair"),
        ("app.RS256", SECRET, "an RSA key pair"),
        ("app.RS256", include_str!("fixtures/rsa.private.pem"), "private key"),
        ("app.ES256", include_str!("fixtures/p384.pem"), "P-256"),
        ("app.ES384", p256, "P-384"),
        ("app.EdDSA", p256, "Ed25519"),
        ("app.EdDSA", "", "Ed25519"),
    ] {
        let error = keys().with_token_key(name, contents).err().unwrap_or_else(|| panic!("{name}: {wants}"));
        assert!(error.contains(wants), "{name}: {error}");
    }
}

#[test]
fn so_many_keys_that_a_token_would_cost_much_are_refused() {
    let with = (0..TOKEN_KEYS_MAX).fold(keys(), |keys, n| keys.with_token_key(&format!("{n}.HS256"), SECRET).unwrap());
    assert!(with.with_token_key("one-more.HS256", SECRET).err().unwrap().contains("16"));
}

#[test]
fn so_many_api_keys_are_taken_and_one_more_is_refused() {
    let key = |n: usize| ApiKey::new(&format!("shop-{n}"), Roles::ADMIN, &format!("key {n}")).unwrap();
    let with = (0..API_KEYS_MAX).fold(keys(), |keys, n| keys.with_api_key(key(n)).unwrap());
    assert!(with.with_api_key(key(API_KEYS_MAX)).err().unwrap().contains("64"));
}

#[test]
fn where_an_issuer_is_set_a_token_has_to_be_of_it() {
    let ours = keys().from_issuer("https://login.example");
    for iss in [json!("https://login.example/"), json!("shop"), json!(["https://login.example"]), json!(7), json!(null)]
    {
        let token = signed(json!({"alg": "HS256"}), json!({"sub": "ann", "exp": 100, "iss": iss}));
        assert_eq!(refusal(&ours, &token), "token's iss is not the one that this server trusts");
        assert!(keys().from_issuer("").verify(&token, 1).is_ok(), "any issuer will do if none is set");
    }
    let token = signed(json!({"alg": "HS256"}), json!({"sub": "ann", "exp": 100, "iss": "https://login.example"}));
    assert!(ours.verify(&token, 1).is_ok());
    assert!(ours.verify(&ours.mint(&"ann".parse().unwrap(), None, 0, 100), 1).is_ok(), "its own tokens are of it");
}

#[test]
fn what_lies_ahead_by_more_than_the_leeway_is_refused() {
    let (exact, minutes) = (keys().with_leeway(0), keys().with_leeway(300));
    for claim in ["nbf", "iat"] {
        let token = signed(json!({"alg": "HS256"}), json!({"sub": "ann", "exp": 1000, claim: 100}));
        assert!(exact.verify(&token, 100).is_ok() && exact.verify(&token, 99).is_err(), "{claim}");
        assert!(keys().verify(&token, 40).is_ok() && keys().verify(&token, 39).is_err(), "{claim}");
        assert!(minutes.verify(&token, 0).is_ok(), "{claim}");
    }
}

#[test]
fn a_token_of_a_published_key_is_taken_and_one_of_an_unknown_key_is_to_be_tried_again() {
    let (_, _, private) = pairs().remove(8);
    let [named, nameless, other] = [Some("a"), None, Some("b")].map(|kid| by(&private, "EdDSA", kid));
    let set = |kid: &str| {
        let key =
            json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": "mxsqNPl9pFiRMH0aQBA2YgJtMv85iB24kX4LhzUdSXw"});
        KeySet::parse(&json!({ "keys": [key] }).to_string()).unwrap()
    };
    assert!(matches!(keys().verify(&named, 1), Err(TokenError::Invalid(_))), "no set is fetched");
    let waiting = keys().with_published(None);
    assert_eq!(waiting.verify(&named, 1), Err(TokenError::UnknownKey));
    assert!(matches!(waiting.verify(&nameless, 1), Err(TokenError::Invalid(_))), "it names no key to wait for");
    let fetched = waiting.with_published(Some(&set("a")));
    assert!(fetched.verify(&named, 1).is_ok() && fetched.verify(&nameless, 1).is_ok());
    assert_eq!(fetched.verify(&other, 1), Err(TokenError::UnknownKey));
    assert_eq!(
        fetched.with_published(Some(&set("b"))).verify(&named, 1),
        Err(TokenError::UnknownKey),
        "it was withdrawn"
    );
}
