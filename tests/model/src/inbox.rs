//! The store of inboxes: each function here is one atomic step of the trait
//! [`Inboxes`](feedgate_common::Inboxes), and decides by the functions of the product.

use feedgate_common::archive::Recipient;
use feedgate_common::inboxes::{Advance, Build, EdgeStep, Take, floor_of_cut};
use feedgate_common::marks::{Mark, Verdict, edge_step_acts, note_belongs, push_verdict, pushed_from};
use feedgate_common::{Entry, Generation};

use crate::Fanout;
use crate::state::{AUTHORS, Inbox, Line, Note, Placeholder, Reached, State, Store, Taken, author_no, reader_no};
use crate::variants::Variant;

/// What became of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Done,
    /// There is no inbox yet, but a build in flight: nothing was done, help it.
    Building,
    /// What was read is no longer so: nothing was done, read again.
    Again,
}

impl Inbox {
    /// The last sequence id.
    pub(crate) fn head(&self) -> u8 {
        self.log.len() as u8
    }

    fn mark(&self, author: usize) -> Option<Mark> {
        match (self.taken_in[author], self.ahead[author]) {
            (0, 0) => None,
            (0, ahead) => Some(Mark::Ahead(ahead.into())),
            (taken, _) => Some(Mark::Taken(taken.into())),
        }
    }

    /// [`push_verdict`], or what is put in its place.
    fn verdict(&self, model: &Fanout, author: usize, generation: Generation, counter: Generation) -> Verdict {
        let verdict = push_verdict(self.mark(author), self.built_at.into(), generation, counter);
        match (model.variant, verdict) {
            (Some(Variant::NoMarkCheck), _) => Verdict::Append,
            (Some(Variant::NoCounterCompare), Verdict::Stale) => Verdict::Append,
            _ => verdict,
        }
    }
}

impl State {
    /// The inbox, if it is there.
    pub(crate) fn inbox(&self, log: usize) -> Option<&Inbox> {
        self.store.inboxes[log].as_ref()
    }

    fn append(&mut self, log: usize, entry: Entry) {
        let Some(inbox) = &mut self.store.inboxes[log] else { return };
        inbox.log.push(Line::of(entry));
        let (epoch, upto) = self.lost[log];
        self.reused |= inbox.epoch == epoch && inbox.head() <= upto;
    }

    /// What a step answers where no inbox is.
    fn missing(&self, log: usize) -> Outcome {
        if self.store.placeholders[log].epoch > 0 { Outcome::Building } else { Outcome::Done }
    }

    /// What push has brought while the inbox was built, if it belongs there.
    fn take_note(&mut self, model: &Fanout, log: usize, note: Note) {
        let Some(inbox) = self.inbox(log) else { return };
        let author = usize::from(note.line.author);
        let entry = note.line.entry(model.bounds.key(note.line.item, note.line.moved));
        let mark = inbox.mark(author).filter(|_| model.variant != Some(Variant::NotesForgetAhead));
        let verdict = push_verdict(mark, inbox.built_at.into(), entry.generation, note.counter.into());
        let appends = match (model.variant, verdict) {
            (Some(Variant::NotesIgnored), _) => false,
            (Some(Variant::StaleNotesAppended), Verdict::Stale) => entry.outbox_seq > pushed_from(mark, 0),
            (Some(Variant::SkippedNotesAppended), Verdict::Skip) => entry.outbox_seq > pushed_from(mark, 0),
            _ => note_belongs(mark, inbox.built_at.into(), &entry, note.counter.into()),
        };
        if appends {
            self.append(log, entry);
        }
    }

    /// `Inboxes::advance`. `active`: the recipients whose inbox was seen, where that rule is broken.
    pub(crate) fn advance(&mut self, model: &Fanout, step: &Advance, active: impl Fn(usize) -> bool) -> Outcome {
        let author = (step.author.0 - author_no(0).0) as usize;
        step.check(1);
        if self.store.progress[author] != Reached::from(step.expected)
            && model.variant != Some(Variant::NoProgressCompare)
        {
            return Outcome::Again;
        }
        let log_of = |to: &Recipient| model.log_of((to.reader.0 - reader_no(0).0) as usize, step.feed);
        let mut verdicts = vec![];
        for to in &step.recipients {
            let log = log_of(to);
            match self.inbox(log) {
                Some(inbox) if active(model.reader_of(log)) => {
                    verdicts.push((log, to, inbox.verdict(model, author, to.generation, to.counter)));
                }
                Some(_) | None => {}
            }
        }
        let is_built = |to| self.inbox(log_of(to)).is_none() && self.store.placeholders[log_of(to)].epoch > 0;
        let unsure = step.kept && step.recipients.iter().any(is_built);
        if unsure || verdicts.iter().any(|(.., verdict)| *verdict == Verdict::Stale) {
            return Outcome::Again;
        }
        for to in &step.recipients {
            let log = log_of(to);
            if self.inbox(log).is_none() {
                self.store.placeholders[log].note(model, step, to);
            }
        }
        for (log, to, _) in verdicts.into_iter().filter(|(.., verdict)| *verdict == Verdict::Append) {
            let mark = self.inbox(log).and_then(|inbox| inbox.mark(author));
            let from = pushed_from(mark, to.from);
            for record in step.records.iter().filter(|record| record.seq > from) {
                self.append(log, Entry::of(record, step.author, to.generation));
            }
            if let (Some(last), Some(inbox)) = (step.records.last(), &mut self.store.inboxes[log])
                && last.seq >= inbox.ahead[author].into()
            {
                inbox.ahead[author] = 0;
            }
        }
        let next = Reached::from(step.next);
        self.went_back |= next < self.store.progress[author];
        self.store.progress[author] = next;
        Outcome::Done
    }

    /// `Inboxes::step_edge`. `counter` was read with the edge: only where that rule is broken.
    pub(crate) fn step_edge(&mut self, model: &Fanout, log: usize, step: &EdgeStep, counter: Generation) -> Outcome {
        let author = (step.author.0 - author_no(0).0) as usize;
        let Some(inbox) = self.inbox(log) else { return self.missing(log) };
        let moved = self.store.progress[author] != Reached::from(step.expected.progress);
        let pulled = u64::from(inbox.taken.pull) != step.expected.pull;
        let acts = match model.variant {
            Some(Variant::StaleForget) if !step.on => true,
            Some(Variant::UnfollowWithoutNumber) if !step.on => step.generation >= inbox.taken_in[author].into(),
            Some(Variant::FollowStepByPushVerdict) if step.on => {
                inbox.verdict(model, author, step.generation, counter) != Verdict::Append
            }
            _ => edge_step_acts(inbox.mark(author), inbox.built_at.into(), step.generation),
        };
        if step.on && (moved || pulled && model.variant != Some(Variant::FollowIgnoresWatermark)) {
            return Outcome::Again;
        }
        if !acts {
            return Outcome::Done;
        }
        let forget = step.forget();
        let told = if model.variant == Some(Variant::FloorNotTold) { None } else { forget.floor() };
        self.append(log, Entry::forget(step.author, step.generation, told));
        for entry in &step.adds {
            self.append(log, *entry);
        }
        let Some(inbox) = &mut self.store.inboxes[log] else { return Outcome::Done };
        let generation = step.generation as u8;
        self.went_back |= generation < inbox.taken_in[author];
        inbox.ahead[author] = 0;
        if model.variant != Some(Variant::FloorNotRaised) {
            inbox.floor = inbox.floor.max(forget.floor().map(|key| key.rank as u8));
        }
        match model.variant {
            Some(Variant::AppliedInsteadOfMarks) => inbox.built_at = inbox.built_at.max(generation),
            Some(Variant::UnfollowRemovesItsEntry) if !step.on => inbox.taken_in[author] = 0,
            _ => inbox.taken_in[author] = generation,
        }
        Outcome::Done
    }

    /// Takes in what no push brings, as `Inboxes::take` does.
    pub(crate) fn take(&mut self, model: &Fanout, log: usize, step: &Take) -> Outcome {
        let Some(inbox) = self.inbox(log) else { return self.missing(log) };
        let same_epoch = u64::from(inbox.epoch) == step.epoch.0;
        let expected = Taken::from(step.expected);
        if !same_epoch || inbox.taken != expected && model.variant != Some(Variant::TakeWithoutCompare) {
            return Outcome::Again;
        }
        let verdict = |entry: &Entry| match entry.is_direct() {
            true => Verdict::Append,
            false => {
                let author = (entry.author.0 - author_no(0).0) as usize;
                inbox.verdict(model, author, entry.generation, step.counter)
            }
        };
        let verdicts: Vec<Verdict> = step.entries.iter().map(verdict).collect();
        if verdicts.contains(&Verdict::Stale) {
            return Outcome::Again;
        }
        for (entry, verdict) in step.entries.iter().zip(verdicts) {
            if verdict == Verdict::Append {
                self.append(log, *entry);
            }
        }
        let Some(inbox) = &mut self.store.inboxes[log] else { return Outcome::Done };
        let next = Taken::from(step.next);
        self.went_back |= next.pull < inbox.taken.pull || next.direct < inbox.taken.direct;
        inbox.taken = next;
        Outcome::Done
    }

    /// `Inboxes::finish_build`: whether it was swapped in.
    pub(crate) fn finish_build(&mut self, model: &Fanout, log: usize, build: &Build) -> Outcome {
        let epoch = build.epoch.0 as u8;
        let own = self.store.placeholders[log].epoch == epoch && self.inbox(log).is_none()
            || model.variant == Some(Variant::SwapWithoutPlaceholder) && self.inbox(log).is_none()
            || model.variant == Some(Variant::ServeBeforeSwap);
        if !own || epoch < self.least_epoch {
            return Outcome::Again;
        }
        let Placeholder { notes, .. } = std::mem::take(&mut self.store.placeholders[log]);
        let lines: Vec<Line> = build.entries.iter().copied().map(Line::of).collect();
        if model.variant == Some(Variant::ServeBeforeSwap)
            && let Some(inbox) = &mut self.store.inboxes[log]
        {
            inbox.log.extend(lines);
            return Outcome::Done;
        }
        self.store.inboxes[log] = Some(Inbox {
            epoch,
            log: lines,
            cut: 0,
            floor: build.floor.map(|key| key.rank as u8),
            built_at: build.built_at as u8,
            taken_in: [0; AUTHORS],
            ahead: std::array::from_fn(|author| {
                let found = build.ahead.iter().find(|(of, _)| *of == author_no(author));
                found.map_or(0, |(_, seq)| *seq as u8)
            }),
            taken: build.taken.into(),
        });
        let first = (build.notes_from as usize).min(notes.len());
        notes[first..].iter().for_each(|note| self.take_note(model, log, *note));
        Outcome::Done
    }
}

impl Inbox {
    /// What is still kept, as the product holds it.
    pub(crate) fn kept(&self, model: &Fanout) -> impl Iterator<Item = Entry> {
        let kept = self.log[usize::from(self.cut)..].iter();
        kept.filter(|line| !line.awaited).map(|line| line.entry(model.bounds.key(line.item, line.moved)))
    }

    /// Cuts what stands up to `upto` off.
    pub(crate) fn trim(&mut self, model: &Fanout, upto: u8) {
        let floor = floor_of_cut(self.kept(model), usize::from(upto - self.cut)).map(|key| key.rank as u8);
        self.floor = self.floor.max(floor);
        self.cut = upto;
    }
}

impl Placeholder {
    /// Notes what a push step would append; one note too many, and there is no build any more.
    fn note(&mut self, model: &Fanout, step: &Advance, to: &Recipient) {
        if self.epoch == 0 {
            return;
        }
        let fresh = step.records.iter().filter(|record| record.seq > to.from);
        self.notes.extend(fresh.map(|record| Note {
            line: Line::of(Entry::of(record, step.author, to.generation)),
            counter: to.counter as u8,
        }));
        if self.notes.len() > model.bounds.notes {
            *self = Self::default();
        }
    }
}

impl Store {
    /// Drops what lies below the epoch that counts.
    pub(crate) fn drop_below(&mut self, least_epoch: u8) {
        for placeholder in &mut self.placeholders {
            if placeholder.epoch < least_epoch {
                *placeholder = Placeholder::default();
            }
        }
        for inbox in &mut self.inboxes {
            inbox.take_if(|inbox| inbox.epoch < least_epoch);
        }
    }
}
