//! A copy of everything in the store, as a file of rows.
//!
//! ```text
//!   head     "feedrows", format u32
//!   block    1, length u32, CRC-32 u32, rows            row: tree u8, key length u16, value length u32, key, value
//!   end      2, length u32, CRC-32 u32, rows of each tree as u64
//! ```
//!
//! Numbers are little-endian; a sum covers the kind, the length and the bytes of its block. Rows are copied as they are
//! stored, in the order of their keys, tree by tree.
//!
//! Invariants: a copy is the store at one moment, the moment at which it was asked for. One block is in memory at a
//! time. A copy without its end, or with a damaged block, is never taken for a whole one.

use std::io::{ErrorKind, Read};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use feedgate_common::error::{Result, StoreError};
use futures_util::stream::{self, BoxStream, StreamExt};

use crate::database::Database;
use crate::table::Space;
use crate::view::{Read as _, View, store_error};

/// What each file of rows begins with.
const MAGIC: &[u8; 8] = b"feedrows";

/// The version of the file's format. What a row means is the format of the Archive, which stands in a row itself.
const FORMAT: u32 = 1;

/// A block ends with the row that makes it this long, in bytes.
const BLOCK: usize = 256 << 10;

/// The longest block that is read: a block and the largest row, with room to spare.
const BLOCK_MAX: usize = 16 << 20;

const ROWS: u8 = 1;
const END: u8 = 2;

/// How many rows a copy has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rows {
    /// Rows of users, outboxes, edges and so on.
    pub archive: u64,
    /// Items, the deleted ones among them.
    pub items: u64,
    /// Devices whose position is known.
    pub positions: u64,
}

impl Rows {
    fn of(counts: [u64; Space::ALL.len()]) -> Self {
        let [archive, items, positions] = counts;
        Self { archive, items, positions }
    }
}

/// The store as it is now, as pieces of a file of rows. The stream holds the view until it is dropped or has ended. It
/// ends with an error if the store fails meanwhile, since a store is not opened again while somebody holds a view of
/// it.
pub(crate) fn copy(db: Arc<Database>) -> BoxStream<'static, Result<Vec<u8>>> {
    let view = match db.view() {
        Ok(view) => view,
        Err(error) => return stream::once(async { Err(error) }).boxed(),
    };
    let head = [&MAGIC[..], &FORMAT.to_le_bytes()].concat();
    let start = Some((db, view, Place { space: 0, after: vec![], counts: [0; Space::ALL.len()] }));
    let blocks = stream::try_unfold(start, |state| async {
        let Some((db, view, place)) = state else { return Ok(None) };
        db.ping()?;
        let held = view.clone();
        let (bytes, next) =
            tokio::task::spawn_blocking(move || place.block(&held)).await.map_err(StoreError::unavailable)??;
        Ok(Some((bytes, next.map(|place| (db, view, place)))))
    });
    stream::once(async { Ok(head) }).chain(blocks).boxed()
}

/// How far a copy is.
struct Place {
    /// The number of the tree.
    space: usize,
    /// The last key of the tree that was copied; empty before the first.
    after: Vec<u8>,
    counts: [u64; Space::ALL.len()],
}

impl Place {
    /// The next block, and where to go on; `None` behind the end.
    fn block(mut self, view: &View) -> Result<(Vec<u8>, Option<Self>)> {
        let mut rows = Vec::with_capacity(BLOCK + (BLOCK >> 2));
        while let Some(space) = Space::ALL.get(self.space) {
            for row in view.raw_range(*space, (Excluded(self.after.clone()), Unbounded)) {
                let (key, value) = row.into_inner().map_err(store_error)?;
                rows.push(self.space as u8);
                rows.extend((key.len() as u16).to_le_bytes());
                rows.extend((value.len() as u32).to_le_bytes());
                rows.extend_from_slice(&key);
                rows.extend_from_slice(&value);
                self.counts[self.space] += 1;
                if rows.len() >= BLOCK {
                    self.after = key.to_vec();
                    return Ok((sealed(ROWS, &rows), Some(self)));
                }
            }
            (self.space, self.after) = (self.space + 1, vec![]);
        }
        let counts = self.counts.map(u64::to_le_bytes).concat();
        let rows = if rows.is_empty() { rows } else { sealed(ROWS, &rows) };
        Ok(([rows, sealed(END, &counts)].concat(), None))
    }
}

fn sealed(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_le_bytes();
    [&[kind][..], &length, &sum(kind, length, bytes).to_le_bytes(), bytes].concat()
}

fn sum(kind: u8, length: [u8; 4], bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[kind]);
    sum.update(&length);
    sum.update(bytes);
    sum.finalize()
}

/// Reads a file of rows to its end, and answers how many it has. Memory is one block.
///
/// # Errors
/// `Corrupt`, with the place, if a block is damaged, if the file breaks off or goes on behind its end, or if it is of
/// another format; `Unavailable` if it cannot be read.
pub fn check(file: impl Read) -> Result<Rows> {
    read(file, |_| Ok(()))
}

/// A row of a file: the tree, the key and the value.
pub(crate) type Row<'a> = (Space, &'a [u8], &'a [u8]);

/// Gives the rows of each block to `take`, in order.
pub(crate) fn read(mut file: impl Read, mut take: impl FnMut(Vec<Row<'_>>) -> Result<()>) -> Result<Rows> {
    let mut head = [0; 12];
    fill(&mut file, &mut head, 0)?;
    let (magic, format) = head.split_at(8);
    if magic != MAGIC || format != FORMAT.to_le_bytes() {
        return Err(StoreError::corrupt(format_args!(
            "it is no file of rows of format {FORMAT}, which this version reads"
        )));
    }
    let (mut at, mut block, mut counts) = (12_u64, vec![], [0; Space::ALL.len()]);
    loop {
        let mut head = [0; 9];
        fill(&mut file, &mut head, at)?;
        let [kind, a, b, c, d, sums @ ..] = head;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > BLOCK_MAX {
            return Err(damaged(at));
        }
        block.resize(length, 0);
        fill(&mut file, &mut block, at)?;
        if sum(kind, [a, b, c, d], &block).to_le_bytes() != sums {
            return Err(damaged(at));
        }
        match kind {
            ROWS => {
                let rows = rows_of(&block).ok_or_else(|| damaged(at))?;
                rows.iter().for_each(|(space, ..)| counts[*space as usize] += 1);
                take(rows)?;
            }
            END if block == counts.map(u64::to_le_bytes).concat() => break,
            _ => return Err(damaged(at)),
        }
        at += 9 + length as u64;
    }
    match file.read(&mut [0]) {
        Ok(0) => Ok(Rows::of(counts)),
        Ok(_) => Err(StoreError::corrupt("it goes on behind its end")),
        Err(error) => Err(StoreError::unavailable(&error).with_source(error)),
    }
}

fn fill(file: &mut impl Read, bytes: &mut [u8], at: u64) -> Result<()> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => StoreError::corrupt(format_args!("it breaks off in the block at byte {at}")),
        _ => StoreError::unavailable(&error).with_source(error),
    })
}

fn damaged(at: u64) -> StoreError {
    StoreError::corrupt(format_args!("the block at byte {at} is damaged"))
}

/// The rows in the bytes of a block; `None` if they are none.
fn rows_of(mut block: &[u8]) -> Option<Vec<Row<'_>>> {
    let mut rows = vec![];
    while !block.is_empty() {
        let (head, rest) = block.split_at_checked(7)?;
        let space = *Space::ALL.get(usize::from(head[0]))?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([head[1], head[2]])))?;
        let length = u32::from_le_bytes([head[3], head[4], head[5], head[6]]) as usize;
        let (value, rest) = rest.split_at_checked(length)?;
        rows.push((space, key, value));
        block = rest;
    }
    Some(rows)
}

/// The fuzz target: these bytes as a file, and as the one block of a file that is whole.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    if let Err(error) = check(bytes) {
        assert!(error.to_string().len() < 256, "{error}");
    }
    let Some(rows) = rows_of(bytes) else { return };
    assert_eq!(rows.iter().map(|(_, key, value)| 7 + key.len() + value.len()).sum::<usize>(), bytes.len());
    let counts = Space::ALL.map(|space| rows.iter().filter(|row| row.0 == space).count() as u64);
    let head = [&MAGIC[..], &FORMAT.to_le_bytes()].concat();
    let end = sealed(END, &counts.map(u64::to_le_bytes).concat());
    let file = [head, sealed(ROWS, bytes), end].concat();
    assert_eq!(check(&file[..]).ok(), Some(Rows::of(counts)));
    assert!(check(&file[..file.len() - 1]).is_err());
}
