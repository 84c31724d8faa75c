//! Accepting an item: once, however often it is asked for.
//!
//! ```text
//!   idempotency key known ──▶ same payload: the first answer │ other: KeyReused
//!   id taken              ──▶ same payload: the first answer │ other: IdTaken
//!   foreign id taken      ──▶ same payload: the first answer │ other: ForeignIdTaken
//!   none of them          ──▶ record, item, event
//! ```
//!
//! Nothing an answer says changes with edits or a delete, so the first answer can be given again
//! from what is stored.

use feedgate_common::archive::{Publish, Refused, Written};
use feedgate_common::error::Result;
use feedgate_common::{DisplayKey, ItemId, Millis, Op, StoreError, UserNo};

use super::accept::Outcome;
use super::ledger::Ledger;
use super::tables::{
    AddRow, Adds, AuthorRow, Expiries, Fingerprint, ForeignIds, ItemRow, Items, Lane, Life, Retries, RetryRow, Shown,
    ShownRow,
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
            Ok(Ok(answer(id, &row, false)))
        }
        Some(Err(refused)) => Ok(Err(refused)),
        None => {
            let author = ledger.intern(&wanted.author)?;
            let id = wanted.id.map_or_else(|| ledger.new_item_id(), Ok)?;
            remember(ledger, author, &wanted, id, fingerprint)?;
            let row = add(ledger, author, id, wanted, fingerprint)?;
            Ok(Ok(answer(id, &row, true)))
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
    {
        let row = item(ledger, id)?;
        let same = row.fingerprint == fingerprint;
        return Ok(Some(if same { Ok((id, row)) } else { Err(Refused::ForeignIdTaken(key.clone(), id)) }));
    }
    Ok(None)
}

fn item(ledger: &Ledger<'_, '_>, id: ItemId) -> Result<ItemRow> {
    let row = ledger.tx.get::<Items>(&id)?;
    row.ok_or_else(|| StoreError::corrupt(format_args!("item {id} has keys but no row")))
}

fn answer(id: ItemId, row: &ItemRow, fresh: bool) -> Written {
    Written::Published {
        id,
        author: row.author,
        outbox_seq: row.seq,
        published_at: row.published_at,
        readers: vec![],
        fresh,
    }
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

/// The route that every add gets.
const DEFAULT_ROUTE: feedgate_common::change::Route = feedgate_common::change::Route::Push;

fn add(
    ledger: &mut Ledger<'_, '_>,
    author: UserNo,
    id: ItemId,
    wanted: Publish,
    fingerprint: Fingerprint,
) -> Result<ItemRow> {
    let published_at = wanted.published_at.unwrap_or(ledger.now);
    let key = DisplayKey { rank: wanted.rank.unwrap_or(published_at), item: id };
    let mut author_row = ledger.author(author)?;
    let lane = take_lane(&mut author_row, key, ledger.now);
    let seq = ledger.append(author, author_row, (Op::Add, DEFAULT_ROUTE, key));
    ledger.tx.put::<Adds>(&(author, seq), &AddRow { key, route: DEFAULT_ROUTE, lane, deleted_by: None });
    ledger.tx.put::<Shown>(&(author, lane, key), &ShownRow { seq, route: DEFAULT_ROUTE });
    if let Some(foreign_id) = &wanted.foreign_id {
        ledger.tx.put::<ForeignIds>(foreign_id, &id);
    }
    let life = Life::Living {
        version: 1,
        rank: key.rank,
        kind: wanted.kind,
        foreign_id: wanted.foreign_id,
        body: wanted.body.get().to_owned(),
    };
    let row = ItemRow { author, seq, published_at, fingerprint, life };
    ledger.tx.put::<Items>(&id, &row);
    ledger.counters.living_items += 1;
    Ok(row)
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
