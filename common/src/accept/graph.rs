//! Follows, requests to follow, shields and classes. Each real change of an edge's effect takes the next generation of
//! its reader. A write that asks for the present state changes nothing.

use super::plan::{Change, Draft};
use super::rows::EdgeRow;
use super::{Decision, Pair, is_own};
use crate::archive::{Answer, Edge, Refused, Written};
use crate::change::Class;
use crate::graph::{Shield, Shields};
use crate::{Millis, OutboxSeq, UserId, UserNo};

/// Decides what becomes of a [`Write::Follow`](crate::archive::Write::Follow) or a
/// [`Write::Unfollow`](crate::archive::Write::Unfollow).
pub(super) fn follow(draft: &mut Draft<'_, '_>, names: (&UserId, &UserId), follows: bool) -> Decision<Written> {
    let edge = two(draft, names)?;
    let row = draft.rows.held(edge)?;
    // A reader who follows only because everyone does can still follow by name, and stands in the lists from then on.
    let unlisted = follows && draft.rows.edge(edge)?.is_none();
    let private = follows && !row.follows && draft.rows.private(edge.1)?;
    let wanted = wanted(row, follows, private);
    let fresh = wanted != row || unlisted;
    let now = if fresh { change(draft, edge, wanted, (draft.now, draft.past()))? } else { row.edge() };
    let (reader, author) = edge;
    Ok(Written::Edge { reader, author, edge: now, pending: private, fresh, told: vec![] })
}

/// The row of an edge whose reader wants to follow, or to follow no more. A reader who does not follow a private author
/// yet only asks to follow. Behind a block the request is not kept, and the answer is the same, so that the reader does
/// not learn of the block.
fn wanted(row: EdgeRow, follows: bool, private: bool) -> EdgeRow {
    match private {
        true => EdgeRow { asked: !row.shields.blocks(), ..row },
        false => EdgeRow { follows, asked: false, ..row },
    }
}

/// Decides what becomes of a [`Write::Answer`](crate::archive::Write::Answer).
pub(super) fn answer(draft: &mut Draft<'_, '_>, names: (&UserId, &UserId), answer: Answer) -> Decision<Written> {
    let none = || Refused::NoSuchRequest { reader: names.0.clone(), author: names.1.clone() };
    let known = draft.rows.known(names.0)?.zip(draft.rows.known(names.1)?);
    let edge = known.filter(|edge| !is_own(*edge)).ok_or_else(none)?;
    let row = draft.rows.held(edge)?;
    let follows = match answer {
        Answer::Accept if row.follows => return Ok(written(edge, row.edge(), false)),
        Answer::LetIn if row.asked && draft.rows.private(edge.1)? => return Err(none().into()),
        Answer::Accept | Answer::LetIn => true,
        Answer::Refuse => false,
    };
    if !row.asked {
        return Err(none().into());
    }
    let now = change(draft, edge, EdgeRow { follows, asked: false, ..row }, (draft.now, draft.past()))?;
    Ok(written(edge, now, true))
}

/// The reader and the author of a follow. Refused if they are one user.
pub(super) fn two(draft: &Draft<'_, '_>, names: (&UserId, &UserId)) -> Decision<Pair> {
    if names.0 == names.1 {
        return Err(Refused::FollowsItself(names.0.clone()).into());
    }
    draft.rows.pair(names)
}

/// Decides what becomes of a [`Write::OwnPosts`](crate::archive::Write::OwnPosts).
pub(super) fn own_posts(draft: &mut Draft<'_, '_>, name: &UserId, on: bool) -> Decision<Written> {
    let author = draft.rows.number(name)?;
    let before = draft.rows.held((author, author))?.edge();
    let fresh = turn_own_edge(draft, author, on)?;
    let now = fresh.unwrap_or(before);
    Ok(written((author, author), now, fresh.is_some()))
}

/// Turns the edge of an author to itself on or off. Gives the edge if that changes what is stored.
pub(super) fn turn_own_edge(draft: &mut Draft<'_, '_>, author: UserNo, on: bool) -> Decision<Option<Edge>> {
    let edge = (author, author);
    let row = draft.rows.held(edge)?;
    if row.follows == on {
        return Ok(None);
    }
    let at = (draft.now, None);
    change(draft, edge, EdgeRow { follows: on, ..row }, at).map(Some)
}

pub(super) fn written((reader, author): Pair, edge: Edge, fresh: bool) -> Written {
    Written::Edge { reader, author, edge, pending: false, fresh, told: vec![] }
}

/// Decides what becomes of a [`Write::Shield`](crate::archive::Write::Shield). `since` is when the shield went up.
pub(super) fn shield(
    draft: &mut Draft<'_, '_>,
    names: (&UserId, &UserId),
    (shield, up): (Shield, bool),
    since: Millis,
) -> Decision<Written> {
    let (user, other) = draft.rows.pair(names)?;
    let (mut edges, mut fresh) = (vec![], false);
    for (edge, bits) in sides((user, other), shield) {
        edges.push(edge);
        let row = draft.rows.held(edge)?;
        let shields = row.shields.with(bits, up);
        if shields != row.shields {
            fresh = true;
            let asked = row.asked && !shields.blocks();
            change(draft, edge, EdgeRow { shields, asked, ..row }, (draft.now, draft.past()))?;
        }
    }
    if fresh {
        draft.changes.push(Change::Shield { user, shield, other, since: up.then_some(since) });
    }
    Ok(Written::Shielded { edges, fresh })
}

/// The edges on which a shield of the first user against the second lies, each with its bits.
fn sides((user, other): Pair, shield: Shield) -> Vec<(Pair, Shields)> {
    let (as_reader, as_author) = shield.bits();
    if user == other {
        return vec![((user, user), Shields(as_reader.0 | as_author.0))];
    }
    let sides = [((user, other), as_reader), ((other, user), as_author)];
    sides.into_iter().filter(|(_, bits)| *bits != Shields(0)).collect()
}

/// Decides what becomes of a [`Write::Classify`](crate::archive::Write::Classify).
pub(super) fn classify(draft: &mut Draft<'_, '_>, name: &UserId, class: Class) -> Decision<Written> {
    let author = draft.rows.number(name)?;
    let row = draft.rows.author(author)?;
    let fresh = row.class != class;
    if fresh {
        if row.class == Class::Everyone {
            return Err(Refused::StaysEveryones(name.clone()).into());
        }
        if class == Class::Everyone && draft.rows.private(author)? {
            return Err(Refused::PrivateEveryones(name.clone()).into());
        }
        let everyone_since = (class == Class::Everyone).then_some(row.head);
        draft.changes.push(Change::Classify { author, class, everyone_since });
    }
    Ok(Written::Classified { author, fresh })
}

/// Decides what becomes of a [`Write::Private`](crate::archive::Write::Private). Requests that wait are not answered by
/// this.
pub(super) fn set_private(draft: &mut Draft<'_, '_>, name: &UserId, private: bool) -> Decision<Written> {
    let author = draft.rows.number(name)?;
    if private && draft.rows.author(author)?.class == Class::Everyone {
        return Err(Refused::PrivateEveryones(name.clone()).into());
    }
    let fresh = draft.rows.private(author)? != private;
    if fresh {
        draft.changes.push(Change::Private { author, private });
    }
    Ok(Written::Classified { author, fresh })
}

/// Gives an edge the follow, the request and the shields of `wanted`, and all that follows from these. Answers the edge
/// from then on. A follow that begins counts as begun at `since`; records up to `past`, if that is known, are from
/// before it.
pub(super) fn change(
    draft: &mut Draft<'_, '_>,
    edge: Pair,
    wanted: EdgeRow,
    (since, past): (Millis, Option<OutboxSeq>),
) -> Decision<Edge> {
    let before = draft.rows.edge(edge)?;
    let was = draft.rows.held(edge)?.edge();
    let head = draft.rows.author(edge.1)?.head;
    let counter = draft.rows.reader(edge.0)?.counter;
    let mut now = wanted;
    let on = now.edge().on;
    // A follow by name may show more than a follow by everyone does. Then the edge changes although it was on.
    let effect = on != was.on || (on && past.is_some());
    if effect {
        now.generation = counter + 1;
        if on {
            now.from = head;
            // Of its own items an author has all, however old they are.
            now.past = if is_own(edge) { Some(0) } else { past }.filter(|past| *past < head);
        }
    }
    let EdgeRow { follows, asked, .. } = before.unwrap_or_default();
    let begins = (now.follows && !follows) || (now.asked && !asked);
    let listed = (begins && !is_own(edge)).then_some(since);
    draft.changes.push(Change::Edge { edge, before, now, listed, effect });
    Ok(now.edge())
}
