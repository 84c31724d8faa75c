//! What the inboxes look like in Redis.
//!
//! ```text
//!   {b005}            hash  layout             version and number of buckets
//!                           life, epoch        the replication id it was made under, the least epoch that counts
//!                           <author>           progress: `done`, or `done:last`
//!   {b005}:<reader>:<feed>
//!                     list  element 0          header: kind, epoch, base, built_at, watermarks, floor, marks
//!                           element n          the entry of sequence id base + n; behind a placeholder a note
//! ```
//!
//! An inbox expires at the time that was set for it; the placeholder of a build in flight expires an hour after the
//! build began.
//!
//! A bucket of another layout is refused, so that two versions side by side do not take each other's inboxes in turn.
//!
//! Invariants: sequence ids are dense because they are places in a list; an inbox is one key, so it is there as a whole
//! or not at all; everything of a bucket lies in one slot; watermarks are part of the header, so no log is there
//! without its watermarks. What scripts compare as numbers fits a double.
//!
//! Size, by `MEMORY USAGE`: see `docs/adr/0006-inboxes-on-redis.md`.

use feedgate_common::error::{Result, StoreError};
use feedgate_common::marks::Mark;
use feedgate_common::packing::{self, START};
use feedgate_common::{
    Bucket, DisplayKey, Entry, Epoch, FeedId, Generation, InboxKey, ItemId, OutboxSeq, Progress, PullSeq, UserNo,
    Watermarks,
};

/// The version of this layout, raised whenever a part of it changes its meaning.
const VERSION: u32 = 1;

/// All numbers are less than this, since numbers in Lua are doubles.
const LIMIT: u64 = 1 << 53;

const BUILDING: u8 = 0;
const INBOX: u8 = 1;
/// Length of a header without marks in bytes.
const FIXED: usize = 53;

pub(super) fn layout(buckets: u16) -> String {
    format!("{VERSION}/{buckets}")
}

pub(super) fn bucket_key(bucket: Bucket) -> Vec<u8> {
    format!("{{b{:03}}}", bucket.0).into_bytes()
}

pub(super) fn inbox_key(bucket: Bucket, key: InboxKey) -> Vec<u8> {
    format!("{{b{:03}}}:{}:{}", bucket.0, key.reader.0, key.feed.0).into_bytes()
}

/// The inbox that lies under a key of Redis; `None` if the key is not that of an inbox in a store with `buckets`
/// buckets.
pub(super) fn inbox_of(name: &[u8], buckets: u16) -> Option<InboxKey> {
    let (_, place) = std::str::from_utf8(name).ok()?.split_once("}:")?;
    let (reader, feed) = place.split_once(':')?;
    let key = InboxKey { reader: UserNo(reader.parse().ok()?), feed: FeedId(feed.parse().ok()?) };
    (inbox_key(key.reader.bucket(buckets), key) == name).then_some(key)
}

/// The field of an author's progress.
pub(super) fn field(author: UserNo) -> Vec<u8> {
    author.0.to_string().into_bytes()
}

/// Progress as text; an empty text is the progress before the first record.
pub(super) fn progress_text(progress: Progress) -> Vec<u8> {
    match progress {
        Progress { done: 0, last: None } => Vec::new(),
        Progress { done, last: None } => done.to_string().into_bytes(),
        Progress { done, last: Some(last) } => format!("{done}:{}", last.0).into_bytes(),
    }
}

pub(super) fn progress_of(text: &[u8]) -> Result<Progress> {
    let parse = || {
        let text = std::str::from_utf8(text).ok()?;
        match text.split_once(':') {
            _ if text.is_empty() => Some(Progress::default()),
            None => Some(Progress::at(text.parse().ok()?)),
            Some((done, last)) => Some(Progress { done: done.parse().ok()?, last: Some(UserNo(last.parse().ok()?)) }),
        }
    };
    parse().ok_or_else(|| damaged("a progress", text))
}

/// A number that a script compares.
pub(super) fn number(n: u64) -> Result<u64> {
    if n < LIMIT { Ok(n) } else { Err(StoreError::corrupt(format_args!("{n} is beyond 2^53: Redis cannot keep it"))) }
}

/// The bytes by which a mark names its author.
pub(super) fn mark_author(author: UserNo) -> [u8; 4] {
    author.0.to_le_bytes()
}

/// The generation of a mark.
pub(super) fn mark_generation(generation: Generation) -> Result<Vec<u8>> {
    seven(generation)
}

/// All marks of an inbox that was just built.
pub(super) fn marks(ahead: &[(UserNo, OutboxSeq)]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(11 * ahead.len());
    for (author, seq) in ahead {
        bytes.extend(mark_author(*author));
        bytes.extend(&Mark::Ahead(number(*seq)?).packed().to_le_bytes()[..7]);
    }
    Ok(bytes)
}

/// The pull watermark of a header.
pub(super) fn pull_watermark(pull: PullSeq) -> Result<Vec<u8>> {
    seven(pull)
}

/// Both watermarks of a header.
pub(super) fn watermarks(of: Watermarks) -> Result<Vec<u8>> {
    Ok([pull_watermark(of.pull)?, seven(of.direct)?].concat())
}

/// A floor as headers have it, in 17 bytes.
pub(super) fn floor_bytes(floor: Option<DisplayKey>) -> Vec<u8> {
    let DisplayKey { rank, item } = floor.unwrap_or(START);
    [&[u8::from(floor.is_some())][..], &rank.to_le_bytes(), &item.0.to_le_bytes()].concat()
}

/// A number as headers have it.
fn seven(n: u64) -> Result<Vec<u8>> {
    Ok(number(n)?.to_le_bytes()[..7].to_vec())
}

/// The header of a build in flight.
pub(super) fn placeholder(epoch: Epoch) -> Result<Vec<u8>> {
    let mut bytes = vec![BUILDING];
    bytes.extend(seven(epoch.0)?);
    Ok(bytes)
}

/// Element 0 of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) epoch: Epoch,
    /// Sequence ids up to this one were cut off.
    pub(super) base: u64,
    pub(super) built_at: Generation,
    pub(super) taken: Watermarks,
    pub(super) floor: Option<DisplayKey>,
    /// The marks, packed; only scripts look into them.
    pub(super) marks: Vec<u8>,
}

impl Header {
    pub(super) fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = vec![INBOX];
        for n in [self.epoch.0, self.base, self.built_at] {
            bytes.extend(seven(n)?);
        }
        bytes.extend(watermarks(self.taken)?);
        bytes.extend(floor_bytes(self.floor));
        bytes.extend(&self.marks);
        Ok(bytes)
    }

    pub(super) fn of(bytes: &[u8]) -> Result<Self> {
        let read = || {
            let (fixed, marks) = bytes.split_at_checked(FIXED)?;
            let number = |at: usize| {
                let mut word = [0; 8];
                word[..7].copy_from_slice(&fixed[at..at + 7]);
                u64::from_le_bytes(word)
            };
            let key = DisplayKey {
                rank: i64::from_le_bytes(fixed[37..45].try_into().ok()?),
                item: ItemId(u64::from_le_bytes(fixed[45..53].try_into().ok()?)),
            };
            let header = Self {
                epoch: Epoch(number(1)),
                base: number(8),
                built_at: number(15),
                taken: Watermarks { pull: number(22), direct: number(29) },
                floor: (fixed[36] == 1).then_some(key),
                marks: marks.to_vec(),
            };
            (fixed[0] == INBOX).then_some(header)
        };
        read().ok_or_else(|| damaged("a header", bytes))
    }
}

/// The bytes of an entry that can be read without the entries before it.
pub(super) fn entry_bytes(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    packing::put(&mut bytes, entry, &mut { START });
    bytes
}

pub(super) fn entry_of(bytes: &[u8]) -> Result<Entry> {
    let mut rest = bytes;
    let entry = packing::take(&mut rest, &mut { START });
    entry.filter(|_| rest.is_empty()).ok_or_else(|| damaged("an entry", bytes))
}

fn damaged(what: &str, bytes: &[u8]) -> StoreError {
    StoreError::corrupt(format_args!("Redis holds what is not {what}: {}", bytes.escape_ascii()))
}

/// The bytes of an entry that are the same for every reader.
pub(super) fn shared_bytes(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    packing::put_record(&mut bytes, entry, &mut { START });
    bytes
}

/// How many of `seqs`, which ascend, are beyond `from`.
pub(super) fn beyond(seqs: &[OutboxSeq], from: OutboxSeq) -> usize {
    seqs.len() - seqs.partition_point(|&seq| seq <= from)
}

/// The fuzz target: reads the bytes as each part of an inbox that Redis may answer. Numbers that a header can hold and
/// no script can compare are refused when it is written.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzzed(bytes: &[u8]) {
    let is_damage = |error: StoreError| assert!(error.to_string().contains("Redis holds what is not"), "{error}");
    match Header::of(bytes) {
        Ok(header) => {
            let again = header.bytes().map(|bytes| Header::of(&bytes).ok());
            assert!(again.is_err() || again.is_ok_and(|again| again.as_ref() == Some(&header)));
            assert!(header.marks.len() < bytes.len());
        }
        Err(error) => is_damage(error),
    }
    match entry_of(bytes) {
        Ok(entry) => assert_eq!(entry_of(&entry_bytes(&entry)).ok(), Some(entry)),
        Err(error) => is_damage(error),
    }
    match progress_of(bytes) {
        Ok(progress) => assert_eq!(progress_of(&progress_text(progress)).ok(), Some(progress)),
        Err(error) => is_damage(error),
    }
    if let Some(key) = inbox_of(bytes, 16) {
        assert_eq!(inbox_key(key.reader.bucket(16), key), bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_common::Op;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_header_comes_back(
            numbers in proptest::array::uniform5(0..LIMIT),
            floor: Option<(i64, u64)>,
            marks: Vec<u8>,
        ) {
            let [epoch, base, built_at, pull, direct] = numbers;
            let floor = floor.map(|(rank, item)| DisplayKey { rank, item: ItemId(item) });
            let taken = Watermarks { pull, direct };
            let header = Header { epoch: Epoch(epoch), base, built_at, taken, floor, marks };
            prop_assert_eq!(Header::of(&header.bytes().unwrap()).unwrap(), header);
        }

        #[test]
        fn any_bytes_are_a_header_and_an_entry_and_a_progress_or_damage(bytes: Vec<u8>) {
            let _ = (Header::of(&bytes), entry_of(&bytes), progress_of(&bytes));
        }

        #[test]
        fn any_progress_comes_back(done: u64, last: Option<u32>) {
            let progress = Progress { done, last: last.map(UserNo) };
            prop_assert_eq!(progress_of(&progress_text(progress)).unwrap(), progress);
        }
    }

    #[test]
    fn a_number_that_a_double_does_not_hold_is_refused() {
        let header = |epoch, taken| {
            Header { epoch: Epoch(epoch), base: 0, built_at: 0, taken, floor: None, marks: vec![] }.bytes()
        };
        let none = Watermarks::default();
        assert!(header(LIMIT, none).is_err() && header(1, Watermarks { pull: LIMIT, ..none }).is_err());
        assert!(placeholder(Epoch(LIMIT)).is_err() && mark_generation(LIMIT).is_err());
        assert!(number(LIMIT - 1).is_ok());
    }

    #[test]
    fn an_inbox_is_told_by_its_key_and_nothing_else_is_one() {
        let key = InboxKey { reader: UserNo(6), feed: FeedId(1) };
        assert_eq!(inbox_of(&inbox_key(Bucket(2), key), 4), Some(key));
        for other in ["{b002}", "{b001}:6:1", "{b002}:06:1", "{s002}:6:1", "{b002}:6", "{b002}:6:1:1", "}:", ""] {
            assert_eq!(inbox_of(other.as_bytes(), 4), None, "{other}");
        }
    }

    #[test]
    fn a_placeholder_is_no_inbox_and_an_entry_with_more_behind_it_is_none() {
        assert!(Header::of(&placeholder(Epoch(7)).unwrap()).is_err());
        let key = DisplayKey { rank: 5, item: ItemId(6) };
        let entry = Entry { op: Op::Add, author: UserNo(1), outbox_seq: 2, generation: 3, key };
        let mut bytes = entry_bytes(&entry);
        assert_eq!(entry_of(&bytes).unwrap(), entry);
        bytes.push(0);
        assert!(entry_of(&bytes).is_err());
    }

    #[test]
    fn an_entry_is_its_generation_and_what_all_readers_share() {
        let key = DisplayKey { rank: 1_764_000_000_000, item: ItemId((1_764_000_000_000 << 22) + 3) };
        let entry = Entry { op: Op::Add, author: UserNo(90_000), outbox_seq: 700, generation: 300, key };
        let mut bytes = Vec::new();
        feedgate_common::varint::put(&mut bytes, 300);
        bytes.extend(shared_bytes(&entry));
        assert_eq!(bytes, entry_bytes(&entry));
        assert!(bytes.len() <= 16, "{}", bytes.len());
    }
}
