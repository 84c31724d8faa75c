//! The entries of one log, packed, in chunks that do not change once they are full.
//!
//! ```text
//!   seq   first … ………………………………………………………………………………… head
//!         [chunk of 64][chunk of 64] … [chunk of 64][tail, growing]
//!          └ dropped whole by a trim                └ sealed into a chunk when it has 64
//! ```
//!
//! Invariants: sequence ids are dense. Each chunk is coded from [`packing::START`], so decoding can start at any chunk.
//! Where chunks begin depends only on the pushes and cuts, so a replay makes the same chunks.
//!
//! Size: 8 to 16 bytes an entry packed, 0.7 for a full chunk's pointer, counts and allocation,
//! and at most 128 B unused in the tail. Cloning copies the tail and counts references.

use std::collections::VecDeque;
use std::sync::Arc;

use feedgate_common::inboxes::Numbered;
use feedgate_common::{DisplayKey, Entry, packing};

/// How many entries a full chunk has. Larger chunks are packed no better; smaller ones need more pointers.
pub(super) const CHUNK: usize = 64;

/// How much a tail grows at a time, in bytes: doubling would leave a third of it unused.
const GROW: usize = 128;

/// The packed entries of one log.
#[derive(Debug, Clone)]
pub(super) struct Changes {
    /// The greatest sequence id that was cut off.
    base: u64,
    /// Full chunks, oldest first.
    sealed: VecDeque<Arc<[u8]>>,
    /// The packed entries after the last full chunk, fewer than [`CHUNK`].
    tail: Vec<u8>,
    tail_len: u8,
    /// The display key against which the next entry is coded: that of the newest entry in the tail, or
    /// [`packing::START`].
    before: DisplayKey,
}

impl Default for Changes {
    fn default() -> Self {
        Self { base: 0, sealed: VecDeque::new(), tail: Vec::new(), tail_len: 0, before: packing::START }
    }
}

impl Changes {
    /// The sequence id of the newest entry.
    pub(super) fn head(&self) -> u64 {
        self.base + self.len() as u64
    }

    /// The last sequence id that was cut off; the first kept one is one greater.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// How many entries are kept.
    pub(super) fn len(&self) -> usize {
        self.sealed.len() * CHUNK + usize::from(self.tail_len)
    }

    /// Appends an entry; its sequence id is the new head.
    #[inline]
    pub(super) fn push(&mut self, entry: &Entry) {
        if self.tail.capacity() - self.tail.len() < packing::ENTRY_MAX {
            self.tail.reserve_exact(GROW);
        }
        packing::put(&mut self.tail, entry, &mut self.before);
        self.tail_len += 1;
        if usize::from(self.tail_len) == CHUNK {
            self.sealed.push_back(Arc::from(std::mem::take(&mut self.tail)));
            self.tail_len = 0;
            self.before = packing::START;
        }
    }

    /// Every entry after sequence id `after`, in order. Decoding begins at the chunk in which the first of these
    /// entries may be.
    pub(super) fn after(&self, after: u64) -> impl Iterator<Item = Numbered> + '_ {
        let skipped = (after.saturating_sub(self.base) as usize / CHUNK).min(self.sealed.len());
        let first = self.base + (skipped * CHUNK) as u64 + 1;
        self.sealed
            .range(skipped..)
            .map(|chunk| &chunk[..])
            .chain(std::iter::once(&self.tail[..]))
            .flat_map(entries)
            .zip(first..)
            .map(|(entry, seq)| Numbered { seq, entry })
            .skip_while(move |n| n.seq <= after)
    }

    /// Drops whole chunks from the front as long as `keep` entries stay. Answers how many went.
    pub(super) fn cut_to(&mut self, keep: usize) -> usize {
        let chunks = (self.len().saturating_sub(keep) / CHUNK).min(self.sealed.len());
        self.sealed.drain(..chunks);
        self.base += (chunks * CHUNK) as u64;
        chunks * CHUNK
    }

    /// The packed parts for a snapshot: the full chunks, then the tail.
    pub(super) fn parts(&self) -> (impl Iterator<Item = &[u8]>, &[u8]) {
        (self.sealed.iter().map(|chunk| &chunk[..]), &self.tail)
    }

    /// How many chunks are full.
    pub(super) fn full_chunks(&self) -> usize {
        self.sealed.len()
    }

    /// Builds the changes from the parts of a snapshot; `None` if the tail is damaged or holds [`CHUNK`] entries or
    /// more.
    pub(super) fn from_parts(base: u64, sealed: VecDeque<Arc<[u8]>>, tail: &[u8]) -> Option<Self> {
        let (mut rest, mut before, mut tail_len) = (tail, packing::START, 0_usize);
        while !rest.is_empty() {
            packing::take(&mut rest, &mut before)?;
            tail_len += 1;
        }
        let tail_len = u8::try_from(tail_len).ok().filter(|&n| usize::from(n) < CHUNK)?;
        Some(Self { base, sealed, tail: tail.to_vec(), tail_len, before })
    }
}

/// Decodes the entries of one chunk.
fn entries(chunk: &[u8]) -> impl Iterator<Item = Entry> + '_ {
    let (mut rest, mut before) = (chunk, packing::START);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        Some(packing::take(&mut rest, &mut before).expect("a chunk holds what was packed, or its checksum had failed"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_common::{ItemId, Op, UserNo};

    fn entry(n: u64) -> Entry {
        let key = DisplayKey { rank: n as i64 * 7, item: ItemId(n * 1001) };
        Entry { op: Op::Add, author: UserNo(n as u32 % 5), outbox_seq: n, generation: 3, key }
    }

    fn filled(n: u64) -> Changes {
        let mut changes = Changes::default();
        (1..=n).for_each(|i| changes.push(&entry(i)));
        changes
    }

    #[test]
    fn i1_every_suffix_is_dense_and_holds_what_was_pushed() {
        for len in [0, 1, 63, 64, 65, 200] {
            let changes = filled(len);
            assert_eq!((changes.head(), changes.len()), (len, len as usize));
            for after in 0..=len + 1 {
                let read: Vec<_> = changes.after(after).collect();
                let wanted: Vec<_> = (after + 1..=len).map(|seq| Numbered { seq, entry: entry(seq) }).collect();
                assert_eq!(read, wanted, "{len} after {after}");
            }
        }
    }

    #[test]
    fn a_cut_drops_whole_chunks_and_never_below_what_must_stay() {
        let mut changes = filled(300);
        assert_eq!(changes.cut_to(100), 192);
        assert_eq!((changes.base(), changes.len(), changes.head()), (192, 108, 300));
        assert_eq!(changes.after(0).next().unwrap().seq, 193);
        assert_eq!(changes.cut_to(100), 0);
        changes.push(&entry(301));
        assert_eq!(changes.after(192).last().unwrap(), Numbered { seq: 301, entry: entry(301) });
    }

    #[test]
    fn parts_put_together_go_on_as_the_whole_would() {
        let mut whole = filled(150);
        let (sealed, tail) = whole.parts();
        let mut again = Changes::from_parts(0, sealed.map(Arc::from).collect(), tail).unwrap();
        for n in 151..=200 {
            whole.push(&entry(n));
            again.push(&entry(n));
        }
        assert!(whole.after(0).eq(again.after(0)));
        assert!(Changes::from_parts(0, VecDeque::new(), &[0xff]).is_none());
    }
}
