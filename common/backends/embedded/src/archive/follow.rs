//! Edges on and off. Each real change takes the next generation; asking again changes nothing.

use feedgate_common::archive::Written;
use feedgate_common::{UserId, UserNo};

use super::accept::Outcome;
use super::ledger::Ledger;
use super::tables::{EdgeRow, Edges, FollowLine, FollowerList, FollowerRow, Followers, FollowingList, Owed};
use crate::view::Read;

pub(super) fn follow(ledger: &mut Ledger<'_, '_>, reader: &UserId, author: &UserId) -> Outcome {
    let (reader, author) = (ledger.intern(reader)?, ledger.intern(author)?);
    let mut row = ledger.tx.get::<Edges>(&(reader, author))?.unwrap_or_default();
    let fresh = !row.on;
    if fresh {
        let generation = ledger.new_generation();
        let from = ledger.author(author)?.head;
        row = EdgeRow { on: true, generation, from, due: row.due };
        let since = ledger.now;
        let bucket = reader.bucket(ledger.buckets);
        ledger.tx.put::<Followers>(&(author, bucket, reader), &FollowerRow { generation, from });
        ledger.tx.put::<FollowingList>(&(reader, generation), &FollowLine { user: author, since });
        ledger.tx.put::<FollowerList>(&(author, generation), &FollowLine { user: reader, since });
        ledger.counters.edges_on += 1;
        keep(ledger, reader, author, &mut row);
    }
    Ok(Ok(Written::Edge { reader, author, edge: row.edge(), fresh }))
}

pub(super) fn unfollow(ledger: &mut Ledger<'_, '_>, reader: &UserId, author: &UserId) -> Outcome {
    let (reader, author) = (ledger.intern(reader)?, ledger.intern(author)?);
    let mut row = ledger.tx.get::<Edges>(&(reader, author))?.unwrap_or_default();
    let fresh = row.on;
    if fresh {
        let bucket = reader.bucket(ledger.buckets);
        ledger.tx.remove::<Followers>(&(author, bucket, reader));
        ledger.tx.remove::<FollowingList>(&(reader, row.generation));
        ledger.tx.remove::<FollowerList>(&(author, row.generation));
        ledger.counters.edges_on -= 1;
        row.on = false;
        row.generation = ledger.new_generation();
        keep(ledger, reader, author, &mut row);
    }
    Ok(Ok(Written::Edge { reader, author, edge: row.edge(), fresh }))
}

/// Writes the changed edge, and that taking it in is outstanding.
fn keep(ledger: &mut Ledger<'_, '_>, reader: UserNo, author: UserNo, row: &mut EdgeRow) {
    row.due = Some(ledger.owe(row.due, Owed::Edge { reader, author }));
    ledger.tx.put::<Edges>(&(reader, author), row);
}
