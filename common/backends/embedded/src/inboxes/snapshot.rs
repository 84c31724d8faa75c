//! A snapshot is one bucket in a file, so that the log before it can be removed.
//!
//! ```text
//!   bucket-00007.snapshot   magic, store id, state, crc32 of all before
//! ```
//!
//! A snapshot holds the number of the last log record that it contains; later records are replayed after the snapshot
//! is read. A new snapshot replaces the old one in one step, so after a crash there is the old one or the new one.
//! Chunks are written as they are in memory, because where they begin decides where a later trim cuts.
//!
//! Size: that of the packed changes in memory, about 20 B more for each inbox and 12 B for each author.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use feedgate_common::error::Result;
use feedgate_common::{Epoch, InboxKey, UserNo};

use super::bucket::Bucket;
use super::changes::Changes;
use super::inbox::Inbox;
use super::placeholder::Placeholder;
use super::record::{put_floor, put_key, put_progress, put_taken, take_floor, take_key, take_progress, take_taken};
use super::segment::{damaged, failed};
use super::until::Until;
use crate::disk::{self, write_whole};
use feedgate_common::varint::{put, take, take_bytes, take_u32};

/// The file name extension of snapshots.
pub(super) const EXTENSION: &str = "snapshot";

const MAGIC: [u8; 8] = *b"fgsnap_1";

/// How many bytes are collected before they are written.
const WRITE: usize = 1 << 20;

fn name(bucket: usize) -> String {
    format!("bucket-{bucket:05}.{EXTENSION}")
}

/// Writes the snapshot of a bucket in place of the old snapshot, atomically and durably. Answers its size in bytes.
pub(super) fn write(dir: &Path, id: u128, number: usize, bucket: &Bucket) -> io::Result<u64> {
    let file = write_whole(dir, &name(number), |file| {
        let mut out = Checked { file, crc: crc32fast::Hasher::new(), buffer: Vec::with_capacity(WRITE + (1 << 14)) };
        put_head(&mut out.buffer, id, bucket);
        for (key, inbox) in &bucket.inboxes {
            put_inbox(&mut out.buffer, *key, inbox);
            out.flush_above(WRITE)?;
        }
        out.finish()
    })?;
    Ok(file.metadata()?.len())
}

/// A file with a running checksum of all that is written to it.
struct Checked<'a> {
    file: &'a mut File,
    crc: crc32fast::Hasher,
    buffer: Vec<u8>,
}

impl Checked<'_> {
    fn flush_above(&mut self, size: usize) -> io::Result<()> {
        if self.buffer.len() > size {
            self.crc.update(&self.buffer);
            self.file.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush_above(0)?;
        self.file.write_all(&self.crc.finalize().to_le_bytes())
    }
}

/// Everything that stands before the inboxes.
fn put_head(out: &mut Vec<u8>, id: u128, bucket: &Bucket) {
    out.extend(MAGIC);
    out.extend(id.to_le_bytes());
    put(out, bucket.position);
    put_maps(out, bucket);
    put(out, bucket.inboxes.len() as u64);
}

fn put_maps(out: &mut Vec<u8>, bucket: &Bucket) {
    put(out, bucket.progress.len() as u64);
    for (author, progress) in &bucket.progress {
        put(out, author.0.into());
        put_progress(out, *progress);
    }
    put(out, bucket.placeholders.len() as u64);
    for (key, placeholder) in &bucket.placeholders {
        put_key(out, *key);
        put(out, placeholder.epoch.0);
        put(out, placeholder.count);
        put(out, placeholder.notes.len() as u64);
        out.extend_from_slice(&placeholder.notes);
    }
}

fn put_inbox(out: &mut Vec<u8>, key: InboxKey, inbox: &Inbox) {
    put_key(out, key);
    put(out, inbox.epoch.0);
    put(out, inbox.built_at);
    put_floor(out, inbox.floor);
    put_taken(out, inbox.taken);
    inbox.until.put(out);
    put(out, inbox.removals.into());
    put(out, inbox.marks.len() as u64);
    for (author, generation) in &inbox.marks {
        put(out, author.0.into());
        put(out, *generation);
    }
    put(out, inbox.changes.base());
    put(out, inbox.changes.full_chunks() as u64);
    let (full, tail) = inbox.changes.parts();
    for part in full.chain(std::iter::once(tail)) {
        put(out, part.len() as u64);
        out.extend_from_slice(part);
    }
}

/// Reads the snapshot of a bucket. If there is no file, the answer is an empty bucket.
pub(super) fn read(dir: &Path, id: u128, number: usize) -> Result<Bucket> {
    let path = path(dir, number);
    let bytes = match disk::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Bucket::default()),
        Err(e) => return Err(failed("read", &path, e)),
    };
    let (body, crc) = bytes.split_at(bytes.len().saturating_sub(4));
    if crc32fast::hash(body).to_le_bytes() != crc {
        return Err(damaged(&path, body.len(), "the checksum of a snapshot"));
    }
    let mut rest = body;
    take_all(&mut rest, id).ok_or_else(|| damaged(&path, body.len() - rest.len(), "a snapshot"))
}

fn take_all(bytes: &mut &[u8], id: u128) -> Option<Bucket> {
    let ours = take_bytes(bytes, 8)? == MAGIC && take_bytes(bytes, 16)? == id.to_le_bytes();
    let mut bucket = Bucket { position: ours.then(|| take(bytes))??, ..Bucket::default() };
    for _ in 0..take(bytes)? {
        bucket.progress.insert(UserNo(take_u32(bytes)?), take_progress(bytes)?);
    }
    for _ in 0..take(bytes)? {
        bucket.placeholders.insert(take_key(bytes)?, take_placeholder(bytes)?);
    }
    let inboxes = take(bytes)?;
    bucket.inboxes.reserve(inboxes.min(bytes.len() as u64) as usize);
    for _ in 0..inboxes {
        let (key, inbox) = (take_key(bytes)?, take_inbox(bytes)?);
        bucket.entries += inbox.changes.len() as u64;
        if bucket.inboxes.insert(key, Box::new(inbox)).is_some() {
            return None;
        }
    }
    bytes.is_empty().then_some(bucket)
}

fn take_placeholder(bytes: &mut &[u8]) -> Option<Placeholder> {
    Some(Placeholder { epoch: Epoch(take(bytes)?), count: take(bytes)?, notes: take_part(bytes)?.to_vec() })
}

fn take_inbox(bytes: &mut &[u8]) -> Option<Inbox> {
    let (epoch, built_at) = (Epoch(take(bytes)?), take(bytes)?);
    let (floor, taken, until) = (take_floor(bytes)?, take_taken(bytes)?, Until::take(bytes)?);
    let mut inbox = Inbox::new(epoch, built_at, floor, taken, until);
    inbox.removals = take_u32(bytes)?;
    for _ in 0..take(bytes)? {
        inbox.marks.push((UserNo(take_u32(bytes)?), take(bytes)?));
    }
    inbox.marks.shrink_to_fit();
    let base = take(bytes)?;
    let mut full = VecDeque::new();
    for _ in 0..take(bytes)? {
        full.push_back(take_part(bytes)?.into());
    }
    inbox.changes = Changes::from_parts(base, full, take_part(bytes)?)?;
    Some(inbox)
}

fn take_part<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = take(bytes)?;
    take_bytes(bytes, len.try_into().ok()?)
}

/// The path of a bucket's snapshot.
pub(super) fn path(dir: &Path, bucket: usize) -> PathBuf {
    dir.join(name(bucket))
}

/// The fuzz target: a snapshot with these bytes behind its magic and its store's id, and a right checksum. What was
/// read must read the same after it was written again.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    const ID: u128 = 7;
    let read = |bytes: &[u8]| take_all(&mut &bytes[..], ID);
    let Some(bucket) = read(&[&MAGIC[..], &ID.to_le_bytes(), bytes].concat()) else { return };
    let mut again = vec![];
    put_head(&mut again, ID, &bucket);
    bucket.inboxes.iter().for_each(|(key, inbox)| put_inbox(&mut again, *key, inbox));
    let back = read(&again).expect("it was written now");
    let state = |bucket: &Bucket| {
        let mut inboxes: Vec<_> = bucket.inboxes.iter().map(|(key, inbox)| format!("{key:?} {inbox:?}")).collect();
        inboxes.sort_unstable();
        (inboxes, bucket.progress.len(), bucket.placeholders.len(), bucket.entries, bucket.position)
    };
    assert_eq!(state(&back), state(&bucket));
}
