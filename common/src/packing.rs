//! Packs one entry into 8 to 16 bytes, coded against the key of the entry before it.
//!
//! ```text
//!   generation varint
//!   tag        op - 1 (2 bits) | item coded by its rank | bare (a `forget`: nothing after author)
//!   author     varint
//!   outbox_seq varint
//!   rank       distance from the rank before
//!   item       distance from `rank << 22`, or from the item before: whichever is shorter
//! ```
//!
//! An id that Feedgate gives is `ms << 22 | counter`, and its rank is that `ms`. So the item usually costs only the
//! bytes of its counter. Any other values are allowed too and only take longer: [`ENTRY_MAX`] bytes at most.
//!
//! The generation, which differs from reader to reader, comes first: a store may pack a record once, and put the
//! generation of each reader before it.

use crate::{DisplayKey, Entry, ItemId, Op, UserNo, varint};

/// The most bytes that one entry takes.
pub const ENTRY_MAX: usize = 46;

const BY_RANK: u8 = 1 << 2;
const BARE: u8 = 1 << 3;

/// How many bits the counter has in an id that Feedgate gives.
const COUNTER_BITS: u32 = 22;

/// The key against which the first entry is coded.
pub const START: DisplayKey = DisplayKey { rank: 0, item: ItemId(0) };

/// Appends `entry` to `out`, coded against `before`. Then sets `before` to the key of `entry`, unless that is a
/// `forget`.
#[inline]
pub fn put(out: &mut Vec<u8>, entry: &Entry, before: &mut DisplayKey) {
    varint::put(out, entry.generation);
    put_record(out, entry, before);
}

/// Appends the bytes of `entry` that follow its generation. Then sets `before` to the key of `entry`, unless that is a
/// `forget`.
#[inline]
pub fn put_record(out: &mut Vec<u8>, entry: &Entry, before: &mut DisplayKey) {
    let op = entry.op as u8 - 1;
    if entry.outbox_seq == 0 && entry.key == START {
        out.push(op | BARE);
        varint::put(out, entry.author.0.into());
        return;
    }
    let by_rank = entry.key.item.0.wrapping_sub(by_rank(entry.key.rank)) as i64;
    let by_item = entry.key.item.0.wrapping_sub(before.item.0) as i64;
    let ranked = varint::zigzag(by_rank) <= varint::zigzag(by_item);
    out.push(if ranked { op | BY_RANK } else { op });
    varint::put(out, entry.author.0.into());
    varint::put(out, entry.outbox_seq);
    varint::put_signed(out, entry.key.rank.wrapping_sub(before.rank));
    varint::put_signed(out, if ranked { by_rank } else { by_item });
    *before = entry.key;
}

/// Reads an entry that [`put`] wrote, off the front of `bytes`; `None` if the bytes are no entry.
#[inline]
pub fn take(bytes: &mut &[u8], before: &mut DisplayKey) -> Option<Entry> {
    let generation = varint::take(bytes)?;
    let tag = varint::take_byte(bytes)?;
    let op = Op::from_u8((tag & 3) + 1)?;
    let author = UserNo(varint::take_u32(bytes)?);
    if tag & BARE != 0 {
        return Some(Entry { op, author, outbox_seq: 0, generation, key: START });
    }
    let outbox_seq = varint::take(bytes)?;
    let rank = before.rank.wrapping_add(varint::take_signed(bytes)?);
    let base = if tag & BY_RANK != 0 { by_rank(rank) } else { before.item.0 };
    let item = ItemId(base.wrapping_add(varint::take_signed(bytes)? as u64));
    *before = DisplayKey { rank, item };
    Some(Entry { op, author, outbox_seq, generation, key: *before })
}

fn by_rank(rank: i64) -> u64 {
    (rank as u64).wrapping_shl(COUNTER_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        (1..=4u8, any::<u32>(), any::<u64>(), any::<u64>(), any::<i64>(), any::<u64>()).prop_map(
            |(op, author, outbox_seq, generation, rank, item)| Entry {
                op: Op::from_u8(op).unwrap(),
                author: UserNo(author),
                outbox_seq,
                generation,
                key: DisplayKey { rank, item: ItemId(item) },
            },
        )
    }

    proptest! {
        #[test]
        fn any_entries_come_back(entries in proptest::collection::vec(entry(), 0..20)) {
            let (mut out, mut before) = (Vec::new(), START);
            entries.iter().for_each(|e| put(&mut out, e, &mut before));
            let (mut bytes, mut before) = (&out[..], START);
            for wanted in entries {
                prop_assert_eq!(take(&mut bytes, &mut before), Some(wanted));
            }
            prop_assert!(bytes.is_empty());
        }

        #[test]
        fn any_bytes_are_entries_or_nothing(bytes: Vec<u8>) {
            let (mut rest, mut before) = (&bytes[..], START);
            while take(&mut rest, &mut before).is_some() {}
        }
    }

    #[test]
    fn an_add_with_an_id_of_ours_takes_at_most_16_bytes_behind_another_and_a_forget_7() {
        let ms = 1_764_000_000_000_i64;
        let at = |rank: i64, n: u64| DisplayKey { rank, item: ItemId(((rank as u64) << 22) + n) };
        let mut before = at(ms, 3);
        let key = at(ms + 600_000, 11);
        let add = Entry { op: Op::Add, author: UserNo(2_000_000), outbox_seq: 900, generation: 200_000_000, key };
        let mut out = Vec::new();
        put(&mut out, &add, &mut before);
        assert!(out.len() <= 16, "{}", out.len());
        out.clear();
        put(&mut out, &Entry::forget(UserNo(90_000), 16_000, None), &mut before);
        assert!(out.len() <= 7, "{}", out.len());
    }
}
