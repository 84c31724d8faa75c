//! Opaque text for a client to bring back unchanged, such as a cursor. The text is no secret: its digest only detects
//! text that was never given out.
//!
//! ```text
//!   base64url( bytes | first 4 bytes of a digest of what it is for, and these )
//! ```

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// How many bytes of the digest end the text.
const CHECK: usize = 4;

/// The text for these bytes. `purpose` says what the text is for, such as "feedgate page cursor".
pub fn seal(purpose: &str, mut bytes: Vec<u8>) -> String {
    bytes.extend(check(purpose, &bytes));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The bytes of a text that was [sealed](seal) for this purpose; `None` for any other text.
pub fn open(purpose: &str, text: &str) -> Option<Vec<u8>> {
    let mut bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let digest = bytes.split_off(bytes.len().checked_sub(CHECK)?);
    (digest == check(purpose, &bytes)).then_some(bytes)
}

fn check(purpose: &str, bytes: &[u8]) -> [u8; CHECK] {
    let digest = Sha256::new().chain_update(purpose).chain_update(bytes).finalize();
    [digest[0], digest[1], digest[2], digest[3]]
}
