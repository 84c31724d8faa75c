//! Random steps for two stores at once. Their answers must be equal, and in the end their logs, but for what a real
//! store may cut.

use std::collections::HashMap;

use feedgate_common::archive::Recipient;
use feedgate_common::change::Route;
use feedgate_common::inboxes::{Advance, Begun, Build, EdgeStep, KEEP, Log, Read, Take};
use feedgate_common::{
    Cut, DisplayKey, Entry, Epoch, FeedId, InboxKey, Inboxes, ItemId, Millis, Op, Position, Progress, Record, UserNo,
    Watermarks,
};

use super::Naive;

const READERS: u64 = 8;
const AUTHORS: u64 = 4;
const FEEDS: [FeedId; 2] = [FeedId::MAIN, FeedId(3)];

/// A source of random steps. A seed always gives equal steps.
#[derive(Debug)]
pub struct Schedule {
    random: u64,
    epoch: u64,
    /// The last build that was begun for each inbox.
    begun: HashMap<InboxKey, Begun>,
    /// The time of the schedule in Unix ms, which is long ago; `None` if no inbox expires.
    clock: Option<Millis>,
}

impl Schedule {
    /// The schedule of this seed, in which no inbox expires.
    pub fn new(seed: u64) -> Self {
        Self {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            epoch: super::FIRST,
            begun: HashMap::new(),
            clock: None,
        }
    }

    /// The schedule of this seed in which inboxes also expire: for stores that are told the time.
    pub fn expiring(seed: u64) -> Self {
        Self { clock: Some(1_000), ..Self::new(seed) }
    }

    /// A random number below `n`, by xorshift: only variety is asked of it.
    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % n
    }

    fn reader(&mut self) -> UserNo {
        UserNo(self.below(READERS) as u32)
    }

    fn feed(&mut self) -> FeedId {
        FEEDS[self.below(FEEDS.len() as u64) as usize]
    }

    fn key(&mut self) -> InboxKey {
        InboxKey { reader: self.reader(), feed: self.feed() }
    }

    fn author(&mut self) -> UserNo {
        UserNo(100 + self.below(AUTHORS) as u32)
    }

    /// Takes `steps` steps in both stores. Panics if they answer differently.
    pub async fn run(&mut self, store: &dyn Inboxes, naive: &Naive, steps: usize) {
        for _ in 0..steps {
            match self.below(27) {
                0..10 => self.push(store, naive).await,
                10..14 => self.edges(store, naive).await,
                14..19 => self.take(store, naive).await,
                19..22 => self.begin(store, naive).await,
                22..24 => self.finish(store, naive).await,
                24 => self.discard(store, naive).await,
                25 => self.present(store, naive).await,
                _ => self.keep(store, naive).await,
            }
        }
    }

    fn record(&mut self, seq: u64) -> Record {
        let op = [Op::Add, Op::Add, Op::Add, Op::Update, Op::Delete][self.below(5) as usize];
        let item = 1 + self.below(seq);
        let rank = if self.below(9) == 0 { -(item as i64) } else { item as i64 * 1000 };
        Record { seq, op, route: Route::Push, feed: FeedId::MAIN, key: DisplayKey { rank, item: ItemId(item << 22) } }
    }

    async fn push(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let (author, feed, buckets) = (self.author(), self.feed(), store.buckets());
        let bucket = self.reader().bucket(buckets);
        let mut expected = naive.progress(&[(author, bucket)]).await.unwrap()[0];
        let records = 1 + self.below(60);
        let record = |seq| Record { feed, ..self.record(seq) };
        let records: Vec<_> = (expected.done + 1..).take(records as usize).map(record).collect();
        let next = Progress::at(expected.done + records.len() as u64);
        if self.below(10) == 0 {
            expected.done = expected.done.saturating_sub(1);
        }
        let readers = (0..READERS as u32).map(UserNo).filter(|reader| reader.bucket(buckets) == bucket);
        let mut recipients = Vec::new();
        for reader in readers {
            let (generation, from) = (1 + self.below(40), expected.done.saturating_sub(self.below(3)));
            let counter = if self.below(15) == 0 { self.below(40) } else { 1000 };
            recipients.push(Recipient { reader, generation, from, counter, listens: false });
        }
        let step = Advance { author, bucket, feed, expected, next, records, recipients, kept: false };
        let answers = (store.advance(step.clone()).await.unwrap(), naive.advance(step.clone()).await.unwrap());
        assert_eq!(answers.0, answers.1, "{step:?}");
    }

    /// Takes one step of an edge, or several at once.
    async fn edges(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let key = self.key();
        let mut steps: Vec<EdgeStep> = vec![];
        for _ in 0..[1, 1, 1 + self.below(6)][self.below(3) as usize] {
            let step = self.edge(key, store, naive).await;
            if steps.iter().all(|other| other.author != step.author) {
                steps.push(step);
            }
        }
        let answers = (store.step_edges(steps.clone()).await.unwrap(), naive.step_edges(steps.clone()).await.unwrap());
        assert_eq!(answers.0, answers.1, "{steps:?}");
    }

    async fn edge(&mut self, key: InboxKey, store: &dyn Inboxes, naive: &Naive) -> EdgeStep {
        let author = self.author();
        let bucket = key.reader.bucket(store.buckets());
        let progress = naive.progress(&[(author, bucket)]).await.unwrap()[0];
        let stand = naive.stand(key).await.unwrap();
        let behind = u64::from(self.below(8) == 0);
        let pull = stand.map_or(0, |stand| stand.taken.pull.saturating_sub(behind));
        let expected = Cut { progress, pull };
        let (generation, on) = (1 + self.below(40), self.below(3) > 0);
        let count = if on { self.below(100) } else { 0 };
        let adds = self.adds(author, generation, count);
        let floor = if self.below(4) == 0 { Some(self.floor()) } else { None };
        EdgeStep { key, author, generation, on, expected, adds, floor }
    }

    /// Mostly a low one, so that the next is often above it; of both signs.
    fn floor(&mut self) -> DisplayKey {
        const MOST: i64 = (1 << 53) - 1;
        let rank = [-MOST, -(1 << 40), -1, 0, self.below(1 << 40) as i64][self.below(5) as usize];
        let item = [0, 1, 1 << 31, 1 << 32, u64::MAX][self.below(5) as usize];
        DisplayKey { rank, item: ItemId(item) }
    }

    async fn take(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let key = self.key();
        let stands = (store.stand(key).await.unwrap(), naive.stand(key).await.unwrap());
        assert_eq!(stands.0, stands.1, "{key:?}");
        let (mut epoch, mut expected) = stands.0.map_or_else(Default::default, |at| (at.head.epoch, at.taken));
        match self.below(12) {
            0 => epoch = Epoch(epoch.0 + 1),
            1 => expected.pull = expected.pull.saturating_sub(1),
            2 => expected.direct += 1,
            _ => {}
        }
        let entries = self.news();
        let next = Watermarks { pull: expected.pull + self.below(30), direct: expected.direct + self.below(9) };
        let counter = if self.below(6) == 0 { self.below(40) } else { 1000 };
        let step = Take { key, epoch, expected, next, entries, counter };
        let answers = (store.take(step.clone()).await.unwrap(), naive.take(step.clone()).await.unwrap());
        assert_eq!(answers.0, answers.1, "{step:?}");
    }

    async fn present(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let keys = [self.key(), self.key()];
        let present = async |store: &dyn Inboxes| {
            let mut present = store.present(&keys).await.unwrap();
            present.sort_unstable_by_key(|key| (key.reader, key.feed));
            present
        };
        assert_eq!(present(store).await, present(naive).await, "{keys:?}");
    }

    /// Random news: what is pulled, and then what is addressed to the reader.
    fn news(&mut self) -> Vec<Entry> {
        let (pulled, direct) = (self.below(60), self.below(10));
        let mut news = Vec::new();
        for seq in 1..=pulled {
            let (record, author, generation) = (self.record(seq), self.author(), 1 + self.below(40));
            news.push(Entry::of(&record, author, generation));
        }
        for seq in 1..=direct {
            let (record, author) = (self.record(seq), self.author());
            news.push(Entry::direct(record.op, author, record.key));
        }
        news
    }

    fn adds(&mut self, author: UserNo, generation: u64, count: u64) -> Vec<Entry> {
        (1..=count)
            .map(|seq| {
                let record = Record { op: Op::Add, ..self.record(seq) };
                Entry::of(&record, author, generation)
            })
            .collect()
    }

    async fn begin(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let key = self.key();
        self.epoch += 1;
        let begin = async |store: &dyn Inboxes, epoch| store.begin_build(key, Epoch(epoch)).await.unwrap();
        let begun = begin(store, self.epoch).await;
        assert_eq!(begun, begin(naive, self.epoch).await);
        if let Some(begun) = begun {
            self.begun.insert(key, begun);
        }
    }

    async fn finish(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let author = self.author();
        let count = [0, 5, 900, 1500][self.below(4) as usize];
        let entries = self.adds(author, 1, count);
        let taken = Watermarks { pull: self.below(50), direct: self.below(5) };
        let ahead: Vec<_> = (0..self.below(3)).map(|n| (UserNo(100 + n as u32), self.below(400))).collect();
        for key in keys() {
            let begun = self.begun.get(&key).copied();
            let Begun { placeholder, notes } = begun.unwrap_or(Begun { placeholder: Epoch(self.epoch), notes: 0 });
            let build = Build {
                key,
                epoch: Epoch(placeholder.0 - u64::from(self.below(3) > 0)),
                built_at: 1 + self.below(10),
                entries: entries.clone(),
                floor: (count > 100).then_some(DisplayKey { rank: 5, item: ItemId(5) }),
                taken,
                ahead: ahead.clone(),
                notes_from: self.below(notes + 1),
                until: self.soon(),
            };
            assert_eq!(store.finish_build(build.clone()).await.unwrap(), naive.finish_build(build).await.unwrap());
        }
    }

    async fn discard(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let key = self.key();
        store.discard(key).await.unwrap();
        naive.discard(key).await.unwrap();
    }

    /// A moment until which something is kept, in Unix ms. It is a whole second, so that no store rounds it.
    fn soon(&mut self) -> Millis {
        let ahead = self.below(60) as Millis * 1_000;
        match self.clock {
            Some(now) => now + ahead,
            None => super::now() + 86_400_000 + ahead,
        }
    }

    /// Touches some inboxes, and lets time pass.
    async fn keep(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let touched: Vec<_> = (0..self.below(5)).map(|_| self.key()).collect();
        let until = self.soon();
        store.touch(&touched, until).await.unwrap();
        naive.touch(&touched, until).await.unwrap();
        let passed = self.below(15) as Millis * 1_000;
        let now = self.clock.as_mut().map_or_else(super::now, |clock| {
            *clock += passed;
            *clock
        });
        let expired = async |store: &dyn Inboxes| store.discard_expired(now, 1_000).await.unwrap();
        assert_eq!(expired(store).await, expired(naive).await);
    }

    /// Compares every progress and every log.
    pub async fn compare(&mut self, store: &dyn Inboxes, naive: &Naive) {
        let mut kept = 0;
        for key in keys() {
            let bucket = key.reader.bucket(store.buckets());
            let of: Vec<_> = (0..AUTHORS as u32).map(|author| (UserNo(100 + author), bucket)).collect();
            assert_eq!(store.progress(&of).await.unwrap(), naive.progress(&of).await.unwrap());
            match (store.log(key).await.unwrap(), naive.log(key).await.unwrap()) {
                (None, None) => {}
                (Some(log), Some(whole)) => {
                    kept += log.entries.len() as u64;
                    logs_agree(&log, &whole);
                    self.reads_agree(store, key, &log).await;
                }
                (log, whole) => panic!("{key:?}: {log:?} but {whole:?}"),
            }
        }
        assert_eq!(store.counts().await.unwrap().entries, kept);
    }

    async fn reads_agree(&mut self, store: &dyn Inboxes, key: InboxKey, log: &Log) {
        let (base, taken) = (log.head.offset - log.entries.len() as u64, log.taken);
        for _ in 0..4 {
            let offset = self.below(log.head.offset + 2);
            let limit = 1 + self.below(50) as usize;
            let wants = if (base..=log.head.offset).contains(&offset) {
                let entries = log.entries.iter().filter(|n| n.seq > offset).take(limit).copied().collect();
                Read::Entries { entries, head: log.head.offset, taken }
            } else {
                Read::Gone { head: log.head }
            };
            let position = Position { epoch: log.head.epoch, offset };
            assert_eq!(store.read(key, position, limit).await.unwrap(), wants, "{position:?} {limit}");
        }
    }
}

/// The keys of all inboxes that may exist.
fn keys() -> impl Iterator<Item = InboxKey> {
    (0..READERS as u32).flat_map(|reader| FEEDS.map(|feed| InboxKey { reader: UserNo(reader), feed }))
}

/// Checks that `log` is the end of `whole` and long enough, and that its floor covers what was cut.
fn logs_agree(log: &Log, whole: &Log) {
    assert_eq!((log.head, log.taken), (whole.head, whole.taken));
    let cut = whole.entries.len() - log.entries.len();
    assert_eq!(log.entries, whole.entries[cut..]);
    assert!(log.entries.len() >= KEEP.min(whole.entries.len()), "{} are kept", log.entries.len());
    let removed = |at: usize| {
        let add = whole.entries[at].entry;
        whole.entries[at + 1..].iter().any(|n| match n.entry.op {
            Op::Delete => n.entry.key.item == add.key.item,
            Op::Forget => n.entry.author == add.author && !add.is_direct(),
            Op::Add | Op::Update => false,
        })
    };
    let adds = || (0..cut).filter(|at| whole.entries[*at].entry.op == Op::Add);
    let lived = adds().filter(|at| !removed(*at)).map(|at| whole.entries[at].entry.key).max();
    assert!(log.floor >= lived.max(whole.floor), "floor {:?} is below a cut add {lived:?}", log.floor);
    let known = log.floor == whole.floor || adds().any(|at| Some(whole.entries[at].entry.key) == log.floor);
    assert!(known, "floor {:?} is no cut add", log.floor);
}
