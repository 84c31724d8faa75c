//! What all operations of a transaction share: loaded rows, counters, new users and events.
//!
//! Invariants:
//! - The counters are read once at the start of a transaction, and written once at its end if they changed.
//! - Rows of authors, edges and direct heads are read once; each is written as often as it changes.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use feedgate_common::accept::{Policy, Rows};
use feedgate_common::announce::Announcement;
use feedgate_common::error::Result;
use feedgate_common::search::Mark;
use feedgate_common::{DirectSeq, Generation, ItemId, Millis, StoreError, UserId, UserNo};

use super::search::Indexing;
use super::tables::{
    AuthorRow, Authors, Counters, CountersRow, DirectHeadRow, DirectHeads, DirectRow, Directs, Due, DueEdges, EdgeRow,
    Edges, Items, NOBODY, Names, Owed, Users,
};
use super::users::KnownUsers;
use crate::table::Table;
use crate::view::{Read, Tx};

/// The settings of a store that decisions and rows depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    /// The number of buckets into which followers are laid out.
    pub(super) buckets: u16,
    /// The settings of the operator by which writes are decided.
    pub(super) policy: Policy,
}

/// The rows of one table as the transaction sees them.
struct Kept<T: Table>(HashMap<T::Key, Option<T::Row>>);

impl<T: Table> Kept<T>
where
    T::Key: Copy + Eq + Hash,
    T::Row: Copy,
{
    fn get(&mut self, tx: &Tx<'_>, key: T::Key) -> Result<Option<T::Row>> {
        if let Some(row) = self.0.get(&key) {
            return Ok(*row);
        }
        let row = tx.get::<T>(&key)?;
        self.0.insert(key, row);
        Ok(row)
    }

    fn put(&mut self, tx: &mut Tx<'_>, key: T::Key, row: T::Row) {
        tx.put::<T>(&key, &row);
        self.0.insert(key, Some(row));
    }
}

/// One transaction of the Archive, with all that its operations share.
pub(super) struct Ledger<'a, 'tx> {
    pub(super) tx: &'a mut Tx<'tx>,
    users: &'a KnownUsers,
    pub(super) setup: Setup,
    /// The time of acceptance of all records in this transaction, in Unix ms.
    pub(super) now: Millis,
    /// The loaded rows from which decisions are made.
    pub(super) rows: Rows,
    pub(super) counters: CountersRow,
    /// The announcements that the operations so far have made, in their order.
    pub(super) told: Vec<Announcement>,
    /// The notifications that were deleted.
    pub(super) withdrawn: Vec<ItemId>,
    /// What is to be indexed for search; `None` for nothing.
    pub(super) indexing: Option<Indexing>,
    /// The marks of the text of the current operation, if they were computed before the transaction.
    pub(super) marks: Option<BTreeSet<Mark>>,
    before: CountersRow,
    authors: Kept<Authors>,
    edges: Kept<Edges>,
    direct_heads: Kept<DirectHeads>,
}

impl<'a, 'tx> Ledger<'a, 'tx> {
    pub(super) fn open(tx: &'a mut Tx<'tx>, users: &'a KnownUsers, setup: Setup, now: Millis) -> Result<Self> {
        let counters = tx.get::<Counters>(&())?.unwrap_or_default();
        let (authors, edges, direct_heads) = (Kept(HashMap::new()), Kept(HashMap::new()), Kept(HashMap::new()));
        let rows = Rows::default();
        let (told, withdrawn, indexing, marks, before) = (vec![], vec![], None, None, counters);
        Ok(Self {
            tx,
            users,
            setup,
            now,
            rows,
            counters,
            told,
            withdrawn,
            indexing,
            marks,
            before,
            authors,
            edges,
            direct_heads,
        })
    }

    /// Ends the operations. Gives the transaction back, to which others may be added.
    pub(super) fn close(self) -> &'a mut Tx<'tx> {
        if self.counters != self.before {
            self.tx.put::<Counters>(&(), &self.counters);
        }
        self.tx
    }

    pub(super) fn known(&self, name: &UserId) -> Result<Option<UserNo>> {
        self.users.peek_no(self.tx, name)
    }

    /// The name of a user; `Corrupt` if the number was never given.
    pub(super) fn name(&self, user: UserNo) -> Result<UserId> {
        self.users.peek_id(self.tx, user)
    }

    /// The number of a user. A name that was never seen gets a new one.
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

    /// An item id that no item has. Ids ascend with time: 42 bits of Unix milliseconds, then 22 bits of a count.
    pub(super) fn new_item_id(&mut self) -> Result<ItemId> {
        let by_clock = self.now.max(0).cast_unsigned().min((1 << 42) - 1) << 22;
        let mut id = self.counters.item.saturating_add(1).max(by_clock);
        while self.tx.has::<Items>(&ItemId(id))? {
            id = id.checked_add(1).ok_or_else(|| StoreError::unavailable("no item id is left"))?;
        }
        self.counters.item = id;
        Ok(ItemId(id))
    }

    /// A new number for a place in a list ordered by time. It comes from the counter of edge generations.
    pub(super) fn new_generation(&mut self) -> Generation {
        self.counters.generation += 1;
        self.counters.generation
    }

    pub(super) fn author(&mut self, author: UserNo) -> Result<AuthorRow> {
        Ok(self.authors.get(self.tx, author)?.unwrap_or_default())
    }

    pub(super) fn put_author(&mut self, author: UserNo, row: AuthorRow) {
        self.authors.put(self.tx, author, row);
    }

    pub(super) fn edge(&mut self, edge: (UserNo, UserNo)) -> Result<Option<EdgeRow>> {
        self.edges.get(self.tx, edge)
    }

    pub(super) fn put_edge(&mut self, edge: (UserNo, UserNo), row: EdgeRow) {
        self.edges.put(self.tx, edge, row);
    }

    pub(super) fn direct_head(&mut self, reader: UserNo) -> Result<DirectHeadRow> {
        Ok(self.direct_heads.get(self.tx, reader)?.unwrap_or_default())
    }

    pub(super) fn put_direct_head(&mut self, reader: UserNo, row: DirectHeadRow) {
        self.direct_heads.put(self.tx, reader, row);
    }

    /// Appends a record to what is addressed to the reader. Answers its number.
    pub(super) fn address(&mut self, reader: UserNo, record: &DirectRow, history: bool) -> Result<DirectSeq> {
        let mut row = self.direct_head(reader)?;
        row.head += 1;
        row.quiet = is_quiet(history, row.due, row.quiet);
        row.due = Some(self.owe(row.due, Owed::Direct { reader }));
        self.tx.put::<Directs>(&(reader, row.head), record);
        self.put_direct_head(reader, row);
        Ok(row.head)
    }

    /// Makes an event outstanding, unless it is already (then `due` is `Some`). Answers the time since which it is
    /// outstanding.
    pub(super) fn owe(&mut self, due: Option<Millis>, owed: Owed) -> Millis {
        due.unwrap_or_else(|| {
            self.tx.put::<Due>(&(self.now, owed), &());
            if let Owed::Edge { reader, author } = owed {
                self.tx.put::<DueEdges>(&(reader, author), &());
            }
            self.counters.events += 1;
            self.now
        })
    }
}

/// Whether everything that is outstanding is history, with the record that is written now. `history` says so of that
/// record, and `quiet` of what has been outstanding since `due`.
pub(super) fn is_quiet(history: bool, due: Option<Millis>, quiet: bool) -> bool {
    history && (due.is_none() || quiet)
}

/// The numbers of these users. A name that was never seen gets a new one. It is the only operation of its transaction.
pub(super) fn intern_all(tx: &mut Tx<'_>, users: &KnownUsers, setup: Setup, names: &[UserId]) -> Result<Vec<UserNo>> {
    let mut ledger = Ledger::open(tx, users, setup, 0)?;
    let numbers = names.iter().map(|name| ledger.intern(name)).collect();
    ledger.close();
    numbers
}
