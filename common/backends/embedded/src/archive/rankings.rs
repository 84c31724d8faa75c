//! Rankings of readers. A change of one is a record addressed to the reader.
//!
//! Invariants:
//! - `RankedIn` has a row for each item in a ranking, and `DirectShown` and `Directs` have its place and its add.
//! - A feed that had kinds before may show an item by itself at the place at which its ranking has the item. They share
//!   a row of `DirectShown`, which stays as long as one of them stands.
//! - An edit or a delete of an item in a ranking leaves a row in `RankingDue` until all rankings have heard of it.
//! - Once nothing that is addressed to a reader is outstanding, all inboxes have it or are built later. So the next
//!   ranking of a feed removes the records of earlier ones, except the adds that no delete has ended.

use std::ops::Bound::{Excluded, Included};

use async_trait::async_trait;
use feedgate_common::archive::Rankings;
use feedgate_common::around::Terms;
use feedgate_common::error::Result;
use feedgate_common::ranking::{NoSuchItem, RANKING_MAX, Ranked, Renewed, changes};
use feedgate_common::{DirectSeq, DisplayKey, FeedId, InboxKey, ItemId, Millis, Op, StoreError, UserNo};

use super::EmbeddedArchive;
use super::ledger::Ledger;
use super::people;
use super::tables::{
    DirectRow, DirectShown, Directs, ItemRow, Items, Life, RankedIn, RankedOver, RankedRow, RankingDue, Recipients,
};
use crate::request::Durability;
use crate::view::{Read, Tx};

/// The most records that one ranking removes: more than two rankings in a row leave.
const TRIM_MAX: usize = 8 * RANKING_MAX;

/// The place before all rankings of an item.
const START: InboxKey = InboxKey { reader: UserNo(0), feed: FeedId(0) };

/// The place behind all rankings of an item.
const END: InboxKey = InboxKey { reader: UserNo(u32::MAX), feed: FeedId(u16::MAX) };

#[async_trait]
impl Rankings for EmbeddedArchive {
    async fn rank(
        &self,
        key: InboxKey,
        ranking: &[DisplayKey],
        now: Millis,
    ) -> Result<std::result::Result<Ranked, NoSuchItem>> {
        let (users, setup, ranking) = (self.users.clone(), self.setup, ranking.to_vec());
        let rank = move |tx: &mut Tx<'_>| {
            let mut ledger = Ledger::open(tx, &users, setup, now)?;
            let ranked = self::rank(&mut ledger, key, &ranking)?;
            ledger.close();
            Ok(ranked)
        };
        self.db.write(Durability::Synced, rank).await
    }

    async fn ranking(&self, key: InboxKey) -> Result<Vec<DisplayKey>> {
        let view = self.db.view()?;
        let mut living = vec![];
        for (place, _) in stored(&*view, key)?.into_iter().rev() {
            if self::living(&*view, place.item)?.is_some() {
                living.push(place);
            }
        }
        Ok(living)
    }

    async fn ranked(&self, asked: &[(UserNo, ItemId)]) -> Result<Vec<((UserNo, ItemId), Terms)>> {
        let view = self.db.view()?;
        let mut found = vec![];
        for &(reader, item) in asked {
            if let Some(author) = ranked_author(&*view, reader, item)? {
                found.push(((reader, item), people::terms(&*view, reader, author)?));
            }
        }
        Ok(found)
    }

    async fn renew_rankings(&self, now: Millis, limit: usize) -> Result<Renewed> {
        if self.db.view()?.scan::<RankingDue>(..).next().transpose()?.is_none() {
            return Ok(Renewed::default());
        }
        let (users, setup) = (self.users.clone(), self.setup);
        let renew = move |tx: &mut Tx<'_>| {
            let mut ledger = Ledger::open(tx, &users, setup, now)?;
            let renewed = self::renew(&mut ledger, limit)?;
            ledger.close();
            Ok(renewed)
        };
        self.db.write(Durability::Synced, renew).await
    }
}

/// Notes that an item was edited or deleted, so that the change is brought to the rankings that hold the item.
pub(super) fn changed(tx: &mut Tx<'_>, item: ItemId) -> Result<()> {
    if tx.scan::<RankedIn>((item, START)..=(item, END)).next().transpose()?.is_some() {
        tx.put::<RankingDue>(&item, &START);
    }
    Ok(())
}

/// What is addressed to a reader by this record stands in no ranking any more, because all of it is erased.
pub(super) fn erase(tx: &mut Tx<'_>, (reader, seq): (UserNo, DirectSeq), row: &DirectRow) -> Result<()> {
    let key = InboxKey { reader, feed: row.feed };
    tx.remove::<RankedOver>(&(key, seq));
    let place = (row.key.item, key);
    if tx.get::<RankedIn>(&place)?.is_some_and(|ranked| ranked.seq == seq) {
        tx.remove::<RankedIn>(&place);
    }
    Ok(())
}

/// The author of an item that stands in a ranking of the reader; `None` if it stands in none.
fn ranked_author(from: &impl Read, reader: UserNo, item: ItemId) -> Result<Option<UserNo>> {
    let key = |feed| (item, InboxKey { reader, feed });
    let place = from.scan::<RankedIn>(key(FeedId(0))..=key(FeedId(u16::MAX))).next().transpose()?;
    let Some((_, RankedRow { seq, .. })) = place else { return Ok(None) };
    Ok(from.get::<Directs>(&(reader, seq))?.map(|add| add.author))
}

fn living(from: &impl Read, item: ItemId) -> Result<Option<ItemRow>> {
    Ok(from.get::<Items>(&item)?.filter(|row| row.life != Life::Gone))
}

/// The stored ranking in display order, the least first, each with the number of its add.
fn stored(from: &impl Read, key: InboxKey) -> Result<Vec<(DisplayKey, DirectSeq)>> {
    let mut found = vec![];
    for row in from.scan::<DirectShown>((key, DisplayKey::LEAST)..=(key, DisplayKey::GREATEST)) {
        let ((_, place), _) = row?;
        // A feed that had kinds before may hold items that are addressed to the reader by themselves.
        if let Some(ranked) = from.get::<RankedIn>(&(place.item, key))?.filter(|ranked| ranked.rank == place.rank) {
            found.push((place, ranked.seq));
        }
    }
    Ok(found)
}

fn rank(
    ledger: &mut Ledger<'_, '_>,
    key: InboxKey,
    ranking: &[DisplayKey],
) -> Result<std::result::Result<Ranked, NoSuchItem>> {
    for (nth, place) in ranking.iter().enumerate() {
        if living(&*ledger.tx, place.item)?.is_none() {
            return Ok(Err(NoSuchItem { nth, item: place.item }));
        }
    }
    let before: Vec<DisplayKey> = stored(&*ledger.tx, key)?.into_iter().map(|(place, _)| place).collect();
    let (ranked, changes) = changes(&before, ranking);
    if ranked.is_change() {
        trim(ledger, key)?;
    }
    for (op, place) in changes {
        change(ledger, key, op, place)?;
    }
    Ok(Ok(ranked))
}

/// Removes records of a ranking that are of no use any more, if all inboxes have them.
fn trim(ledger: &mut Ledger<'_, '_>, key: InboxKey) -> Result<()> {
    if ledger.direct_head(key.reader)?.due.is_some() {
        return Ok(());
    }
    let over = ledger.tx.scan::<RankedOver>((key, 0)..=(key, DirectSeq::MAX)).take(TRIM_MAX);
    for row in over.collect::<Result<Vec<_>>>()? {
        let ((_, seq), ()) = row;
        ledger.tx.remove::<RankedOver>(&(key, seq));
        ledger.tx.remove::<Directs>(&(key.reader, seq));
    }
    Ok(())
}

/// Addresses a change of a ranking to its reader, and keeps where the item stands now.
fn change(ledger: &mut Ledger<'_, '_>, key: InboxKey, op: Op, place: DisplayKey) -> Result<()> {
    let item = ledger.tx.get::<Items>(&place.item)?;
    let item = item.ok_or_else(|| StoreError::corrupt(format_args!("item {} is ranked and has no row", place.item)))?;
    let record = DirectRow { op, author: item.author, feed: key.feed, key: place, at: ledger.now };
    let seq = ledger.address(key.reader, &record, false)?;
    let ranked = (place.item, key);
    if op == Op::Add {
        ledger.tx.put::<RankedIn>(&ranked, &RankedRow { rank: place.rank, seq });
        ledger.tx.put::<DirectShown>(&(key, place), &item.author);
        return Ok(());
    }
    ledger.tx.put::<RankedOver>(&(key, seq), &());
    if op == Op::Delete {
        if let Some(add) = ledger.tx.get::<RankedIn>(&ranked)? {
            ledger.tx.put::<RankedOver>(&(key, add.seq), &());
        }
        ledger.tx.remove::<RankedIn>(&ranked);
        if !is_addressed(&*ledger.tx, key, place, &item)? {
            ledger.tx.remove::<DirectShown>(&(key, place));
        }
    }
    Ok(())
}

/// Whether the item stands at this place of the reader's feed because it is addressed to the reader by itself.
fn is_addressed(from: &impl Read, key: InboxKey, place: DisplayKey, item: &ItemRow) -> Result<bool> {
    let is_here = item.feed == key.feed && matches!(item.life, Life::Living { rank, .. } if rank == place.rank);
    Ok(is_here && from.has::<Recipients>(&(place.item, key.reader))?)
}

/// Whether the item stands at this place of a ranking.
pub(super) fn is_ranked(from: &impl Read, key: InboxKey, place: DisplayKey) -> Result<bool> {
    Ok(from.get::<RankedIn>(&(place.item, key))?.is_some_and(|ranked| ranked.rank == place.rank))
}

/// Brings the edit or the delete of one item to some rankings that hold it.
fn renew(ledger: &mut Ledger<'_, '_>, limit: usize) -> Result<Renewed> {
    let Some((item, after)) = ledger.tx.scan::<RankingDue>(..).next().transpose()? else {
        return Ok(Renewed::default());
    };
    let op = if living(&*ledger.tx, item)?.is_some() { Op::Update } else { Op::Delete };
    let from = if after == START { Included((item, START)) } else { Excluded((item, after)) };
    let some: Vec<_> = ledger.tx.scan::<RankedIn>((from, Included((item, END)))).take(limit).collect::<Result<_>>()?;
    for ((_, key), row) in &some {
        change(ledger, *key, op, DisplayKey { rank: row.rank, item })?;
    }
    match some.last() {
        Some(((_, last), _)) if some.len() == limit => ledger.tx.put::<RankingDue>(&item, last),
        _ => ledger.tx.remove::<RankingDue>(&item),
    }
    let more = ledger.tx.scan::<RankingDue>(..).next().transpose()?.is_some();
    let mut readers: Vec<UserNo> = some.iter().map(|((_, key), _)| key.reader).collect();
    readers.dedup();
    Ok(Renewed { readers, more })
}
