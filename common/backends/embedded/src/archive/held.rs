//! What is held of a reader and an author, and everything that follows from a change of it.
//!
//! ```text
//!   follows? shields? ──▶ effect ──changed──▶ generation, `from`, event
//!       │                    └──▶ followers (what push reads), counts
//!       └──changed──▶ the two lists of follows
//! ```
//!
//! Invariants: a row in `followers` for each row in `edges` that is in effect; a line in each list for each that
//! follows, for as long as it does.

use feedgate_common::archive::Edge;
use feedgate_common::error::Result;
use feedgate_common::graph::{effective_edge, listed_at};
use feedgate_common::{Millis, OutboxSeq, UserNo};

use super::ledger::Ledger;
use super::tables::{
    Authors, EdgeRow, Edges, Everyones, FollowLine, FollowerList, FollowerRow, Followers, FollowingList, Owed,
};
use crate::view::Read;

/// See the module. Change `row` and keep it.
pub(super) struct Held {
    reader: UserNo,
    author: UserNo,
    /// Whether there is a row.
    pub(super) stands: bool,
    /// The edge as it is in effect until now.
    pub(super) before: Edge,
    /// Where there is none yet, what it would have to be so that nothing changes.
    pub(super) row: EdgeRow,
}

impl Held {
    pub(super) fn of(ledger: &Ledger<'_, '_>, reader: UserNo, author: UserNo) -> Result<Self> {
        if let Some(row) = ledger.tx.get::<Edges>(&(reader, author))? {
            return Ok(Self { reader, author, stands: true, before: row.edge(), row });
        }
        let before = effective_edge(None, ledger.tx.get::<Everyones>(&author)?);
        let row = EdgeRow { follows: before.on, from: before.from, past: before.from, ..EdgeRow::default() };
        Ok(Self { reader, author, stands: false, before, row })
    }

    /// Writes what has changed, and that taking it in is outstanding if the effect has; the edge now, and whether it
    /// has.
    pub(super) fn keep(self, ledger: &mut Ledger<'_, '_>) -> Result<(Edge, bool)> {
        let since = ledger.now;
        self.keep_as(ledger, since, None)
    }

    /// The same, of a follow that began at `since`, behind `past` if that is known.
    pub(super) fn keep_as(
        mut self,
        ledger: &mut Ledger<'_, '_>,
        since: Millis,
        past: Option<OutboxSeq>,
    ) -> Result<(Edge, bool)> {
        let number = ledger.new_generation();
        self.list(ledger, (listed_at(since, number), since))?;
        let on = self.row.edge().on;
        // Who followed as everyone does may have followed by themselves before that.
        let moved = on && past.is_some();
        let changed = on != self.before.on || moved;
        if changed {
            self.row.generation = number;
            self.row.quiet = ledger.is_quiet(self.row.due, self.row.quiet);
            if on {
                let head = ledger.author(self.author)?.head;
                self.row.from = head;
                self.row.past = past.map_or(head, |past| past.min(head));
            }
            let owed = Owed::Edge { reader: self.reader, author: self.author };
            self.row.due = Some(ledger.owe(self.row.due, owed));
        }
        self.count(ledger, on)?;
        ledger.tx.put::<Edges>(&(self.reader, self.author), &self.row);
        Ok((self.row.edge(), changed))
    }

    /// Puts a follow that has begun into the lists, or takes one out that has ended.
    fn list(&mut self, ledger: &mut Ledger<'_, '_>, (mut number, since): (u64, Millis)) -> Result<()> {
        let Self { reader, author, .. } = *self;
        match (self.row.follows, self.row.listed) {
            (true, 0) => {
                // History may know days and not milliseconds: millions of follows then want the same few places.
                while ledger.tx.has::<FollowerList>(&(author, number))?
                    || ledger.tx.has::<FollowingList>(&(reader, number))?
                {
                    number += 1;
                }
                self.row.listed = number;
                ledger.tx.put::<FollowingList>(&(reader, number), &FollowLine { user: author, since });
                ledger.tx.put::<FollowerList>(&(author, number), &FollowLine { user: reader, since });
            }
            (false, listed) if listed > 0 => {
                self.row.listed = 0;
                ledger.tx.remove::<FollowingList>(&(reader, listed));
                ledger.tx.remove::<FollowerList>(&(author, listed));
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes the row a follower of the author, or no longer.
    fn count(&self, ledger: &mut Ledger<'_, '_>, on: bool) -> Result<()> {
        let counted = self.stands && self.before.on;
        if counted == on {
            return Ok(());
        }
        let key = (self.author, self.reader.bucket(ledger.setup.buckets), self.reader);
        let mut author = ledger.author(self.author)?;
        if on {
            author.followers += 1;
            ledger.counters.edges_on += 1;
            let EdgeRow { generation, from, .. } = self.row;
            ledger.tx.put::<Followers>(&key, &FollowerRow { generation, from });
        } else {
            author.followers -= 1;
            ledger.counters.edges_on -= 1;
            ledger.tx.remove::<Followers>(&key);
        }
        ledger.tx.put::<Authors>(&self.author, &author);
        Ok(())
    }
}
