//! What all who speak TLS share: certificates and keys as PEM, the files for TLS with stores, and the words for a
//! handshake that failed.
//!
//! ```text
//!   gateway ──▶ pem                       postgres, redis, nats ──▶ stores: which files, their contents
//!                ▲                                      └─────────▶ refusal: why there is no TLS, for people
//!                └── stores
//! ```
//!
//! The only IO is that [`StoreTls`] reads its files.

pub mod pem;
mod refusal;
mod stores;

pub use refusal::refusal;
pub use stores::{Contents, StoreTls, StoreTlsError};
