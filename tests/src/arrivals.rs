//! A reader comes back while posts, follows and messages arrive without a pause: some in every gap between two store
//! calls of the rebuild, worked off before it goes on.
//!
//! ```text
//!   rebuild    ── call ──┃ stopped ┃── call ──┃ stopped ┃── …          its first try ends
//!   the others             125 posts, pushed    125 more               each of them in the log, once
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;

use feedgate_common::archive::{Audience, Publish, Write, Written};
use feedgate_common::feed::Feeds;
use feedgate_common::{Archive, Body, InboxKey, Inboxes, ItemId, Op, UserId, UserNo};

use crate::gate::{Gate, Gated};
use crate::oracle::work_off_all;
use crate::park::{block_on, poll_until};
use crate::rules::Rules;

const BACKFILL: usize = 100;
const AUTHORS: usize = 4;
/// How many posts each author has published before.
const POSTED: usize = 10;
/// How many batches of posts arrive in each gap.
const BATCHES: usize = 25;
const BATCH: usize = 5;

/// A rebuild that has to start over makes these calls again: where the inbox stands, an epoch, the followees, the
/// progress, the token, the snapshot, the progress, what is reopened, the swap.
const CALLS: usize = 9;
/// One whose swap comes too late finds out in the next try that the inbox is there.
const CALLS_TOO_LATE: usize = CALLS + 4;

struct World {
    archive: Arc<dyn Archive>,
    rules: Rules,
    names: Vec<UserId>,
    reader: UserNo,
    /// What the reader must see in the end.
    wanted: BTreeSet<ItemId>,
}

/// Authors whom the reader follows post `BATCHES * BATCH` items in each gap, and each is pushed at once.
///
/// # Panics
/// If the rebuild does not end in its first try, or an item is not in the log, or is twice.
pub fn a_rebuild_ends_while_posts_arrive(archive: &Arc<dyn Archive>, inboxes: &Arc<dyn Inboxes>) {
    let mut world = World::new(archive, inboxes, "posts");
    let (calls, arrived) = world.rebuild_amid(inboxes, |world, n| {
        world.post(n % AUTHORS, BATCH);
        BATCH
    });
    assert!((5..=CALLS).contains(&calls), "{calls} store calls");
    assert!(arrived >= 5 * BATCHES * BATCH, "{arrived} posts arrived");
    world.shows_all_once();
}

/// In each gap of the rebuild posts, follows, unfollows and messages arrive. A worker that brings a follow or a message
/// finds a build in flight and finishes it.
///
/// # Panics
/// As [`a_rebuild_ends_while_posts_arrive`].
pub fn a_rebuild_ends_while_all_sorts_arrive(archive: &Arc<dyn Archive>, inboxes: &Arc<dyn Inboxes>) {
    let mut world = World::new(archive, inboxes, "all");
    let (friend, theirs) = (AUTHORS, world.post(AUTHORS, 3));
    let (calls, _) = world.rebuild_amid(inboxes, |world, n| {
        let follows = n.is_multiple_of(2);
        match follows {
            true => world.wanted.extend(&theirs),
            false => world.wanted.retain(|item| !theirs.contains(item)),
        }
        world.follow(friend, follows);
        world.post(n % AUTHORS, 1);
        world.send(friend);
        3
    });
    assert!((5..=CALLS_TOO_LATE).contains(&calls), "{calls} store calls");
    world.shows_all_once();
}

impl World {
    fn new(archive: &Arc<dyn Archive>, inboxes: &Arc<dyn Inboxes>, kind: &str) -> Self {
        let roles = std::iter::once("reader".to_owned()).chain((0..=AUTHORS).map(|n| format!("author-{n}")));
        let names: Vec<UserId> = roles.map(|role| format!("{role}-{kind}").parse().expect("a name")).collect();
        let numbers = block_on(archive.intern(&names)).expect("the archive is there");
        let rules = Rules::new(Arc::new(Feeds::new(archive.clone(), inboxes.clone(), BACKFILL)));
        let (archive, wanted) = (archive.clone(), BTreeSet::new());
        let mut world = Self { archive, rules, names, reader: numbers[0], wanted };
        (0..AUTHORS).for_each(|author| world.follow(author, true));
        for author in 1..AUTHORS {
            world.post(author, POSTED);
        }
        world.work_off();
        // Push has not come to these.
        world.post(0, POSTED);
        world
    }

    fn key(&self) -> InboxKey {
        InboxKey::main(self.reader)
    }

    fn write(&self, writes: Vec<Write>) -> Vec<Written> {
        let written = block_on(self.archive.write(writes, 1)).expect("the archive is there");
        written.into_iter().map(|written| written.expect("nothing is refused")).collect()
    }

    fn follow(&self, author: usize, follows: bool) {
        let (reader, author) = (self.names[0].clone(), self.names[1 + author].clone());
        self.write(vec![if follows { Write::Follow { reader, author } } else { Write::Unfollow { reader, author } }]);
    }

    fn post(&mut self, author: usize, count: usize) -> Vec<ItemId> {
        let items = self.publish(author, count, Audience::Followers);
        if author < AUTHORS {
            self.wanted.extend(&items);
        }
        items
    }

    fn send(&mut self, author: usize) {
        let items = self.publish(author, 1, Audience::Users(vec![self.names[0].clone()]));
        self.wanted.extend(items);
    }

    fn publish(&self, author: usize, count: usize, audience: Audience) -> Vec<ItemId> {
        let post = || {
            let post = Publish::new(self.names[1 + author].clone(), Body::parse("{}".into()).expect("a body"));
            Write::Publish(Publish { audience: audience.clone(), ..post })
        };
        let written = self.write((0..count).map(|_| post()).collect());
        let item = |written| match written {
            Written::Published { id, .. } => id,
            other => panic!("{other:?}"),
        };
        written.into_iter().map(item).collect()
    }

    fn work_off(&self) {
        block_on(work_off_all(&self.rules)).expect("the stores are there");
    }

    /// Rebuilds the inbox. Whenever that is about to call a store, `arrive` happens some times, each worked off at
    /// once; it answers how much came. How many calls there were, and how much came in all.
    fn rebuild_amid(
        &mut self,
        inboxes: &Arc<dyn Inboxes>,
        mut arrive: impl FnMut(&mut Self, usize) -> usize,
    ) -> (usize, usize) {
        let gate = Gate::default();
        let archive = Arc::new(Gated { gate: gate.clone(), store: self.archive.clone() });
        let inboxes = Arc::new(Gated { gate: gate.clone(), store: inboxes.clone() });
        let builder = Feeds::new(archive as Arc<dyn Archive>, inboxes as Arc<dyn Inboxes>, BACKFILL);
        let mut rebuild = pin!(builder.rebuild(self.key()));
        let (mut calls, mut arrived) = (0, 0);
        loop {
            if let std::task::Poll::Ready(ended) = poll_until(rebuild.as_mut(), || gate.reached()) {
                ended.expect("a rebuild ends");
                return (calls, arrived);
            }
            assert!(calls <= CALLS_TOO_LATE, "the rebuild starts over");
            for n in calls * BATCHES..(calls + 1) * BATCHES {
                arrived += arrive(self, n);
                self.work_off();
            }
            calls += 1;
        }
    }

    fn shows_all_once(&self) {
        self.work_off();
        let log = block_on(self.rules.changes.log(self.key())).expect("the stores are there");
        let mut shown: BTreeMap<ItemId, (UserNo, bool)> = BTreeMap::new();
        for numbered in &log.entries {
            let entry = numbered.entry;
            match entry.op {
                Op::Add => assert_eq!(
                    shown.insert(entry.key.item, (entry.author, entry.is_direct())),
                    None,
                    "{entry:?} stands twice"
                ),
                Op::Forget => shown.retain(|_, (author, is_direct)| *author != entry.author || *is_direct),
                Op::Update | Op::Delete => panic!("{entry:?}"),
            }
        }
        let page = block_on(self.rules.pages.page(self.key(), None, 10_000)).expect("the stores are there");
        let items: BTreeSet<ItemId> = page.items.iter().map(|item| item.id).collect();
        assert_eq!((items.len(), items), (page.items.len(), self.wanted.clone()));
    }
}
