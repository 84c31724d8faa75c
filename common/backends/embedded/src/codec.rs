//! Values as bytes whose order is the order of the values.
//!
//! Invariants:
//! - `take` of what `put` wrote gives the value back and leaves nothing.
//! - For everything that may stand in a key, `a < b` exactly when `put(a) < put(b)`: numbers are big-endian, signed
//!   ones with the sign bit flipped. A text is written without its length, so in a key the text stands last.

use compact_str::CompactString;
use feedgate_common::change::{Class, Op, Route};
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::{Bucket, DisplayKey, Epoch, FeedId, InboxKey, ItemId, Position, UserNo};

/// A value that is written as bytes and read back. The format on disk is made of these.
pub trait Code: Sized {
    /// Appends the bytes of this value to `out`.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the bytes of one value off the front of `from`; `None` if they are no such value. `from` may be shorter
    /// after a failure too.
    fn take(from: &mut &[u8]) -> Option<Self>;
}

/// The bytes of `value` alone.
pub fn bytes_of(value: &impl Code) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    value.put(&mut out);
    out
}

/// The value behind `bytes`; `None` unless they are exactly its bytes.
pub fn value_of<T: Code>(mut bytes: &[u8]) -> Option<T> {
    let value = T::take(&mut bytes)?;
    bytes.is_empty().then_some(value)
}

macro_rules! unsigned {
    ($($number:ty),*) => {$(
        impl Code for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_be_bytes(*bytes))
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64);

impl Code for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        (self.cast_unsigned() ^ (1 << 63)).put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        u64::take(from).map(|n| (n ^ (1 << 63)).cast_signed())
    }
}

impl Code for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

macro_rules! newtypes {
    ($($name:ident),*) => {$(
        impl Code for $name {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Code::take(from).map(Self)
            }
        }
    )*};
}

newtypes!(UserNo, ItemId, FeedId, Bucket, Epoch, Shields);

/// Implements [`Code`] for a struct as its fields in the order named.
macro_rules! fields {
    ($row:ident { $($field:ident),+ }) => {
        impl $crate::codec::Code for $row {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(Self {
                    $($field: $crate::codec::Code::take(from)?,)+
                })
            }
        }
    };
}
pub(crate) use fields;

fields!(DisplayKey { rank, item });
fields!(InboxKey { reader, feed });
fields!(Position { epoch, offset });

/// Implements [`Code`] for types of numbered values as their numbers.
macro_rules! numbered {
    ($($name:ty),*) => {$(
        impl Code for $name {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Self::from_u8(u8::take(from)?)
            }
        }
    )*};
}

numbered!(Op, Route, Class, Shield);

impl Code for [u8; 16] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let (bytes, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(*bytes)
    }
}

/// `None` sorts before every `Some`.
impl<T: Code> Code for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        if bool::take(from)? { T::take(from).map(Some) } else { Some(None) }
    }
}

/// Reading a text takes all bytes that are left, so a text stands last in a key or a row.
impl Code for CompactString {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(std::mem::take(from)).ok()?;
        Some(text.into())
    }
}

/// A text of at most 65,535 bytes that other fields of a row may follow; not for keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Short(pub CompactString);

impl Code for Short {
    fn put(&self, out: &mut Vec<u8>) {
        let length = u16::try_from(self.0.len()).expect("names are bounded long before they are stored");
        length.put(out);
        self.0.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let length = u16::take(from)?;
        let (text, rest) = from.split_at_checked(length.into())?;
        *from = rest;
        value_of(text).map(Self)
    }
}

/// A row of no bytes: for a table of which only the keys count.
impl Code for () {
    fn put(&self, _out: &mut Vec<u8>) {}

    fn take(_from: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),+))*) => {$(
        impl<$($part: Code),+> Code for ($($part,)+) {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$at.put(out);)+
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                Some(($($part::take(from)?,)+))
            }
        }
    )*};
}

tuples! { (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn comes_back<T: Code + PartialEq + std::fmt::Debug>(value: &T) {
        let bytes = bytes_of(value);
        assert_eq!(value_of::<T>(&bytes).as_ref(), Some(value));
        if let Some((_, short)) = bytes.split_last() {
            assert_ne!(value_of::<T>(short).as_ref(), Some(value), "a torn value is not the value");
        }
    }

    fn key(rank: i64, item: u64) -> DisplayKey {
        DisplayKey { rank, item: ItemId(item) }
    }

    proptest! {
        #[test]
        fn what_is_put_is_taken_back(a: u32, b: u64, c: i64, d: Option<i64>, e: [u8; 16], text in ".{0,40}") {
            comes_back(&(UserNo(a), b, key(c, b)));
            comes_back(&(d, e, c));
            comes_back(&(Short(text.as_str().into()), a, CompactString::from(text)));
        }

        #[test]
        fn bytes_sort_as_the_values_do(a: (u32, u16, i64, u64), b: (u32, u16, i64, u64)) {
            let made = |(user, bucket, rank, item): (u32, u16, i64, u64)| {
                (UserNo(user), Bucket(bucket), key(rank, item))
            };
            prop_assert_eq!(made(a).cmp(&made(b)), bytes_of(&made(a)).cmp(&bytes_of(&made(b))));
            let made = |(reader, feed, rank, item): (u32, u16, i64, u64)| {
                (InboxKey { reader: UserNo(reader), feed: FeedId(feed) }, key(rank, item))
            };
            prop_assert_eq!(made(a).cmp(&made(b)), bytes_of(&made(a)).cmp(&bytes_of(&made(b))));
        }

        #[test]
        fn near_ranks_sort_as_the_values_do(a in -3i64..3, b in -3i64..3, x in 0u64..3, y in 0u64..3) {
            prop_assert_eq!(key(a, x).cmp(&key(b, y)), bytes_of(&key(a, x)).cmp(&bytes_of(&key(b, y))));
        }

        #[test]
        fn text_at_the_end_of_a_key_sorts_as_text(a in "[a-c]{0,4}", b in "[a-c]{0,4}") {
            let made = |text: &str| bytes_of(&(7u32, CompactString::from(text)));
            prop_assert_eq!(a.cmp(&b), made(&a).cmp(&made(&b)));
        }
    }

    #[test]
    fn a_value_with_something_behind_it_is_no_value() {
        assert_eq!(value_of::<u8>(&[1, 2]), None);
        assert_eq!(value_of::<bool>(&[2]), None);
    }
}
