//! Reads the state from disk: the snapshots, and then the log that follows them.
//!
//! Buckets do not depend on each other, so they are read and replayed on as many threads as there are processors. A
//! torn end of the last segment is cut off: no caller was answered for a step in it.

use std::fs::{self, OpenOptions};
use std::path::Path;

use feedgate_common::error::{Result, StoreError};

use super::bucket::Bucket;
use super::life::Life;
use super::segment::{self, Scanned, damaged, failed};
use super::{record, snapshot};
use crate::disk;

/// The state that the files hold.
pub(super) struct Loaded {
    pub(super) buckets: Vec<Bucket>,
    /// The number that the next record of the log gets.
    pub(super) next: u64,
    /// The size of the log in bytes.
    pub(super) log_size: u64,
    /// The size of all snapshots in bytes.
    pub(super) snapshot_size: u64,
}

/// Reads the store in `dir`. Files that a crash left unfinished are removed.
pub(super) fn load(dir: &Path, life: &Life) -> Result<Loaded> {
    segment::sweep(dir).map_err(|e| failed("clear", dir, e))?;
    let mut buckets: Vec<Bucket> = (0..life.buckets).map(|_| Bucket::default()).collect();
    each(&mut buckets, |number, bucket| {
        *bucket = snapshot::read(dir, life.id, number)?;
        Ok(())
    })?;
    let segments = segment::list(dir)?;
    let mut next = segments.first().map_or(1, |(first, _)| *first);
    if let Some(behind) = buckets.iter().position(|b| b.position + 1 < next) {
        let what = format!("bucket {behind} is known up to record {}", buckets[behind].position);
        return Err(gap(dir, &what, next));
    }
    for (i, (first, path)) in segments.iter().enumerate() {
        if *first != next {
            return Err(gap(dir, &format!("a segment ends before record {next}"), *first));
        }
        next = replay(path, i + 1 == segments.len(), &mut buckets)?;
    }
    if let Some(ahead) = buckets.iter().find(|b| b.position >= next) {
        return Err(gap(dir, &format!("the log ends before record {next}"), ahead.position));
    }
    let size = |path: &Path| fs::metadata(path).map_or(0, |is| is.len());
    Ok(Loaded {
        next,
        log_size: segments.iter().map(|(_, path)| size(path)).sum(),
        snapshot_size: (0..buckets.len()).map(|number| size(&snapshot::path(dir, number))).sum(),
        buckets,
    })
}

fn gap(dir: &Path, what: &str, goes_on: u64) -> StoreError {
    StoreError::corrupt(format_args!("in {}, {what}, and what is left goes on with {goes_on}", dir.display()))
}

/// Applies those records of one segment that the buckets do not hold yet. Answers the number of the next record.
fn replay(path: &Path, last: bool, buckets: &mut [Bucket]) -> Result<u64> {
    let bytes = disk::read(path).map_err(|e| failed("read", path, e))?;
    let scanned = segment::scan(path, &bytes, last)?;
    if scanned.end < bytes.len() {
        tracing::warn!(path = %path.display(), kept = scanned.end, cut = bytes.len() - scanned.end,
            "the log ends in a batch that was not finished; it is cut off");
        let file = OpenOptions::new().write(true).open(path).map_err(|e| failed("open", path, e))?;
        file.set_len(scanned.end as u64).and_then(|()| file.sync_all()).map_err(|e| failed("cut", path, e))?;
    }
    let count = buckets.len() as u16;
    let shares = shares(path, &scanned, count)?;
    each(buckets, |number, bucket| {
        for (record_number, bytes) in &shares[number] {
            if *record_number > bucket.position {
                let step = record::decode(bytes, count)
                    .ok_or_else(|| damaged(path, scanned.end, &format!("record {record_number} before")))?;
                bucket.apply(step);
                bucket.position = *record_number;
            }
        }
        Ok(())
    })?;
    Ok(scanned.next)
}

/// The records of one bucket, each with its number.
type Share<'a> = Vec<(u64, &'a [u8])>;

/// Divides the records of a segment by bucket.
fn shares<'a>(path: &Path, scanned: &Scanned<'a>, buckets: u16) -> Result<Vec<Share<'a>>> {
    let mut shares = vec![Vec::new(); usize::from(buckets)];
    for (number, bytes) in &scanned.records {
        let bucket = record::take_bucket(&mut &bytes[..], buckets)
            .ok_or_else(|| damaged(path, scanned.end, &format!("record {number} before")))?;
        shares[usize::from(bucket.0)].push((*number, *bytes));
    }
    Ok(shares)
}

/// Runs `work` for every bucket, on all processors.
fn each(buckets: &mut [Bucket], work: impl Fn(usize, &mut Bucket) -> Result<()> + Sync) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = buckets.len().div_ceil(threads);
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = buckets
            .chunks_mut(share)
            .enumerate()
            .map(|(i, chunk)| {
                scope
                    .spawn(move || chunk.iter_mut().enumerate().try_for_each(|(j, bucket)| work(i * share + j, bucket)))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("loading a bucket does not panic"))
    })
}
