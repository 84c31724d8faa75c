//! Accepting an item: once, however often it is asked for.
//!
//! ```text
//!   idempotency key known ──▶ same payload: the first answer │ other: KeyReused
//!   id taken              ──▶ same payload: the first answer │ other: IdTaken
//!   foreign id of an item
//!   that lives            ──▶ same payload: the first answer │ other: ForeignIdTaken
//!   none of them          ──▶ a record in the outbox, or one for each who is named; item, event
//! ```
//!
//! Nothing an answer says changes with edits or a delete, so the first answer can be given again from what is stored.
//! The delete of an item frees its foreign id, but neither its id nor its idempotency key.

use std::collections::BTreeSet;

use compact_str::CompactString;
use feedgate_common::archive::{Audience, Publish, Refused, Written};
use feedgate_common::change::Route;
use feedgate_common::{DisplayKey, FeedId, ItemId, Millis, Op, OutboxSeq, UserNo};

use super::Numbers;
use super::ledger::{Author, Change, Door, ItemState, Ledger, Retry};

/// How long an idempotency key stands for its item: 24 h.
pub(super) const RETRY_MS: Millis = 24 * 3600 * 1000;

/// How far ahead of the clock a rank may be and still count as a time.
const AHEAD_MS: Millis = 5 * 60 * 1000;

/// Bits of an id below its milliseconds.
const COUNT_BITS: u32 = 22;

type Answer = std::result::Result<Written, Refused>;

/// `None` if somebody has no number or no lock: the reason it was thought not to need one is gone, start over.
pub(super) fn publish(
    ledger: &mut Ledger,
    numbers: &Numbers,
    wanted: &Publish,
    fingerprint: [u8; 16],
) -> Option<Answer> {
    let author = numbers.get(&wanted.author).copied();
    match earlier(ledger, author, wanted, fingerprint)? {
        Some(Ok(id)) => {
            let row = ledger.items.get(&id)?;
            let answer = answer(id, row, false);
            remember(ledger, row.author, wanted, id, fingerprint);
            Some(Ok(answer))
        }
        Some(Err(refused)) => Some(Err(refused)),
        None => {
            let author = author?;
            let id = id_for(ledger, author, wanted)?;
            remember(ledger, author, wanted, id, fingerprint);
            add(ledger, numbers, (author, id), wanted, (1, fingerprint)).map(Ok)
        }
    }
}

/// The item an earlier request with one of the same keys became, or why this one conflicts with it.
#[allow(clippy::option_option, reason = "the outer one is: start over")]
fn earlier(
    ledger: &Ledger,
    author: Option<UserNo>,
    wanted: &Publish,
    fingerprint: [u8; 16],
) -> Option<Option<std::result::Result<ItemId, Refused>>> {
    if let (Some(key), Some(author)) = (&wanted.idempotency_key, author)
        && let Some(retry) = ledger.retries.get(&(author, key.clone()))
        && retry.expires > ledger.now
    {
        let same = retry.fingerprint == fingerprint;
        return Some(Some(if same { Ok(retry.item) } else { Err(Refused::KeyReused(key.clone())) }));
    }
    if let Some(id) = wanted.id
        && let Some(row) = ledger.items.get(&id)
    {
        return Some(Some(if row.fingerprint == fingerprint { Ok(id) } else { Err(Refused::IdTaken(id)) }));
    }
    if let Some(key) = &wanted.foreign_id
        && let Some(&id) = ledger.foreign_ids.get(key)
        && let row = ledger.items.get(&id)?
        && row.alive
    {
        let same = row.fingerprint == fingerprint;
        return Some(Some(if same { Ok(id) } else { Err(Refused::ForeignIdTaken(key.clone(), id)) }));
    }
    Some(None)
}

pub(super) fn answer(id: ItemId, row: &ItemState, fresh: bool) -> Written {
    let readers = row.door.readers().to_vec();
    Written::Published { id, author: row.author, outbox_seq: row.seq, published_at: row.published_at, readers, fresh }
}

/// Lets the idempotency key, if there is one and it is free, stand for the item.
fn remember(ledger: &mut Ledger, author: UserNo, wanted: &Publish, item: ItemId, fingerprint: [u8; 16]) {
    let Some(key) = &wanted.idempotency_key else { return };
    let key = (author, key.clone());
    if ledger.retries.get(&key).is_none_or(|old| old.expires <= ledger.now) {
        let expires = ledger.now.saturating_add(RETRY_MS);
        ledger.retries.insert(key, Retry { item, fingerprint, expires, changed: true });
    }
}

/// Makes the item, in this version. Named readers get it if they are in no block with the author, or if it is history.
pub(super) fn add(
    ledger: &mut Ledger,
    numbers: &Numbers,
    (author, id): (UserNo, ItemId),
    wanted: &Publish,
    (version, fingerprint): (u32, [u8; 16]),
) -> Option<Written> {
    let published_at = wanted.published_at.unwrap_or(ledger.now);
    let (key, feed) = (DisplayKey { rank: wanted.rank.unwrap_or(published_at), item: id }, wanted.feed);
    let (seq, door) = match &wanted.audience {
        Audience::Followers => {
            let route = ledger.route(author)?;
            (append(ledger, author, key, (route, feed))?, Door::Outbox(route))
        }
        Audience::Users(users) => {
            let named: Option<BTreeSet<UserNo>> = users.iter().map(|user| numbers.get(user).copied()).collect();
            let blocked = |reader| ledger.edges.get(&(reader, author)).is_some_and(|held| held.shields.blocks());
            let readers: Vec<UserNo> =
                named?.into_iter().filter(|&reader| ledger.history || !blocked(reader)).collect();
            ledger.address(&readers, Op::Add, (author, feed), key)?;
            (0, Door::Direct(readers))
        }
    };
    if let Some(foreign_id) = &wanted.foreign_id {
        take_foreign_id(ledger, foreign_id, id);
    }
    let row = ItemState {
        author,
        seq,
        published_at,
        rank: key.rank,
        version: version.min(i32::MAX as u32),
        feed,
        door,
        fingerprint,
        kind: wanted.kind.clone(),
        foreign_id: wanted.foreign_id.clone(),
        alive: true,
        body: Some(wanted.body.get().to_owned()),
        change: Change::Made,
    };
    let answer = answer(id, &row, true);
    ledger.items.insert(id, row);
    Some(answer)
}

/// Gives the item the key, which a deleted one may still have.
fn take_foreign_id(ledger: &mut Ledger, key: &CompactString, id: ItemId) {
    let before = ledger.foreign_ids.insert(key.clone(), id);
    if let Some((before, row)) = before.and_then(|before| Some((before, ledger.items.get_mut(&before)?))) {
        row.foreign_id = None;
        if row.change != Change::Made {
            ledger.freed.push(before);
        }
    }
}

/// The add, in its lane.
fn append(ledger: &mut Ledger, author: UserNo, key: DisplayKey, door: (Route, FeedId)) -> Option<OutboxSeq> {
    let seq = ledger.append(author, Op::Add, door, key)?;
    let aside = goes_aside(ledger.authors.get_mut(&author)?, key, ledger.now);
    ledger.appended.last_mut()?.aside = aside;
    Some(seq)
}

/// In step if it is newer than the last one there. A rank beyond the clock, such as that of a pinned item, goes aside,
/// or everything after it would have to.
fn goes_aside(author: &mut Author, key: DisplayKey, now: Millis) -> bool {
    let is_a_time = key.rank <= now.saturating_add(AHEAD_MS);
    if is_a_time && author.last_in_step.is_none_or(|last| key > last) {
        author.last_in_step = Some(key);
        false
    } else {
        author.has_aside = true;
        true
    }
}

/// The id that was asked for, or a new one.
pub(super) fn id_for(ledger: &mut Ledger, author: UserNo, wanted: &Publish) -> Option<ItemId> {
    wanted.id.map_or_else(|| new_id(ledger, author), Some)
}

/// An id greater than every one given to this author before, ordered by time: 42 bits of milliseconds, 22 of chance
/// and count. Two authors that draw the same one are told apart by the unique key of items: the loser draws again.
fn new_id(ledger: &mut Ledger, author: UserNo) -> Option<ItemId> {
    let row = ledger.authors.get_mut(&author)?;
    ledger.changed_authors.entry(author).or_default();
    let by_clock = ledger.now.max(0).cast_unsigned().min((1 << 42) - 1) << COUNT_BITS;
    loop {
        let id = match row.last_given {
            Some(last) if last.0 >= by_clock => last.0.checked_add(1 + u64::from(chance() % 64))?,
            // The upper half of the millisecond is for those that follow.
            _ => by_clock + u64::from(chance() % (1 << (COUNT_BITS - 1))),
        };
        row.last_given = Some(ItemId(id));
        if !ledger.items.contains_key(&ItemId(id)) {
            return Some(ItemId(id));
        }
    }
}

fn chance() -> u32 {
    getrandom::u32().expect("the system has randomness")
}
