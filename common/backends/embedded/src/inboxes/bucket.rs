//! The state of one bucket of inboxes, and how each step changes this state: no IO, no lock, no clock.
//!
//! ```text
//!   (bucket, step) ──▶ apply ──▶ (bucket', answer)          the same whenever it is replayed
//! ```
//!
//! Invariants: a step happens whole or, when its answer says that it did nothing, not at all. The effect of a step
//! depends on the bucket and the step alone, so a replay gives the same state. Progress, marks, watermarks and floors
//! only move forward (I10).

use feedgate_common::archive::Recipient;
use feedgate_common::inboxes::{Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, Grown, Take, Taken};
use feedgate_common::marks::{Mark, Verdict, edge_step_acts, note_belongs, push_verdict, pushed_from};
use feedgate_common::{Cut, Entry, Epoch, InboxKey, Position, Progress, UserNo};
use rustc_hash::FxHashMap;

use super::inbox::Inbox;
use super::placeholder::Placeholder;
use super::until::Until;

/// A change of a bucket.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Advance(Advance),
    /// Steps of edges of one inbox, one at least.
    Edges(Vec<EdgeStep>),
    Take(Take),
    Begin {
        key: InboxKey,
        placeholder: Epoch,
    },
    Finish(Build),
    Discard(InboxKey),
    /// Keeps these inboxes, all of one bucket, until this moment at least.
    Touch(Vec<InboxKey>, Until),
    /// Drops the inboxes among these, all of one bucket, that are kept no longer than until this moment.
    Expire(Vec<InboxKey>, Until),
}

/// The answer to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Advanced(Advanced),
    EdgesStepped(Vec<EdgeStepped>),
    Taken(Taken),
    /// The build that is in flight now; `None` if the inbox exists already.
    Begun(Option<Begun>),
    Finished(bool),
    Discarded,
    Touched,
    /// How many inboxes were dropped.
    Expired(usize),
}

/// The state of one bucket. A clone shares the packed changes with the original.
#[derive(Debug, Clone, Default)]
pub(super) struct Bucket {
    pub(super) inboxes: FxHashMap<InboxKey, Box<Inbox>>,
    pub(super) progress: FxHashMap<UserNo, Progress>,
    pub(super) placeholders: FxHashMap<InboxKey, Placeholder>,
    /// How many entries all inboxes hold together.
    pub(super) entries: u64,
    /// The number of the last log record that this state contains, or that is known not to concern this bucket.
    pub(super) position: u64,
}

impl Bucket {
    /// How far the fan-out of an author has come in this bucket.
    pub(super) fn progress(&self, author: UserNo) -> Progress {
        self.progress.get(&author).copied().unwrap_or_default()
    }

    /// The answer to `step` if the step would change nothing now; `None` if it would change something. The answer may
    /// be given at once: the step then counts as if its turn had come now.
    pub(super) fn refusal(&self, step: &Step) -> Option<Answer> {
        match step {
            Step::Advance(step) => {
                let progress = self.progress(step.author);
                (progress != step.expected).then_some(Answer::Advanced(Advanced::Overtaken(progress)))
            }
            Step::Edges(steps) => {
                let refused: Option<Vec<EdgeStepped>> = steps.iter().map(|step| self.edge_refusal(step)).collect();
                refused.map(Answer::EdgesStepped)
            }
            Step::Take(step) => self.take_refusal(step).map(Answer::Taken),
            Step::Begin { key, .. } if self.inboxes.contains_key(key) => Some(Answer::Begun(None)),
            Step::Begin { key, .. } => {
                self.placeholders.get(key).map(|placeholder| Answer::Begun(Some(placeholder.begun())))
            }
            Step::Finish(build) => {
                let stands = self.placeholders.get(&build.key).map(|placeholder| placeholder.epoch);
                (stands != Some(build.epoch)).then_some(Answer::Finished(false))
            }
            Step::Discard(key) => {
                let known = self.inboxes.contains_key(key) || self.placeholders.contains_key(key);
                (!known).then_some(Answer::Discarded)
            }
            Step::Touch(keys, until) => (!self.any(keys, |kept| kept < *until)).then_some(Answer::Touched),
            Step::Expire(keys, now) => (!self.any(keys, |kept| kept <= *now)).then_some(Answer::Expired(0)),
        }
    }

    /// Whether one of these inboxes exists and is kept until a moment for which `is` holds.
    fn any(&self, keys: &[InboxKey], is: impl Fn(Until) -> bool) -> bool {
        keys.iter().any(|key| self.inboxes.get(key).is_some_and(|inbox| is(inbox.until)))
    }

    fn edge_refusal(&self, step: &EdgeStep) -> Option<EdgeStepped> {
        let Some(inbox) = self.inboxes.get(&step.key) else {
            let is_built = self.placeholders.contains_key(&step.key);
            return Some(if is_built { EdgeStepped::Building } else { EdgeStepped::Missing });
        };
        if !edge_step_acts(inbox.mark(step.author), inbox.built_at, step.generation) {
            return Some(EdgeStepped::Nothing);
        }
        let cut = Cut { progress: self.progress(step.author), pull: inbox.taken.pull };
        if step.on && cut != step.expected {
            return Some(EdgeStepped::Overtaken);
        }
        inbox.is_full_for(step.author).then_some(EdgeStepped::Full)
    }

    fn take_refusal(&self, step: &Take) -> Option<Taken> {
        let Some(inbox) = self.inboxes.get(&step.key) else {
            let is_built = self.placeholders.contains_key(&step.key);
            return Some(if is_built { Taken::Building } else { Taken::Missing });
        };
        let stale = |entry| inbox.verdict(entry, step.counter) == Verdict::Stale;
        if (inbox.epoch, inbox.taken) != (step.epoch, step.expected) || step.entries.iter().any(stale) {
            return Some(Taken::Overtaken);
        }
        let nothing = step.entries.is_empty() && step.next == step.expected;
        nothing.then(|| Taken::Moved { head: inbox.head(), appended: 0 })
    }

    /// Applies a step and answers what came of it. A step that is refused changes nothing.
    pub(super) fn apply(&mut self, step: Step) -> Answer {
        if let Some(refusal) = self.refusal(&step) {
            return refusal;
        }
        match step {
            Step::Advance(step) => Answer::Advanced(self.advance(&step)),
            Step::Edges(steps) => {
                let each = steps.iter().map(|step| self.edge_refusal(step).unwrap_or_else(|| self.edge(step)));
                Answer::EdgesStepped(each.collect())
            }
            Step::Take(step) => Answer::Taken(self.take(&step)),
            Step::Begin { key, placeholder } => {
                let placeholder = Placeholder::new(placeholder);
                let begun = placeholder.begun();
                self.placeholders.insert(key, placeholder);
                Answer::Begun(Some(begun))
            }
            Step::Finish(build) => {
                self.swap_in(&build);
                Answer::Finished(true)
            }
            Step::Discard(key) => {
                self.discard(key);
                Answer::Discarded
            }
            Step::Touch(keys, until) => {
                for key in keys {
                    if let Some(inbox) = self.inboxes.get_mut(&key) {
                        inbox.until = inbox.until.max(until);
                    }
                }
                Answer::Touched
            }
            Step::Expire(mut keys, now) => {
                keys.retain(|key| self.any(&[*key], |kept| kept <= now));
                keys.iter().for_each(|key| self.discard(*key));
                Answer::Expired(keys.len())
            }
        }
    }

    /// Brings the records of an author into the inboxes of the recipients. The caller has compared the progress.
    fn advance(&mut self, step: &Advance) -> Advanced {
        let mut verdicts = Vec::with_capacity(step.recipients.len());
        for to in &step.recipients {
            let inbox = self.inboxes.get(&InboxKey { reader: to.reader, feed: step.feed });
            let verdict = inbox.map(|i| push_verdict(i.mark(step.author), i.built_at, to.generation, to.counter));
            if verdict == Some(Verdict::Stale) {
                return Advanced::Stale;
            }
            verdicts.push(verdict);
        }
        let mut grown = Vec::with_capacity(step.recipients.len());
        for (to, verdict) in step.recipients.iter().zip(verdicts) {
            let key = InboxKey { reader: to.reader, feed: step.feed };
            match verdict {
                None => self.note(key, step, to),
                Some(Verdict::Append) => {
                    let from = pushed_from(self.inboxes[&key].mark(step.author), to.from);
                    let fresh = step.records.iter().filter(|record| record.seq > from);
                    let entries = fresh.map(|record| Entry::of(record, step.author, to.generation));
                    let (appended, head) = self.append(key, entries);
                    self.passed(key, step);
                    if appended > 0 {
                        grown.push(Grown { key, head, appended, generation: to.generation });
                    }
                }
                Some(Verdict::Skip | Verdict::Stale) => {}
            }
        }
        self.progress.insert(step.author, step.next);
        Advanced::Moved(grown)
    }

    /// For a reader whose inbox is missing: keeps the records beside the placeholder of the build that is in flight, if
    /// there is one. A placeholder with too many notes is removed.
    fn note(&mut self, key: InboxKey, step: &Advance, to: &Recipient) {
        let Some(placeholder) = self.placeholders.get_mut(&key) else { return };
        let fresh = step.records.iter().filter(|record| record.seq > to.from);
        let entries = fresh.map(|record| Entry::of(record, step.author, to.generation));
        if !placeholder.note(entries, to.counter) {
            self.placeholders.remove(&key);
        }
    }

    /// Notes that push has brought the author's records up to the end of the step into this inbox, if it exists.
    fn passed(&mut self, key: InboxKey, step: &Advance) {
        if let (Some(last), Some(inbox)) = (step.records.last(), self.inboxes.get_mut(&key)) {
            inbox.reached(step.author, last.seq);
        }
    }

    /// Brings a change of an edge into the inbox. The caller has compared the generation and, if the edge is on, the
    /// cut.
    fn edge(&mut self, step: &EdgeStep) -> EdgeStepped {
        let inbox = self.inboxes.get_mut(&step.key).expect("a step of an inbox that is missing was refused");
        inbox.set_mark(step.author, Mark::Taken(step.generation));
        let forget = step.forget();
        inbox.floor = inbox.floor.max(forget.floor());
        let adds = if step.on { &step.adds[..] } else { &[] };
        let (_, head) = self.append(step.key, std::iter::once(forget).chain(adds.iter().copied()));
        EdgeStepped::Applied(head)
    }

    /// Brings what no push brings into the inbox. The caller has compared epoch and watermarks, and no entry is stale.
    fn take(&mut self, step: &Take) -> Taken {
        let inbox = self.inboxes.get_mut(&step.key).expect("a step of an inbox that is missing was refused");
        inbox.taken = step.next;
        let fresh = step.entries.iter().filter(|entry| inbox.verdict(entry, step.counter) == Verdict::Append);
        let fresh: Vec<Entry> = fresh.copied().collect();
        let (appended, head) = self.append(step.key, fresh.into_iter());
        Taken::Moved { head, appended }
    }

    /// Puts a built inbox in the place of the old inbox, with the notes that belong into the new one. The caller has
    /// compared the placeholder.
    fn swap_in(&mut self, build: &Build) {
        let placeholder = self.placeholders.remove(&build.key);
        self.discard(build.key);
        let (taken, until) = (build.taken, Until::at_least(build.until));
        let mut inbox = Inbox::new(build.epoch, build.built_at, build.floor, taken, until);
        let ahead = build.ahead.iter().map(|(author, seq)| (*author, Mark::Ahead(*seq).packed()));
        inbox.marks.extend(ahead);
        inbox.marks.sort_unstable();
        let noted = placeholder.iter().flat_map(|placeholder| placeholder.notes(build.notes_from));
        let noted =
            noted.filter(|(entry, counter)| note_belongs(inbox.mark(entry.author), inbox.built_at, entry, *counter));
        let noted: Vec<Entry> = noted.map(|(entry, _)| entry).collect();
        self.inboxes.insert(build.key, Box::new(inbox));
        self.append(build.key, build.entries.iter().copied().chain(noted));
    }

    fn discard(&mut self, key: InboxKey) {
        self.placeholders.remove(&key);
        if let Some(inbox) = self.inboxes.remove(&key) {
            self.entries -= inbox.changes.len() as u64;
        }
    }

    /// Appends to an inbox that exists, then cuts its log back if the log is too long. Answers how many entries were
    /// appended, and the head of the log after that.
    fn append(&mut self, key: InboxKey, entries: impl Iterator<Item = Entry>) -> (u32, Position) {
        let inbox = self.inboxes.get_mut(&key).expect("the caller has seen this inbox in this step");
        let before = inbox.changes.len();
        entries.for_each(|entry| inbox.push(&entry));
        let pushed = inbox.changes.len() - before;
        let cut = inbox.trim();
        let head = inbox.head();
        self.entries = self.entries + pushed as u64 - cut as u64;
        (pushed as u32, head)
    }
}

#[cfg(test)]
mod tests;
