//! What it costs to show who the items of a page are of (S7): one read of the store, however long the page is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use feedgate_common::archive::{Known, Publish, Write};
use feedgate_common::feed::{Feeds, Page};
use feedgate_common::people::{Card, Person};
use feedgate_common::{Archive, Body, InboxKey, Inboxes, UserId};
use feedgate_embedded::Embedded;
use feedgate_tests::gate::{Gate, Gated};
use feedgate_tests::park::{block_on, poll_until};
use feedgate_tests::rules::Rules;
use tokio::runtime::Builder;

const AUTHORS: usize = 20;

fn author(nth: usize) -> UserId {
    format!("author-{nth}").parse().unwrap()
}

fn name_of(nth: usize) -> Card {
    Card { name: Some(format!("name of {nth}").into()), avatar: None }
}

/// A reader who follows twenty authors with an item each, and the rules of a process whose reads of the Archive are
/// counted at the gate.
fn town(stores: &Embedded) -> (InboxKey, Rules, Gate) {
    let reader: UserId = "reader".parse().unwrap();
    let follow = |nth| Write::Follow { reader: reader.clone(), author: author(nth) };
    let post = |nth| Write::Publish(Publish::new(author(nth), Body::parse("1".to_owned()).unwrap()));
    let writes = (0..AUTHORS).map(follow).chain((0..AUTHORS).map(post)).collect();
    assert!(block_on(stores.archive.write(writes, 1_800_000_000_000)).unwrap().iter().all(Result::is_ok));
    let key = InboxKey::main(block_on(stores.archive.intern(&[reader])).unwrap()[0]);
    let gate = Gate::default();
    let archive: Arc<dyn Archive> = Arc::new(Gated { gate: gate.clone(), store: stores.archive.clone() });
    let inboxes: Arc<dyn Inboxes> = stores.inboxes.clone();
    let rules = Rules::new(Arc::new(Feeds::new(archive, inboxes, AUTHORS)));
    block_on(
        Rules::new(Arc::new(Feeds::new(stores.archive.clone(), stores.inboxes.clone(), AUTHORS))).feeds.rebuild(key),
    )
    .unwrap();
    (key, rules, gate)
}

/// The page, and how many calls of the Archive it took.
fn counted(rules: &Rules, gate: &Gate, key: InboxKey, limit: usize) -> (Page, usize) {
    let (mut page, mut calls) = (pin!(rules.pages.page(key, None, limit)), 0);
    loop {
        match poll_until(page.as_mut(), || gate.reached()) {
            Poll::Ready(page) => return (page.unwrap(), calls),
            Poll::Pending => calls += 1,
        }
    }
}

#[test]
fn s7_a_page_of_twenty_authors_takes_as_many_reads_as_a_page_of_one() {
    let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _entered = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let stores = Embedded::open(dir.path(), 1).unwrap();
    let (key, rules, gate) = town(&stores);
    let (first, _) = counted(&rules, &gate, key, 1);
    assert_eq!((first.items.len(), first.people.len()), (1, 0), "nothing is said of anybody");

    let numbers = block_on(stores.archive.intern(&(0..AUTHORS).map(author).collect::<Vec<_>>())).unwrap();
    let person = |nth| Person { card: name_of(nth), attrs: None };
    let people = numbers.into_iter().enumerate().map(|(nth, number)| (number, person(nth))).collect();
    block_on(stores.archive.put_people(people, Known::Replaced)).unwrap();
    let (one, calls_of_one) = counted(&rules, &gate, key, 1);
    let (all, calls_of_all) = counted(&rules, &gate, key, AUTHORS);
    assert_eq!((one.items.len(), all.items.len()), (1, AUTHORS));
    assert_eq!(calls_of_one, calls_of_all);
    assert_eq!(one.people.len(), 1);
    let wanted = (0..AUTHORS).map(|nth| (author(nth), name_of(nth))).collect();
    assert_eq!(all.people, wanted, "a change shows on the next page");
}
