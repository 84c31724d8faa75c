//! The fuzz targets of this crate. `tests/fuzz` searches for inputs that break them, and a test gives them its corpus.
//!
//! Each takes any bytes, and panics if a decoder breaks what it promises.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use feedgate_common::named::NamedFeeds;
use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey};

pub use crate::api::fuzzed::{api_cursors, bodies, import_lines};
use crate::auth::{KeySet, Keys};
use crate::net::address::proxy_protocol;
use crate::protocol::{Malformed, Message, Verb, json, protobuf};

/// How much a command keeps of a message, in bytes: a token or the text of a refusal (I18).
const KEPT_MAX: usize = 4096;

/// A command as JSON.
pub fn commands_json(bytes: &[u8]) {
    let line = String::from_utf8_lossy(bytes);
    check(&json::decode(&line, &NamedFeeds::default()));
}

/// A frame of commands as Protobuf, and the same bytes as one command.
pub fn commands_protobuf(bytes: &[u8]) {
    let feeds = NamedFeeds::default();
    let messages: Vec<_> = protobuf::messages(bytes).collect();
    assert!(messages.iter().rev().skip(1).all(Result::is_ok), "nothing is read behind what is malformed");
    assert!(messages.iter().flatten().map(|message| 1 + message.len()).sum::<usize>() <= bytes.len());
    for message in messages.into_iter().flatten().chain([bytes]) {
        check(&protobuf::decode(message, &feeds));
    }
}

/// Whether the command can be answered, keeps little, and says what was wrong with it.
fn check(message: &Result<Message, Malformed>) {
    let Ok(Message::Command(command)) = message else { return };
    assert!(command.id > 0);
    let kept = match &command.verb {
        Verb::Connect(Ok(connect)) => connect.token.len(),
        Verb::Refresh(token) => token.len(),
        Verb::Connect(Err(refusal)) | Verb::Refused(refusal) => {
            assert!(!refusal.message.is_empty());
            refusal.message.len()
        }
        _ => 0,
    };
    assert!(kept <= KEPT_MAX, "{command:?}");
}

const SECRET: &[u8] = b"a key of tests, and of 32 bytes or more";
static KEYS: LazyLock<Keys> = LazyLock::new(|| Keys::new("the API key", SECRET));
static SIGNS: LazyLock<EncodingKey> = LazyLock::new(|| EncodingKey::from_secret(SECRET));

/// The time at which [`tokens`] are checked, a Unix time in seconds.
const NOW: u64 = 1_800_000_000;

/// A token as it came; and one that is signed rightly, whose claims are the input. What stands before a line break is
/// its header.
pub fn tokens(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (header, claims) = text.split_once('\n').unwrap_or((r#"{"alg":"HS256"}"#, &text));
    let said = [header, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part)).join(".");
    let signature = sign(said.as_bytes(), &SIGNS, Algorithm::HS256).expect("HS256 signs any bytes");
    for token in [&*text, &format!("{said}.{signature}")] {
        match KEYS.verify(token, NOW) {
            Ok(claims) => {
                assert!(claims.expires_at > NOW);
                let minted = KEYS.mint(&claims.user, claims.device.as_ref(), 0, claims.expires_at);
                let again = KEYS.verify(&minted, NOW).expect("it is our own");
                assert_eq!((again.user, again.device), (claims.user, claims.device));
                assert_eq!(again.expires_at, claims.expires_at);
            }
            Err(why) => assert!(!why.to_string().is_empty()),
        }
    }
    assert_eq!(KEYS.session_number("node", &text), None, "nobody else can make the id of a session");
}

/// The set of keys that a signer publishes, as JSON.
pub fn key_sets(bytes: &[u8]) {
    match KeySet::parse(&String::from_utf8_lossy(bytes)) {
        Ok(set) => assert!((1..=32).contains(&set.count()) && set.left_out().len() < 32),
        Err(why) => assert!(!why.is_empty() && why.len() <= 8192 + 8 * bytes.len(), "{why}"),
    }
}

/// The header that a trusted proxy sends before a connection's first byte.
pub fn proxy_headers(bytes: &[u8]) {
    let Some((head, rest)) = bytes.split_first_chunk::<{ proxy_protocol::HEAD }>() else { return };
    match proxy_protocol::rest_of(*head) {
        Ok(length) => {
            assert!(length <= proxy_protocol::REST_MAX);
            proxy_protocol::client(*head, &rest[..length.min(rest.len())], IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        Err(why) => assert!(why.contains("PROXY protocol 2")),
    }
}

#[cfg(test)]
#[path = "../../tests/fuzz/replay.rs"]
mod replay;

#[cfg(test)]
replay::corpus_of! { commands_json commands_protobuf tokens key_sets proxy_headers import_lines api_cursors bodies }
