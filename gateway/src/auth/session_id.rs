//! The id of a session whose device sends each message by a request of its own. The id is a credential, since it opens
//! the mailbox of that session.
//!
//! An id holds a random number of 128 bits, and a signature over this number and the node's name. So any node can
//! detect a forged id without asking the node that holds the session.

use std::iter;

use jsonwebtoken::crypto::sign;
use jsonwebtoken::{Algorithm, EncodingKey};
use subtle::ConstantTimeEq;

use super::Keys;

impl Keys {
    /// The id of the session of `node` that has this random number.
    pub(crate) fn session_id(&self, node: &str, number: u128) -> String {
        id(node, number, &self.encoding)
    }

    /// Whether both have the same key for the server's own signatures.
    pub(super) fn signs_as(&self, other: &Self) -> bool {
        self.session_id("", 0) == other.session_id("", 0)
    }

    /// The random number of a session of `node`; `None` if the id was not made for that node with our key, or an
    /// earlier one.
    pub(crate) fn session_number(&self, node: &str, id: &str) -> Option<u128> {
        let number = u128::from_str_radix(id.get(..32)?, 16).ok()?;
        let mut keys = iter::once(&self.encoding).chain(&self.earlier);
        let is_of = |key| bool::from(self::id(node, number, key).as_bytes().ct_eq(id.as_bytes()));
        keys.any(is_of).then_some(number)
    }
}

/// The id that this key makes for the session of `node` with this random number.
fn id(node: &str, number: u128, key: &EncodingKey) -> String {
    let said = format!("session {number:032x} of {node}");
    // The signed text has spaces, so that no signature of a token fits it.
    let signature = sign(said.as_bytes(), key, Algorithm::HS256).expect("HS256 signs any bytes");
    format!("{number:032x}.{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_that_was_given_names_a_session_and_only_at_its_node() {
        let keys = Keys::new("api", b"0123456789abcdef0123456789abcdef");
        let id = keys.session_id("g1.7", 5);
        assert_eq!(keys.session_number("g1.7", &id), Some(5));
        let other = Keys::new("api", b"another key of more than 32 bytes").session_id("g1.7", 5);
        let (number, signature) = id.split_once('.').unwrap();
        let forged = [other, number.to_owned(), format!("{number}."), format!("{:032x}.{signature}", 6), String::new()];
        for id in forged {
            assert_eq!(keys.session_number("g1.7", &id), None, "{id}");
        }
        assert_eq!(keys.session_number("g2.7", &id), None);
    }

    #[test]
    fn a_session_outlives_four_exchanges_of_the_key_and_one_that_is_no_exchange_counts_for_none() {
        let of = |n: u8| Keys::new("api", &[n; 32]);
        let mut keys = of(0);
        let id = keys.session_id("g1.7", 5);
        for n in [1, 1, 2, 3, 3, 4] {
            keys = of(n).after(&keys);
            assert_eq!(keys.session_number("g1.7", &id), Some(5), "after key {n}");
            assert_ne!(keys.session_id("g1.7", 5), id);
        }
        assert_eq!(of(5).after(&keys).session_number("g1.7", &id), None);
    }
}
