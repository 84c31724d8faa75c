//! A step as bytes in the log.
//!
//! ```text
//!   any:   bucket, kind, …
//!   push:  bucket, kind, author, feed, expected, next, records, recipients
//!          recipient = distance in readers of the bucket · 2 + odd | distance of generations
//!                      | if odd: from beyond expected, distance of counters
//! ```
//!
//! So one more recipient usually costs 2 to 5 bytes. The log holds the step that was asked for, not its result: to
//! apply it again gives the same result. A `from` at or below `expected.done` means what 0 means and is written as 0.
//! All records in a step are push records, so their route is not written.
//!
//! Each change of these bytes, or of what a step does, needs another [`FORMAT`](super::segment::FORMAT). A new kind of
//! step needs no other format: a version that does not know the kind refuses the log.

use feedgate_common::archive::Recipient;
use feedgate_common::change::Route;
use feedgate_common::inboxes::{Advance, Build, EdgeStep, Take};
use feedgate_common::{
    Bucket, Cut, DisplayKey, Entry, Epoch, FeedId, InboxKey, ItemId, OutboxSeq, Progress, Record, UserNo, Watermarks,
};

use super::bucket::Step;
use super::until::Until;
use feedgate_common::packing;
use feedgate_common::varint::{put, put_signed, take, take_byte, take_signed, take_u32};

const ADVANCE: u8 = 1;
const EDGES: u8 = 2;
const TAKE: u8 = 3;
const BEGIN: u8 = 4;
const FINISH: u8 = 5;
const DISCARD: u8 = 6;
const TOUCH: u8 = 7;
const EXPIRE: u8 = 8;
/// As [`EDGES`], and each step has a floor or says that it has none.
const EDGES_WITH_FLOORS: u8 = 9;

/// The bucket to which a step belongs.
pub(super) fn bucket_of(step: &Step, buckets: u16) -> Bucket {
    match step {
        Step::Advance(step) => step.bucket,
        Step::Edges(steps) => steps[0].key.reader.bucket(buckets),
        Step::Take(Take { key, .. })
        | Step::Begin { key, .. }
        | Step::Finish(Build { key, .. })
        | Step::Discard(key) => key.reader.bucket(buckets),
        Step::Touch(keys, _) | Step::Expire(keys, _) => keys[0].reader.bucket(buckets),
    }
}

/// The bytes of `step` in the log of a store with `buckets` buckets.
pub(super) fn encode(step: &Step, buckets: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    put(&mut out, bucket_of(step, buckets).0.into());
    match step {
        Step::Advance(step) => put_advance(&mut out, step, buckets),
        Step::Edges(steps) => put_edges(&mut out, steps),
        Step::Take(step) => {
            out.push(TAKE);
            put_key(&mut out, step.key);
            put(&mut out, step.epoch.0);
            put_taken(&mut out, step.expected);
            put(&mut out, step.next.pull - step.expected.pull);
            put(&mut out, step.next.direct - step.expected.direct);
            put(&mut out, step.counter);
            put_entries(&mut out, &step.entries);
        }
        Step::Begin { key, placeholder } => {
            out.push(BEGIN);
            put_key(&mut out, *key);
            put(&mut out, placeholder.0);
        }
        Step::Finish(build) => {
            out.push(FINISH);
            put_key(&mut out, build.key);
            put(&mut out, build.epoch.0);
            put(&mut out, build.built_at);
            put_floor(&mut out, build.floor);
            put_taken(&mut out, build.taken);
            Until::at_least(build.until).put(&mut out);
            put_entries(&mut out, &build.entries);
            put_ahead(&mut out, &build.ahead);
            put(&mut out, build.notes_from);
        }
        Step::Discard(key) => {
            out.push(DISCARD);
            put_key(&mut out, *key);
        }
        Step::Touch(keys, until) => put_keys(&mut out, TOUCH, keys, *until),
        Step::Expire(keys, now) => put_keys(&mut out, EXPIRE, keys, *now),
    }
    out
}

/// The step in bytes that [`encode`] made; `None` if they are no step.
pub(super) fn decode(mut bytes: &[u8], buckets: u16) -> Option<Step> {
    let bytes = &mut bytes;
    let bucket = take_bucket(bytes, buckets)?;
    let step = match take_byte(bytes)? {
        ADVANCE => Step::Advance(take_advance(bytes, bucket, buckets)?),
        EDGES => Step::Edges(take_edges(bytes, false)?),
        EDGES_WITH_FLOORS => Step::Edges(take_edges(bytes, true)?),
        TAKE => Step::Take(take_take(bytes)?),
        BEGIN => Step::Begin { key: take_key(bytes)?, placeholder: Epoch(take(bytes)?) },
        FINISH => Step::Finish(take_build(bytes)?),
        DISCARD => Step::Discard(take_key(bytes)?),
        TOUCH => take_keys(bytes, bucket, buckets).map(|(keys, until)| Step::Touch(keys, until))?,
        EXPIRE => take_keys(bytes, bucket, buckets).map(|(keys, now)| Step::Expire(keys, now))?,
        _ => return None,
    };
    (bytes.is_empty() && bucket_of(&step, buckets) == bucket).then_some(step)
}

/// Reads the number of the bucket to which the step in the following bytes belongs.
pub(super) fn take_bucket(bytes: &mut &[u8], buckets: u16) -> Option<Bucket> {
    take(bytes)?.try_into().ok().filter(|bucket| *bucket < buckets).map(Bucket)
}

fn put_advance(out: &mut Vec<u8>, step: &Advance, buckets: u16) {
    out.reserve(32 + 16 * step.records.len() + 6 * step.recipients.len());
    out.push(ADVANCE);
    put(out, step.author.0.into());
    put(out, step.feed.0.into());
    put_progress(out, step.expected);
    put_progress(out, step.next);
    put(out, step.records.len() as u64);
    let mut before = packing::START;
    step.records.iter().for_each(|record| packing::put(out, &Entry::of(record, UserNo(0), 0), &mut before));
    put(out, step.recipients.len() as u64);
    let (mut place, mut generation, mut counter) = (0, 0, 0);
    for to in &step.recipients {
        let from = to.from.saturating_sub(step.expected.done);
        let odd = from != 0 || to.counter != counter;
        let this = u64::from(to.reader.0 / u32::from(buckets));
        put(out, (this - place) << 1 | u64::from(odd));
        put_signed(out, to.generation.wrapping_sub(generation) as i64);
        if odd {
            put(out, from);
            put_signed(out, to.counter.wrapping_sub(counter) as i64);
        }
        (place, generation, counter) = (this, to.generation, to.counter);
    }
}

fn take_advance(bytes: &mut &[u8], bucket: Bucket, buckets: u16) -> Option<Advance> {
    let (author, feed) = (UserNo(take_u32(bytes)?), take_feed(bytes)?);
    let (expected, next) = (take_progress(bytes)?, take_progress(bytes)?);
    let records = take_entries(bytes)?
        .into_iter()
        .map(|e| Record { seq: e.outbox_seq, op: e.op, route: Route::Push, feed, key: e.key })
        .collect();
    let count = take(bytes)?;
    let mut recipients = Vec::with_capacity(count.min(bytes.len() as u64) as usize);
    let (mut place, mut generation, mut counter) = (0_u64, 0_u64, 0_u64);
    for _ in 0..count {
        let step = take(bytes)?;
        place = place.checked_add(step >> 1)?;
        generation = generation.wrapping_add(take_signed(bytes)? as u64);
        let mut from = 0;
        if step & 1 == 1 {
            from = match take(bytes)? {
                0 => 0,
                beyond => expected.done.checked_add(beyond)?,
            };
            counter = counter.wrapping_add(take_signed(bytes)? as u64);
        }
        let reader = place.checked_mul(buckets.into())?.checked_add(bucket.0.into())?;
        recipients.push(Recipient {
            reader: UserNo(reader.try_into().ok()?),
            generation,
            from,
            counter,
            listens: false,
        });
    }
    Some(Advance { author, bucket, feed, expected, next, records, recipients, kept: false })
}

fn put_edges(out: &mut Vec<u8>, steps: &[EdgeStep]) {
    let with_floors = steps.iter().any(|step| step.floor.is_some());
    out.push(if with_floors { EDGES_WITH_FLOORS } else { EDGES });
    put_key(out, steps[0].key);
    put(out, steps.len() as u64);
    for step in steps {
        put(out, step.author.0.into());
        put(out, step.generation);
        out.push(step.on.into());
        put_progress(out, step.expected.progress);
        put(out, step.expected.pull);
        put_entries(out, &step.adds);
        if with_floors {
            put_floor(out, step.floor);
        }
    }
}

/// Reads the steps of edges of one inbox; `None` if there is none.
fn take_edges(bytes: &mut &[u8], with_floors: bool) -> Option<Vec<EdgeStep>> {
    let (key, count) = (take_key(bytes)?, take(bytes)?);
    let mut steps = Vec::with_capacity(count.min(bytes.len() as u64) as usize);
    for _ in 0..count {
        let (author, generation, on) = (UserNo(take_u32(bytes)?), take(bytes)?, take_byte(bytes)? != 0);
        let expected = Cut { progress: take_progress(bytes)?, pull: take(bytes)? };
        let adds = take_entries(bytes)?;
        let floor = if with_floors { take_floor(bytes)? } else { None };
        steps.push(EdgeStep { key, author, generation, on, expected, adds, floor });
    }
    (!steps.is_empty()).then_some(steps)
}

fn take_take(bytes: &mut &[u8]) -> Option<Take> {
    let (key, epoch, expected) = (take_key(bytes)?, Epoch(take(bytes)?), take_taken(bytes)?);
    let next = Watermarks {
        pull: expected.pull.checked_add(take(bytes)?)?,
        direct: expected.direct.checked_add(take(bytes)?)?,
    };
    Some(Take { key, epoch, expected, next, counter: take(bytes)?, entries: take_entries(bytes)? })
}

fn take_build(bytes: &mut &[u8]) -> Option<Build> {
    let (key, epoch, built_at) = (take_key(bytes)?, Epoch(take(bytes)?), take(bytes)?);
    let (floor, taken, until) = (take_floor(bytes)?, take_taken(bytes)?, Until::take(bytes)?.millis());
    let (entries, ahead, notes_from) = (take_entries(bytes)?, take_ahead(bytes)?, take(bytes)?);
    Some(Build { key, epoch, built_at, entries, floor, taken, ahead, notes_from, until })
}

fn put_ahead(out: &mut Vec<u8>, ahead: &[(UserNo, OutboxSeq)]) {
    put(out, ahead.len() as u64);
    for (author, seq) in ahead {
        put(out, author.0.into());
        put(out, *seq);
    }
}

fn take_ahead(bytes: &mut &[u8]) -> Option<Vec<(UserNo, OutboxSeq)>> {
    let count = take(bytes)?;
    let mut ahead = Vec::with_capacity(count.min(bytes.len() as u64) as usize);
    for _ in 0..count {
        ahead.push((UserNo(take_u32(bytes)?), take(bytes)?));
    }
    Some(ahead)
}

fn put_keys(out: &mut Vec<u8>, kind: u8, keys: &[InboxKey], time: Until) {
    out.push(kind);
    time.put(out);
    put(out, keys.len() as u64);
    keys.iter().for_each(|key| put_key(out, *key));
}

/// Reads a moment and inboxes of the bucket; `None` if there is no inbox or one is of another bucket.
fn take_keys(bytes: &mut &[u8], bucket: Bucket, buckets: u16) -> Option<(Vec<InboxKey>, Until)> {
    let (time, count) = (Until::take(bytes)?, take(bytes)?);
    let mut keys = Vec::with_capacity(count.min(bytes.len() as u64) as usize);
    for _ in 0..count {
        keys.push(take_key(bytes).filter(|key| key.reader.bucket(buckets) == bucket)?);
    }
    (!keys.is_empty()).then_some((keys, time))
}

pub(super) fn put_taken(out: &mut Vec<u8>, taken: Watermarks) {
    put(out, taken.pull);
    put(out, taken.direct);
}

pub(super) fn take_taken(bytes: &mut &[u8]) -> Option<Watermarks> {
    Some(Watermarks { pull: take(bytes)?, direct: take(bytes)? })
}

pub(super) fn put_key(out: &mut Vec<u8>, key: InboxKey) {
    put(out, key.reader.0.into());
    put(out, key.feed.0.into());
}

pub(super) fn take_key(bytes: &mut &[u8]) -> Option<InboxKey> {
    let reader = UserNo(take_u32(bytes)?);
    Some(InboxKey { reader, feed: take_feed(bytes)? })
}

fn take_feed(bytes: &mut &[u8]) -> Option<FeedId> {
    take(bytes)?.try_into().ok().map(FeedId)
}

/// Writes a progress. `last` is written plus one, so that 0 means none.
pub(super) fn put_progress(out: &mut Vec<u8>, progress: Progress) {
    put(out, progress.done);
    put(out, progress.last.map_or(0, |last| u64::from(last.0) + 1));
}

pub(super) fn take_progress(bytes: &mut &[u8]) -> Option<Progress> {
    let done = take(bytes)?;
    let last = match take(bytes)? {
        0 => None,
        shifted => Some(UserNo((shifted - 1).try_into().ok()?)),
    };
    Some(Progress { done, last })
}

pub(super) fn put_floor(out: &mut Vec<u8>, floor: Option<DisplayKey>) {
    out.push(floor.is_some().into());
    if let Some(floor) = floor {
        put_signed(out, floor.rank);
        put(out, floor.item.0);
    }
}

pub(super) fn take_floor(bytes: &mut &[u8]) -> Option<Option<DisplayKey>> {
    match take_byte(bytes)? {
        0 => Some(None),
        1 => Some(Some(DisplayKey { rank: take_signed(bytes)?, item: ItemId(take(bytes)?) })),
        _ => None,
    }
}

fn put_entries(out: &mut Vec<u8>, entries: &[Entry]) {
    put(out, entries.len() as u64);
    let mut before = packing::START;
    entries.iter().for_each(|entry| packing::put(out, entry, &mut before));
}

fn take_entries(bytes: &mut &[u8]) -> Option<Vec<Entry>> {
    let count = take(bytes)?;
    let mut entries = Vec::with_capacity(count.min(bytes.len() as u64) as usize);
    let mut before = packing::START;
    for _ in 0..count {
        entries.push(packing::take(bytes, &mut before)?);
    }
    Some(entries)
}

/// The fuzz target: a step that is read belongs to the bucket in its bytes, and is the same after it was written and
/// read again.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    const BUCKETS: u16 = 16;
    let Some(step) = decode(bytes, BUCKETS) else { return };
    assert_eq!(take_bucket(&mut &bytes[..], BUCKETS), Some(bucket_of(&step, BUCKETS)));
    let again = decode(&encode(&step, BUCKETS), BUCKETS);
    assert_eq!(format!("{again:?}"), format!("{:?}", Some(step)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_common::Op;
    use proptest::prelude::*;

    fn record(seq: u64) -> Record {
        let key = DisplayKey { rank: 1_764_000_000_000, item: ItemId(1_764_000_000_000 << 22) };
        Record { seq, op: Op::Add, route: Route::Push, feed: FeedId::MAIN, key }
    }

    fn advance(recipients: Vec<Recipient>) -> Advance {
        let (expected, next) = (Progress::at(8), Progress { done: 9, last: Some(UserNo(1000)) });
        Advance {
            author: UserNo(77),
            bucket: Bucket(3),
            feed: FeedId::MAIN,
            expected,
            next,
            records: vec![record(9)],
            recipients,
            kept: false,
        }
    }

    proptest! {
        #[test]
        fn any_push_step_comes_back(
            readers in proptest::collection::btree_set(0..u32::MAX / 16, 0..40),
            edges in proptest::collection::vec(any::<(u64, u64, u64)>(), 40),
        ) {
            let recipients = readers.iter().zip(&edges).map(|(place, &(generation, from, counter))| Recipient {
                reader: UserNo(place * 16 + 3), generation, from, counter, listens: false,
            });
            let step = advance(recipients.collect());
            let back = decode(&encode(&Step::Advance(step.clone()), 16), 16);
            let Some(Step::Advance(back)) = back else { panic!("{back:?}") };
            let clipped = |to: &Recipient| Recipient { from: if to.from > 8 { to.from } else { 0 }, ..*to };
            prop_assert_eq!(&back.recipients, &step.recipients.iter().map(clipped).collect::<Vec<_>>());
            prop_assert_eq!((back.author, back.bucket, back.expected, back.next, back.records),
                (step.author, step.bucket, step.expected, step.next, step.records));
        }

        #[test]
        fn any_bytes_are_a_step_or_nothing(bytes: Vec<u8>, kind in 0..10_u8) {
            let mut bytes = bytes;
            bytes.splice(0..0, [3, kind]);
            let _ = decode(&bytes, 16);
        }
    }

    #[test]
    fn every_other_step_comes_back() {
        let key = InboxKey { reader: UserNo(5), feed: FeedId(2) };
        let adds = vec![Entry::of(&record(4), UserNo(7), 9), Entry::forget(UserNo(7), 10, None)];
        let far = DisplayKey { rank: -1, item: ItemId(u64::MAX) };
        let floor = Some(far);
        let progress = Progress { done: 3, last: Some(UserNo(u32::MAX)) };
        let (expected, taken) = (Cut { progress, pull: 300 }, Watermarks { pull: u64::MAX, direct: 2 });
        let edge = |on| EdgeStep { key, author: UserNo(7), generation: 9, on, expected, adds: adds.clone(), floor };
        let take = |entries| {
            let (epoch, expected) = (Epoch(u64::MAX), Watermarks { pull: 1 << 40, direct: 0 });
            Step::Take(Take { key, epoch, expected, next: taken, entries, counter: 12 })
        };
        let direct = Entry::direct(Op::Delete, UserNo(u32::MAX), far);
        let (until, keys) = (Until::at_least(i64::MAX), vec![key, InboxKey::main(UserNo(21))]);
        let build = |entries, floor, ahead, notes_from| {
            Step::Finish(Build {
                key,
                epoch: Epoch(4),
                built_at: 8,
                entries,
                floor,
                taken,
                ahead,
                notes_from,
                until: 7_000,
            })
        };
        let steps = [
            Step::Edges(vec![edge(true)]),
            Step::Edges(vec![edge(false)]),
            Step::Edges(vec![edge(false), EdgeStep { author: UserNo(u32::MAX), floor: None, ..edge(true) }]),
            Step::Edges(vec![EdgeStep { floor: None, ..edge(true) }]),
            Step::Begin { key, placeholder: Epoch(u64::MAX) },
            build(adds.clone(), floor, vec![], 0),
            build(vec![], None, vec![(UserNo(9), 4)], 0),
            build(vec![], None, vec![], 300),
            take(vec![adds[0], direct]),
            take(vec![]),
            Step::Discard(key),
            Step::Touch(keys.clone(), until),
            Step::Expire(keys, Until::at_least(1_000)),
        ];
        for step in steps {
            let bytes = encode(&step, 16);
            assert_eq!(format!("{:?}", decode(&bytes, 16)), format!("{:?}", Some(step)));
            assert!(decode(&bytes[..bytes.len() - 1], 16).is_none());
        }
    }

    #[test]
    fn a_step_of_an_inbox_of_another_bucket_is_no_step() {
        let key = InboxKey::main(UserNo(19));
        let bytes = encode(&Step::Begin { key, placeholder: Epoch(7) }, 16);
        assert!(bytes[0] == 3 && decode(&bytes, 16).is_some());
        assert!(decode(&[&[4], &bytes[1..]].concat(), 16).is_none());
    }

    #[test]
    fn a_push_to_a_thousand_readers_takes_at_most_5_bytes_each() {
        let to = |i: u32| Recipient {
            reader: UserNo(i * 16 + 3),
            generation: 1_000_000 + u64::from(i * 7919 % 100_003),
            from: 4,
            counter: 2_000_000,
            listens: false,
        };
        let bytes = encode(&Step::Advance(advance((0..1000).map(to).collect())), 16);
        assert!(bytes.len() <= 5_000, "{}", bytes.len());
    }
}
