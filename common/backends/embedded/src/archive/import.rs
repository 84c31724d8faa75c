//! A line of history. It adds what is missing and changes nothing that is there; nobody is told.

use feedgate_common::archive::{Publish, Refused, Written};
use feedgate_common::change::Class;
use feedgate_common::error::Result;
use feedgate_common::import::{Import, Place};
use feedgate_common::{DisplayKey, InboxKey, ItemId, OutboxSeq, UserId};

use super::accept::Outcome;
use super::direct::{self, NO_SEQ};
use super::held::Held;
use super::ledger::Ledger;
use super::tables::{AddRow, Adds, DirectShown, Fingerprint, ForeignIds, ItemRow, Items, Life, Shown};
use super::{classify, edit, publish, shield};
use crate::view::Read;

/// What stands for the record that deleted an add whose delete has not been imported: behind every `from`.
const DELETED_LATER: OutboxSeq = OutboxSeq::MAX;

pub(super) fn import(ledger: &mut Ledger<'_, '_>, line: Import, fingerprint: Fingerprint) -> Outcome {
    ledger.history = true;
    let outcome = take_in(ledger, line, fingerprint);
    ledger.history = false;
    outcome
}

fn take_in(ledger: &mut Ledger<'_, '_>, line: Import, fingerprint: Fingerprint) -> Outcome {
    match line {
        Import::Item { publish, version, deleted } => item(ledger, publish, (version, fingerprint), deleted),
        Import::Delete { item } => delete(ledger, item),
        Import::Follow { reader, author, since, from } => {
            let from = place(ledger, &author, from)?;
            match from {
                Ok(from) => follow(ledger, &reader, &author, (since, from)),
                Err(refused) => Ok(Err(refused)),
            }
        }
        Import::Unfollow { reader, author } => unfollow(ledger, &reader, &author),
        Import::Shield { user, other, shield, since } => shield::set_as(ledger, (&user, &other), (shield, true), since),
        Import::Class { author, class } => self::class(ledger, author, class),
    }
}

fn item(ledger: &mut Ledger<'_, '_>, wanted: Publish, version: (u32, Fingerprint), deleted: bool) -> Outcome {
    let known = ledger.known(&wanted.author)?;
    if let Some(id) = wanted.id
        && let Some(row) = ledger.tx.get::<Items>(&id)?
    {
        let same = known == Some(row.author);
        return if same { unchanged(ledger, id, &row) } else { Ok(Err(Refused::IdTaken(id))) };
    }
    if let Some(key) = &wanted.foreign_id
        && let Some(id) = ledger.tx.get::<ForeignIds>(key)?
    {
        let row = publish::item(ledger, id)?;
        if wanted.id.is_none() && known == Some(row.author) {
            return unchanged(ledger, id, &row);
        }
        if row.life != Life::Gone {
            return Ok(Err(Refused::ForeignIdTaken(key.clone(), id)));
        }
    }
    let author = ledger.intern(&wanted.author)?;
    let id = wanted.id.map_or_else(|| ledger.new_item_id(), Ok)?;
    let mut row = publish::add(ledger, (author, id), wanted, version)?;
    let answer = publish::answer(ledger, id, &row, true)?;
    if deleted {
        end(ledger, id, &mut row)?;
    }
    Ok(Ok(answer))
}

fn unchanged(ledger: &Ledger<'_, '_>, id: ItemId, row: &ItemRow) -> Outcome {
    Ok(Ok(publish::answer(ledger, id, row, false)?))
}

/// A class that somebody has given stays.
fn class(ledger: &mut Ledger<'_, '_>, name: UserId, class: Class) -> Outcome {
    let author = ledger.intern(&name)?;
    match ledger.author(author)?.class {
        Class::Auto => classify::classify(ledger, name, class),
        _ => Ok(Ok(Written::Classified { author, fresh: false })),
    }
}

/// Leaves of an item only its place in the outbox, or that it was addressed.
fn end(ledger: &mut Ledger<'_, '_>, id: ItemId, row: &mut ItemRow) -> Result<()> {
    if let Some(add) = ledger.tx.get::<Adds>(&row.add())? {
        ledger.tx.put::<Adds>(&row.add(), &AddRow { deleted_by: Some(DELETED_LATER), ..add });
        ledger.tx.remove::<Shown>(&(row.add().0, add.lane, add.key));
    }
    for reader in direct::readers(ledger, id, row)? {
        let Life::Living { rank, .. } = row.life else { continue };
        let inbox = InboxKey { reader, feed: row.feed };
        ledger.tx.remove::<DirectShown>(&(inbox, DisplayKey { rank, item: id }));
    }
    row.life = Life::Gone;
    ledger.tx.put::<Items>(&id, row);
    ledger.counters.living_items -= 1;
    Ok(())
}

fn delete(ledger: &mut Ledger<'_, '_>, id: ItemId) -> Outcome {
    let Some(row) = ledger.tx.get::<Items>(&id)? else { return Ok(Err(Refused::NoSuchItem(id))) };
    let later = match row.seq {
        NO_SEQ => None,
        _ => ledger.tx.get::<Adds>(&row.add())?.filter(|add| add.deleted_by == Some(DELETED_LATER)),
    };
    match later {
        Some(add) => Ok(Ok(edit::delete_record(ledger, &row, add)?)),
        None => edit::delete(ledger, id, None),
    }
}

/// The place as a number in the author's outbox; `None` for its head.
#[allow(clippy::type_complexity, reason = "a place, its absence, and why there is none")]
fn place(
    ledger: &Ledger<'_, '_>,
    author: &UserId,
    place: Place,
) -> Result<std::result::Result<Option<OutboxSeq>, Refused>> {
    let (id, of_delete) = match place {
        Place::Head | Place::Everyone => return Ok(Ok(None)),
        Place::Start => return Ok(Ok(Some(0))),
        Place::Add(id) => (id, false),
        Place::Delete(id) => (id, true),
    };
    let row = ledger.tx.get::<Items>(&id)?;
    let known = ledger.known(author)?;
    let Some(row) = row.filter(|row| row.seq != NO_SEQ && known == Some(row.author)) else {
        return Ok(Err(Refused::NoSuchItem(id)));
    };
    let deleted_by = || Ok(ledger.tx.get::<Adds>(&row.add())?.and_then(|add| add.deleted_by));
    let seq = if of_delete { deleted_by()?.filter(|&seq| seq != DELETED_LATER) } else { Some(row.seq) };
    Ok(seq.map(Some).ok_or(Refused::NoSuchItem(id)))
}

/// Whoever has followed or unfollowed before stays as they are.
fn follow(
    ledger: &mut Ledger<'_, '_>,
    reader: &UserId,
    author: &UserId,
    (since, from): (i64, Option<OutboxSeq>),
) -> Outcome {
    let (reader, author) = (ledger.intern(reader)?, ledger.intern(author)?);
    let mut held = Held::of(ledger, reader, author)?;
    let untold = held.row.listed == 0 && (!held.stands || held.row.generation == 0);
    if !untold {
        return Ok(Ok(Written::Edge { reader, author, edge: held.before, fresh: false }));
    }
    held.row.follows = true;
    let (edge, _) = held.keep_as(ledger, since, from)?;
    Ok(Ok(Written::Edge { reader, author, edge, fresh: true }))
}

/// Says something only where everyone follows, and this reader has not followed by themselves.
fn unfollow(ledger: &mut Ledger<'_, '_>, reader: &UserId, author: &UserId) -> Outcome {
    let (reader, author) = (ledger.intern(reader)?, ledger.intern(author)?);
    let mut held = Held::of(ledger, reader, author)?;
    if held.stands || !held.before.on {
        return Ok(Ok(Written::Edge { reader, author, edge: held.before, fresh: false }));
    }
    held.row.follows = false;
    let (edge, _) = held.keep(ledger)?;
    Ok(Ok(Written::Edge { reader, author, edge, fresh: true }))
}
