//! The most simple store of inboxes: vectors in maps behind one lock, nothing durable and nothing ever cut. Real stores
//! are compared with it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;
use feedgate_common::archive::Recipient;
use feedgate_common::error::Result;
use feedgate_common::inboxes::{
    Advance, Advanced, Begun, Build, EdgeStep, EdgeStepped, Grown, InboxCounts, Log, MARKS_MAX, NOTES_MAX, Numbered,
    Read, Stand, Take, Taken,
};
use feedgate_common::marks::{Mark, Verdict, edge_step_acts, note_belongs, push_verdict, pushed_from};
use feedgate_common::{
    Bucket, Cut, DisplayKey, Entry, Epoch, Generation, InboxKey, Inboxes, Millis, Position, Progress, UserNo,
    Watermarks,
};

/// A store of inboxes in memory that never cuts a log.
#[derive(Debug)]
pub struct Naive {
    buckets: u16,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    inboxes: HashMap<InboxKey, Inbox>,
    progress: HashMap<(UserNo, Bucket), Progress>,
    placeholders: HashMap<InboxKey, Placeholder>,
}

/// A build in flight, with the entries pushed since it began, each with the newest edge generation known to the worker
/// that pushed it.
#[derive(Debug)]
struct Placeholder {
    epoch: Epoch,
    notes: Vec<(Entry, Generation)>,
}

#[derive(Debug)]
struct Inbox {
    epoch: Epoch,
    built_at: Generation,
    floor: Option<DisplayKey>,
    /// The marks of authors. Also those that a real store no longer remembers stay here.
    marks: HashMap<UserNo, Mark>,
    taken: Watermarks,
    until: Millis,
    log: Vec<Entry>,
}

impl Inbox {
    fn after(&self, after: u64) -> Vec<Numbered> {
        let numbered = self.log.iter().zip(1..).map(|(&entry, seq)| Numbered { seq, entry });
        numbered.filter(|n| n.seq > after).collect()
    }

    fn head(&self) -> Position {
        Position { epoch: self.epoch, offset: self.log.len() as u64 }
    }
}

impl State {
    fn progress(&self, author: UserNo, bucket: Bucket) -> Progress {
        self.progress.get(&(author, bucket)).copied().unwrap_or_default()
    }
}

impl Naive {
    /// A store without inboxes and with this many buckets.
    pub fn new(buckets: u16) -> Self {
        Self { buckets, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds the naive store")
    }
}

#[async_trait]
impl Inboxes for Naive {
    fn buckets(&self) -> u16 {
        self.buckets
    }

    async fn ping(&self) -> Result<()> {
        Ok(())
    }

    async fn progress(&self, of: &[(UserNo, Bucket)]) -> Result<Vec<Progress>> {
        let state = self.state();
        Ok(of.iter().map(|&(author, bucket)| state.progress(author, bucket)).collect())
    }

    async fn advance(&self, step: Advance) -> Result<Advanced> {
        let mut state = self.state();
        let progress = state.progress(step.author, step.bucket);
        if progress != step.expected {
            return Ok(Advanced::Overtaken(progress));
        }
        let key_of = |to: &Recipient| InboxKey { reader: to.reader, feed: step.feed };
        let mut grown = Vec::new();
        for to in &step.recipients {
            let Some(inbox) = state.inboxes.get(&key_of(to)) else { continue };
            let mark = inbox.marks.get(&step.author).copied();
            match push_verdict(mark, inbox.built_at, to.generation, to.counter) {
                Verdict::Append => grown.push((key_of(to), *to)),
                Verdict::Skip => {}
                Verdict::Stale => return Ok(Advanced::Stale),
            }
        }
        let grown = grown.into_iter().filter_map(|(key, to)| {
            let inbox = state.inboxes.get_mut(&key).expect("found above");
            let from = pushed_from(inbox.marks.get(&step.author).copied(), to.from);
            let fresh: Vec<_> = step.records.iter().filter(|record| record.seq > from).collect();
            inbox.log.extend(fresh.iter().map(|record| Entry::of(record, step.author, to.generation)));
            let (head, appended) = (inbox.head(), fresh.len() as u32);
            (appended > 0).then_some(Grown { key, head, appended, generation: to.generation })
        });
        let grown = grown.collect();
        for to in &step.recipients {
            let Some(placeholder) = state.placeholders.get_mut(&key_of(to)) else { continue };
            for record in step.records.iter().filter(|record| record.seq > to.from) {
                placeholder.notes.push((Entry::of(record, step.author, to.generation), to.counter));
            }
            if placeholder.notes.len() > NOTES_MAX {
                state.placeholders.remove(&key_of(to));
            }
        }
        state.progress.insert((step.author, step.bucket), step.next);
        Ok(Advanced::Moved(grown))
    }

    async fn step_edges(&self, steps: Vec<EdgeStep>) -> Result<Vec<EdgeStepped>> {
        let mut state = self.state();
        Ok(steps.into_iter().map(|step| step_edge(&mut state, self.buckets, step)).collect())
    }

    async fn take(&self, step: Take) -> Result<Taken> {
        let mut state = self.state();
        let Some(inbox) = state.inboxes.get_mut(&step.key) else {
            return Ok(if state.placeholders.contains_key(&step.key) { Taken::Building } else { Taken::Missing });
        };
        if (inbox.epoch, inbox.taken) != (step.epoch, step.expected) {
            return Ok(Taken::Overtaken);
        }
        let mut fresh = Vec::new();
        for entry in step.entries {
            let mark = inbox.marks.get(&entry.author).copied();
            let verdict = push_verdict(mark, inbox.built_at, entry.generation, step.counter);
            match if entry.is_direct() { Verdict::Append } else { verdict } {
                Verdict::Append => fresh.push(entry),
                Verdict::Skip => {}
                Verdict::Stale => return Ok(Taken::Overtaken),
            }
        }
        let appended = fresh.len() as u32;
        inbox.log.extend(fresh);
        inbox.taken = step.next;
        Ok(Taken::Moved { head: inbox.head(), appended })
    }

    async fn stands(&self, keys: &[InboxKey]) -> Result<Vec<Option<Stand>>> {
        let state = self.state();
        let stand = |inbox: &Inbox| Stand { head: inbox.head(), taken: inbox.taken };
        Ok(keys.iter().map(|key| state.inboxes.get(key).map(stand)).collect())
    }

    async fn present(&self, keys: &[InboxKey]) -> Result<Vec<InboxKey>> {
        let state = self.state();
        let is_present = |key: &InboxKey| state.inboxes.contains_key(key) || state.placeholders.contains_key(key);
        Ok(keys.iter().copied().filter(is_present).collect())
    }

    async fn begin_build(&self, key: InboxKey, placeholder: Epoch) -> Result<Option<Begun>> {
        let mut state = self.state();
        if state.inboxes.contains_key(&key) {
            return Ok(None);
        }
        let placeholder =
            state.placeholders.entry(key).or_insert_with(|| Placeholder { epoch: placeholder, notes: vec![] });
        Ok(Some(Begun { placeholder: placeholder.epoch, notes: placeholder.notes.len() as u64 }))
    }

    async fn finish_build(&self, build: Build) -> Result<bool> {
        let mut state = self.state();
        if state.placeholders.get(&build.key).is_none_or(|placeholder| placeholder.epoch != build.epoch) {
            return Ok(false);
        }
        let notes = state.placeholders.remove(&build.key).map(|placeholder| placeholder.notes).unwrap_or_default();
        let Build { key, epoch, built_at, entries: mut log, floor, taken, ahead, notes_from, until } = build;
        let marks: HashMap<_, _> = ahead.into_iter().map(|(author, seq)| (author, Mark::Ahead(seq))).collect();
        for (entry, counter) in notes.into_iter().skip(notes_from as usize) {
            if note_belongs(marks.get(&entry.author).copied(), built_at, &entry, counter) {
                log.push(entry);
            }
        }
        state.inboxes.insert(key, Inbox { epoch, built_at, floor, marks, taken, until, log });
        Ok(true)
    }

    async fn read(&self, key: InboxKey, after: Position, limit: usize) -> Result<Read> {
        let state = self.state();
        let Some(inbox) = state.inboxes.get(&key) else { return Ok(Read::Missing) };
        let head = inbox.head();
        if after.epoch != head.epoch || after.offset > head.offset {
            return Ok(Read::Gone { head });
        }
        let mut entries = inbox.after(after.offset);
        entries.truncate(limit);
        Ok(Read::Entries { entries, head: head.offset, taken: inbox.taken })
    }

    async fn log(&self, key: InboxKey) -> Result<Option<Log>> {
        let state = self.state();
        let log = |inbox: &Inbox| {
            let Inbox { floor, taken, .. } = *inbox;
            Log { head: inbox.head(), floor, taken, entries: inbox.after(0) }
        };
        Ok(state.inboxes.get(&key).map(log))
    }

    async fn discard(&self, key: InboxKey) -> Result<()> {
        let mut state = self.state();
        state.inboxes.remove(&key);
        state.placeholders.remove(&key);
        Ok(())
    }

    async fn touch(&self, keys: &[InboxKey], until: Millis) -> Result<()> {
        let mut state = self.state();
        for key in keys {
            if let Some(inbox) = state.inboxes.get_mut(key) {
                inbox.until = inbox.until.max(until);
            }
        }
        Ok(())
    }

    async fn discard_expired(&self, now: Millis, limit: usize) -> Result<usize> {
        let mut state = self.state();
        let expired = state.inboxes.iter().filter(|(_, inbox)| inbox.until <= now).map(|(key, _)| *key);
        let expired: Vec<_> = expired.take(limit).collect();
        expired.iter().for_each(|key| drop(state.inboxes.remove(key)));
        Ok(expired.len())
    }

    async fn counts(&self) -> Result<InboxCounts> {
        let state = self.state();
        let entries = state.inboxes.values().map(|inbox| inbox.log.len() as u64).sum();
        Ok(InboxCounts { inboxes: state.inboxes.len() as u64, entries })
    }
}

fn step_edge(state: &mut State, buckets: u16, step: EdgeStep) -> EdgeStepped {
    let progress = state.progress(step.author, step.key.reader.bucket(buckets));
    let Some(inbox) = state.inboxes.get_mut(&step.key) else {
        let building = state.placeholders.contains_key(&step.key);
        return if building { EdgeStepped::Building } else { EdgeStepped::Missing };
    };
    if !edge_step_acts(inbox.marks.get(&step.author).copied(), inbox.built_at, step.generation) {
        return EdgeStepped::Nothing;
    }
    if step.on && (Cut { progress, pull: inbox.taken.pull }) != step.expected {
        return EdgeStepped::Overtaken;
    }
    let is_taken = |mark: &&Mark| matches!(mark, Mark::Taken(_));
    let known = inbox.marks.get(&step.author).as_ref().is_some_and(is_taken);
    if !known && inbox.marks.values().filter(is_taken).count() >= MARKS_MAX {
        return EdgeStepped::Full;
    }
    let forget = step.forget();
    inbox.floor = inbox.floor.max(forget.floor());
    inbox.log.push(forget);
    inbox.log.extend(step.adds);
    inbox.marks.insert(step.author, Mark::Taken(step.generation));
    EdgeStepped::Applied(inbox.head())
}
