//! Follows, shields and classes. Each real change of an edge's effect takes the next generation of its reader; asking
//! again changes nothing.

use feedgate_common::archive::{Edge, Refused, Written};
use feedgate_common::change::Class;
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::{OutboxSeq, UserId, UserNo};

use super::ledger::{Held, Ledger};

/// All of these are `None` if a row they need is not locked: start over.
type Answer = Option<std::result::Result<Written, Refused>>;

pub(super) fn follow(ledger: &mut Ledger, edge: (UserNo, UserNo), follows: bool) -> Answer {
    set(ledger, edge, follows, None)
}

/// The same, of a follow that began behind `past` if that is known.
pub(super) fn set(ledger: &mut Ledger, edge: (UserNo, UserNo), follows: bool, past: Option<OutboxSeq>) -> Answer {
    let (reader, author) = edge;
    // Who follows as everybody does can still follow by name, and shows in the lists from then on.
    let implicit = !ledger.edges.contains_key(&edge);
    let fresh = held(ledger, edge)?.follows != follows || (follows && implicit);
    if fresh {
        change(ledger, edge, past, |held| held.follows = follows)?;
        if follows {
            let followed = Some(ledger.stamp());
            ledger.changed_edges.entry(edge).or_default().followed = followed;
        }
    }
    let edge = held(ledger, edge)?.edge();
    Some(Ok(Written::Edge { reader, author, edge, fresh }))
}

pub(super) fn unchanged(ledger: &Ledger, (reader, author): (UserNo, UserNo)) -> Answer {
    let edge = held(ledger, (reader, author))?.edge();
    Some(Ok(Written::Edge { reader, author, edge, fresh: false }))
}

pub(super) fn shield(ledger: &mut Ledger, (user, other): (UserNo, UserNo), shield: Shield, up: bool) -> Answer {
    let (as_reader, as_author) = shield.bits();
    let sides = [((user, other), as_reader), ((other, user), as_author)];
    let mut fresh = false;
    let mut edges = vec![];
    for (edge, bits) in sides.into_iter().filter(|(_, bits)| *bits != Shields(0)) {
        let shields = held(ledger, edge)?.shields;
        if shields.with(bits, up) != shields {
            fresh = true;
            if change(ledger, edge, None, |held| held.shields = shields.with(bits, up))? {
                edges.push(edge);
            }
        }
    }
    if fresh {
        let since = up.then(|| ledger.stamp());
        ledger.shields.insert((user, shield, other), since);
    }
    edges.dedup();
    Some(Ok(Written::Shielded { edges, fresh }))
}

pub(super) fn classify(ledger: &mut Ledger, author: UserNo, name: &UserId, class: Class) -> Answer {
    let row = ledger.authors.get_mut(&author)?;
    let fresh = row.class != class;
    if fresh {
        if row.class == Class::Everyone {
            return Some(Err(Refused::StaysEveryones(name.clone())));
        }
        row.class = class;
        if class == Class::Everyone {
            row.everyone_since = Some(row.head);
        }
        ledger.changed_authors.entry(author).or_default();
    }
    Some(Ok(Written::Classified { author, fresh }))
}

/// The edge as it is held. One of an author whom everyone follows is there before it has a row.
pub(super) fn held(ledger: &Ledger, edge: (UserNo, UserNo)) -> Option<Held> {
    let everyone_since = ledger.authors.get(&edge.1)?.everyone_since;
    let implicit = || Held { follows: everyone_since.is_some(), from: everyone_since.unwrap_or(0), ..Held::default() };
    Some(ledger.edges.get(&edge).copied().unwrap_or_else(implicit))
}

/// Whether that changed the edge's effect. It has a row from then on.
fn change(
    ledger: &mut Ledger,
    edge: (UserNo, UserNo),
    past: Option<OutboxSeq>,
    what: impl FnOnce(&mut Held),
) -> Option<bool> {
    let (reader, author) = edge;
    let row = ledger.edges.get(&edge);
    let counted = row.is_some_and(|held| held.edge().on);
    let new = row.is_none();
    let mut held = held(ledger, edge)?;
    let was = held.edge();
    // One that everybody has shows in the lists from when it has a row.
    let followed = (new && held.follows).then(|| ledger.stamp());
    what(&mut held);
    let Edge { on, .. } = held.edge();
    // Who followed as everybody does may have followed by name before that.
    let effect = on != was.on || (on && past.is_some());
    let changed = ledger.changed_edges.entry(edge).or_default();
    changed.followed = followed.or(changed.followed);
    if effect {
        changed.quiet = ledger.history && (changed.due.is_none() || changed.quiet);
        changed.due.get_or_insert(ledger.now);
        let row = ledger.readers.get_mut(&reader)?;
        row.counter += 1;
        held.generation = row.counter;
        if on {
            held.from = ledger.authors.get(&author)?.head;
            held.past = past.filter(|past| *past < held.from);
        }
    }
    if on != counted {
        *ledger.counted.entry(author).or_default() += if on { 1 } else { -1 };
    }
    ledger.edges.insert(edge, held);
    Some(effect)
}
