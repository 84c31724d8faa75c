//! Accepts items: each once, however often it is asked for.
//!
//! ```text
//!   idempotency key known ──▶ same payload: the first answer │ other: KeyReused
//!   id taken              ──▶ same payload: the first answer │ other: IdTaken
//!   foreign id of an item
//!   that lives            ──▶ same payload: the first answer │ other: ForeignIdTaken
//!   ref does not live     ──▶ NoSuchRef
//!   audience not resolved,
//!   or of an author whom
//!   everyone follows      ──▶ NoSuchList, AudienceTooLarge, NarrowedEveryones
//!   none of them          ──▶ item, record, event: in the author's outbox, or for each reader it is addressed to
//! ```
//!
//! No part of an answer changes with edits or a delete, so the first answer can be given again from what is stored.
//! Only a change of the rank gives the item another place in the outbox, which is then in the answer. The delete of an
//! item frees its foreign id, but neither its id nor its idempotency key.

use std::collections::BTreeSet;

use super::plan::{Change, Draft};
use super::rows::{AuthorRow, Door, ItemRow, RetryRow, Rows};
use super::{Decision, all, graph};
use crate::archive::{Audience, Publish, Refused, Written};
use crate::change::{Class, Record, Route, route_of};
use crate::{DisplayKey, ItemId, Millis, Op, OutboxSeq, UserId, UserNo};

/// How long an idempotency key stands for its item, in ms: 24 h.
const RETRY_MS: Millis = 24 * 3600 * 1000;

/// How many ms a rank may be ahead of the clock and still count as a time: 5 minutes.
const AHEAD_MS: Millis = 5 * 60 * 1000;

/// The greatest version number of an item. Further edits keep it.
pub(super) const VERSION_MAX: u32 = i32::MAX.cast_unsigned();

/// Decides what becomes of a [`Write::Publish`](crate::archive::Write::Publish).
pub(super) fn publish<'a>(draft: &mut Draft<'_, 'a>, wanted: &'a Publish, fingerprint: [u8; 16]) -> Decision<Written> {
    if let Some(id) = earlier(draft.rows, draft.now, wanted, fingerprint)? {
        let row = draft.rows.item_of_key(id)?;
        remember(draft, row.author, wanted, RetryRow { item: id, fingerprint, expires: 0 })?;
        return Ok(earlier_answer(id, row));
    }
    if let Some(original) = wanted.repost_of
        && !draft.rows.item(original)?.is_some_and(|row| row.living)
    {
        return Err(Refused::NoSuchRef(original).into());
    }
    let (author, id) = named(draft.rows, wanted, &wanted.mentions)?;
    remember(draft, author, wanted, RetryRow { item: id, fingerprint, expires: 0 })?;
    let item = add(draft, (author, id), wanted, (1, fingerprint))?;
    Ok(made(draft, id, &item))
}

/// The item that an earlier request with one of these keys became; `None` if there was no such request. Refused if the
/// payload is another one.
fn earlier(rows: &Rows, now: Millis, wanted: &Publish, fingerprint: [u8; 16]) -> Decision<Option<ItemId>> {
    if let Some(key) = &wanted.idempotency_key
        && let Some(author) = rows.known(&wanted.author)?
        && let Some(retry) = rows.retry(author, key)?
        && retry.expires > now
    {
        let same = retry.fingerprint == fingerprint;
        return if same { Ok(Some(retry.item)) } else { Err(Refused::KeyReused(key.clone()).into()) };
    }
    if let Some(id) = wanted.id
        && let Some(row) = rows.item(id)?
    {
        let same = row.fingerprint == fingerprint;
        return if same { Ok(Some(id)) } else { Err(Refused::IdTaken(id).into()) };
    }
    if let Some(key) = &wanted.foreign_id
        && let Some(id) = rows.foreign_id(key)?
        && let row = rows.item_of_key(id)?
        && row.living
    {
        let same = row.fingerprint == fingerprint;
        return if same { Ok(Some(id)) } else { Err(Refused::ForeignIdTaken(key.clone(), id).into()) };
    }
    Ok(None)
}

/// The answer to a request that has made this item.
pub(super) fn made(draft: &Draft<'_, '_>, id: ItemId, row: &ItemRow) -> Written {
    let own_edge = draft.changes.iter().any(|change| matches!(change, Change::Edge { .. }));
    answer(id, row, true, own_edge)
}

/// The answer to a request for an item that was there already.
pub(super) fn earlier_answer(id: ItemId, row: &ItemRow) -> Written {
    answer(id, row, false, false)
}

fn answer(id: ItemId, row: &ItemRow, fresh: bool, own_edge: bool) -> Written {
    let readers = row.door.readers().to_vec();
    Written::Published {
        id,
        author: row.author,
        outbox_seq: row.seq,
        published_at: row.published_at,
        readers,
        fresh,
        own_edge,
        told: vec![],
    }
}

/// Lets the idempotency key, if there is one and it is free, stand for the item.
fn remember<'a>(draft: &mut Draft<'_, 'a>, author: UserNo, wanted: &'a Publish, retry: RetryRow) -> Decision<()> {
    if let Some(key) = &wanted.idempotency_key
        && draft.rows.retry(author, key)?.is_none_or(|old| old.expires <= draft.now)
    {
        let retry = RetryRow { expires: draft.now.saturating_add(RETRY_MS), ..retry };
        draft.changes.push(Change::Remember { author, key, retry });
    }
    Ok(())
}

/// The number of the author of a new item, and the item's id: the one that was asked for, or one that the store gives.
/// When this answers, the readers of the item have numbers, and so have the users who may be `told` of it.
pub(super) fn named(rows: &Rows, wanted: &Publish, told: &[UserId]) -> Decision<(UserNo, ItemId)> {
    let readers: &[UserId] = match &wanted.audience {
        Audience::Followers => &[],
        Audience::Users(users) => users,
        Audience::Narrowed(narrowed) => match &narrowed.readers {
            Ok(readers) => readers,
            Err(refused) => return Err(Refused::clone(refused).into()),
        },
    };
    let author = all(std::iter::once(&wanted.author).chain(readers).chain(told).map(|name| rows.number(name)))?[0];
    let id = wanted.id.map_or_else(|| rows.new_id(author), Ok)?;
    Ok((author, id))
}

/// Makes the item, in this version. Named readers get it unless a block is up between them and the author; an imported
/// item goes to all of them.
pub(super) fn add<'a>(
    draft: &mut Draft<'_, 'a>,
    (author, id): (UserNo, ItemId),
    wanted: &'a Publish,
    (version, fingerprint): (u32, [u8; 16]),
) -> Decision<ItemRow> {
    let published_at = wanted.published_at.unwrap_or(draft.now);
    let (key, feed) = (DisplayKey { rank: wanted.rank.unwrap_or(published_at), item: id }, wanted.feed);
    let (seq, door) = match &wanted.audience {
        Audience::Followers => to_followers(draft, author, wanted, key, None)?,
        Audience::Narrowed(_) => to_followers(draft, author, wanted, key, Some(Route::Narrow))?,
        Audience::Users(names) => {
            let readers = reached(draft, author, names)?;
            draft.address(readers.clone(), Op::Add, (author, feed), key)?;
            (0, Door::Direct(readers))
        }
    };
    let version = version.min(VERSION_MAX);
    let (rank, living, repost_of, mentions) = (key.rank, true, wanted.repost_of, wanted.mentions.clone());
    let item =
        ItemRow { author, seq, published_at, rank, version, feed, door, fingerprint, living, repost_of, mentions };
    draft.changes.push(Change::Make { id, item: item.clone(), publish: wanted });
    draft.changes.extend(repost_of.map(|original| Change::Repost { original, id, counts: true }));
    if let Audience::Narrowed(narrowed) = &wanted.audience {
        let readers = numbers(draft.rows, narrowed.readers())?.into_iter().collect();
        draft.changes.push(Change::Narrow { id, readers });
    }
    Ok(item)
}

/// The numbers of these users, each once.
fn numbers(rows: &Rows, names: &[UserId]) -> Decision<BTreeSet<UserNo>> {
    Ok(all(names.iter().map(|name| rows.number(name)))?.into_iter().collect())
}

/// Appends the item's record to the author's outbox. Its route is also that of the item's later records: `narrow` if
/// the item has an audience. A reader who follows without an edge of its own is never pushed to, so an author whom
/// everyone follows has no such item.
fn to_followers(
    draft: &mut Draft<'_, '_>,
    author: UserNo,
    wanted: &Publish,
    key: DisplayKey,
    narrow: Option<Route>,
) -> Decision<(OutboxSeq, Door)> {
    let row = draft.rows.author(author)?;
    if narrow.is_some() && row.class == Class::Everyone {
        return Err(Refused::NarrowedEveryones(wanted.author.clone()).into());
    }
    if row.lacks_own_edge {
        graph::turn_own_edge(draft, author, true)?;
    }
    let route = narrow.unwrap_or_else(|| route_of(row.class, row.followers, draft.policy.pull_above));
    let record = Record { seq: row.head + 1, op: Op::Add, route, feed: wanted.feed, key };
    draft.changes.push(Change::Append { author, record, aside: goes_aside(&row, key, draft.now) });
    Ok((record.seq, Door::Outbox(route)))
}

/// Whether an add goes onto the track aside: it is not newer than the last one in step, or its rank is later than the
/// clock, as that of a pinned item. In step, such a rank would send all later adds aside.
pub(super) fn goes_aside(author: &AuthorRow, key: DisplayKey, now: Millis) -> bool {
    let is_a_time = key.rank <= now.saturating_add(AHEAD_MS);
    !(is_a_time && author.last_in_step.is_none_or(|last| key > last))
}

/// The named readers who get the item, each once.
fn reached(draft: &Draft<'_, '_>, author: UserNo, names: &[UserId]) -> Decision<Vec<UserNo>> {
    let named = numbers(draft.rows, names)?;
    if draft.history {
        return Ok(named.into_iter().collect());
    }
    let edges = all(named.iter().map(|reader| draft.rows.edge((*reader, author))))?;
    let is_open = |(_, edge): &(UserNo, Option<super::EdgeRow>)| !edge.is_some_and(|row| row.shields.blocks());
    Ok(named.into_iter().zip(edges).filter(is_open).map(|(reader, _)| reader).collect())
}
