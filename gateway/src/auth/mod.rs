//! Credentials: what they are checked with, and the check of a reader's token.

mod keys;
pub(crate) mod verifier;

pub use keys::{Claims, Keys, TokenError};
