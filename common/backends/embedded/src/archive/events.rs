//! Events: work that accepted writes left to be done.
//!
//! ```text
//!   nothing ── write ──▶ due since t ── finish up to the head ──▶ nothing
//!                          │    ▲
//!                          └────┘ finish short of the head: due since the next record's time
//!
//!   any ── reopen ──▶ reopened ── finish: gives a number ──▶ told ── finish under that number, to the head ──▶ nothing
//!                        ▲                                    │
//!                        └───────────── reopen ───────────────┘
//! ```

use std::ops::Bound::{Excluded, Included, Unbounded};

use feedgate_common::archive::{Event, Outstanding};
use feedgate_common::error::Result;
use feedgate_common::{DirectSeq, Generation, Millis, OutboxSeq, StoreError, UserNo};

use super::tables::{
    Authors, Counters, CountersRow, DirectHeadRow, DirectHeads, Directs, Due, DueEdges, Edges, Owed, Records,
};
use crate::view::{Read, Tx, View};

/// The time of an event that was reopened: it is due at once.
const REOPENED: Millis = 0;

/// The time of a reopened event after a worker was told of it. From then on a worker finishes the event only if the
/// worker has gone through all records again since then.
const TOLD: Millis = -1;

pub(super) fn outstanding(
    view: &View,
    after: Option<Outstanding>,
    not_after: Millis,
    limit: usize,
) -> Result<Vec<Outstanding>> {
    let from = after.map_or(Unbounded, |last| Excluded((last.since, owed(last.event))));
    let due = view.scan::<Due>((from, Included((not_after, Owed::LAST)))).take(limit);
    let line = |row: Result<_>| {
        let ((since, owed), ()) = row?;
        Ok(Outstanding { since, event: event_of(view, owed)? })
    };
    due.map(line).collect()
}

fn owed(event: Event) -> Owed {
    match event {
        Event::Outbox { author, .. } => Owed::Outbox { author },
        Event::Edge { reader, author, .. } => Owed::Edge { reader, author },
        Event::Direct { reader, .. } => Owed::Direct { reader },
    }
}

fn event_of(view: &View, owed: Owed) -> Result<Event> {
    let found = match owed {
        Owed::Outbox { author } => {
            view.get::<Authors>(&author)?.map(|row| Event::Outbox { author, seq: row.head, redo: 0 })
        }
        Owed::Edge { reader, author } => view.get::<Edges>(&(reader, author))?.map(|row| Event::Edge {
            reader,
            author,
            generation: row.held.generation,
        }),
        Owed::Direct { reader } => view.get::<DirectHeads>(&reader)?.map(|row| Event::Direct { reader, seq: row.head }),
    };
    found.ok_or_else(|| StoreError::corrupt(format_args!("{owed:?} is outstanding, but there is no such row")))
}

pub(super) fn finish(tx: &mut Tx<'_>, finished: &[Event]) -> Result<Vec<Event>> {
    let before = tx.get::<Counters>(&())?.unwrap_or_default();
    let (mut counters, mut stay) = (before, vec![]);
    for event in finished {
        match *event {
            Event::Outbox { author, seq, redo } => stay.extend(finish_outbox(tx, &mut counters, author, seq, redo)?),
            Event::Direct { reader, seq } => finish_direct(tx, &mut counters, reader, seq)?,
            Event::Edge { reader, author, generation } => {
                finish_edge(tx, &mut counters, (reader, author), generation)?;
            }
        }
    }
    if counters != before {
        tx.put::<Counters>(&(), &counters);
    }
    Ok(stay)
}

/// Finishes an author's push up to `seq`. An event that was reopened may stay outstanding; then it is answered.
fn finish_outbox(
    tx: &mut Tx<'_>,
    counters: &mut CountersRow,
    author: UserNo,
    seq: OutboxSeq,
    redo: u64,
) -> Result<Option<Event>> {
    let Some(mut row) = tx.get::<Authors>(&author)? else { return Ok(None) };
    let Some(due) = row.due else { return Ok(None) };
    let owed = Owed::Outbox { author };
    row.redo += u64::from(due == REOPENED);
    let reopened = due == REOPENED || due == TOLD;
    row.due = if reopened && (redo != row.redo || seq < row.head) {
        Some(TOLD)
    } else if seq >= row.head {
        None
    } else {
        let next = tx.get::<Records>(&(author, seq + 1))?;
        let next = next.ok_or_else(|| {
            StoreError::corrupt(format_args!("author {}: no record {} below head {}", author.0, seq + 1, row.head))
        })?;
        // The time only grows, so that an older finish does not undo a newer one.
        Some(due.max(next.at))
    };
    move_due(tx, counters, owed, due, row.due);
    tx.put::<Authors>(&author, &row);
    Ok((reopened && redo != row.redo).then_some(Event::Outbox { author, seq: row.head, redo: row.redo }))
}

/// Finishes what is addressed to a reader up to `seq`. If later records were addressed to the reader, the event stays
/// outstanding since the first of these.
fn finish_direct(tx: &mut Tx<'_>, counters: &mut CountersRow, reader: UserNo, seq: DirectSeq) -> Result<()> {
    let Some(mut row) = tx.get::<DirectHeads>(&reader)? else { return Ok(()) };
    let Some(due) = row.due else { return Ok(()) };
    row.due = None;
    if seq < row.head {
        // An erasure of the reader leaves a gap in the numbers; the next record stands behind the gap.
        let next = tx.scan::<Directs>((reader, seq + 1)..=(reader, row.head)).next().transpose()?;
        let (_, next) = next.ok_or_else(|| {
            StoreError::corrupt(format_args!("reader {}: no record behind {seq} up to head {}", reader.0, row.head))
        })?;
        row.due = Some(due.max(next.at));
    }
    move_due(tx, counters, Owed::Direct { reader }, due, row.due);
    tx.put::<DirectHeads>(&reader, &row);
    Ok(())
}

/// Ends the outstanding event of records that are addressed to the reader, since an erasure removes these records.
pub(super) fn forget_direct(tx: &mut Tx<'_>, reader: UserNo) -> Result<()> {
    let Some(row) = tx.get::<DirectHeads>(&reader)? else { return Ok(()) };
    let Some(due) = row.due else { return Ok(()) };
    let mut counters = tx.get::<Counters>(&())?.unwrap_or_default();
    move_due(tx, &mut counters, Owed::Direct { reader }, due, None);
    tx.put::<Counters>(&(), &counters);
    tx.put::<DirectHeads>(&reader, &DirectHeadRow { due: None, ..row });
    Ok(())
}

/// Moves an event that was due at `from` to a later time, or removes it if `to` is `None`.
fn move_due(tx: &mut Tx<'_>, counters: &mut CountersRow, owed: Owed, from: Millis, to: Option<Millis>) {
    if to == Some(from) {
        return;
    }
    tx.remove::<Due>(&(from, owed));
    match to {
        Some(to) => tx.put::<Due>(&(to, owed), &()),
        None => {
            counters.events -= 1;
            if let Owed::Edge { reader, author } = owed {
                tx.remove::<DueEdges>(&(reader, author));
            }
        }
    }
}

/// The authors of the reader's outstanding edges, at most `limit`.
pub(super) fn edges_due(view: &View, reader: UserNo, limit: usize) -> Result<Vec<UserNo>> {
    let due = view.scan::<DueEdges>((reader, UserNo(0))..=(reader, UserNo(u32::MAX)));
    due.take(limit).map(|row| row.map(|((_, author), ())| author)).collect()
}

/// Finishes an edge. If the edge has changed again meanwhile, it stays outstanding.
fn finish_edge(
    tx: &mut Tx<'_>,
    counters: &mut CountersRow,
    edge: (UserNo, UserNo),
    generation: Generation,
) -> Result<()> {
    let Some(mut row) = tx.get::<Edges>(&edge)? else { return Ok(()) };
    if let Some(due) = row.due
        && generation >= row.held.generation
    {
        row.due = None;
        move_due(tx, counters, Owed::Edge { reader: edge.0, author: edge.1 }, due, None);
        tx.put::<Edges>(&edge, &row);
    }
    Ok(())
}

pub(super) fn reopen(tx: &mut Tx<'_>, authors: &[UserNo]) -> Result<()> {
    let before = tx.get::<Counters>(&())?.unwrap_or_default();
    let mut counters = before;
    for &author in authors {
        let Some(mut row) = tx.get::<Authors>(&author)? else { continue };
        let owed = Owed::Outbox { author };
        match row.due {
            Some(REOPENED) => continue,
            Some(due) => tx.remove::<Due>(&(due, owed)),
            None => counters.events += 1,
        }
        row.due = Some(REOPENED);
        tx.put::<Authors>(&author, &row);
        tx.put::<Due>(&(REOPENED, owed), &());
    }
    if counters != before {
        tx.put::<Counters>(&(), &counters);
    }
    Ok(())
}
