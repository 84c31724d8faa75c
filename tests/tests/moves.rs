//! Items that move to another rank, before the worker has brought the move to inboxes and after it (S11).

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails here")]

use std::sync::Arc;

use feedgate_common::archive::{Publish, Write};
use feedgate_common::change::Class;
use feedgate_common::feed::{Change, Feeds};
use feedgate_common::inboxes::Read;
use feedgate_common::{Body, InboxKey, ItemId, Op, Position, UserId};
use feedgate_embedded::Embedded;
use feedgate_tests::oracle::work_off_all;
use feedgate_tests::park::block_on;
use feedgate_tests::rules::Rules;
use tokio::runtime::{Builder, Runtime};

const NOW: i64 = 1_800_000_000_000;

fn name(name: &str) -> UserId {
    name.parse().unwrap()
}

fn move_to(item: u64, rank: i64) -> Write {
    Write::Edit { item: ItemId(item), body: None, rank: Some(rank), mentions: None, if_version: None }
}

/// A reader of one author of this class, who has three items of the ranks 10, 20 and 30.
struct World {
    stores: Embedded,
    rules: Rules,
    key: InboxKey,
}

/// What the stores run their own tasks on, once it is entered.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).build().unwrap()
}

impl World {
    fn new(dir: &std::path::Path, class: Class) -> Self {
        let stores = Embedded::open(dir, 2).unwrap();
        let rules = Rules::new(Arc::new(Feeds::new(stores.archive.clone(), stores.inboxes.clone(), 9)));
        let key = InboxKey::main(block_on(stores.archive.intern(&[name("rea")])).unwrap()[0]);
        let world = Self { stores, rules, key };
        let item = |id: u64| {
            let body = Body::parse(id.to_string()).unwrap();
            let publish = Publish::new(name("ann"), body);
            Write::Publish(Publish { id: Some(ItemId(id)), rank: Some(10 * id as i64), ..publish })
        };
        let follow = Write::Follow { reader: name("rea"), author: name("ann") };
        world.write(vec![Write::Classify { author: name("ann"), class }, follow]);
        block_on(world.rules.changes.head(key)).unwrap();
        world.write((1..=3).map(item).collect());
        world.deliver();
        world
    }

    fn write(&self, writes: Vec<Write>) {
        assert!(block_on(self.stores.archive.write(writes, NOW)).unwrap().iter().all(Result::is_ok));
    }

    /// Lets a worker do all that is outstanding, and the node hear of what is pulled.
    fn deliver(&self) {
        block_on(work_off_all(&self.rules)).unwrap();
        self.rules.changes.heard_pull(block_on(self.stores.archive.pull_head()).unwrap());
    }

    fn head(&self) -> Position {
        block_on(self.rules.changes.head(self.key)).unwrap()
    }

    /// The pages of two items each, as ids and ranks.
    fn pages(&self) -> Vec<Vec<(u64, i64)>> {
        let (mut pages, mut before) = (vec![], None);
        loop {
            let page = block_on(self.rules.pages.page(self.key, before, 2)).unwrap();
            pages.push(page.items.iter().map(|item| (item.id.0, item.rank)).collect());
            before = page.next;
            if before.is_none() {
                return pages;
            }
        }
    }

    /// What a device at `after` is sent: the op, the item, and its rank in this change.
    fn changes(&self, after: Position) -> Vec<(Op, u64, i64)> {
        let read = block_on(self.rules.changes.read(self.key, after, 100)).unwrap();
        let Read::Entries { entries, .. } = read else { panic!("{read:?}") };
        let entries: Vec<_> = entries.iter().map(|numbered| numbered.entry).collect();
        let changes = block_on(self.rules.changes.hydrate(self.key, entries.iter())).unwrap();
        let told = |change| match change {
            Change::Add { item } => (Op::Add, item.id.0, item.rank),
            Change::Update { item } => (Op::Update, item.id.0, item.rank),
            Change::Delete { item_id } => (Op::Delete, item_id.0, 0),
            Change::Forget { .. } => panic!("nobody is forgotten"),
        };
        changes.into_iter().map(told).collect()
    }
}

#[test]
fn s11_who_was_away_gets_each_rank_in_its_turn_as_who_was_live_did() {
    let runtime = runtime();
    let _entered = runtime.enter();
    for class in [Class::Push, Class::Pull] {
        let dir = tempfile::tempdir().unwrap();
        let world = World::new(dir.path(), class);
        let start = Position { offset: 0, ..world.head() };
        let mut live = world.changes(start);
        assert_eq!(live, [(Op::Add, 1, 10), (Op::Add, 2, 20), (Op::Add, 3, 30)]);
        for (item, rank) in [(1, 40), (3, 5), (1, 10)] {
            let before = world.head();
            world.write(vec![move_to(item, rank)]);
            world.deliver();
            assert_eq!(world.changes(before), [(Op::Delete, item, 0), (Op::Add, item, rank)]);
            live.extend(world.changes(before));
        }
        assert_eq!(world.changes(start), live, "{class:?}");
        assert_eq!(world.pages().concat(), [(2, 20), (1, 10), (3, 5)]);
        let rebuilt = {
            block_on(world.stores.inboxes.discard(world.key)).unwrap();
            world.pages().concat()
        };
        assert_eq!(rebuilt, [(2, 20), (1, 10), (3, 5)], "from the Archive alone");
    }
}

/// The page is that of its position: the log has not heard of the move, and will bring it.
#[test]
fn s11_a_page_of_a_log_that_lags_places_an_item_where_the_log_does() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let dir = tempfile::tempdir().unwrap();
    let world = World::new(dir.path(), Class::Push);
    world.write(vec![move_to(2, 1)]);
    let lagging = world.head();
    assert_eq!(world.pages(), [vec![(3, 30), (2, 20)], vec![(1, 10)]], "no item is passed by");
    world.deliver();
    assert_eq!(world.changes(lagging), [(Op::Delete, 2, 0), (Op::Add, 2, 1)]);
    assert_eq!(world.pages(), [vec![(3, 30), (1, 10)], vec![(2, 1)]]);
}
