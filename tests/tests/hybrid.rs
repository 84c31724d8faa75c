//! A published example of a feed that is partly pushed and partly pulled, page by page (`tests/data/hybrid-feed.json`),
//! through the embedded stores and a worker. The pages are equal whatever is published by which author, by whichever
//! door it comes, and whenever the reader came (I13).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::collections::BTreeMap;

use feedgate_common::archive::Write;
use feedgate_common::change::Class;
use feedgate_common::feed::{DEFAULT_BACKFILL, living};
use feedgate_common::{FeedId, InboxKey, UserId};
use feedgate_tests::oracle::{FEEDS, name_feeds};
use feedgate_tests::town::{Town, item};
use futures_util::future::join_all;
use serde_json::Value;

/// An item: its number in the example, and its time in ms.
type Line = (u64, i64);

/// Cases that go on together.
const AT_ONCE: usize = 100;

/// When the reader follows and first comes.
#[derive(Debug, Clone, Copy)]
enum Comes {
    /// Before any item was published.
    First,
    /// After every other item was published.
    Between,
    /// After all items were published.
    Last,
}

use Comes::{Between, First, Last};

/// One telling of the example, by users of its own in a store that many share.
#[derive(Debug)]
struct Case {
    nth: u64,
    comes: Comes,
    /// Each author's class and items.
    authors: BTreeMap<String, (Class, Vec<Line>)>,
}

impl Case {
    fn user(&self, name: &str) -> UserId {
        format!("{name}-{}", self.nth).parse().unwrap()
    }

    fn reader(&self) -> UserId {
        self.user("111")
    }

    /// Every other one is told in a feed beside the main one.
    fn feed(&self) -> FeedId {
        FEEDS[self.nth as usize % FEEDS.len()]
    }

    async fn key(&self, town: &Town) -> InboxKey {
        InboxKey { feed: self.feed(), ..town.key(&self.reader()).await.unwrap() }
    }

    /// Ids of its own, in the order of the example's.
    fn id(&self, of: u64) -> u64 {
        self.nth * 1_000_000 + of
    }

    /// Everything in the order in which it was published, and what was published before the reader came.
    fn published(&self) -> (Vec<Write>, Vec<Write>) {
        let lines = self.authors.iter().flat_map(|(author, (_, lines))| lines.iter().map(move |line| (line, author)));
        let mut lines: Vec<_> = lines.collect();
        lines.sort_unstable_by_key(|((id, at), _)| (*at, *id));
        let (mut before, mut after) = (vec![], vec![]);
        for (nth, ((id, at), author)) in lines.into_iter().enumerate() {
            let early = match self.comes {
                First => false,
                Between => nth % 2 == 0,
                Last => true,
            };
            let mut write = item(&self.user(author), Some(self.id(*id)), *at, "…");
            if let Write::Publish(publish) = &mut write {
                publish.feed = self.feed();
            }
            if early { before.push(write) } else { after.push(write) }
        }
        (before, after)
    }
}

struct Example(Value);

impl Example {
    fn read() -> Self {
        Self(serde_json::from_str(include_str!("../data/hybrid-feed.json")).unwrap())
    }

    fn lines(value: &Value) -> Vec<Line> {
        let line = |line: &Value| (line[0].as_u64().unwrap(), line[1].as_i64().unwrap() * 1000);
        value.as_array().unwrap().iter().map(line).collect()
    }

    fn pages(&self, part: &str, names: &[&str]) -> Vec<Vec<u64>> {
        let pages = names.iter().flat_map(|name| self.0[part][name].as_array().unwrap());
        pages.map(|page| page.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()).collect()
    }

    /// The hybrid part with its pushed items split as `split` says, in base 3, and the authors in `pulled`, by bit.
    fn hybrid(&self, nth: u64, comes: Comes, mut split: usize, pulled: usize) -> Case {
        let part = &self.0["hybrid"];
        let mut authors: BTreeMap<String, (Class, Vec<Line>)> = BTreeMap::new();
        for (author, bit) in part["follows"].as_array().unwrap().iter().zip(0..) {
            let author = author.as_str().unwrap();
            let lines = part["pulled_authors"].get(author).map(Self::lines).unwrap_or_default();
            let class = if pulled >> bit & 1 == 1 { Class::Pull } else { Class::Push };
            authors.insert(author.to_owned(), (class, lines));
        }
        for line in Self::lines(&part["pushed_by_222_233_244_in_any_split"]) {
            authors.get_mut(["222", "233", "244"][split % 3]).unwrap().1.push(line);
            split /= 3;
        }
        Case { nth, comes, authors }
    }

    /// The other part, by three authors. Times that the source does not print only keep the order.
    fn inbox_only(&self, nth: u64, comes: Comes, pulled: usize) -> Case {
        let mut authors: BTreeMap<String, (Class, Vec<Line>)> = BTreeMap::new();
        let (mut before, mut rank) = (None, 0);
        let lines = self.0["inbox_only"]["inbox_newest_first"].as_array().unwrap();
        for (at, line) in lines.iter().enumerate() {
            let time = line[1].as_i64();
            rank -= i64::from(time.is_none() || time != before);
            before = time;
            let class = if pulled >> (at % 3) & 1 == 1 { Class::Pull } else { Class::Push };
            let author = authors.entry(format!("20{}", at % 3)).or_insert((class, vec![]));
            author.1.push((line[0].as_u64().unwrap(), rank));
        }
        Case { nth, comes, authors }
    }
}

/// Publishes all cases, and reads every page of each.
async fn the_pages_are(cases: &[Case], size: usize, expected: &[Vec<u64>]) {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 4, DEFAULT_BACKFILL).unwrap();
    name_feeds(&*town.stores.archive).await.unwrap();
    for cases in cases.chunks(AT_ONCE) {
        let (mut early, mut late) = (vec![], vec![]);
        for case in cases {
            let classes = case.authors.iter();
            early.extend(
                classes.map(|(author, (class, _))| Write::Classify { author: case.user(author), class: *class }),
            );
            let (before, after) = case.published();
            early.extend(before);
            let follow = |author: &String| Write::Follow { reader: case.reader(), author: case.user(author) };
            early.extend(case.authors.keys().map(follow));
            late.extend(after);
        }
        town.write(early).await.unwrap();
        let town = &town;
        join_all(cases.iter().map(|case| async {
            town.changes.head(case.key(town).await).await.unwrap();
        }))
        .await;
        if !late.is_empty() {
            town.write(late).await.unwrap();
        }
    }
    town.settle().await.unwrap();
    for cases in cases.chunks(AT_ONCE) {
        join_all(cases.iter().map(|case| check(&town, case, size, expected))).await;
    }
    town.close().await.unwrap();
}

async fn check(town: &Town, case: &Case, size: usize, expected: &[Vec<u64>]) {
    for (author, (class, lines)) in &case.authors {
        let author = town.key(&case.user(author)).await.unwrap().reader;
        let pulled = town.stores.archive.outbox(author, 0, 1).await.unwrap().last_pull > 0;
        assert_eq!(pulled, *class == Class::Pull && !lines.is_empty(), "the class decides the route in {case:?}");
    }
    let key = case.key(town).await;
    let (mut pages, mut before) = (vec![], None);
    loop {
        let page = town.pages.page(key, before, size).await.unwrap();
        pages.push(page.items.iter().map(|item| item.id.0 - case.id(0)).collect::<Vec<_>>());
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(pages, expected, "I13: {case:#?}");
    // A device that takes in the log shows the same.
    let mut shown = living(&town.changes.log(key).await.unwrap().entries);
    shown.sort_unstable();
    let shown: Vec<u64> = shown.iter().rev().map(|key| key.item.0 - case.id(0)).collect();
    assert_eq!(shown, expected.concat(), "I13: the log of {case:#?}");
}

/// 200 and 211 by pull, as in the example.
const AS_PRINTED: usize = 0b00011;

#[tokio::test(flavor = "multi_thread")]
async fn i13_the_example_in_every_split_of_the_items_that_are_pushed() {
    let example = Example::read();
    let splits = (0..3usize.pow(6)).zip(0..);
    let cases: Vec<Case> = splits
        .map(|(split, nth)| example.hybrid(nth, [First, Between, Last][split % 7 % 3], split, AS_PRINTED))
        .collect();
    let expected = example.pages("hybrid", &["expected_pages", "expected_pages_after_the_book_ends"]);
    the_pages_are(&cases, 3, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn i13_the_example_in_every_choice_of_who_is_pulled_whenever_the_reader_comes() {
    let example = Example::read();
    let choices = (0..1 << 5).flat_map(|pulled| [First, Between, Last].map(|comes| (comes, pulled)));
    // A different split for each: 95 is prime to 729.
    let cases: Vec<Case> = (0..)
        .zip(choices)
        .map(|(nth, (comes, pulled))| example.hybrid(nth, comes, nth as usize * 95 % 729, pulled))
        .collect();
    let expected = example.pages("hybrid", &["expected_pages", "expected_pages_after_the_book_ends"]);
    the_pages_are(&cases, 3, &expected).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_of_one_inbox_with_five_items_of_one_time() {
    let example = Example::read();
    let choices = (0..1 << 3).flat_map(|pulled| [First, Between, Last].map(|comes| (comes, pulled)));
    let cases: Vec<Case> =
        (0..).zip(choices).map(|(nth, (comes, pulled))| example.inbox_only(nth, comes, pulled)).collect();
    let mut expected = example.pages("inbox_only", &["expected_pages"]);
    assert_eq!(expected.pop(), Some(vec![]), "the example ends with an empty page; here the last says that it is");
    the_pages_are(&cases, 3, &expected).await;
}
