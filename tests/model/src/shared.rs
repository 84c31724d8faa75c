//! What makes states cheap: most steps change a small part of a state, so two states share what is the same in both,
//! and what is shared is hashed once.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// A part of a state, which is copied when it is written to while others share it.
#[derive(Clone, Debug)]
pub struct Shared<T>(Arc<Hashed<T>>);

#[derive(Clone, Debug)]
struct Hashed<T> {
    of: T,
    /// 0 if it is not known.
    hash: u128,
}

impl<T> Shared<T> {
    pub(crate) fn new(of: T) -> Self {
        Self(Arc::new(Hashed { of, hash: 0 }))
    }
}

impl<T: Clone + Hash> Shared<T> {
    /// Hashes it, if it was written to.
    pub(crate) fn seal(&mut self) {
        if self.0.hash == 0 {
            let hash = Bytes::of(&self.0.of, xxh3_128_with_seed);
            Arc::make_mut(&mut self.0).hash = hash;
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.of
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        let own = Arc::make_mut(&mut self.0);
        own.hash = 0;
        &mut own.of
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl<T: Eq> Eq for Shared<T> {}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        debug_assert_ne!(self.0.hash, 0, "a state is sealed before it is hashed");
        state.write_u128(self.0.hash);
    }
}

/// How many bytes are hashed at once. Few states are longer.
const AT_ONCE: usize = 240;

/// Gathers what a value hashes, and hashes all of it at once. Nearly all that a state hashes are single bytes, for each
/// of which other hashers take a step of their own.
pub(crate) struct Bytes {
    gathered: [u8; AT_ONCE],
    len: usize,
    /// The hash of what was gathered before and did not fit.
    before: u64,
}

impl Bytes {
    /// The hash of a value, by `hash` of bytes and a seed.
    pub(crate) fn of<O>(value: &impl Hash, hash: impl FnOnce(&[u8], u64) -> O) -> O {
        let mut bytes = Self { gathered: [0; AT_ONCE], len: 0, before: 0 };
        value.hash(&mut bytes);
        hash(&bytes.gathered[..bytes.len], bytes.before)
    }

    /// Makes room for so many more.
    #[inline]
    fn room(&mut self, more: usize) {
        if self.len + more > AT_ONCE {
            self.before = self.finish();
            self.len = 0;
        }
    }
}

impl Hasher for Bytes {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(AT_ONCE) {
            self.room(bytes.len());
            self.gathered[self.len..self.len + bytes.len()].copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    #[inline]
    fn write_u8(&mut self, byte: u8) {
        self.room(1);
        self.gathered[self.len] = byte;
        self.len += 1;
    }

    /// A length is small, so it is a byte.
    #[inline]
    fn write_usize(&mut self, n: usize) {
        debug_assert!(n < 256, "a length that does not fit a byte");
        self.write_u8(n as u8);
    }

    /// The number of the case of an enum is small, so it is a byte.
    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.write_usize(n as usize);
    }

    fn finish(&self) -> u64 {
        xxh3_64_with_seed(&self.gathered[..self.len], self.before)
    }
}
