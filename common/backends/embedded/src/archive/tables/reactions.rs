//! Reactions to items. Stores that were made before these tables existed have no rows in them.
//!
//! A kind of an item has a slot: its place among the kinds of that item, which it keeps as long as the item lives.

use compact_str::CompactString;
use feedgate_common::{ItemId, Millis, UserNo};

use super::table;
use crate::codec::{Code, Short};

/// The place of a kind among the kinds of its item.
pub(crate) type Slot = u8;

table! {
    /// The kinds of reactions of an item by slot, each with its count, for each living item that ever got a reaction.
    Tallies: b'A', Archive, ItemId => TallyRow
}

table! {
    /// The kinds with which a user has reacted to an item; a row has at least one kind.
    Reacted: b'B', Archive, (ItemId, UserNo) => ReactedRow
}

table! {
    /// The users who have reacted to an item with the kind of a slot, by time.
    Reactors: b'C', Archive, (ItemId, Slot, Millis, UserNo) => ()
}

table! {
    /// Deleted items whose reactions are still to be removed, and lines of notifications that are still to be removed,
    /// which are named by their first items.
    ReactionEnds: b'D', Archive, ItemId => ()
}

/// The kinds of reactions of an item by slot, and how many users react with each kind now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TallyRow(pub(crate) Vec<(CompactString, u64)>);

impl Code for TallyRow {
    fn put(&self, out: &mut Vec<u8>) {
        put_length(self.0.len(), out);
        for (kind, count) in &self.0 {
            Short(kind.clone()).put(out);
            count.put(out);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let many = Slot::take(from)?;
        (0..many).map(|_| Some((Short::take(from)?.0, u64::take(from)?))).collect::<Option<_>>().map(Self)
    }
}

/// The kinds with which a user has reacted, each with the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReactedRow(pub(crate) Vec<(Slot, Millis)>);

impl Code for ReactedRow {
    fn put(&self, out: &mut Vec<u8>) {
        put_length(self.0.len(), out);
        self.0.iter().for_each(|kind| kind.put(out));
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let many = Slot::take(from)?;
        (0..many).map(|_| Code::take(from)).collect::<Option<_>>().map(Self)
    }
}

fn put_length(kinds: usize, out: &mut Vec<u8>) {
    Slot::try_from(kinds).expect("an item has at most 32 kinds").put(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{bytes_of, value_of};

    #[test]
    fn the_rows_of_reactions_come_back_as_they_were() {
        for kinds in [vec![], vec![("like".into(), 3), ("❤️".into(), u64::MAX)]] {
            let tally = TallyRow(kinds);
            assert_eq!(value_of(&bytes_of(&tally)), Some(tally));
        }
        for kinds in [vec![], vec![(0, i64::MIN), (31, 7)]] {
            let reacted = ReactedRow(kinds);
            assert_eq!(value_of(&bytes_of(&reacted)), Some(reacted));
        }
    }
}
