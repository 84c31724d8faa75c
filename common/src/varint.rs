//! Numbers in as few bytes as they need: seven bits in each byte, the lowest first.
//!
//! Reading never panics and never reads past the end. It answers `None` for bytes that this module cannot have written.

/// Appends `n`: 1 byte if it is below 128, 10 bytes at most.
#[inline]
pub fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a number, in few bytes if it is near zero on either side.
#[inline]
pub fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, zigzag(n));
}

/// The unsigned number that [`put_signed`] writes: small if `n` is near zero.
#[inline]
pub fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// Reads a number that [`put`] wrote, off the front of `bytes`.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for (i, &byte) in bytes.iter().take(10).enumerate() {
        if i == 9 && byte > 1 {
            return None;
        }
        n |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(n);
        }
    }
    None
}

/// Reads a number that [`put_signed`] wrote, off the front of `bytes`.
#[inline]
pub fn take_signed(bytes: &mut &[u8]) -> Option<i64> {
    let n = take(bytes)?;
    Some((n >> 1) as i64 ^ -((n & 1) as i64))
}

/// Reads a number off the front of `bytes`; `None` if it does not fit a `u32`.
#[inline]
pub fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes)?.try_into().ok()
}

/// Reads one byte off the front of `bytes`.
#[inline]
pub fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(first)
}

/// Reads `n` bytes off the front of `bytes`.
#[inline]
pub fn take_bytes<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_comes_back(n: u64, s: i64) {
            let mut out = Vec::new();
            put(&mut out, n);
            put_signed(&mut out, s);
            let mut bytes = &out[..];
            prop_assert_eq!(take(&mut bytes), Some(n));
            prop_assert_eq!(take_signed(&mut bytes), Some(s));
            prop_assert!(bytes.is_empty());
        }

        #[test]
        fn any_bytes_are_a_number_or_nothing(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while take(&mut rest).is_some() {}
        }
    }

    #[test]
    fn a_number_cut_short_or_beyond_64_bits_is_none() {
        for bad in
            [&[][..], &[0x80], &[0xff; 9], &[0xff; 10], &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]]
        {
            assert_eq!(take(&mut &*bad), None, "{bad:?}");
        }
    }
}
