//! The push step as a script's keys and arguments, and what its answer means: no IO.

use feedgate_common::archive::Recipient;
use feedgate_common::error::Result;
use feedgate_common::inboxes::{Advance, Grown};
use feedgate_common::{Entry, InboxKey, varint};

use super::layout::{beyond, bucket_key, field, inbox_key, mark_author, number, progress_text, shared_bytes};
use super::scripts::Reply;

/// A push step, ready to be sent.
pub(super) struct Push {
    pub(super) keys: Vec<Vec<u8>>,
    /// All but the layout.
    pub(super) arguments: Vec<Vec<u8>>,
    /// How many of the records each recipient gets, as far as is known here: the last ones.
    fresh: Vec<usize>,
}

impl Push {
    pub(super) fn of(step: &Advance) -> Result<Self> {
        let seqs: Vec<_> = step.records.iter().map(|record| record.seq).collect();
        let fresh: Vec<_> = step.recipients.iter().map(|to| beyond(&seqs, to.from)).collect();
        let inboxes = step.recipients.iter().map(|to| inbox_key(step.bucket, key_of(step, to)));
        let (mut edges, mut prefix) = (Vec::with_capacity(5 + 24 * fresh.len()), Vec::new());
        pack_array(&mut edges, 4 * fresh.len());
        for (to, fresh) in step.recipients.iter().zip(&fresh) {
            [number(to.generation)?, number(to.counter)?, *fresh as u64].iter().for_each(|n| pack(&mut edges, *n));
            prefix.clear();
            varint::put(&mut prefix, to.generation);
            pack_short(&mut edges, &prefix);
        }
        let mut arguments = vec![
            field(step.author),
            progress_text(step.expected),
            progress_text(step.next),
            mark_author(step.author).to_vec(),
            edges,
            packed(&seqs),
        ];
        arguments.extend(step.records.iter().map(|record| shared_bytes(&Entry::of(record, step.author, 0))));
        Ok(Self { keys: std::iter::once(bucket_key(step.bucket)).chain(inboxes).collect(), arguments, fresh })
    }

    /// Which inboxes have grown, and which of them are longer than they must be.
    pub(super) fn moved(&self, step: &Advance, mut reply: Reply) -> Result<(Vec<Grown>, Vec<InboxKey>)> {
        let (heads, long, fewer) = (reply.all_positions()?, reply.all_numbers()?, reply.all_numbers()?);
        if heads.len() != step.recipients.len() {
            return Err(reply.unexpected());
        }
        let mut fresh = self.fresh.clone();
        for pair in fewer.chunks_exact(2) {
            *fresh.get_mut(pair[0] as usize).ok_or_else(|| reply.unexpected())? = pair[1] as usize;
        }
        let grown = step.recipients.iter().zip(heads).zip(fresh).filter_map(|((to, head), fresh)| {
            Some(Grown { key: key_of(step, to), head: head?, appended: fresh as u32, generation: to.generation })
        });
        let long = long.iter().filter_map(|&at| step.recipients.get(at as usize));
        Ok((grown.collect(), long.map(|to| key_of(step, to)).collect()))
    }
}

fn key_of(step: &Advance, to: &Recipient) -> InboxKey {
    InboxKey { reader: to.reader, feed: step.feed }
}

/// The beginning of an array in MessagePack, which Redis's Lua unpacks in one call.
pub(super) fn pack_array(out: &mut Vec<u8>, length: usize) {
    out.push(0xdd);
    out.extend((length as u32).to_be_bytes());
}

/// An array of numbers.
fn packed(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(5 + 5 * numbers.len());
    pack_array(&mut out, numbers.len());
    numbers.iter().for_each(|n| pack(&mut out, *n));
    out
}

/// A string of fewer than 32 bytes.
pub(super) fn pack_short(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(0xa0 | bytes.len() as u8);
    out.extend(bytes);
}

/// Appends a number in the MessagePack format.
pub(super) fn pack(out: &mut Vec<u8>, n: u64) {
    match n {
        0..0x80 => out.push(n as u8),
        0x80..0x100 => out.extend([0xcc, n as u8]),
        0x100..0x1_0000 => {
            out.push(0xcd);
            out.extend((n as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(0xce);
            out.extend((n as u32).to_be_bytes());
        }
        _ => {
            out.push(0xcf);
            out.extend(n.to_be_bytes());
        }
    }
}
