//! The log on disk: segments of batches, each batch synced before the next is written.
//!
//! ```text
//!   00000000000000000001.log   header, batch, batch, …          (named by its first record number)
//!   00000000000000004711.log   header, batch, …, [torn batch]   (the last one is written to)
//!
//!   batch = magic, length, first record number, crc32, records;   record = length, bytes
//! ```
//!
//! Invariants: record numbers are dense across segments. A batch whose checksum is wrong can only be the last batch
//! ever written, for which no caller was answered: it is cut off. If another batch or another segment follows, the log
//! is damaged and nothing of the log is served. (A last batch that rots on disk after it was answered looks the same as
//! a torn one; only the checksums of the disk can tell them apart.)

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use feedgate_common::error::{Result, StoreError};
use feedgate_common::varint;

use crate::disk::write_whole;

/// The format of logs and snapshots. The number is raised whenever their bytes, or the effect of a step, change. A
/// store of another format is not read: it starts empty, and its inboxes are rebuilt from the Archive.
pub(super) const FORMAT: u32 = 1;

const HEADER_MAGIC: [u8; 8] = *b"fginbox1";
/// The length of a segment's header in bytes.
pub(super) const HEADER: usize = 76;
const BATCH_MAGIC: [u8; 4] = *b"fgb\x01";
const BATCH_HEADER: usize = 20;

/// Identifies the file `meta` of the store: a copy that is put in place of that file has another fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) inode: u64,
    pub(super) changed_s: i64,
    pub(super) changed_ns: i64,
}

/// The header with which a segment begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// The id of the store.
    pub(super) id: u128,
    /// How often the store had been opened when this segment was made.
    pub(super) opens: u64,
    /// The last opening of the store, counted as in `opens`, of which an earlier segment is known to hold a step.
    pub(super) used: u64,
    /// The number of the first record in this segment.
    pub(super) first: u64,
    /// The fingerprint of the store's file `meta`.
    pub(super) meta: Fingerprint,
}

impl Header {
    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER);
        out.extend(HEADER_MAGIC);
        out.extend(self.id.to_le_bytes());
        for n in [self.opens, self.used, self.first, self.meta.inode] {
            out.extend(n.to_le_bytes());
        }
        out.extend(self.meta.changed_s.to_le_bytes());
        out.extend(self.meta.changed_ns.to_le_bytes());
        out.extend(crc32fast::hash(&out).to_le_bytes());
        out
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, crc) = bytes.get(..HEADER)?.split_at(HEADER - 4);
        let sound = body.starts_with(&HEADER_MAGIC) && crc32fast::hash(body).to_le_bytes() == crc;
        let u64_at = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().expect("8 bytes"));
        sound.then(|| Self {
            id: u128::from_le_bytes(body[8..24].try_into().expect("16 bytes")),
            opens: u64_at(24),
            used: u64_at(32),
            first: u64_at(40),
            meta: Fingerprint { inode: u64_at(48), changed_s: u64_at(56) as i64, changed_ns: u64_at(64) as i64 },
        })
    }

    /// Reads the header of the segment at `path`.
    pub(super) fn read(path: &Path) -> Result<Self> {
        use io::Read;
        let mut bytes = Vec::with_capacity(HEADER);
        let file = File::open(path).map_err(|e| failed("open", path, e))?;
        file.take(HEADER as u64).read_to_end(&mut bytes).map_err(|e| failed("read", path, e))?;
        Self::from_bytes(&bytes).ok_or_else(|| damaged(path, 0, "a segment header"))
    }
}

/// Records that are written and synced together.
#[derive(Debug)]
pub(super) struct Batch {
    bytes: Vec<u8>,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self { bytes: vec![0; BATCH_HEADER] }
    }

    /// Adds a record to the batch.
    pub(super) fn push(&mut self, record: &[u8]) {
        varint::put(&mut self.bytes, record.len() as u64);
        self.bytes.extend_from_slice(record);
    }

    /// How many bytes the batch takes in the log.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Completes the header and answers the bytes to write. `first` is the number of the first record.
    pub(super) fn seal(&mut self, first: u64) -> &[u8] {
        let length = u32::try_from(self.bytes.len() - BATCH_HEADER).expect("a batch is cut at a few MiB");
        self.bytes[..4].copy_from_slice(&BATCH_MAGIC);
        self.bytes[4..8].copy_from_slice(&length.to_le_bytes());
        self.bytes[8..16].copy_from_slice(&first.to_le_bytes());
        let crc = checksum(first, &self.bytes[BATCH_HEADER..]);
        self.bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        &self.bytes
    }

    /// Makes the batch empty and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.bytes.truncate(BATCH_HEADER);
    }
}

fn checksum(first: u64, records: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&first.to_le_bytes());
    hasher.update(records);
    hasher.finalize()
}

/// The segment to which the log is written.
#[derive(Debug)]
pub(super) struct Segment {
    file: File,
    len: u64,
}

/// Why the log did not grow.
#[derive(Debug, thiserror::Error)]
pub(super) enum AppendError {
    /// The log is as it was before, for example because the disk is full. Later appends may succeed.
    #[error("{0}")]
    Undone(#[source] io::Error),
    /// It is unknown what the disk holds of the log. Nothing more may be appended.
    #[error("{0}")]
    Unknown(#[source] io::Error),
}

impl Segment {
    /// Creates a segment with its header. Atomic and durable.
    pub(super) fn create(dir: &Path, header: &Header) -> std::result::Result<Self, AppendError> {
        let name = name(header.first);
        match write_whole(dir, &name, |file| file.write_all(&header.bytes())) {
            Ok(file) => Ok(Self { file, len: HEADER as u64 }),
            // The new segment exists. If the old segment took further records, they would have the same numbers as
            // those of the new segment.
            Err(e) if dir.join(name).exists() => Err(AppendError::Unknown(e)),
            Err(e) => Err(AppendError::Undone(e)),
        }
    }

    /// For tests: a segment that cannot be written, as on a disk that has failed.
    #[cfg(test)]
    pub(super) fn read_only(path: &Path) -> Self {
        let file = File::open(path).expect("a test gives a file that exists");
        Self { len: file.metadata().expect("an open file has a length").len(), file }
    }

    /// Appends a sealed batch. The batch is durable when the answer is `Ok`.
    pub(super) fn append(&mut self, batch: &[u8]) -> std::result::Result<(), AppendError> {
        if let Err(e) = self.file.write_all(batch) {
            let undone = self.file.set_len(self.len).and_then(|()| self.file.sync_data());
            // The file position is still behind the bytes that were cut off.
            let undone = undone.and_then(|()| io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.len)));
            return Err(if undone.is_ok() { AppendError::Undone(e) } else { AppendError::Unknown(e) });
        }
        self.file.sync_data().map_err(AppendError::Unknown)?;
        self.len += batch.len() as u64;
        Ok(())
    }

    /// The length of the segment in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }
}

fn name(first: u64) -> String {
    format!("{first:020}.log")
}

/// The segments of a directory, each with the number of its first record.
pub(super) fn list(dir: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(|e| failed("list", dir, e))? {
        let path = entry.map_err(|e| failed("list", dir, e))?.path();
        let first = path.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_suffix(".log"));
        if let Some(first) = first.and_then(|n| n.parse().ok()) {
            found.push((first, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The records of one segment in order, each with its number.
pub(super) struct Scanned<'a> {
    pub(super) records: Vec<(u64, &'a [u8])>,
    /// The number that follows the last record's.
    pub(super) next: u64,
    /// The offset where the sound part ends: less than the length of the file if a torn batch follows.
    pub(super) end: usize,
}

/// Reads the segment in `bytes`. `last` says that no segment follows it, so that its end may be torn.
pub(super) fn scan<'a>(path: &Path, bytes: &'a [u8], last: bool) -> Result<Scanned<'a>> {
    let header = Header::from_bytes(bytes).ok_or_else(|| damaged(path, 0, "a segment header"))?;
    let mut scanned = Scanned { records: Vec::new(), next: header.first, end: HEADER };
    while scanned.end < bytes.len() {
        let Some((first, records)) = batch_at(&bytes[scanned.end..]).filter(|(first, _)| *first == scanned.next) else {
            let followed = (scanned.end + 1..bytes.len())
                .any(|at| bytes[at..].starts_with(&BATCH_MAGIC) && batch_at(&bytes[at..]).is_some());
            if !last || followed {
                return Err(damaged(path, scanned.end, "a batch"));
            }
            break;
        };
        scanned.next = first;
        let mut rest = records;
        while !rest.is_empty() {
            let record = varint::take(&mut rest).and_then(|len| varint::take_bytes(&mut rest, len as usize));
            let record = record.ok_or_else(|| damaged(path, scanned.end, "the records of a batch"))?;
            scanned.records.push((scanned.next, record));
            scanned.next += 1;
        }
        scanned.end += BATCH_HEADER + records.len();
    }
    Ok(scanned)
}

/// The batch at the start of `bytes`: the number of its first record, and the bytes of its records. `None` if its
/// checksum is wrong.
fn batch_at(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (head, rest) = bytes.split_at_checked(BATCH_HEADER)?;
    let u32_at = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("4 bytes"));
    let first = u64::from_le_bytes(head[8..16].try_into().expect("8 bytes"));
    let records = rest.get(..u32_at(4) as usize)?;
    (head.starts_with(&BATCH_MAGIC) && checksum(first, records) == u32_at(16)).then_some((first, records))
}

/// Removes files that a crash left unfinished.
pub(super) fn sweep(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "tmp") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The error for a file whose bytes are damaged.
pub(super) fn damaged(path: &Path, offset: usize, what: &str) -> StoreError {
    let path = path.display();
    StoreError::corrupt(format_args!(
        "{what} in {path} at byte {offset} does not check out; inboxes are rebuilt from the archive \
         once their directory is moved away"
    ))
}

/// The error for a file that cannot be used.
pub(super) fn failed(what: &str, path: &Path, cause: impl Error + Send + Sync + 'static) -> StoreError {
    StoreError::unavailable(format_args!("cannot {what} {}: {cause}", path.display())).with_source(cause)
}

/// The fuzz target: a file of the log as it came, and one that has the bytes as the records of a batch with a right
/// checksum. Records that are read come back, and damage is named.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    let (path, header) = (Path::new("00000000000000000005.log"), some_header());
    let mut batch = Batch::new();
    batch.bytes.extend_from_slice(bytes);
    let sealed = [&header.bytes(), batch.seal(header.first)].concat();
    for (file, last) in [(bytes, true), (bytes, false), (&sealed, true), (&sealed, false)] {
        match scan(path, file, last) {
            Ok(scanned) => {
                assert!(scanned.end <= file.len() && (last || scanned.end == file.len()));
                let first = Header::from_bytes(file).expect("it was read now").first;
                let mut again = Batch::new();
                scanned.records.iter().for_each(|(_, record)| again.push(record));
                let again = [&file[..HEADER], again.seal(first)].concat();
                let records = scan(path, &again, false).expect("it was written now").records;
                assert!(records.iter().map(|(_, record)| record).eq(scanned.records.iter().map(|(_, record)| record)));
            }
            Err(why) => assert!(why.to_string().contains("does not check out"), "{why}"),
        }
    }
}

/// The header of a segment that begins with record 5.
#[cfg(any(test, fuzzing))]
fn some_header() -> Header {
    Header { id: 7, opens: 2, used: 1, first: 5, meta: Fingerprint { inode: 9, changed_s: -1, changed_ns: 3 } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(dir: &Path, batches: &[&[&[u8]]]) -> (PathBuf, Vec<u8>, Vec<usize>) {
        let mut segment = Segment::create(dir, &some_header()).unwrap();
        let (mut next, mut ends) = (5, vec![HEADER]);
        for records in batches {
            let mut batch = Batch::new();
            records.iter().for_each(|r| batch.push(r));
            segment.append(batch.seal(next)).unwrap();
            next += records.len() as u64;
            ends.push(segment.len() as usize);
        }
        let path = list(dir).unwrap()[0].1.clone();
        let bytes = fs::read(&path).unwrap();
        (path, bytes, ends)
    }

    #[test]
    fn records_come_back_with_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes, _) = segment(dir.path(), &[&[b"a", b""], &[b"ccc"]]);
        assert_eq!(Header::read(&path).unwrap(), some_header());
        let scanned = scan(&path, &bytes, false).unwrap();
        assert_eq!(scanned.records, [(5, &b"a"[..]), (6, b""), (7, b"ccc")]);
        assert_eq!((scanned.next, scanned.end), (8, bytes.len()));
    }

    #[test]
    fn i14_a_log_cut_anywhere_in_its_tail_holds_the_whole_batches_before_the_cut() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes, ends) = segment(dir.path(), &[&[b"a", b"b"], &[b"ccc"], &[b"dd"]]);
        for cut in HEADER..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
            let scanned = scan(&path, &bytes[..cut], true).unwrap();
            assert_eq!((scanned.next, scanned.end), ([5, 7, 8, 9][whole], ends[whole]), "cut at {cut}");
            if ends[whole] != cut {
                assert!(matches!(scan(&path, &bytes[..cut], false), Err(StoreError::Corrupt(_))));
            }
        }
    }

    #[test]
    fn a_damaged_batch_with_another_behind_it_is_corrupt_and_named_by_file_and_offset() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes, ends) = segment(dir.path(), &[&[b"a", b"b"], &[b"ccc"]]);
        for at in 0..ends[1] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            let Err(StoreError::Corrupt(what)) = scan(&path, &bytes, true) else { panic!("byte {at} unnoticed") };
            let offset = if at < HEADER { 0 } else { HEADER };
            assert!(what.contains(&format!("{} at byte {offset} ", path.display())), "{what}");
        }
        for at in ends[1]..ends[2] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x10;
            assert_eq!(scan(&path, &bytes, true).unwrap().end, ends[1], "the last batch may be torn");
        }
    }
}
