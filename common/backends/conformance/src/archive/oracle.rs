//! What feeds hold, worked out a second time in the most naive way, over random histories.
//!
//! The naive rule keeps every record in a vector and reads all of it for each question.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use feedgate_common::archive::{Archive, Built, Edge, FeedAdd, FeedState, Write, Written};
use feedgate_common::{Cut, DisplayKey, ItemId, OutboxSeq, Progress, UserNo};

use super::{NOW, accept, change, delete, edit, follow, number, post, unfollow, user, write};

const AUTHORS: usize = 3;
const READERS: usize = 2;

/// One thing that happens; numbers are taken modulo what there is.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// An author publishes, with its rank this far from the clock (0: the clock's).
    Post(usize, i64),
    /// The nth item is edited.
    Edit(usize),
    /// The nth item is deleted.
    Delete(usize),
    /// A reader follows an author.
    Follow(usize, usize),
    /// A reader no longer follows an author.
    Unfollow(usize, usize),
}

/// What happens, and how far push has come when it is asked about.
#[derive(Debug, Clone)]
pub struct History {
    /// In order.
    pub steps: Vec<Step>,
    /// Of a hundred: how much of each outbox is done.
    pub done: u64,
    /// Whether the push of the next record is past half of the readers.
    pub half: bool,
}

impl History {
    /// One of many, always the same for a seed.
    pub fn of_seed(seed: u64, steps: usize) -> Self {
        let mut state = seed;
        let mut roll = |sides: u64| {
            // Knuth's constants; the low bits of such a generator are poor.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        let mut step = || {
            let (what, who, whom) = (roll(10), roll(100) as usize, roll(100) as usize);
            match what {
                0..4 => Step::Post(who, 0),
                4 => Step::Post(who, roll(9) as i64 * 10 - 40),
                5 => Step::Edit(who),
                6 => Step::Delete(who),
                7 | 8 => Step::Follow(who, whom),
                _ => Step::Unfollow(who, whom),
            }
        };
        let steps = (0..steps).map(|_| step()).collect();
        Self { steps, done: roll(101), half: roll(2) == 0 }
    }
}

/// An add as the naive rule keeps it.
#[derive(Debug, Clone, Copy)]
struct Add {
    seq: OutboxSeq,
    key: DisplayKey,
    deleted_by: Option<OutboxSeq>,
}

#[derive(Default)]
struct Naive {
    adds: HashMap<UserNo, Vec<Add>>,
    heads: HashMap<UserNo, OutboxSeq>,
    items: Vec<(UserNo, ItemId)>,
    edges: HashMap<(UserNo, UserNo), Edge>,
}

impl Naive {
    /// The adds one edge shows up to `cut`, in outbox order.
    fn shown(&self, reader: UserNo, author: UserNo, cut: OutboxSeq, backfill: usize) -> Vec<FeedAdd> {
        let edge = self.edges.get(&(reader, author)).copied().unwrap_or_default();
        if !edge.on {
            return vec![];
        }
        let all = self.adds.get(&author).cloned().unwrap_or_default();
        let stood = |add: &&Add| add.seq <= edge.from && add.deleted_by.is_none_or(|by| by > edge.from);
        let backfilled = all.iter().rev().filter(stood).take(backfill);
        let since = all.iter().filter(|add| add.seq > edge.from && add.seq <= cut);
        let mut shown: Vec<FeedAdd> = backfilled
            .chain(since)
            .filter(|add| add.deleted_by.is_none())
            .map(|add| FeedAdd { author, outbox_seq: add.seq, generation: edge.generation, key: add.key })
            .collect();
        shown.sort_unstable_by_key(|add| add.outbox_seq);
        shown
    }

    fn followees(&self, reader: UserNo) -> Vec<UserNo> {
        let mut authors: Vec<UserNo> =
            self.edges.iter().filter(|((r, _), edge)| *r == reader && edge.on).map(|((_, a), _)| *a).collect();
        authors.sort_unstable();
        authors
    }

    /// The whole feed, newest first.
    fn feed(&self, reader: UserNo, cut: impl Fn(UserNo) -> OutboxSeq, backfill: usize) -> Vec<FeedAdd> {
        let authors = self.followees(reader).into_iter();
        let mut all: Vec<FeedAdd> =
            authors.flat_map(|author| self.shown(reader, author, cut(author), backfill)).collect();
        all.sort_unstable_by_key(|add| Reverse(add.key));
        all
    }

    async fn step(&mut self, archive: &dyn Archive, step: Step, now: i64) {
        match step {
            Step::Post(who, offset) => {
                let name = format!("a{}", who % AUTHORS);
                let mut publish = post(&name, "text");
                publish.rank = (offset != 0).then_some(now + offset);
                let (item, seq) = accept(archive, publish, now).await;
                let author = number(archive, &name).await;
                let key = DisplayKey { rank: now + offset, item };
                self.adds.entry(author).or_default().push(Add { seq, key, deleted_by: None });
                self.heads.insert(author, seq);
                self.items.push((author, item));
            }
            Step::Edit(which) if !self.items.is_empty() => {
                let (author, item) = self.items[which % self.items.len()];
                if write(archive, edit(item, "edited")).await.is_ok() {
                    *self.heads.entry(author).or_default() += 1;
                }
            }
            Step::Delete(which) if !self.items.is_empty() => {
                let (author, item) = self.items[which % self.items.len()];
                if let Ok(Written::Deleted { fresh: true, .. }) = write(archive, delete(item)).await {
                    let head = self.heads.entry(author).or_default();
                    *head += 1;
                    let adds = self.adds.get_mut(&author).expect("it has published");
                    let add = adds.iter_mut().find(|add| add.key.item == item).expect("it was published");
                    add.deleted_by = Some(*head);
                }
            }
            Step::Edit(_) | Step::Delete(_) => {}
            Step::Follow(who, whom) => self.edge(archive, follow(&reader(who), &format!("a{}", whom % AUTHORS))).await,
            Step::Unfollow(who, whom) => {
                self.edge(archive, unfollow(&reader(who), &format!("a{}", whom % AUTHORS))).await;
            }
        }
    }

    async fn edge(&mut self, archive: &dyn Archive, ask: Write) {
        let (reader, author, edge, fresh) = change(archive, ask).await;
        if fresh && edge.on {
            assert_eq!(edge.from, self.heads.get(&author).copied().unwrap_or(0), "from is the head");
        }
        self.edges.insert((reader, author), edge);
    }
}

fn reader(who: usize) -> String {
    format!("r{}", who % READERS)
}

/// Lets `history` happen in an empty Archive and compares every answer about feeds with the naive
/// rule.
pub async fn i4_feeds_agree_with_the_naive_rule(archive: Arc<dyn Archive>, history: &History) {
    let mut naive = Naive::default();
    for (step, now) in history.steps.iter().zip(NOW..) {
        naive.step(&*archive, *step, now).await;
    }
    let names: Vec<_> = (0..READERS).map(|who| user(&reader(who))).collect();
    let readers = archive.intern(&names).await.unwrap();
    let authors: Vec<UserNo> = naive.heads.keys().copied().collect();
    let last = history.half.then_some(readers[0]);
    let progress = |author: &UserNo| {
        let head = naive.heads.get(author).copied().unwrap_or(0);
        let done = head * history.done / 100;
        Progress { done, last: last.filter(|_| done < head) }
    };
    for &reader in &readers {
        assert_eq!(archive.followees(reader).await.unwrap(), naive.followees(reader));
        for backfill in [0, 1, 3, 100] {
            for &author in &authors {
                let state = archive
                    .edge_state(reader, author, Cut { progress: progress(&author), pull: 0 }, backfill)
                    .await
                    .unwrap();
                let cut = progress(&author).cut_for(reader);
                assert_eq!(state.edge, naive.edges.get(&(reader, author)).copied().unwrap_or_default());
                assert_eq!(state.adds, naive.shown(reader, author, cut, backfill), "the follow door");
            }
            deep_pages_agree(&*archive, &naive, reader, backfill).await;
            for limit in [0, 1, 5, 1000] {
                rebuilds_agree(&*archive, &naive, &progress, reader, (backfill, limit)).await;
            }
        }
    }
}

async fn deep_pages_agree(archive: &dyn Archive, naive: &Naive, reader: UserNo, backfill: usize) {
    let wants = naive.feed(reader, |_| OutboxSeq::MAX, backfill);
    for limit in [1, 4, 1000] {
        let (mut all, mut before) = (vec![], None);
        loop {
            let page = archive.feed_below(reader, before, None, backfill, limit).await.unwrap();
            all.extend(page.iter().copied());
            if page.len() < limit {
                break;
            }
            before = page.last().map(|add| add.key);
        }
        assert_eq!(all, wants, "deep pages of {limit}");
    }
}

async fn rebuilds_agree(
    archive: &dyn Archive,
    naive: &Naive,
    progress: &impl Fn(&UserNo) -> Progress,
    reader: UserNo,
    (backfill, limit): (usize, usize),
) {
    let followees = naive.followees(reader);
    let cuts: Vec<_> = followees.iter().map(|author| (*author, progress(author))).collect();
    let Built::State(state) = archive.build(reader, &cuts, backfill, limit).await.unwrap() else {
        panic!("every cut was given");
    };
    let mut wants = naive.feed(reader, |author| progress(&author).cut_for(reader), backfill);
    let floor = wants.get(limit).map(|add| add.key);
    wants.truncate(limit);
    let newest = naive.edges.iter().filter(|((r, _), _)| *r == reader).map(|(_, edge)| edge.generation).max();
    assert!(state.built_at >= newest.unwrap_or(0), "the counter covers every edge of the snapshot");
    assert_eq!(state.floor, floor, "the greatest key left out");
    let head = |author: &UserNo| naive.heads.get(author).copied().unwrap_or(0);
    let lagging: Vec<_> = followees.into_iter().filter(|author| head(author) > progress(author).done).collect();
    assert_eq!(state.lagging, lagging);
    authors_stand_in_outbox_order(&state);
    let mut adds = state.adds;
    adds.sort_unstable_by_key(|add| Reverse(add.key));
    assert_eq!(adds, wants, "what a rebuilt inbox holds");
}

/// And among the next adds of all authors, the oldest in display order stands first.
fn authors_stand_in_outbox_order(state: &FeedState) {
    for (at, add) in state.adds.iter().enumerate() {
        let rest = &state.adds[at + 1..];
        let own = rest.iter().filter(|later| later.author == add.author);
        assert!(own.clone().all(|later| later.outbox_seq > add.outbox_seq), "outbox order within an author");
        let mut seen = vec![add.author];
        for later in rest {
            if !seen.contains(&later.author) {
                seen.push(later.author);
                assert!(later.key > add.key, "of the authors' next adds, the oldest first");
            }
        }
    }
}

pub(super) async fn a_follow_late_reads_only_its_own_window(archive: Arc<dyn Archive>) {
    let mut keys = vec![];
    for n in 0..300 {
        let (item, _) = accept(&*archive, post("ann", &n.to_string()), NOW + n).await;
        keys.push(item);
    }
    let (reader, author, edge, _) = change(&*archive, follow("rea", "ann")).await;
    assert_eq!(edge.from, 300);
    // The 100 newest at the follow stay the window, even when half of them go.
    for id in &keys[250..] {
        write(&*archive, delete(*id)).await.unwrap();
    }
    let head = archive.outbox(author, 0, 1).await.unwrap().head;
    let state = archive.edge_state(reader, author, Cut { progress: Progress::at(head), pull: 0 }, 100).await.unwrap();
    let items: Vec<ItemId> = state.adds.iter().map(|add| add.key.item).collect();
    assert_eq!(items, keys[200..250]);
    let page = archive.feed_below(reader, None, None, 100, 1000).await.unwrap();
    let items: Vec<ItemId> = page.iter().rev().map(|add| add.key.item).collect();
    assert_eq!(items, keys[200..250]);
    let (late, ..) = change(&*archive, follow("late", "ann")).await;
    let state = archive.edge_state(late, author, Cut { progress: Progress::at(head), pull: 0 }, 100).await.unwrap();
    let items: Vec<ItemId> = state.adds.iter().map(|add| add.key.item).collect();
    assert_eq!(items, keys[150..250], "what was deleted before the follow does not count");
}

pub(super) async fn cuts_that_are_missing_are_named(archive: Arc<dyn Archive>) {
    let (reader, ann, ..) = change(&*archive, follow("rea", "ann")).await;
    let (_, ben, ..) = change(&*archive, follow("rea", "ben")).await;
    let built = archive.build(reader, &[(ann, Progress::at(0))], 10, 10).await.unwrap();
    assert_eq!(built, Built::CutsMissing(vec![ben]));
    let cuts = [(ben, Progress::at(0)), (ann, Progress::at(0)), (UserNo(77), Progress::at(5))];
    let built = archive.build(reader, &cuts, 10, 10).await.unwrap();
    assert!(matches!(built, Built::State(state) if state.adds.is_empty() && state.lagging.is_empty()));
}
