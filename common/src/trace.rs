//! The trace of a write: spans from the request to the frames of devices, for programs that show traces.
//!
//! ```text
//!   request ─▶ accept ─▶ job ─▶ step ─▶ push ─▶ frame
//!   └── gateway ───┘    └ worker ──┘    └ gateways ─┘
//! ```
//!
//! A job and a wake say what is behind, but not which write caused that, and both are merged. So a trace follows the
//! change itself, by its item and what becomes of it: the gateway that accepts a change [notes](accepted) under which
//! span that was, and tells the other processes. A worker that brings the change to inboxes, and a gateway that pushes
//! the change, look up that span. What a step has done travels with the growth that it rings for, so that a push stands
//! under its very step.
//!
//! Invariants:
//! - While [`begin`] was not called, or without the feature `traces`, every function here does nothing: [`is_on`] is
//!   one look at a static value, or the constant `false`.
//! - Nothing here fails, and nothing waits, except until a message is handed to a client. If a note is lost, spans are
//!   missing.
//! - Notes are bounded: [`NOTES_MAX`] changes for [`AGE`] each, and [`READERS_MAX`] readers over all of them.
//! - A span holds no user, no device and no address.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_128;

use crate::change::Op;
use crate::ids::{ItemId, UserNo};

/// The most changes of which a process notes the trace; the oldest goes for a newer one.
pub const NOTES_MAX: usize = 8192;

/// How long a change is noted. What arrives later is a catch-up of its reader, and no part of the write.
pub const AGE: Duration = Duration::from_secs(300);

/// The most readers of which a process notes by which step they were reached.
pub const READERS_MAX: usize = 100_000;

/// The most steps of one change that have a span in one process, and the most pushes. So a trace of a post with very
/// many readers can still be shown.
pub const SPANS_MAX: usize = 32;

/// A time in nanoseconds since 1970.
pub type Nanos = u64;

/// A span, as others name it: its trace and its number within that. Neither is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct At {
    /// The id of the trace.
    pub trace: u128,
    /// The id of the span.
    pub span: u64,
}

impl At {
    /// The span that the header `traceparent` of W3C Trace Context names, and whether its trace is sampled; `None` if
    /// it names none.
    pub fn of_traceparent(header: &str) -> Option<(Self, bool)> {
        let mut parts = header.split('-');
        let mut hex = |digits| {
            let part = parts.next()?;
            let is_hex = part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            (is_hex && part.len() == digits).then(|| u128::from_str_radix(part, 16).ok()).flatten()
        };
        let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
        let has_more = parts.next().is_some();
        let at = Self { trace, span: u64::try_from(span).ok()? };
        let is_right = version != 0xff && trace != 0 && span != 0 && !(version == 0 && has_more);
        is_right.then_some((at, flags & 1 == 1))
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

/// The trace of a request that names no trace: the id of the request if that is 32 hexadecimal digits, as a new id is,
/// else a hash of the id. So the trace is found by the id of the request, and the other way round.
pub fn trace_of(request_id: &str) -> u128 {
    let is_hex = request_id.len() == 32 && request_id.bytes().all(|b| b.is_ascii_hexdigit());
    let plain = is_hex.then(|| u128::from_str_radix(request_id, 16).ok()).flatten();
    plain.filter(|trace| *trace != 0).unwrap_or_else(|| xxh3_128(request_id.as_bytes()).max(1))
}

/// Under which span a change of an item stands. As text, which is how processes tell it: the item, the number of the
/// change, and a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// The item that has changed.
    pub item: ItemId,
    /// How the item has changed.
    pub op: Op,
    /// The span under which the change stands.
    pub at: At,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.item, self.op as u8, self.at)
    }
}

/// A text that names no traced change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untraced;

impl FromStr for Traced {
    type Err = Untraced;
    fn from_str(text: &str) -> Result<Self, Untraced> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().ok_or(Untraced);
        let item = next()?.parse().map_err(|_| Untraced)?;
        let op = next()?.parse().ok().and_then(Op::from_u8).ok_or(Untraced)?;
        let (at, _) = At::of_traceparent(next()?).ok_or(Untraced)?;
        Ok(Self { item, op, at })
    }
}

/// What a span is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A request that may write: from its head to the head of its answer.
    Request,
    /// The writes of a request are committed.
    Accept,
    /// A worker has taken a job, and works off one turn of it.
    Job,
    /// One step of the job has brought the change to inboxes.
    Step,
    /// A gateway that was told of the change has read it for a device and written it as a frame.
    Push,
    /// The frame waited for the device's connection to take it.
    Frame,
}

/// A value that a span tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The value is a text.
    Text(String),
    /// The value is a number.
    Number(i64),
}

/// A span that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What the span is about.
    pub stage: Stage,
    /// The name of this span.
    pub at: At,
    /// The span above it in the same trace; `None` if the trace begins with it.
    pub parent: Option<u64>,
    /// Whether the span above it may be of another process.
    pub remote: bool,
    /// When the span began.
    pub began: Nanos,
    /// When the span ended.
    pub ended: Nanos,
    /// The attributes of the span, each value under its name.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why the work of the span has failed; `None` if it has not.
    pub failed: Option<&'static str>,
}

/// Takes the spans of this process. No call waits.
pub trait Sink: Send + Sync + 'static {
    /// Reads the clock of the machine.
    fn now(&self) -> Nanos;

    /// Gives a random number.
    fn number(&self) -> u64;

    /// Whether a trace that begins here is sampled: the same answer in every process.
    fn samples(&self, trace: u128) -> bool;

    /// Takes a span that has ended, or leaves it out.
    fn ended(&self, span: Span);
}

/// Tells the other processes of changes that were noted.
pub trait Teller: Send + Sync + 'static {
    /// Tells other processes of these changes. If this is called before a job is put, it should reach a worker before
    /// the job does.
    fn tell<'a>(&'a self, traced: &'a [Traced]) -> BoxFuture<'a, ()>;
}

struct Tracer {
    sink: Box<dyn Sink>,
    teller: OnceLock<Arc<dyn Teller>>,
    notes: Mutex<Notes>,
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

#[inline]
fn tracer() -> Option<&'static Tracer> {
    if cfg!(feature = "traces") { TRACER.get() } else { None }
}

/// Whether this process traces.
#[inline]
pub fn is_on() -> bool {
    tracer().is_some()
}

/// From now on this process traces, for as long as it runs. Gives false if it did so before.
pub fn begin(sink: impl Sink) -> bool {
    TRACER.set(Tracer { sink: Box::new(sink), teller: OnceLock::new(), notes: Mutex::default() }).is_ok()
}

/// From now on other processes are told of what is noted. Only the first call counts.
pub fn tell_by(teller: Arc<dyn Teller>) {
    if let Some(tracer) = tracer() {
        let _ = tracer.teller.set(teller);
    }
}

/// Another process has noted this change.
pub fn heard(traced: Traced) {
    if let Some(tracer) = tracer() {
        tracer.note(&[traced]);
    }
}

impl Tracer {
    fn note(&self, traced: &[Traced]) {
        let (now, mut notes) = (self.sink.now(), self.notes.lock());
        traced.iter().for_each(|one| notes.note(*one, now));
    }

    fn fresh(&self) -> u64 {
        self.sink.number().max(1)
    }

    fn ended(&self, stage: Stage, at: At, parent: At, began: Nanos, attributes: Vec<(&'static str, Value)>) {
        let (parent, ended) = (Some(parent.span), self.sink.now());
        let remote = matches!(stage, Stage::Job | Stage::Push);
        self.sink.ended(Span { stage, at, parent, remote, began, ended, attributes, failed: None });
    }
}

/// A request that is traced. Its span ends when this is dropped.
pub struct Request {
    tracer: &'static Tracer,
    at: At,
    parent: Option<u64>,
    began: Nanos,
    attributes: Vec<(&'static str, Value)>,
    failed: Option<&'static str>,
    is_forgotten: bool,
}

impl Request {
    /// Begins the span of a request. A caller who names a span has decided whether the trace is sampled; without one
    /// the trace begins here, by the id of the request. `None` if it is not traced.
    pub fn begin(traceparent: Option<&str>, id: Option<&str>) -> Option<Self> {
        let tracer = tracer()?;
        let above = traceparent.and_then(At::of_traceparent);
        if above.is_some_and(|(_, sampled)| !sampled) {
            return None;
        }
        let fresh = || u128::from(tracer.fresh()) << 64 | u128::from(tracer.fresh());
        let own = || id.map_or_else(fresh, trace_of);
        let trace = above.map_or_else(own, |(above, _)| above.trace);
        if above.is_none() && !tracer.sink.samples(trace) {
            return None;
        }
        let (at, parent) = (At { trace, span: tracer.fresh() }, above.map(|(above, _)| above.span));
        let attributes = id.map(|id| ("feedgate.request_id", Value::Text(id.to_owned()))).into_iter().collect();
        let (began, failed) = (tracer.sink.now(), Some("the caller has gone"));
        Some(Self { tracer, at, parent, began, attributes, failed, is_forgotten: false })
    }

    /// The span of the request.
    pub fn at(&self) -> At {
        self.at
    }

    /// Ends the span of a request that was answered, with what it tells; `failed` if the server is to blame.
    pub fn answered(mut self, attributes: impl IntoIterator<Item = (&'static str, Value)>, failed: bool) {
        self.attributes.extend(attributes);
        self.failed = failed.then_some("the server could not carry it out");
    }

    /// Leaves out the span, as if the request were not traced.
    pub fn forget(mut self) {
        self.is_forgotten = true;
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let Self { tracer, at, parent, began, failed, is_forgotten, .. } = *self;
        if is_forgotten {
            return;
        }
        let (attributes, ended) = (std::mem::take(&mut self.attributes), tracer.sink.now());
        let stage = Stage::Request;
        tracer.sink.ended(Span { stage, at, parent, remote: true, began, ended, attributes, failed });
    }
}

/// When something begins that a span may tell of; `None` if this process does not trace.
pub fn began() -> Option<Nanos> {
    tracer().map(|tracer| tracer.sink.now())
}

/// The writes of the request `under`, which went to the Archive at `began`, are committed: ends their span, notes these
/// changes, and tells other processes of them. Call it before workers are told.
pub async fn accepted(under: At, began: Nanos, changes: Vec<(ItemId, Op)>) {
    let Some(tracer) = tracer() else { return };
    let at = At { span: tracer.fresh(), ..under };
    tracer.ended(Stage::Accept, at, under, began, vec![("feedgate.changes", number(changes.len()))]);
    let traced: Vec<Traced> = changes.into_iter().map(|(item, op)| Traced { item, op, at }).collect();
    tracer.note(&traced);
    if let (Some(teller), false) = (tracer.teller.get(), traced.is_empty()) {
        teller.tell(&traced).await;
    }
}

/// Gives those of `changes` whose trace this process knows, each with the span under which it was noted.
pub fn noted(changes: impl Iterator<Item = (ItemId, Op)>) -> Vec<Traced> {
    let Some(tracer) = tracer() else { return vec![] };
    let (now, mut notes) = (tracer.sink.now(), tracer.notes.lock());
    changes.filter_map(|(item, op)| notes.get((item, op), now).map(|note| Traced { item, op, at: note.at })).collect()
}

/// One turn of a job. When it is dropped, the job's span ends in each trace that it had a part in.
pub struct Turn {
    tracer: &'static Tracer,
    began: Nanos,
    /// The span that accepted a change, and the job's own span below it.
    jobs: Mutex<Vec<(At, At)>>,
}

impl Turn {
    /// Begins a turn; `None` if this process does not trace.
    pub fn begin() -> Option<Self> {
        let tracer = tracer()?;
        Some(Self { tracer, began: tracer.sink.now(), jobs: Mutex::default() })
    }

    /// A step that began at `began` has brought these changes to so many inboxes. Ends the step's span in each trace,
    /// and gives the changes that stand under it.
    pub fn step(&self, began: Nanos, changes: impl Iterator<Item = (ItemId, Op)>, inboxes: usize) -> Vec<Traced> {
        let mut seen = HashSet::new();
        let above: Vec<(ItemId, Op, At)> = {
            let (now, mut notes) = (self.tracer.sink.now(), self.tracer.notes.lock());
            let above = |(item, op)| Some((item, op, notes.get((item, op), now)?.take_step()?));
            changes.filter(|change| seen.insert(*change)).filter_map(above).collect()
        };
        let step = |(item, op, above): (ItemId, Op, At)| {
            let (job, at) = (self.job(above), At { span: self.tracer.fresh(), ..above });
            self.tracer.ended(Stage::Step, at, job, began, vec![("feedgate.inboxes", number(inboxes))]);
            Traced { item, op, at }
        };
        above.into_iter().map(step).collect()
    }

    /// The job's span in this trace.
    fn job(&self, above: At) -> At {
        let mut jobs = self.jobs.lock();
        if let Some((_, job)) = jobs.iter().find(|(_, job)| job.trace == above.trace) {
            return *job;
        }
        let job = At { span: self.tracer.fresh(), ..above };
        jobs.push((above, job));
        job
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        for (above, job) in self.jobs.get_mut().drain(..) {
            self.tracer.ended(Stage::Job, job, above, self.began, vec![]);
        }
    }
}

/// This node was told that inboxes of these readers have grown by traced changes: notes by which step.
pub fn woken(traced: &[Traced], readers: impl Iterator<Item = UserNo>) {
    let Some(tracer) = tracer().filter(|_| !traced.is_empty()) else { return };
    let mut readers: Vec<UserNo> = readers.collect();
    readers.sort_unstable();
    let readers: Arc<[UserNo]> = readers.into();
    let (woken, mut notes) = (tracer.sink.now(), tracer.notes.lock());
    for one in traced {
        notes.reached(*one, Reached { at: one.at, readers: readers.clone(), woken });
    }
}

/// Changes that are pushed to a device. If it is dropped before [`sent`](Self::sent), they were not sent. It takes 8
/// bytes where it is not there.
pub struct Pushing(Box<Pushed>);

struct Pushed {
    tracer: &'static Tracer,
    /// The spans of the pushes.
    pushes: Vec<At>,
    encoded: Nanos,
    failed: Option<&'static str>,
}

impl fmt::Debug for Pushing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pushing({} traced changes)", self.0.pushes.len())
    }
}

impl Pushing {
    /// These changes were read for a device of this reader, and written as a frame. Ends the spans of the pushes, and
    /// begins those of the frame; `None` if no change is traced.
    pub fn begin(reader: UserNo, changes: impl Iterator<Item = (ItemId, Op)>) -> Option<Self> {
        let tracer = tracer()?;
        let above: Vec<(At, Nanos)> = {
            let (now, mut notes) = (tracer.sink.now(), tracer.notes.lock());
            changes.filter_map(|change| notes.get(change, now)?.take_push(reader)).collect()
        };
        if above.is_empty() {
            return None;
        }
        let pushes = above.into_iter().map(|(above, woken)| {
            let at = At { span: tracer.fresh(), ..above };
            tracer.ended(Stage::Push, at, above, woken, vec![]);
            at
        });
        let (pushes, encoded) = (pushes.collect(), tracer.sink.now());
        Some(Self(Box::new(Pushed { tracer, pushes, encoded, failed: Some("the connection has ended before") })))
    }

    /// Adds the changes that are pushed right behind these.
    pub fn merge(&mut self, mut other: Self) {
        self.0.pushes.append(&mut other.0.pushes);
    }

    /// The connection has taken all of the frame.
    pub fn sent(mut self) {
        self.0.failed = None;
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let (began, failed, ended) = (self.encoded, self.failed, self.tracer.sink.now());
        for push in self.pushes.drain(..) {
            let (at, parent) = (At { span: self.tracer.fresh(), ..push }, Some(push.span));
            let (stage, attributes) = (Stage::Frame, vec![]);
            self.tracer.sink.ended(Span { stage, at, parent, remote: false, began, ended, attributes, failed });
        }
    }
}

/// A step, and whom it has reached on this node.
struct Reached {
    at: At,
    /// The readers, in ascending order.
    readers: Arc<[UserNo]>,
    woken: Nanos,
}

/// What is noted of one change.
struct Note {
    /// The span that accepted it, or the step by which it was first heard of.
    at: At,
    since: Nanos,
    steps: usize,
    pushes: usize,
    reached: Vec<Reached>,
}

impl Note {
    fn new(at: At, since: Nanos) -> Self {
        Self { at, since, steps: 0, pushes: 0, reached: vec![] }
    }

    /// What a further step stands under; `None` if there were enough.
    fn take_step(&mut self) -> Option<At> {
        self.steps += 1;
        (self.steps <= SPANS_MAX).then_some(self.at)
    }

    /// What a further push to this reader stands under, and since when it was due; `None` if there were enough.
    fn take_push(&mut self, reader: UserNo) -> Option<(At, Nanos)> {
        self.pushes += 1;
        let by = self.reached.iter().find(|step| step.readers.binary_search(&reader).is_ok());
        (self.pushes <= SPANS_MAX).then(|| by.map_or((self.at, self.since), |step| (step.at, step.woken)))
    }
}

/// The changes whose trace is known, the oldest first out.
#[derive(Default)]
struct Notes {
    of: HashMap<(ItemId, Op), Note>,
    order: VecDeque<((ItemId, Op), Nanos)>,
    readers: usize,
}

impl Notes {
    /// What is noted of a change, unless that is too long ago.
    fn get(&mut self, change: (ItemId, Op), now: Nanos) -> Option<&mut Note> {
        self.of.get_mut(&change).filter(|note| !is_old(note.since, now))
    }

    fn note(&mut self, traced: Traced, now: Nanos) {
        let change = (traced.item, traced.op);
        // A process hears its own word too, and may hear of a step first.
        if let Some(note) = self.of.get_mut(&change)
            && note.at.trace == traced.at.trace
        {
            note.at = traced.at;
            return;
        }
        self.forget(change);
        self.add(change, Note::new(traced.at, now));
    }

    fn reached(&mut self, traced: Traced, step: Reached) {
        let change = (traced.item, traced.op);
        if self.of.get(&change).is_none_or(|note| note.at.trace != traced.at.trace) {
            self.forget(change);
            self.add(change, Note::new(traced.at, step.woken));
        }
        let note = self.of.get_mut(&change).expect("it was noted just now");
        if note.reached.len() < SPANS_MAX && self.readers + step.readers.len() <= READERS_MAX {
            self.readers += step.readers.len();
            note.reached.push(step);
        }
    }

    fn add(&mut self, change: (ItemId, Op), note: Note) {
        let now = note.since;
        while let Some((first, since)) = self.order.front().copied()
            && (self.order.len() >= NOTES_MAX || is_old(since, now))
        {
            self.order.pop_front();
            if self.of.get(&first).is_some_and(|note| note.since == since) {
                self.forget(first);
            }
        }
        self.order.push_back((change, now));
        self.of.insert(change, note);
    }

    fn forget(&mut self, change: (ItemId, Op)) {
        if let Some(note) = self.of.remove(&change) {
            self.readers -= note.reached.iter().map(|step| step.readers.len()).sum::<usize>();
        }
    }
}

/// Whether what was noted at `since` is too old to count.
fn is_old(since: Nanos, now: Nanos) -> bool {
    u128::from(now.saturating_sub(since)) > AGE.as_nanos()
}

fn number(count: usize) -> Value {
    Value::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn traced(item: u64, span: u64) -> Traced {
        Traced { item: ItemId(item), op: Op::Add, at: At { trace: 7, span } }
    }

    #[test]
    fn a_traceparent_is_read_by_the_rules_of_w3c_and_anything_else_is_none() {
        let (at, sampled) = At::of_traceparent(GIVEN).unwrap();
        assert_eq!((at.trace, at.span, sampled), (0x4bf92f3577b34da6a3ce929d0e0e4736, 0x00f067aa0ba902b7, true));
        assert_eq!(at.to_string(), GIVEN);
        assert!(!At::of_traceparent(&GIVEN.replace("-01", "-00")).unwrap().1);
        assert!(At::of_traceparent(&GIVEN.replacen("00", "01", 1)).is_some(), "a later version");
        assert!(At::of_traceparent(&format!("{}-more", GIVEN.replacen("00", "cc", 1))).is_some(), "a later version");
        let zeros = |digits: usize| "0".repeat(digits);
        for bad in [
            "".to_owned(),
            "00".to_owned(),
            GIVEN.to_uppercase(),
            GIVEN.replacen("00", "ff", 1),
            format!("{GIVEN}-more"),
            format!("00-{}-00f067aa0ba902b7-01", zeros(32)),
            format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", zeros(16)),
            GIVEN.replace("4bf9", "4bf"),
            GIVEN.replace("4bf9", "4bg9"),
            GIVEN.replace("4bf9", "+bf9"),
        ] {
            assert_eq!(At::of_traceparent(&bad), None, "{bad}");
        }
    }

    #[test]
    fn a_trace_without_a_traceparent_has_the_id_of_its_request() {
        assert_eq!(trace_of("4bf92f3577b34da6a3ce929d0e0e4736"), 0x4bf92f3577b34da6a3ce929d0e0e4736);
        assert_eq!(trace_of("call-7"), trace_of("call-7"));
        assert_ne!(trace_of("call-7"), trace_of("call-8"));
        assert_ne!(trace_of(&"0".repeat(32)), 0);
    }

    #[test]
    fn a_traced_change_is_read_as_it_was_told() {
        let one = traced(5, 9);
        assert_eq!(one.to_string().parse(), Ok(one));
        for bad in ["", "5", "5 1", "5 9 00-1-1-01", "x 1 y"] {
            assert_eq!(bad.parse::<Traced>(), Err(Untraced), "{bad}");
        }
    }

    #[test]
    fn a_push_stands_under_the_step_that_reached_its_reader() {
        let mut notes = Notes::default();
        notes.note(traced(1, 10), 5);
        let step = |at: At, reader, woken| Reached { at, readers: [UserNo(reader)].into(), woken };
        for (span, reader) in [(20, 1), (30, 2)] {
            let one = traced(1, span);
            notes.reached(one, step(one.at, reader, span));
        }
        let note = notes.of.get_mut(&(ItemId(1), Op::Add)).unwrap();
        let above = [1, 2, 3].map(|reader| note.take_push(UserNo(reader)).map(|(at, since)| (at.span, since)));
        assert_eq!(above, [Some((20, 20)), Some((30, 30)), Some((10, 5))], "the last one has pulled it");
    }

    #[test]
    fn i18_notes_are_bounded_in_number_and_age_and_so_are_the_spans_of_a_change() {
        let mut notes = Notes::default();
        for item in 0..2 * NOTES_MAX as u64 {
            notes.note(traced(item, 1), 1);
        }
        assert!(notes.of.len() <= NOTES_MAX && notes.order.len() <= NOTES_MAX);
        let one = traced(9, 3);
        notes.reached(one, Reached { at: one.at, readers: [UserNo(1); 7].into(), woken: 2 });
        assert_eq!(notes.readers, 7);
        let later = 2 * AGE.as_nanos() as u64;
        assert!(notes.get((ItemId(9), Op::Add), 2).is_some() && notes.get((ItemId(9), Op::Add), later).is_none());
        notes.note(traced(10, 1), later);
        assert_eq!((notes.of.len(), notes.readers), (1, 0), "the others are too old");
        let note = notes.of.get_mut(&(ItemId(10), Op::Add)).unwrap();
        let pushes = (0..2 * SPANS_MAX).filter(|_| note.take_push(UserNo(1)).is_some()).count();
        let steps = (0..2 * SPANS_MAX).filter(|_| note.take_step().is_some()).count();
        assert_eq!((pushes, steps), (SPANS_MAX, SPANS_MAX));
    }
}
