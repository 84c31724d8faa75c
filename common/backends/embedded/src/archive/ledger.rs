//! What every operation of a transaction shares: the counters, new users, records, events.
//!
//! Invariant: the counters are read once at the start and written once at the end of a
//! transaction, and only when they changed.

use feedgate_common::change::Route;
use feedgate_common::error::Result;
use feedgate_common::{
    DisplayKey, FeedId, Generation, ItemId, Millis, Op, OutboxSeq, PullSeq, StoreError, UserId, UserNo,
};

use super::tables::{
    AuthorFeed, AuthorRow, Authors, Counters, CountersRow, DirectHeads, DirectRow, Directs, Due, Items, NOBODY, Names,
    Owed, PullHeads, PullRow, Pulls, RecordRow, Records, ToldHeads, Users,
};
use super::users::KnownUsers;
use crate::view::{Read, Tx};

/// How a store is set up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    /// The layout of followers.
    pub(super) buckets: u16,
    /// Authors of class `auto` with more followers are pulled.
    pub(super) pull_above: u64,
}

/// What a record says, wherever it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) op: Op,
    pub(super) author: UserNo,
    pub(super) feed: FeedId,
    pub(super) key: DisplayKey,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) seq: OutboxSeq,
    /// 0 if its route is push.
    pub(super) pull_seq: PullSeq,
}

/// A transaction of the Archive.
pub(super) struct Ledger<'a, 'tx> {
    pub(super) tx: &'a mut Tx<'tx>,
    pub(super) users: &'a KnownUsers,
    pub(super) setup: Setup,
    /// What stamps everything.
    pub(super) now: Millis,
    /// What is written is history: nobody is told of it.
    pub(super) history: bool,
    pub(super) counters: CountersRow,
    before: CountersRow,
}

impl<'a, 'tx> Ledger<'a, 'tx> {
    pub(super) fn open(tx: &'a mut Tx<'tx>, users: &'a KnownUsers, setup: Setup, now: Millis) -> Result<Self> {
        let counters = tx.get::<Counters>(&())?.unwrap_or_default();
        Ok(Self { tx, users, setup, now, history: false, counters, before: counters })
    }

    pub(super) fn close(self) {
        if self.counters != self.before {
            self.tx.put::<Counters>(&(), &self.counters);
        }
    }

    pub(super) fn known(&self, name: &UserId) -> Result<Option<UserNo>> {
        self.users.peek_no(self.tx, name)
    }

    /// The number of a user, a new one if the name was never seen.
    pub(super) fn intern(&mut self, name: &UserId) -> Result<UserNo> {
        if let Some(no) = self.known(name)? {
            return Ok(no);
        }
        let next = self.counters.users.checked_add(1).filter(|&next| next != NOBODY.0);
        self.counters.users =
            next.ok_or_else(|| StoreError::unavailable("all 4,294,967,294 user numbers are given"))?;
        let no = UserNo(self.counters.users);
        self.tx.put::<Names>(&name.as_str().into(), &no);
        self.tx.put::<Users>(&no, &name.as_str().into());
        Ok(no)
    }

    /// An id that no item has, ordered by time: 42 bits of milliseconds, 22 of a count.
    pub(super) fn new_item_id(&mut self) -> Result<ItemId> {
        let by_clock = self.now.max(0).cast_unsigned().min((1 << 42) - 1) << 22;
        let mut id = self.counters.item.saturating_add(1).max(by_clock);
        while self.tx.has::<Items>(&ItemId(id))? {
            id = id.checked_add(1).ok_or_else(|| StoreError::unavailable("no item id is left"))?;
        }
        self.counters.item = id;
        Ok(ItemId(id))
    }

    /// For an edge's change, and for a place in a list by time.
    pub(super) fn new_generation(&mut self) -> Generation {
        self.counters.generation += 1;
        self.counters.generation
    }

    pub(super) fn author(&self, author: UserNo) -> Result<AuthorRow> {
        Ok(self.tx.get::<Authors>(&author)?.unwrap_or_default())
    }

    /// Writes the author's next record, and that its push is outstanding. `row` is the author's, as
    /// read in this transaction.
    pub(super) fn append(&mut self, mut row: AuthorRow, route: Route, change: Change) -> Place {
        let Change { op, author, feed, key } = change;
        row.head += 1;
        row.due = Some(self.owe(row.due, Owed::Outbox { author }));
        let record = RecordRow { op, route, key, at: self.now, feed, history: self.history };
        self.tx.put::<Records>(&(author, row.head), &record);
        let pull_seq = match route {
            Route::Push => 0,
            Route::Pull => self.number_pull(&mut row, change),
        };
        self.tx.put::<Authors>(&author, &row);
        Place { seq: row.head, pull_seq }
    }

    /// Gives the author's newest record its number among all that are pulled.
    fn number_pull(&mut self, row: &mut AuthorRow, Change { op, author, feed, key }: Change) -> PullSeq {
        self.counters.pull += 1;
        let number = self.counters.pull;
        self.tx.put::<Pulls>(&(AuthorFeed { feed, author }, number), &PullRow { op, seq: row.head, key });
        self.tx.remove::<PullHeads>(&row.last_pull);
        self.tx.put::<PullHeads>(&number, &author);
        row.last_pull = number;
        if !self.history {
            self.tx.remove::<ToldHeads>(&row.last_told);
            self.tx.put::<ToldHeads>(&number, &author);
            row.last_told = number;
        }
        number
    }

    /// Writes the reader's next record of what is addressed to them, and that bringing it is outstanding.
    pub(super) fn address(&mut self, reader: UserNo, Change { op, author, feed, key }: Change) -> Result<()> {
        let mut row = self.tx.get::<DirectHeads>(&reader)?.unwrap_or_default();
        row.head += 1;
        row.quiet = self.is_quiet(row.due, row.quiet);
        row.due = Some(self.owe(row.due, Owed::Direct { reader }));
        self.tx.put::<Directs>(&(reader, row.head), &DirectRow { op, author, feed, key, at: self.now });
        self.tx.put::<DirectHeads>(&reader, &row);
        Ok(())
    }

    /// Whether all that is outstanding is history with what is written now; `quiet` is whether what `due` speaks of is.
    pub(super) fn is_quiet(&self, due: Option<Millis>, quiet: bool) -> bool {
        self.history && (due.is_none() || quiet)
    }

    /// Makes an event outstanding unless it already is; since when it is.
    pub(super) fn owe(&mut self, due: Option<Millis>, owed: Owed) -> Millis {
        due.unwrap_or_else(|| {
            self.tx.put::<Due>(&(self.now, owed), &());
            self.counters.events += 1;
            self.now
        })
    }
}

/// The numbers of users in one transaction of its own.
pub(super) fn intern_all(tx: &mut Tx<'_>, users: &KnownUsers, setup: Setup, names: &[UserId]) -> Result<Vec<UserNo>> {
    let mut ledger = Ledger::open(tx, users, setup, 0)?;
    let numbers = names.iter().map(|name| ledger.intern(name)).collect();
    ledger.close();
    numbers
}
