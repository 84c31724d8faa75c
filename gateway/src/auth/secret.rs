//! Makes random secrets, which are keys and tickets, and the digests that are kept of them.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Makes a secret of 256 bits from the system's random source: 43 characters of `A-Za-z0-9_-`. Fails if the system
/// gives no random bytes.
pub fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// The SHA-256 of a secret. It is kept in place of the secret, and a secret that is shown is looked up by it.
pub(super) fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
