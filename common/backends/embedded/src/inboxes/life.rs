//! Whether the files found are the ones this Feedgate wrote last, or an older state put back.
//!
//! ```text
//!   incarnation = id : opens        the Archive remembers the last one it worked with
//!
//!   meta         id, number of buckets; written once
//!   newest log   opens, the last open that logged anything, inode and change time of `meta`
//! ```
//!
//! A store that was rolled back would give sequence ids again that devices already know (I16). So a store goes on only
//! if both of the following hold; else the store starts empty under a new id, which costs rebuilds and no content:
//! - the Archive's number must lie between the last open that logged anything and the last open (it
//!   is less than the last when the process died between opening this store and telling the
//!   Archive, twice or more often even);
//! - `meta` must be the very file it was: a directory restored from a copy, by whatever tool and even
//!   with all times put back, has another inode or change time. This also sees a copy taken and
//!   put back within one run, which counting opens cannot.
//!
//! A whole file system put back, with the Archive in it, is not seen here: then the truth itself
//! was rolled back. Nor is the Archive alone put back from a copy of the same run: restore the data
//! directory as a whole, or remove `inboxes` with it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use feedgate_common::error::{Result, StoreError};
use serde::{Deserialize, Serialize};

use super::segment::{self, FORMAT, Fingerprint, HEADER, Header, failed};
use super::snapshot;
use crate::disk;

const META: &str = "meta";

/// What `meta` holds, as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Meta {
    format: u32,
    id: String,
    buckets: u16,
}

/// One life of the store: the time from one opening to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) id: u128,
    pub(super) buckets: u16,
    pub(super) opens: u64,
    /// The last opening under which a step is known to have been logged.
    pub(super) used: u64,
    pub(super) meta: Fingerprint,
}

impl Life {
    /// The text by which the Archive remembers this life.
    pub(super) fn incarnation(&self) -> String {
        format!("{:032x}:{}", self.id, self.opens)
    }

    /// The header of a segment whose first record will have number `first`.
    pub(super) fn header(&self, first: u64) -> Header {
        Header { id: self.id, opens: self.opens, used: self.used, first, meta: self.meta }
    }
}

/// The life to go on with: the next life of the store in `dir`, or the first life of a new and empty store. A life is
/// durable once a segment with its header is made. If `dir` is a copy that is to be looked at, `original` is the
/// directory of which the copy was just made; else both are the same.
pub(super) fn next(dir: &Path, original: &Path, expected: Option<&str>, buckets: u16) -> Result<Life> {
    let found = find(dir, original)?;
    match found.as_ref().map_or(Err("there is none"), |found| judge(found, expected)) {
        Ok(life) => Ok(Life { opens: life.opens + 1, ..life }),
        Err(why) => {
            if expected.is_some() || found.is_some() {
                tracing::warn!(dir = %dir.display(), "the inbox store starts empty: {why}");
            }
            begin(dir, buckets)
        }
    }
}

/// What the files of a store show.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The last life of the store.
    last: Life,
    /// Whether every segment names this store and this very file `meta`.
    genuine: bool,
}

/// Decides whether the store may go on: its next life, or the reason against it.
fn judge(found: &Found, expected: Option<&str>) -> std::result::Result<Life, &'static str> {
    if !found.genuine {
        return Err("its files are a copy of what they were, perhaps an older one");
    }
    let remembered = expected.and_then(|text| {
        let (id, opens) = text.rsplit_once(':')?;
        Some((u128::from_str_radix(id, 16).ok()?, opens.parse::<u64>().ok()?))
    });
    match remembered {
        Some((id, opens)) if id == found.last.id && (found.last.used..=found.last.opens).contains(&opens) => {
            Ok(found.last)
        }
        Some(_) => Err("the archive last worked with another state of it"),
        None => Err("the archive does not know it"),
    }
}

fn find(dir: &Path, original: &Path) -> Result<Option<Found>> {
    let path = dir.join(META);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed("read", &path, e)),
    };
    let meta: Meta =
        serde_json::from_slice(&text).map_err(|_| segment::damaged(&path, 0, "the store's description"))?;
    let id = u128::from_str_radix(&meta.id, 16);
    let (Ok(id), FORMAT, 1..) = (id, meta.format, meta.buckets) else {
        tracing::warn!(format = meta.format, "the inbox store is of a format that this version does not read");
        return Ok(None);
    };
    let fingerprint = fingerprint(&original.join(META))?;
    let mut headers = Vec::new();
    for (_, path) in segment::list(dir)? {
        let logged = fs::metadata(&path).map_err(|e| failed("read", &path, e))?.len() > HEADER as u64;
        headers.push((Header::read(&path)?, logged));
    }
    let Some(opens) = headers.iter().map(|(header, _)| header.opens).max() else { return Ok(None) };
    let used = headers.iter().map(|(header, logged)| if *logged { header.opens } else { header.used }).max();
    let used = used.unwrap_or_default();
    let genuine = headers.iter().all(|(header, _)| header.id == id && header.meta == fingerprint);
    Ok(Some(Found { last: Life { id, buckets: meta.buckets, opens, used, meta: fingerprint }, genuine }))
}

/// Removes the files of the old store and makes `meta` of a new one. After a crash in between there is no `meta`, so
/// the next opening removes the rest.
fn begin(dir: &Path, buckets: u16) -> Result<Life> {
    clear(dir).map_err(|e| failed("clear", dir, e))?;
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|e| StoreError::unavailable(format_args!("no random numbers: {e}")))?;
    let id = u128::from_le_bytes(id);
    let meta = Meta { format: FORMAT, id: format!("{id:032x}"), buckets };
    let text = serde_json::to_vec(&meta).expect("three plain fields");
    disk::write_whole(dir, META, |file| file.write_all(&text)).map_err(|e| failed("write", &dir.join(META), e))?;
    Ok(Life { id, buckets, opens: 1, used: 0, meta: fingerprint(&dir.join(META))? })
}

fn clear(dir: &Path) -> std::io::Result<()> {
    match fs::remove_file(dir.join(META)) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => disk::sync_dir(dir)?,
    }
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let ours = path.extension().is_some_and(|e| e == "log" || e == snapshot::EXTENSION || e == "tmp");
        if ours {
            fs::remove_file(path)?;
        }
    }
    disk::sync_dir(dir)
}

/// The fingerprint of the file `path`: it shows whether the file was replaced.
pub(super) fn fingerprint(path: &Path) -> Result<Fingerprint> {
    let is = fs::metadata(path).map_err(|e| failed("read", path, e))?;
    Ok(Fingerprint { inode: is.ino(), changed_s: is.ctime(), changed_ns: is.ctime_nsec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(used: u64, opens: u64, genuine: bool) -> Found {
        let meta = Fingerprint { inode: 1, changed_s: 2, changed_ns: 3 };
        Found { last: Life { id: 0xab, buckets: 16, opens, used, meta }, genuine }
    }

    #[test]
    fn i16_a_store_goes_on_only_if_the_archive_may_know_all_it_has_logged() {
        let id = format!("{:032x}", 0xab);
        let cases = [
            (found(5, 5, true), Some(format!("{id}:5")), true),
            (found(4, 5, true), Some(format!("{id}:4")), true),
            (found(3, 5, true), Some(format!("{id}:3")), true),
            (found(5, 5, true), Some(format!("{id}:4")), false),
            (found(4, 5, true), Some(format!("{id}:3")), false),
            (found(5, 5, true), Some(format!("{id}:6")), false),
            (found(5, 5, true), Some(format!("{:032x}:5", 0xac)), false),
            (found(5, 5, true), Some("nonsense".into()), false),
            (found(5, 5, true), None, false),
            (found(5, 5, false), Some(format!("{id}:5")), false),
        ];
        for (found, expected, goes_on) in cases {
            assert_eq!(judge(&found, expected.as_deref()).is_ok(), goes_on, "{found:?} {expected:?}");
        }
    }
}
