//! Credentials of backends and readers: the keys to check them with, and the check of a reader's token.

mod api_key;
mod claims;
pub(crate) mod console;
mod key_set;
mod keys;
mod secret;
mod session_id;
mod token_key;
pub(crate) mod verifier;

pub use api_key::{ApiKey, Role, Roles};
pub use claims::{Claims, TokenError};
pub use key_set::KeySet;
pub use keys::Keys;
pub use secret::secret;
pub use verifier::Verifier;
