//! A line of history: it adds what is missing and changes nothing that is there; nobody is told.
//!
//! All of these are `None` if somebody has no number or a row no lock: start over.

use feedgate_common::archive::{Publish, Refused, Written};
use feedgate_common::change::Class;
use feedgate_common::graph::Shield;
use feedgate_common::import::{Import, Place};
use feedgate_common::{DisplayKey, ItemId, Millis, Op, OutboxSeq, UserNo};

use super::ledger::{Change, Door, Ledger};
use super::{Ask, Numbers, edit, graph, publish};

/// What stands for the record that deleted an add whose delete has not been imported: behind every `from`.
const DELETED_LATER: OutboxSeq = i64::MAX.cast_unsigned();

type Answer = Option<std::result::Result<Written, Refused>>;

pub(super) fn import(ledger: &mut Ledger, numbers: &Numbers, line: &Import, ask: &Ask) -> Answer {
    ledger.history = true;
    let answer = take_in(ledger, numbers, line, ask);
    ledger.history = false;
    answer
}

fn take_in(ledger: &mut Ledger, numbers: &Numbers, line: &Import, ask: &Ask) -> Answer {
    let no = |name| numbers.get(name).copied();
    match line {
        Import::Item { publish, version, deleted } => {
            item(ledger, numbers, (publish, ask.fingerprint), *version, *deleted)
        }
        Import::Delete { item } => delete(ledger, *item),
        Import::Follow { reader, author, since, from } => match place(ledger, no(author), *from) {
            Ok(from) => follow(ledger, (no(reader)?, no(author)?), *since, from),
            Err(refused) => Some(Err(refused)),
        },
        Import::Unfollow { reader, author } => unfollow(ledger, (no(reader)?, no(author)?)),
        Import::Shield { user, other, shield, since } => raise(ledger, (no(user)?, no(other)?), *shield, *since),
        Import::Class { author, class } => {
            let number = no(author)?;
            match ledger.authors.get(&number)?.class {
                Class::Auto => graph::classify(ledger, number, author, *class),
                // What somebody has given stays.
                _ => Some(Ok(Written::Classified { author: number, fresh: false })),
            }
        }
    }
}

fn item(
    ledger: &mut Ledger,
    numbers: &Numbers,
    (wanted, fingerprint): (&Publish, [u8; 16]),
    version: u32,
    deleted: bool,
) -> Answer {
    let author = numbers.get(&wanted.author).copied();
    if let Some((id, row)) = wanted.id.and_then(|id| Some((id, ledger.items.get(&id)?))) {
        let same = author == Some(row.author);
        return Some(if same { Ok(publish::answer(id, row, false)) } else { Err(Refused::IdTaken(id)) });
    }
    if let Some(key) = &wanted.foreign_id
        && let Some(id) = ledger.foreign_ids.get(key).copied()
    {
        let row = ledger.items.get(&id)?;
        if wanted.id.is_none() && author == Some(row.author) {
            return Some(Ok(publish::answer(id, row, false)));
        }
        if row.alive {
            return Some(Err(Refused::ForeignIdTaken(key.clone(), id)));
        }
    }
    let author = author?;
    let id = publish::id_for(ledger, author, wanted)?;
    let answer = publish::add(ledger, numbers, (author, id), wanted, (version, fingerprint))?;
    if deleted {
        let row = ledger.items.get_mut(&id)?;
        (row.alive, row.body) = (false, None);
        match row.door {
            Door::Outbox(_) => _ = ledger.ended.insert((author, row.seq), DELETED_LATER),
            Door::Direct(_) => _ = ledger.ended_direct.insert(id),
        }
    }
    Some(Ok(answer))
}

fn delete(ledger: &mut Ledger, id: ItemId) -> Answer {
    let Some(row) = ledger.items.get(&id) else { return Some(Err(Refused::NoSuchItem(id))) };
    let (author, seq, key) = (row.author, row.seq, DisplayKey { rank: row.rank, item: id });
    match row.door {
        // Its item is gone already; what is missing is the record.
        Door::Outbox(route) if ledger.ended_by(author, seq) == Some(DELETED_LATER) => {
            let by = ledger.append(author, Op::Delete, (route, row.feed), key)?;
            ledger.ended.insert((author, seq), by);
            let row = ledger.items.get_mut(&id)?;
            if row.change == Change::Nothing {
                row.change = Change::Changed;
            }
            Some(Ok(Written::Deleted { author, readers: vec![], fresh: true }))
        }
        _ => edit::delete(ledger, id, None),
    }
}

/// The place as a number in the author's outbox; `None` for its head.
fn place(ledger: &Ledger, author: Option<UserNo>, place: Place) -> Result<Option<OutboxSeq>, Refused> {
    let (id, of_delete) = match place {
        Place::Head | Place::Everyone => return Ok(None),
        Place::Start => return Ok(Some(0)),
        Place::Add(id) => (id, false),
        Place::Delete(id) => (id, true),
    };
    let row = ledger.items.get(&id).filter(|row| author == Some(row.author) && row.seq != 0);
    let row = row.ok_or(Refused::NoSuchItem(id))?;
    let by = || ledger.ended_by(row.author, row.seq).filter(|by| *by != DELETED_LATER);
    let seq = if of_delete { by() } else { Some(row.seq) };
    seq.map(Some).ok_or(Refused::NoSuchItem(id))
}

/// Whoever has followed or unfollowed before stays as they are.
fn follow(ledger: &mut Ledger, edge: (UserNo, UserNo), since: Millis, past: Option<OutboxSeq>) -> Answer {
    let told = ledger.edges.get(&edge).is_some_and(|held| held.follows || held.generation > 0);
    if told {
        return graph::unchanged(ledger, edge);
    }
    _ = graph::set(ledger, edge, true, past)?;
    let change = ledger.changed_edges.get_mut(&edge)?;
    change.followed = change.followed.map(|(nth, _)| (nth, since));
    let (reader, author) = edge;
    Some(Ok(Written::Edge { reader, author, edge: ledger.edges.get(&edge)?.edge(), fresh: true }))
}

/// Says something only where everyone follows, and this reader has not followed by themselves.
fn unfollow(ledger: &mut Ledger, edge: (UserNo, UserNo)) -> Answer {
    if ledger.edges.contains_key(&edge) || !graph::held(ledger, edge)?.follows {
        return graph::unchanged(ledger, edge);
    }
    graph::follow(ledger, edge, false)
}

fn raise(ledger: &mut Ledger, (user, other): (UserNo, UserNo), shield: Shield, since: Millis) -> Answer {
    let answer = graph::shield(ledger, (user, other), shield, true)?;
    if let Ok(Written::Shielded { fresh: true, .. }) = &answer
        && let Some(Some((_, at))) = ledger.shields.get_mut(&(user, shield, other))
    {
        *at = since;
    }
    Some(answer)
}
