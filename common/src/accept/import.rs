//! Decides imported lines. An imported line adds what is missing and changes nothing that exists.

use super::plan::Draft;
use super::rows::{Door, EdgeRow, Rows};
use super::{DELETED_LATER, Decision, edit, graph, publish};
use crate::archive::{Publish, Refused, Written};
use crate::change::Class;
use crate::graph::Shields;
use crate::import::Place;
use crate::{ItemId, Millis, Op, OutboxSeq, UserId};

/// Decides what becomes of an [`Import::Item`](crate::import::Import::Item).
pub(super) fn item<'a>(
    draft: &mut Draft<'_, 'a>,
    wanted: &'a Publish,
    version: (u32, [u8; 16]),
    deleted: bool,
) -> Decision<Written> {
    if let Some(id) = there(draft.rows, wanted)? {
        return Ok(publish::earlier_answer(id, draft.rows.item_of_key(id)?));
    }
    let (author, id) = publish::named(draft.rows, wanted, &[])?;
    let item = publish::add(draft, (author, id), wanted, version)?;
    if deleted {
        let by = matches!(item.door, Door::Outbox(_)).then_some(DELETED_LATER);
        draft.end(id, &item, by);
    }
    Ok(publish::made(draft, id, &item))
}

/// The item of this author that has the id or the foreign id of `wanted` already; `None` if `wanted` is new. Refused if
/// the id belongs to an item of another author, or the foreign id to another living item.
fn there(rows: &Rows, wanted: &Publish) -> Decision<Option<ItemId>> {
    let author = rows.known(&wanted.author)?;
    if let Some(id) = wanted.id
        && let Some(row) = rows.item(id)?
    {
        return if author == Some(row.author) { Ok(Some(id)) } else { Err(Refused::IdTaken(id).into()) };
    }
    if let Some(key) = &wanted.foreign_id
        && let Some(id) = rows.foreign_id(key)?
    {
        let row = rows.item_of_key(id)?;
        if wanted.id.is_none() && author == Some(row.author) {
            return Ok(Some(id));
        }
        if row.living {
            return Err(Refused::ForeignIdTaken(key.clone(), id).into());
        }
    }
    Ok(None)
}

/// Decides what becomes of an [`Import::Delete`](crate::import::Import::Delete).
pub(super) fn delete(draft: &mut Draft<'_, '_>, id: ItemId) -> Decision<Written> {
    let row = draft.rows.item(id)?.ok_or(Refused::NoSuchItem(id))?;
    let is_in_outbox = matches!(row.door, Door::Outbox(_));
    if is_in_outbox && !row.living && draft.rows.ended(id)? == Some(DELETED_LATER) {
        // The item is deleted already; only the record of the delete is missing.
        let by = draft.follow_up(id, row, Op::Delete)?;
        draft.end(id, row, by);
        let (author, readers) = (row.author, vec![]);
        return Ok(Written::Deleted { author, readers, fresh: true, repost_of: None, mentions: vec![], told: vec![] });
    }
    edit::delete(draft, id, None)
}

/// Decides what becomes of an [`Import::Follow`](crate::import::Import::Follow).
pub(super) fn follow(
    draft: &mut Draft<'_, '_>,
    names: (&UserId, &UserId),
    since: Millis,
    from: Place,
) -> Decision<Written> {
    let past = place(draft.rows, names.1, from)?;
    let edge = graph::two(draft, names)?;
    let row = draft.rows.held(edge)?;
    // A reader who has followed or unfollowed this author before is left as it is.
    if draft.rows.edge(edge)?.is_some_and(|row| row.follows || row.generation > 0) {
        return Ok(graph::written(edge, row.edge(), false));
    }
    let now = graph::change(draft, edge, EdgeRow { follows: true, asked: false, ..row }, (since, past))?;
    Ok(graph::written(edge, now, true))
}

/// The sequence number of the place in the author's outbox; `None` for the head.
fn place(rows: &Rows, author: &UserId, place: Place) -> Decision<Option<OutboxSeq>> {
    let (id, of_delete) = match place {
        Place::Head | Place::Everyone => return Ok(None),
        Place::Start => return Ok(Some(0)),
        Place::Add(id) => (id, false),
        Place::Delete(id) => (id, true),
    };
    let (row, author) = (rows.item(id)?, rows.known(author)?);
    let row = row.filter(|row| matches!(row.door, Door::Outbox(_)) && author == Some(row.author));
    let row = row.ok_or(Refused::NoSuchItem(id))?;
    let seq = if of_delete { rows.ended(id)?.filter(|by| *by != DELETED_LATER) } else { Some(row.seq) };
    Ok(Some(seq.ok_or(Refused::NoSuchItem(id))?))
}

/// Decides what becomes of an [`Import::Request`](crate::import::Import::Request).
pub(super) fn request(draft: &mut Draft<'_, '_>, names: (&UserId, &UserId), since: Millis) -> Decision<Written> {
    let edge = graph::two(draft, names)?;
    let row = draft.rows.held(edge)?;
    // A row without a shield is what a request has left that was answered or taken back. Under a shield nothing tells.
    let knows = draft.rows.edge(edge)?.is_some_and(|row| row.shields == Shields(0));
    // As with a follow, the line is older than what was done here. Nobody asks to follow across a block.
    if row.follows || row.asked || row.generation > 0 || knows || row.shields.blocks() {
        return Ok(graph::written(edge, row.edge(), false));
    }
    let now = graph::change(draft, edge, EdgeRow { asked: true, ..row }, (since, None))?;
    Ok(graph::written(edge, now, true))
}

/// Decides what becomes of an [`Import::Unfollow`](crate::import::Import::Unfollow).
pub(super) fn unfollow(draft: &mut Draft<'_, '_>, names: (&UserId, &UserId)) -> Decision<Written> {
    let edge = graph::two(draft, names)?;
    let row = draft.rows.held(edge)?;
    // The line has an effect only if everyone follows the author and this reader has no edge of its own.
    if draft.rows.edge(edge)?.is_some() || !row.follows {
        return Ok(graph::written(edge, row.edge(), false));
    }
    let now = graph::change(draft, edge, EdgeRow { follows: false, ..row }, (draft.now, None))?;
    Ok(graph::written(edge, now, true))
}

/// Decides what becomes of an [`Import::Class`](crate::import::Import::Class).
pub(super) fn class(draft: &mut Draft<'_, '_>, name: &UserId, class: Class) -> Decision<Written> {
    let author = draft.rows.number(name)?;
    match draft.rows.author(author)?.class {
        Class::Auto => graph::classify(draft, name, class),
        // A class that was given to the author before stays.
        _ => Ok(Written::Classified { author, fresh: false }),
    }
}
