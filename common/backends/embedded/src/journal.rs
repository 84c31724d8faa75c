//! Finds how far the journals of the store are whole.
//!
//! fjall ends the replay of a journal at the first entry that it cannot decode, without a word, even if sound batches
//! follow. A single bit that flips on the disk can so take away what was answered as durable. Therefore the journals
//! are read here before fjall opens them. This file knows the bytes of fjall's batches (format 3), and nothing of their
//! meaning:
//!
//! ```text
//!   batch    start: 1, count u32, number u64 │ count × entry │ end: 3, xxh3 of the entries u64, "FJL" 3
//!   entry    put or removal: 2, kind u8, compression u8, tree u64, key length u16, value length u32, stored u32, key, value
//!            cleared tree: 4, tree u64
//!   journal  batches whose numbers rise, then zeros
//! ```

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// What stands at the end of each batch.
const TRAILER: [u8; 4] = [b'F', b'J', b'L', 3];

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A place in the journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The number of the journal.
    pub(crate) journal: u64,
    /// How many bytes of the journal come before the place.
    pub(crate) offset: u64,
}

/// The journal `number` in `dir`.
pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number}.jnl"))
}

/// The numbers of the oldest and the newest journal in `dir`; `None` if there is none.
pub(crate) fn range(dir: &Path) -> io::Result<Option<RangeInclusive<u64>>> {
    let number = |entry: io::Result<fs::DirEntry>| {
        entry.map(|entry| entry.file_name().to_str()?.strip_suffix(".jnl")?.parse::<u64>().ok())
    };
    let numbers: Vec<Option<u64>> = fs::read_dir(dir)?.map(number).collect::<io::Result<_>>()?;
    let numbers = || numbers.iter().flatten().copied();
    Ok(numbers().min().zip(numbers().max()).map(|(oldest, newest)| oldest..=newest))
}

/// Describes the first damage in the journals of `dir`; `None` if they are whole. What comes after `answered` in the
/// newest journal may be incomplete, as a crash leaves it. To be called before the store is opened, since that cuts the
/// newest journal off at a damage.
pub(crate) fn damage(dir: &Path, answered: Option<Place>) -> io::Result<Option<String>> {
    let Some(journals) = range(dir)? else { return Ok(None) };
    let mut last = None;
    for number in journals.clone() {
        let path = path(dir, number);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Some(format!("{} is missing", path.display())));
            }
            Err(error) => return Err(error),
        };
        let end = sound_end(&file, 0, &mut last)?;
        let answered = answered.is_some_and(|place| place.journal == number && end < place.offset);
        if answered || (number != *journals.end() && holds_data(&mut file, end)?) {
            return Ok(Some(format!("{} is damaged behind its byte {end}", path.display())));
        }
    }
    Ok(None)
}

/// Gives the byte at which the sound batches of a journal end, of those from the byte `from` on. `last` is the number
/// of the batch before them, and is set to that of the last sound one.
pub(crate) fn sound_end(mut file: &File, from: u64, last: &mut Option<u64>) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let mut batches = Batches { file: BufReader::new(file), read: 0, buffer: vec![] };
    let mut end = from;
    loop {
        match batches.next() {
            Ok(Some(number)) if last.is_none_or(|last| last < number) => {
                *last = Some(number);
                end = from + batches.read;
            }
            Ok(_) => return Ok(end),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(end),
            Err(error) => return Err(error),
        }
    }
}

/// Reads batches, and counts their bytes.
struct Batches<R> {
    file: R,
    read: u64,
    buffer: Vec<u8>,
}

impl<R: Read> Batches<R> {
    /// The number of the next batch; `None` if no sound one follows.
    fn next(&mut self) -> io::Result<Option<u64>> {
        if self.take::<1>()? != [1] {
            return Ok(None);
        }
        let (count, number) = (u32::from_le_bytes(self.take()?), u64::from_le_bytes(self.take()?));
        let mut sum = Xxh3::new();
        for _ in 0..count {
            if !self.entry(&mut sum)? {
                return Ok(None);
            }
        }
        let ended = self.take::<1>()? == [3] && self.take()? == sum.digest().to_le_bytes() && self.take()? == TRAILER;
        Ok(ended.then_some(number))
    }

    /// Adds the next entry to the sum of its batch; false if what follows is none.
    fn entry(&mut self, sum: &mut Xxh3) -> io::Result<bool> {
        let tag = self.take::<1>()?;
        sum.update(&tag);
        match tag {
            [2] => {
                let head: [u8; 20] = self.take()?;
                sum.update(&head);
                let [.., a, b, _, _, _, _, c, d, e, f] = head;
                let length = u64::from(u16::from_le_bytes([a, b])) + u64::from(u32::from_le_bytes([c, d, e, f]));
                self.sum(length, sum)?;
            }
            [4] => sum.update(&self.take::<8>()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.read += N as u64;
        Ok(bytes)
    }

    /// Adds the next `length` bytes to a sum.
    fn sum(&mut self, length: u64, sum: &mut Xxh3) -> io::Result<()> {
        self.buffer.clear();
        if (&mut self.file).take(length).read_to_end(&mut self.buffer)? as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.read += length;
        sum.update(&self.buffer);
        Ok(())
    }
}

/// Whether a file has another byte than zero behind its byte `from`.
fn holds_data(file: &mut File, from: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = vec![0; ZEROS.len()];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(false),
            read if bytes[..read] != ZEROS[..read] => return Ok(true),
            _ => {}
        }
    }
}
