//! Lists as one string, in MessagePack: Redis's Lua packs and unpacks them in one call. A list whose values are
//! separate parts of Redis's protocol costs ten times as much to read.

use feedgate_common::error::{Result, StoreError};
use rmp::{decode, encode};

/// Begins a list of `length` values. The caller then appends the values with [`number`] and [`string`].
pub(super) fn list(out: &mut Vec<u8>, length: usize) {
    // Writing to a buffer in memory does not fail.
    _ = encode::write_array_len(out, length as u32);
}

pub(super) fn number(out: &mut Vec<u8>, n: u64) {
    _ = encode::write_uint(out, n);
}

pub(super) fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    _ = encode::write_str_len(out, bytes.len() as u32);
    out.extend(bytes);
}

/// The numbers of a list.
pub(super) fn numbers(mut packed: &[u8]) -> Result<Vec<u64>> {
    let whole = packed;
    let numbers = read_all(&mut packed, |rest| decode::read_int(rest).ok());
    numbers.ok_or_else(|| damaged("numbers", whole))
}

/// The strings of a list.
pub(super) fn strings(mut packed: &[u8]) -> Result<Vec<&[u8]>> {
    let whole = packed;
    let strings = read_all(&mut packed, |rest| {
        let length = decode::read_str_len(rest).ok()?;
        let (string, after) = rest.split_at_checked(length as usize)?;
        *rest = after;
        Some(string)
    });
    strings.ok_or_else(|| damaged("strings", whole))
}

/// All values of a list, each read by `read`; `None` if a value cannot be read, or if bytes follow the last value.
fn read_all<'a, T>(rest: &mut &'a [u8], read: impl Fn(&mut &'a [u8]) -> Option<T>) -> Option<Vec<T>> {
    let length = decode::read_array_len(rest).ok()?;
    let values = (0..length).map(|_| read(rest)).collect::<Option<Vec<_>>>()?;
    rest.is_empty().then_some(values)
}

fn damaged(what: &str, bytes: &[u8]) -> StoreError {
    let begin = &bytes[..bytes.len().min(32)];
    StoreError::corrupt(format_args!("Redis answered {begin:?}… where {what} were due"))
}

/// A part of a fuzz target: a list that is read was packed, and comes back. An error says what was due.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(bytes: &[u8]) {
    let is_damage = |error: StoreError| assert!(error.to_string().contains("were due"), "{error}");
    let mut again = vec![];
    match numbers(bytes) {
        Ok(all) => {
            list(&mut again, all.len());
            all.iter().for_each(|n| number(&mut again, *n));
            assert_eq!(numbers(&again).ok(), Some(all));
        }
        Err(error) => is_damage(error),
    }
    again.clear();
    match strings(bytes) {
        Ok(all) => {
            list(&mut again, all.len());
            all.iter().for_each(|word| string(&mut again, word));
            assert_eq!(strings(&again).ok(), Some(all));
        }
        Err(error) => is_damage(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_is_unpacked() {
        for length in [0, 1, 15, 16, 70_000] {
            let all: Vec<u64> = (0..length).map(|n| if n % 2 == 0 { n } else { (1 << 53) - n }).collect();
            let (mut packed, mut words) = (vec![], vec![]);
            list(&mut packed, all.len());
            list(&mut words, all.len());
            for n in &all {
                number(&mut packed, *n);
                string(&mut words, &n.to_le_bytes()[..(n % 9) as usize]);
            }
            assert_eq!(numbers(&packed).unwrap(), all);
            let read = strings(&words).unwrap();
            assert!(all.iter().zip(&read).all(|(n, word)| **word == n.to_le_bytes()[..(n % 9) as usize]));
            assert_eq!(read.len(), all.len());
        }
    }

    #[test]
    fn what_is_no_list_or_not_a_whole_one_is_refused() {
        let mut packed = vec![];
        list(&mut packed, 2);
        number(&mut packed, 300);
        string(&mut packed, b"word");
        for bytes in [&packed[..], &packed[..2], &[], &[7], &[0xdd, 0xff, 0xff, 0xff, 0xff]] {
            assert!(numbers(bytes).is_err() && strings(bytes).is_err(), "{bytes:?}");
        }
        assert!(numbers(&[0x91, 7, 7]).is_err(), "something stands behind the last value");
    }
}
