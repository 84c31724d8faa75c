//! Edges on and off. Each real change takes the next generation of its reader; asking again changes nothing.

use feedgate_common::UserNo;
use feedgate_common::archive::{Edge, Refused, Written};

use super::ledger::Ledger;

type Answer = std::result::Result<Written, Refused>;

pub(super) fn follow(ledger: &mut Ledger, edge: (UserNo, UserNo)) -> Answer {
    set(ledger, edge, true)
}

pub(super) fn unfollow(ledger: &mut Ledger, edge: (UserNo, UserNo)) -> Answer {
    set(ledger, edge, false)
}

fn set(ledger: &mut Ledger, (reader, author): (UserNo, UserNo), on: bool) -> Answer {
    let head = ledger.authors.get(&author).map_or(0, |row| row.head);
    let row = ledger.edges.entry((reader, author)).or_default();
    let fresh = row.edge.on != on;
    if fresh {
        let counter = ledger.readers.entry(reader).or_default();
        *counter += 1;
        ledger.changed_readers.insert(reader);
        row.edge = Edge { on, generation: *counter, from: if on { head } else { row.edge.from } };
        ledger.edge_changes += 1;
        row.changed = Some((ledger.edge_changes, ledger.now));
    }
    Ok(Written::Edge { reader, author, edge: row.edge, fresh })
}
