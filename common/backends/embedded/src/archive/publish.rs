//! Accepting an item: once, however often it is asked for.
//!
//! ```text
//!   idempotency key known ──▶ same payload: the first answer │ other: KeyReused
//!   id taken              ──▶ same payload: the first answer │ other: IdTaken
//!   foreign id of an item
//!   that lives            ──▶ same payload: the first answer │ other: ForeignIdTaken
//!   none of them          ──▶ item, record, event: in the author's outbox, or for each reader it is addressed to
//! ```
//!
//! Nothing an answer says changes with edits or a delete, so the first answer can be given again
//! from what is stored. The delete of an item frees its foreign id, but neither its id nor its idempotency key.

use feedgate_common::archive::{Audience, Publish, Refused, Written};
use feedgate_common::change::route_of;
use feedgate_common::error::Result;
use feedgate_common::{DisplayKey, ItemId, Millis, Op, OutboxSeq, StoreError, UserNo};

use super::accept::Outcome;
use super::direct;
use super::ledger::{Change, Ledger, Place};
use super::tables::{
    AddRow, Adds, AuthorFeed, AuthorRow, Expiries, Fingerprint, ForeignIds, ItemRow, Items, Lane, Life, Retries,
    RetryRow, Shown, ShownRow,
};
use crate::view::Read;

/// How long an idempotency key stands for its item: 24 h.
pub(super) const RETRY_MS: i64 = 24 * 3600 * 1000;

/// How far ahead of the clock a rank may be and still count as a time (see [`Lane`]).
const AHEAD_MS: i64 = 5 * 60 * 1000;

pub(super) fn publish(ledger: &mut Ledger<'_, '_>, wanted: Publish, fingerprint: Fingerprint) -> Outcome {
    match earlier(ledger, &wanted, fingerprint)? {
        Some(Ok((id, row))) => {
            remember(ledger, row.author, &wanted, id, fingerprint)?;
            Ok(Ok(answer(ledger, id, &row, false)?))
        }
        Some(Err(refused)) => Ok(Err(refused)),
        None => {
            let author = ledger.intern(&wanted.author)?;
            let id = wanted.id.map_or_else(|| ledger.new_item_id(), Ok)?;
            remember(ledger, author, &wanted, id, fingerprint)?;
            let row = add(ledger, (author, id), wanted, (1, fingerprint))?;
            Ok(Ok(answer(ledger, id, &row, true)?))
        }
    }
}

/// The item an earlier request with one of the same keys became, or why this one conflicts with it.
fn earlier(
    ledger: &Ledger<'_, '_>,
    wanted: &Publish,
    fingerprint: Fingerprint,
) -> Result<Option<std::result::Result<(ItemId, ItemRow), Refused>>> {
    if let Some(key) = &wanted.idempotency_key
        && let Some(author) = ledger.known(&wanted.author)?
        && let Some(retry) = ledger.tx.get::<Retries>(&(author, key.clone()))?
        && retry.expires > ledger.now
    {
        if retry.fingerprint != fingerprint {
            return Ok(Some(Err(Refused::KeyReused(key.clone()))));
        }
        return Ok(Some(Ok((retry.item, item(ledger, retry.item)?))));
    }
    if let Some(id) = wanted.id
        && let Some(row) = ledger.tx.get::<Items>(&id)?
    {
        let same = row.fingerprint == fingerprint;
        return Ok(Some(if same { Ok((id, row)) } else { Err(Refused::IdTaken(id)) }));
    }
    if let Some(key) = &wanted.foreign_id
        && let Some(id) = ledger.tx.get::<ForeignIds>(key)?
        && let row = item(ledger, id)?
        && row.life != Life::Gone
    {
        let same = row.fingerprint == fingerprint;
        return Ok(Some(if same { Ok((id, row)) } else { Err(Refused::ForeignIdTaken(key.clone(), id)) }));
    }
    Ok(None)
}

pub(super) fn item(ledger: &Ledger<'_, '_>, id: ItemId) -> Result<ItemRow> {
    let row = ledger.tx.get::<Items>(&id)?;
    row.ok_or_else(|| StoreError::corrupt(format_args!("item {id} has keys but no row")))
}

pub(super) fn answer(ledger: &Ledger<'_, '_>, id: ItemId, row: &ItemRow, fresh: bool) -> Result<Written> {
    let readers = direct::readers(ledger, id, row)?;
    let ItemRow { author, seq, published_at, .. } = *row;
    Ok(Written::Published { id, author, outbox_seq: seq, published_at, readers, fresh })
}

/// Lets the idempotency key, if there is one and it is free, stand for the item.
fn remember(
    ledger: &mut Ledger<'_, '_>,
    author: UserNo,
    wanted: &Publish,
    item: ItemId,
    fingerprint: Fingerprint,
) -> Result<()> {
    let Some(key) = &wanted.idempotency_key else { return Ok(()) };
    let key = (author, key.clone());
    if let Some(old) = ledger.tx.get::<Retries>(&key)? {
        if old.expires > ledger.now {
            return Ok(());
        }
        ledger.tx.remove::<Expiries>(&(old.expires, key.0, key.1.clone()));
    }
    let expires = ledger.now.saturating_add(RETRY_MS);
    ledger.tx.put::<Retries>(&key, &RetryRow { item, fingerprint, expires });
    ledger.tx.put::<Expiries>(&(expires, key.0, key.1), &());
    Ok(())
}

/// Writes an item that is there in this version.
pub(super) fn add(
    ledger: &mut Ledger<'_, '_>,
    (author, id): (UserNo, ItemId),
    wanted: Publish,
    (version, fingerprint): (u32, Fingerprint),
) -> Result<ItemRow> {
    let published_at = wanted.published_at.unwrap_or(ledger.now);
    let key = DisplayKey { rank: wanted.rank.unwrap_or(published_at), item: id };
    let change = Change { op: Op::Add, author, feed: wanted.feed, key };
    let seq = match &wanted.audience {
        Audience::Followers => to_followers(ledger, change)?,
        Audience::Users(names) => direct::address(ledger, names, change).map(|()| direct::NO_SEQ)?,
    };
    if let Some(foreign_id) = &wanted.foreign_id {
        ledger.tx.put::<ForeignIds>(foreign_id, &id);
    }
    let life = Life::Living {
        version,
        rank: key.rank,
        kind: wanted.kind,
        foreign_id: wanted.foreign_id,
        body: wanted.body.get().to_owned(),
    };
    let row = ItemRow { author, seq, published_at, fingerprint, feed: wanted.feed, life };
    ledger.tx.put::<Items>(&id, &row);
    ledger.counters.living_items += 1;
    Ok(row)
}

/// Its record in the author's outbox, by the route it takes from now on; where that stands.
fn to_followers(ledger: &mut Ledger<'_, '_>, change: Change) -> Result<OutboxSeq> {
    let Change { author, feed, key, .. } = change;
    let mut row = ledger.author(author)?;
    let lane = take_lane(&mut row, key, ledger.now);
    let route = route_of(row.class, row.followers, ledger.setup.pull_above);
    let Place { seq, pull_seq } = ledger.append(row, route, change);
    let list = AuthorFeed { feed, author };
    ledger.tx.put::<Adds>(&(list, seq), &AddRow { key, route, lane, deleted_by: None, pull_seq });
    ledger.tx.put::<Shown>(&(list, lane, key), &ShownRow { seq, route });
    Ok(seq)
}

/// In step if it is newer than the last one there. A rank beyond the clock, such as that of a
/// pinned item, goes aside, or everything after it would have to.
fn take_lane(author: &mut AuthorRow, key: DisplayKey, now: Millis) -> Lane {
    let is_a_time = key.rank <= now.saturating_add(AHEAD_MS);
    if is_a_time && author.last_in_step.is_none_or(|last| key > last) {
        author.last_in_step = Some(key);
        Lane::InStep
    } else {
        author.has_aside = true;
        Lane::Aside
    }
}
