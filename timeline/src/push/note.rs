//! Notes posts for readers who listen and have no session, before the step that brings them.
//!
//! The store of sessions is asked only about readers who listen, and the Archive only about readers who listen and have
//! no session: most steps ask neither.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use feedgate_common::archive::{Note, PushNotices};
use feedgate_common::error::Result;
use feedgate_common::inboxes::Advance;
use feedgate_common::{DirectSeq, Entry, InboxKey, ItemId, Op, OutboxSeq, Sessions, UserNo, failpoint};

use parking_lot::Mutex;

use crate::clock;

/// How many notes are remembered at least, if there were as many. A note takes some 30 bytes.
const REMEMBERED: usize = 1 << 15;

/// Stores notes of posts of which readers are to be told.
pub struct Noter {
    notices: Arc<dyn PushNotices>,
    sessions: Arc<dyn Sessions>,
    debounce: Duration,
    lately: Mutex<Lately>,
}

/// The notes of steps that were stored lately. A step that fails is noted again with each try. The store itself takes a
/// repeated note for a new one if a post of another author was noted between the two.
#[derive(Default)]
struct Lately {
    newer: HashSet<(InboxKey, ItemId)>,
    older: HashSet<(InboxKey, ItemId)>,
}

impl Lately {
    fn has(&self, note: &Note) -> bool {
        let note = (note.key, note.item);
        self.newer.contains(&note) || self.older.contains(&note)
    }

    fn add(&mut self, notes: &[Note]) {
        for note in notes {
            if self.newer.len() >= REMEMBERED {
                self.older = std::mem::take(&mut self.newer);
            }
            self.newer.insert((note.key, note.item));
        }
    }
}

impl Noter {
    /// A post is noted unless its reader has a session in `sessions`. Then the notice is due after `debounce`.
    pub fn new(notices: Arc<dyn PushNotices>, sessions: Arc<dyn Sessions>, debounce: Duration) -> Self {
        Self { notices, sessions, debounce, lately: Mutex::default() }
    }

    /// Notes what these steps bring, but for what was `imported`, and for what this worker has noted lately. Asks
    /// nothing if nobody listens. Cancelling loses nothing: a note may be repeated.
    pub(crate) async fn note_steps(&self, steps: impl Iterator<Item = &Advance>, imported: &[OutboxSeq]) -> Result<()> {
        let mut notes: Vec<Note> = steps.flat_map(|step| notes_of(step, imported)).collect();
        if !notes.is_empty() {
            let lately = self.lately.lock();
            notes.retain(|note| !lately.has(note));
        }
        if notes.is_empty() {
            return Ok(());
        }
        let noted = self.note(notes, None).await?;
        self.lately.lock().add(&noted);
        Ok(())
    }

    /// Notes what was addressed to the reader up to `upto`: a note for each feed with something new.
    pub(crate) async fn note_direct(&self, reader: UserNo, upto: DirectSeq, notes: Vec<Note>) -> Result<()> {
        self.note(notes, Some((reader, upto))).await.map(drop)
    }

    /// Stores the notes for readers without a session, and gives these notes.
    async fn note(&self, mut notes: Vec<Note>, noted: Option<(UserNo, DirectSeq)>) -> Result<Vec<Note>> {
        if !notes.is_empty() {
            let readers: Vec<UserNo> = notes.iter().map(|note| note.key.reader).collect();
            let mut holders = self.sessions.nodes(&readers).await?.into_iter();
            // A reader of whom too little is known is noted. The sender asks again.
            notes.retain(|_| holders.next().is_none_or(|holders| holders.nodes.is_empty() || holders.partial));
        }
        if !notes.is_empty() || noted.is_some() {
            let due = clock::after(clock::now(), self.debounce);
            self.notices.note(&notes, due, noted).await?;
            failpoint::hit("push-noted");
        }
        Ok(notes)
    }
}

/// The notes for the recipients of a push step who listen. Records of the numbers `imported`, ascending, are not noted.
fn notes_of(step: &Advance, imported: &[OutboxSeq]) -> impl Iterator<Item = Note> {
    let adds = new(None, &step.records, |record| (record.op, record.key.item))
        .filter(move |record| imported.binary_search(&record.seq).is_err());
    // Authors are not told of their own posts.
    let listening = step.recipients.iter().filter(|to| to.listens && to.reader != step.author);
    listening.filter_map(move |recipient| {
        let mut brought = adds.clone().filter(|record| record.seq > recipient.from);
        let (count, newest) = (brought.clone().count(), brought.next_back()?);
        let key = InboxKey { reader: recipient.reader, feed: step.feed };
        Some(Note { key, item: newest.key.item, count: u32::try_from(count).unwrap_or(u32::MAX) })
    })
}

/// The items that others have addressed to a reader in one feed, as a note; `None` if there is no such item. The entry
/// `before` stands right before these. Of what [may be](may_replace) another item made anew, `made_anew` says whether
/// it is: it tells nothing new.
pub(crate) fn note_of(
    key: InboxKey,
    before: Option<&Entry>,
    entries: &[Entry],
    made_anew: &HashSet<ItemId>,
) -> Option<Note> {
    let adds = new(before, entries, |entry| (entry.op, entry.key.item));
    let mut adds = adds.filter(|entry| entry.author != key.reader && !made_anew.contains(&entry.key.item));
    let (count, newest) = (adds.clone().count(), adds.next_back()?);
    Some(Note { key, item: newest.key.item, count: u32::try_from(count).unwrap_or(u32::MAX) })
}

/// The items that may be another item made anew, as when somebody leaves a line of notifications: each is added right
/// behind the delete of another item of its rank. The entry `before` stands right before all.
pub(crate) fn may_replace(before: Option<&Entry>, entries: &[Entry]) -> Vec<ItemId> {
    let all: Vec<&Entry> = before.into_iter().chain(entries).collect();
    let pairs = all.windows(2).map(|pair| (pair[0], pair[1]));
    let replaces =
        |(gone, new): &(&Entry, &Entry)| gone.op == Op::Delete && new.op == Op::Add && gone.key.rank == new.key.rank;
    pairs.filter(replaces).map(|(_, new)| new.key.item).collect()
}

/// Both notes of one feed as one; those of `later` are newer.
pub(crate) fn added(note: Option<Note>, later: Option<Note>) -> Option<Note> {
    match (note, later) {
        (Some(note), Some(later)) => Some(Note { count: note.count.saturating_add(later.count), ..later }),
        (note, later) => later.or(note),
    }
}

/// The adds among `all` that bring a new item. An item that moves to another rank is not new: its add stands right
/// behind its delete. `before` stands right before all.
fn new<'a, T>(
    before: Option<&'a T>,
    all: &'a [T],
    of: impl Fn(&T) -> (Op, ItemId) + Copy + 'a,
) -> impl DoubleEndedIterator<Item = &'a T> + Clone {
    let is_new = move |at: usize| {
        let (op, item) = of(&all[at]);
        let before = at.checked_sub(1).map_or(before, |at| all.get(at));
        op == Op::Add && before.map(of) != Some((Op::Delete, item))
    };
    (0..all.len()).filter(move |at| is_new(*at)).map(|at| &all[at])
}

#[cfg(test)]
mod tests {
    use feedgate_common::archive::{PushDevice, Recipient};
    use feedgate_common::change::Route;
    use feedgate_common::{Bucket, DisplayKey, FeedId, Millis, Progress, Record};
    use feedgate_embedded::Embedded;

    use super::*;

    fn record(seq: u64, op: Op) -> Record {
        Record { seq, op, route: Route::Push, feed: FeedId(2), key: DisplayKey { rank: 0, item: ItemId(seq) } }
    }

    fn recipient(reader: u32, from: u64, listens: bool) -> Recipient {
        Recipient { reader: UserNo(reader), generation: 1, from, counter: 1, listens }
    }

    fn step(records: &[Record]) -> Advance {
        Advance {
            author: UserNo(9),
            bucket: Bucket(0),
            feed: FeedId(2),
            expected: Progress::at(0),
            next: Progress::at(9),
            records: records.to_vec(),
            recipients: [(1, 0, true), (2, 0, false), (3, 2, true), (4, 7, true)]
                .map(|(reader, from, listens)| recipient(reader, from, listens))
                .to_vec(),
            kept: false,
        }
    }

    #[test]
    fn each_reader_who_listens_is_told_of_the_newest_item_that_the_step_brings_it() {
        let step = step(&[record(1, Op::Add), record(2, Op::Add), record(3, Op::Add), record(4, Op::Update)]);
        let note =
            |reader, count| Note { key: InboxKey { reader: UserNo(reader), feed: FeedId(2) }, item: ItemId(3), count };
        assert_eq!(notes_of(&step, &[]).collect::<Vec<_>>(), [note(1, 3), note(3, 1)]);
    }

    #[test]
    fn s11_a_move_to_another_rank_is_no_news() {
        let moved = |seq, op| Record { key: record(1, Op::Add).key, ..record(seq, op) };
        let step = step(&[moved(3, Op::Delete), moved(4, Op::Add), record(5, Op::Delete), record(6, Op::Add)]);
        let told: Vec<_> = notes_of(&step, &[]).map(|note| (note.item, note.count)).collect();
        assert_eq!(told, [(ItemId(6), 1); 2]);
        let entries: Vec<Entry> = step.records[..2].iter().map(|of| Entry::of(of, UserNo(9), 0)).collect();
        let key = InboxKey::main(UserNo(1));
        let note_of = |before, entries| note_of(key, before, entries, &HashSet::new());
        assert_eq!(note_of(None, &entries), None);
        assert_eq!(note_of(Some(&entries[0]), &entries[1..]), None, "read apart");
    }

    #[test]
    fn s6_a_line_that_somebody_leaves_is_no_news_and_other_items_of_one_rank_are() {
        let entry = |op, item, rank| Entry::direct(op, UserNo(9), DisplayKey { rank, item: ItemId(item) });
        let of = |ranks: [i64; 2]| [entry(Op::Delete, 1, ranks[0]), entry(Op::Add, 2, ranks[1])];
        let line = of([5, 5]);
        assert_eq!(may_replace(None, &line), [ItemId(2)]);
        assert_eq!(may_replace(Some(&line[0]), &line[1..]), [ItemId(2)], "read apart");
        assert_eq!(may_replace(None, &of([5, 6])), [], "somebody has joined");
        assert_eq!(may_replace(None, &[line[1], line[1]]), []);
        let note = |made_anew: &[u64]| {
            let made_anew = made_anew.iter().map(|item| ItemId(*item)).collect();
            note_of(InboxKey::main(UserNo(1)), None, &line, &made_anew).map(|note| (note.item, note.count))
        };
        assert_eq!([note(&[]), note(&[2])], [Some((ItemId(2), 1)), None]);
    }

    #[tokio::test]
    async fn steps_of_two_authors_that_are_tried_again_and_again_are_noted_once() {
        let dir = tempfile::tempdir().unwrap();
        let stores = Embedded::open(dir.path(), 2).unwrap();
        let reader = stores.archive.intern(&["ann".parse().unwrap()]).await.unwrap()[0];
        let (device, token, feeds) = ("phone".parse().unwrap(), "t".into(), vec![FeedId(2)]);
        let device = PushDevice { device, platform: "fcm".into(), token, feeds, since: 1 };
        assert!(stores.archive.register(reader, device).await.unwrap());
        let noter = Noter::new(stores.archive.clone(), stores.sessions.clone(), Duration::ZERO);
        let of = |author, seq| Advance { author: UserNo(author), ..step(&[record(seq, Op::Add)]) };
        for _ in 0..3 {
            noter.note_steps([&of(9, 1)].into_iter(), &[]).await.unwrap();
            noter.note_steps([&of(8, 2)].into_iter(), &[]).await.unwrap();
        }
        let due = stores.archive.take_due(Millis::MAX - 1, 0, 9).await.unwrap();
        assert_eq!(due.iter().map(|notice| (notice.item, notice.count)).collect::<Vec<_>>(), [(ItemId(2), 2)]);
    }

    #[test]
    fn what_is_lately_noted_is_bounded_and_the_newest_of_it_stays() {
        let note = |item| Note { key: InboxKey::main(UserNo(1)), item: ItemId(item), count: 1 };
        let mut lately = Lately::default();
        let many = 3 * REMEMBERED as u64;
        for item in 0..many {
            lately.add(&[note(item)]);
        }
        assert!(lately.newer.len() + lately.older.len() <= 2 * REMEMBERED);
        assert!(!lately.has(&note(0)) && (many - REMEMBERED as u64..many).all(|item| lately.has(&note(item))));
    }

    #[test]
    fn what_is_read_in_parts_is_one_note_with_the_newest() {
        let key = InboxKey::main(UserNo(1));
        let note = |item, count| Some(Note { key, item: ItemId(item), count });
        assert_eq!(added(note(2, 2), note(5, 3)), note(5, 5));
        assert_eq!((added(note(2, 2), None), added(None, note(5, 3))), (note(2, 2), note(5, 3)));
        assert_eq!(added(note(2, u32::MAX), note(5, 3)), note(5, u32::MAX));
    }

    #[test]
    fn s10_nobody_is_told_of_what_it_has_published_or_sent_itself() {
        let own = Advance { author: UserNo(3), ..step(&[record(3, Op::Add)]) };
        let told = |step: &Advance| notes_of(step, &[]).map(|note| note.key.reader.0).collect::<Vec<_>>();
        assert_eq!(told(&step(&own.records)), [1, 3]);
        assert_eq!(told(&own), [1]);
        let entry = |author| Entry::of(&own.records[0], UserNo(author), 0);
        let note_of = |entry| note_of(InboxKey::main(UserNo(1)), None, &[entry], &HashSet::new());
        assert!(note_of(entry(2)).is_some());
        assert_eq!(note_of(entry(1)), None, "a letter to oneself");
    }

    #[test]
    fn nobody_is_told_of_edits_deletes_and_history() {
        let step = step(&[record(5, Op::Update), record(6, Op::Delete), record(7, Op::Add), record(8, Op::Add)]);
        assert_eq!(notes_of(&step, &[7, 8]).count(), 0);
        let told = |imported: &[_]| notes_of(&step, imported).map(|note| (note.item.0, note.count)).next();
        assert_eq!([told(&[7]), told(&[8])], [Some((8, 1)), Some((7, 1))], "imported before and after a live one");
    }
}
