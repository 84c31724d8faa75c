//! A follow that shows more items than one step brings, for a reader who has an inbox already: a follow with a long
//! past, or a follow whose step comes late.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use feedgate_common::accept::Policy;
use feedgate_common::archive::{Publish, Write};
use feedgate_common::doorbell::Growth;
use feedgate_common::feed::{DEFAULT_BACKFILL, Feeds};
use feedgate_common::import::{Import, Place};
use feedgate_common::inboxes::KEEP;
use feedgate_common::{Body, InboxKey, ItemId, UserId};
use feedgate_embedded::{Embedded, Kept, Opening};
use feedgate_tests::rules::Rules;
use feedgate_tests::town::Town;
use feedgate_timeline::fanout::Left;

/// More items than one step may bring to a log.
const ITEMS: u64 = 2 * KEEP as u64 + 500;

fn line(author: &UserId, id: u64) -> Write {
    let body = Body::parse(id.to_string()).unwrap();
    let publish = Publish { id: Some(ItemId(id)), published_at: Some(id as i64), ..Publish::new(author.clone(), body) };
    Write::Import(Import::Item { publish, version: 1, deleted: false })
}

/// How many items an author of the long past has; `FEEDGATE_ITEMS` gives another number, for a measurement.
fn items() -> u64 {
    std::env::var("FEEDGATE_ITEMS").ok().map_or(ITEMS, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn s12_a_follow_with_a_long_past_brings_the_newest_and_every_page_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let town = Town::open(dir.path(), 2, DEFAULT_BACKFILL).unwrap();
    let [rea, ann, ben]: [UserId; 3] = ["rea", "ann", "ben"].map(|name| name.parse().unwrap());
    let key = town.key(&rea).await.unwrap();
    let before = town.changes.head(key).await.unwrap();
    // The ids of one author are odd and those of the other even, so their items alternate.
    let all = 2 * items();
    let lines: Vec<Write> = (1..=all).map(|id| line(if id % 2 == 1 { &ann } else { &ben }, id)).collect();
    for some in lines.chunks(1000) {
        town.write(some.to_vec()).await.unwrap();
    }
    let mut wanted = vec![];
    for (nth, author) in [&ann, &ben].into_iter().enumerate() {
        let theirs: Vec<u64> = (1..=all).rev().filter(|id| (id % 2 == 1) == (nth == 0)).collect();
        let line = Import::Follow { reader: rea.clone(), author: author.clone(), since: 1, from: Place::Start };
        town.write(vec![Write::Import(line)]).await.unwrap();
        town.settle().await.unwrap();
        let log = town.changes.log(key).await.unwrap();
        assert_eq!(log.head.epoch, before.epoch, "no device starts over");
        assert_eq!(log.entries.len(), (nth + 1) * (1 + DEFAULT_BACKFILL), "a `forget` and the newest of each");
        let told = log.entries[nth * (1 + DEFAULT_BACKFILL)].entry.floor().unwrap();
        assert_eq!(told.item.0, theirs[DEFAULT_BACKFILL], "the first that pages alone have");
        assert!(log.floor >= Some(told));
        let (mut next, mut shown) = (None, vec![]);
        loop {
            let page = town.pages.page(key, next, 500).await.unwrap();
            shown.extend(page.items.iter().map(|item| item.id.0));
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        wanted.extend(theirs);
        wanted.sort_unstable_by(|a, b| b.cmp(a));
        assert!(shown == wanted, "I7: every item once, to the last");
    }
    town.close().await.unwrap();
}

/// `FEEDGATE_ITEMS=100000 cargo test -p feedgate-tests --test imported of_many_items -- --nocapture` measures it.
#[tokio::test(flavor = "multi_thread")]
async fn s12_a_follow_of_many_items_brings_as_much_as_one_of_few_and_the_log_stays() {
    let dir = tempfile::tempdir().unwrap();
    let policy = Policy { whole_past: true, ..Policy::default() };
    let opening = Opening { buckets: 2, policy, accept_loss: false, kept: Kept::default() };
    let stores = Embedded::open_with(dir.path(), opening).unwrap();
    let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL);
    let rules = Rules::new(Arc::new(feeds));
    let [few, many]: [UserId; 2] = ["few", "many"].map(|name| name.parse().unwrap());
    let all = items();
    for (author, ids) in [(&few, 1..=101), (&many, 1001..=1000 + all)] {
        for some in ids.map(|id| line(author, id)).collect::<Vec<_>>().chunks(1000) {
            stores.archive.write(some.to_vec(), 1).await.unwrap();
        }
    }
    let mut times = vec![];
    for author in [&few, &many] {
        for nth in 0..20 {
            let reader: UserId = format!("{author}-{nth}").parse().unwrap();
            let numbers = stores.archive.intern(&[reader.clone(), author.clone()]).await.unwrap();
            let key = InboxKey::main(numbers[0]);
            let before = rules.changes.head(key).await.unwrap();
            let follow = Write::Follow { reader, author: author.clone() };
            stores.archive.write(vec![follow], 1).await.unwrap();
            let begun = Instant::now();
            rules.fan_out.step_edges(numbers[0]).await.unwrap();
            times.push(begun.elapsed());
            let log = rules.changes.log(key).await.unwrap();
            let stands = (log.head.epoch, log.entries.len(), log.floor.is_some());
            assert_eq!(stands, (before.epoch, 1 + DEFAULT_BACKFILL, true), "{author}");
        }
    }
    let median = |times: &mut [Duration]| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (few, many) = times.split_at_mut(20);
    eprintln!("a follow step: {:?} of 101 items, {:?} of {all}", median(few), median(many));
}

#[tokio::test(flavor = "multi_thread")]
async fn i18_a_follow_that_is_served_late_wakes_its_reader_and_leaves_what_was_built_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), 2).unwrap();
    let feeds = Feeds::new(stores.archive.clone(), stores.inboxes.clone(), DEFAULT_BACKFILL);
    let rules = Rules::new(Arc::new(feeds));
    let names: [UserId; 2] = ["rea", "ann"].map(|name| name.parse().unwrap());
    let [reader, author] = stores.archive.intern(&names).await.unwrap()[..] else { panic!("two") };
    let key = InboxKey::main(reader);
    let before = rules.changes.head(key).await.unwrap();
    let [rea, ann] = names;
    stores.archive.write(vec![Write::Follow { reader: rea, author: ann.clone() }], 1).await.unwrap();
    let post = |_| Write::Publish(Publish::new(ann.clone(), Body::parse("1".to_owned()).unwrap()));
    stores.archive.write((0..ITEMS).map(post).collect(), 1).await.unwrap();
    while !matches!(rules.fan_out.advance_all(author).await.unwrap().left, Left::Nothing(_)) {}

    let woken = || async { rules.fan_out.step_edges(reader).await.unwrap().1 };
    assert_eq!(woken().await, [Growth::of_one(key, author, before)], "who is online has to start over");
    assert_eq!(woken().await, [], "there is no inbox");
    let built = rules.changes.head(key).await.unwrap();
    assert_eq!(woken().await, [], "it was built with all of it");
    assert_eq!(rules.changes.head(key).await.unwrap(), built);
}
