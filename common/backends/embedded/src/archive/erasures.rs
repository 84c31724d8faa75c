//! Erasures of users: their rows, the walks through the stored rows of one user, and the removal of rows for which
//! there is no write. Each change is one operation of the only writer.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};

use async_trait::async_trait;
use compact_str::CompactString;
use feedgate_common::archive::{Erasures, Remains};
use feedgate_common::around::ReactionKind;
use feedgate_common::erase::{Erasure, Mark, Removed, Stage, State, TRACES_LOOKED_AT, TRACES_MAX, Trace, Traces};
use feedgate_common::error::Result;
use feedgate_common::graph::Shield;
use feedgate_common::notify::KEY_PREFIX;
use feedgate_common::{FeedId, InboxKey, ItemId, Millis, Op, StoreError, UserNo};

use super::EmbeddedArchive;
use super::audiences;
use super::events;
use super::lines;
use super::persons;
use super::pins;
use super::push;
use super::rankings;
use super::revocations;
use super::tables::{
    self, AudienceRow, Audiences, CommentKeys, Comments, DirectShown, Directs, ErasureRow, Expiries, ForeignIds, Items,
    Life, Members, NOBODY, OpenErasures, People, PushDead, PushDevices, PushNotices, Recipients, Retries, ShieldsUp,
    Sights, Talks, Tallies, lives,
};
use crate::codec::Short;
use crate::request::{Durability, Request};
use crate::table::Table;
use crate::view::{Read, Tx, View};

#[async_trait]
impl Erasures for EmbeddedArchive {
    async fn begin_erasure(&self, user: UserNo, now: Millis) -> Result<Erasure> {
        self.db.write(Durability::Synced, move |tx| begin(tx, user, now)).await
    }

    async fn erasure(&self, id: u64) -> Result<Option<Erasure>> {
        erasure(&*self.db.view()?, id)
    }

    async fn open_erasures(&self, after: u64, limit: usize) -> Result<Vec<Erasure>> {
        let view = self.db.view()?;
        let mut ids = view.scan::<OpenErasures>(..).map(|row| Ok(row?.1)).collect::<Result<Vec<u64>>>()?;
        ids.sort_unstable();
        let open = ids.into_iter().filter(|id| *id > after).take(limit).map(|id| erasure(&*view, id));
        open.filter_map(Result::transpose).collect()
    }

    async fn move_erasure(&self, id: u64, before: &State, now: &State) -> Result<bool> {
        let (before, now) = (before.clone(), now.clone());
        self.db.write(Durability::Synced, move |tx| go_on(tx, id, &before, &now)).await
    }

    async fn traces(&self, user: UserNo, of: Stage, after: Option<&Mark>) -> Result<Traces> {
        let after = after.cloned();
        self.db.read(move |view| traces(view, user, of, after.as_ref())).await
    }

    async fn scrub(&self, user: UserNo, remains: &Remains) -> Result<()> {
        let remains = remains.clone();
        self.db.write(Durability::Synced, move |tx| scrub(tx, user, &remains)).await
    }

    async fn rest(&self, user: UserNo, after: u64, limit: usize) -> Result<(Removed, Option<u64>)> {
        self.db.read(move |view| rest(view, user, after, limit)).await
    }

    async fn forget_addressed(&self, user: UserNo, upto: u64) -> Result<()> {
        self.db.write(Durability::Synced, move |tx| forget_addressed(tx, user, upto, usize::MAX).map(drop)).await
    }

    async fn forget_rest(&self, user: UserNo, limit: usize) -> Result<bool> {
        let (from, listeners, search) = (self.due_from.clone(), self.listeners.clone(), self.any_search.clone());
        let forget = Request::new(Durability::Synced, move |tx| {
            push::forget_all(tx, &from, user)?;
            persons::remove(tx, &search, user)?;
            pins::forget(tx, user);
            forget_rest(tx, user, limit)
        });
        self.db.submit(forget.then(move |_: &bool| listeners.set(user, false))).await
    }
}

fn erasure(from: &impl Read, id: u64) -> Result<Option<Erasure>> {
    let Some(ErasureRow { user, accepted_at, state }) = from.get::<tables::Erasures>(&id)? else { return Ok(None) };
    let damaged = |why| StoreError::corrupt(format_args!("the state of erasure {id}: {why}"));
    let state = State::stored(&state).map_err(damaged)?;
    Ok(Some(Erasure { id, user, accepted_at, state }))
}

fn begin(tx: &mut Tx<'_>, user: UserNo, now: Millis) -> Result<Erasure> {
    // Tokens that were issued in the same millisecond are refused too.
    revocations::revoke(tx, user, now.saturating_add(1))?;
    if let Some(open) = tx.get::<OpenErasures>(&user)?
        && let Some(erasure) = erasure(tx, open)?
    {
        return Ok(erasure);
    }
    let newest = tx.scan::<tables::Erasures>(..).next_back().transpose()?;
    let id = newest.map_or(0, |(id, _)| id) + 1;
    let state = State::default();
    tx.put::<tables::Erasures>(&id, &ErasureRow { user, accepted_at: now, state: state.text() });
    tx.put::<OpenErasures>(&user, &id);
    Ok(Erasure { id, user, accepted_at: now, state })
}

fn go_on(tx: &mut Tx<'_>, id: u64, before: &State, now: &State) -> Result<bool> {
    let Some(row) = tx.get::<tables::Erasures>(&id)? else { return Ok(false) };
    if row.state != before.text() {
        return Ok(false);
    }
    if now.is_finished() {
        tx.remove::<OpenErasures>(&row.user);
    }
    tx.put::<tables::Erasures>(&id, &ErasureRow { state: now.text(), ..row });
    Ok(true)
}

fn traces(view: &View, user: UserNo, of: Stage, after: Option<&Mark>) -> Result<Traces> {
    match of {
        Stage::Lines => members(view, user, after),
        Stage::Direct => direct(view, user, after),
        Stage::Notifications => notifications(view, user, after),
        Stage::ForeignIds => foreign_ids(view, user, after),
        Stage::Comments => comments(view, user, after),
        Stage::Reactions => reactions(view, user, after),
        Stage::Shielded => shielded(view, user, after),
        Stage::Audiences => of_audiences(view, user, after),
        _ => Ok(Traces::default()),
    }
}

/// Walks through the rows of a table behind `after`. `mark` gives the place of a row, and `trace` the trace of the user
/// in the row, if there is one.
fn walk<T: Table>(
    rows: impl Iterator<Item = Result<(T::Key, T::Row)>>,
    mark: impl Fn(&T::Key) -> Mark,
    mut trace: impl FnMut(&T::Key, T::Row) -> Result<Option<Trace>>,
) -> Result<Traces> {
    let mut traces = Traces::default();
    for (nth, row) in rows.enumerate() {
        let (key, row) = row?;
        let at = mark(&key);
        if let Some(trace) = trace(&key, row)? {
            traces.found.push((at.clone(), trace));
        }
        if traces.found.len() >= TRACES_MAX || nth + 1 >= TRACES_LOOKED_AT {
            traces.next = Some(at);
            break;
        }
    }
    Ok(traces)
}

/// The numbers of the row behind which a walk goes on.
fn numbers(after: Option<&Mark>) -> Result<Option<[u64; 3]>> {
    let numbers = |mark: &Mark| {
        mark.numbers().ok_or_else(|| StoreError::corrupt(format_args!("an erasure stands at {:?}", mark.0)))
    };
    after.map(numbers).transpose()
}

fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A time as an unsigned number with the same order.
fn ordered(at: Millis) -> u64 {
    at.cast_unsigned() ^ (1 << 63)
}

fn members(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let from = numbers(after)?.map_or(Unbounded, |[line, seq, _]| Excluded((ItemId(line), seq)));
    walk::<Members>(
        view.scan::<Members>((from, Unbounded)),
        |(line, seq)| Mark::of([line.0, *seq, 0]),
        |_, row| Ok((row.actor == user).then_some(Trace::Member(row.key.0))),
    )
}

fn direct(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let from = numbers(after)?.map_or(Unbounded, |[item, reader, _]| Excluded((ItemId(item), UserNo(narrow(reader)))));
    let mut last = None;
    walk::<Recipients>(
        view.scan::<Recipients>((from, Unbounded)),
        |(item, reader)| Mark::of([item.0, reader.0.into(), 0]),
        |(item, _), author| {
            if author != user || last.replace(*item) == Some(*item) {
                return Ok(None);
            }
            Ok(Some(Trace::Item { id: *item, lives: lives(view, *item)?, direct: true }))
        },
    )
}

fn notifications(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let first = numbers(after)?.map_or(0, |[seq, ..]| seq.saturating_add(1));
    walk::<Directs>(
        view.scan::<Directs>((user, first)..=(user, u64::MAX)),
        |(_, seq)| Mark::of([*seq, 0, 0]),
        |_, record| {
            if record.op != Op::Add {
                return Ok(None);
            }
            let row = view.get::<Items>(&record.key.item)?;
            let tells = row.is_some_and(|row| match row.life {
                Life::Living { foreign_id, .. } => foreign_id.is_some_and(|key| key.starts_with(KEY_PREFIX)),
                Life::Gone => false,
            });
            Ok(tells.then_some(Trace::Notification(record.key.item)))
        },
    )
}

fn foreign_ids(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let from = after.map_or(Unbounded, |mark| Excluded(mark.0.clone()));
    walk::<ForeignIds>(
        view.scan::<ForeignIds>((from, Unbounded)),
        |key| Mark(key.clone()),
        |key, item| Ok(is_gone(view, &item, user)?.then(|| Trace::ForeignId(key.clone()))),
    )
}

fn comments(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let place = |[item, at, id]: [u64; 3]| (ItemId(item), (at ^ (1 << 63)).cast_signed(), ItemId(id));
    let from = numbers(after)?.map_or(Unbounded, |numbers| Excluded(place(numbers)));
    walk::<Comments>(
        view.scan::<Comments>((from, Unbounded)),
        |(item, at, id)| Mark::of([item.0, ordered(*at), id.0]),
        |(item, _, id), row| {
            let own = row.author == user && view.has::<Talks>(item)?;
            Ok(own.then(|| Trace::Comment { item: *item, id: *id, lives: row.body.is_some() }))
        },
    )
}

fn reactions(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let from = numbers(after)?.map_or(Unbounded, |[item, of, _]| Excluded((ItemId(item), UserNo(narrow(of)))));
    walk::<tables::Reacted>(
        view.scan::<tables::Reacted>((from, Unbounded)),
        |(item, of)| Mark::of([item.0, of.0.into(), 0]),
        |(item, of), tables::ReactedRow(given)| {
            if *of != user {
                return Ok(None);
            }
            // A deleted item has no tally, and its reactions are being removed.
            let Some(tables::TallyRow(tally)) = view.get::<Tallies>(item)? else { return Ok(None) };
            let kinds = given.into_iter().filter_map(|(slot, at)| Some((tally.get(usize::from(slot))?.0.parse(), at)));
            let named = |(kind, at): (std::result::Result<ReactionKind, String>, Millis)| {
                Ok((kind.map_err(|why| StoreError::corrupt(format_args!("a reaction to item {item}: {why}")))?, at))
            };
            Ok(Some(Trace::Reactions { item: *item, kinds: kinds.map(named).collect::<Result<_>>()? }))
        },
    )
}

fn shielded(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let place = |[owner, shield, other]: [u64; 3]| {
        let shield = u8::try_from(shield).ok().and_then(Shield::from_u8)?;
        Some((UserNo(narrow(owner)), shield, UserNo(narrow(other))))
    };
    let from = numbers(after)?.and_then(place).map_or(Unbounded, Excluded);
    walk::<ShieldsUp>(
        view.scan::<ShieldsUp>((from, Unbounded)),
        |(owner, shield, other)| Mark::of([owner.0.into(), *shield as u64, other.0.into()]),
        |(owner, shield, other), _| Ok((*other == user).then_some(Trace::Shielded(*shield, *owner))),
    )
}

fn of_audiences(view: &View, user: UserNo, after: Option<&Mark>) -> Result<Traces> {
    let from = numbers(after)?.map_or(Unbounded, |[item, ..]| Excluded(ItemId(item)));
    walk::<Audiences>(
        view.scan::<Audiences>((from, Unbounded)),
        |item| Mark::of([item.0, 0, 0]),
        |item, AudienceRow(readers)| {
            if is_gone(view, item, user)? {
                return Ok(Some(Trace::OwnAudience(*item)));
            }
            Ok(readers.binary_search(&user).is_ok().then_some(Trace::Audience(*item)))
        },
    )
}

/// Whether this is a deleted item of the user.
fn is_gone(view: &impl Read, item: &ItemId, user: UserNo) -> Result<bool> {
    Ok(gone(view, item, user)?.is_some())
}

/// The row of this item, if it is a deleted one of the user.
fn gone(view: &impl Read, item: &ItemId, user: UserNo) -> Result<Option<tables::ItemRow>> {
    Ok(view.get::<Items>(item)?.filter(|row| row.author == user && row.life == Life::Gone))
}

fn scrub(tx: &mut Tx<'_>, user: UserNo, remains: &Remains) -> Result<()> {
    for item in &remains.audiences {
        audiences::leave(tx, *item, user)?;
    }
    for id in &remains.items {
        let Some(row) = gone(tx, id, user)? else { continue };
        tx.put::<Items>(id, &tables::ItemRow { fingerprint: [0; 16], ..row });
    }
    for id in &remains.own_audiences {
        if is_gone(tx, id, user)? {
            tx.remove::<Audiences>(id);
        }
    }
    for key in &remains.foreign_ids {
        let Some(item) = tx.get::<ForeignIds>(key)? else { continue };
        if is_gone(tx, &item, user)? {
            tx.remove::<ForeignIds>(key);
        }
    }
    for id in &remains.comments {
        let Some((item, at)) = tx.get::<tables::CommentIds>(id)? else { continue };
        let place = (item, at, *id);
        let Some(row) = tx.get::<Comments>(&place)?.filter(|row| row.author == user && row.body.is_none()) else {
            continue;
        };
        if let Some(Short(key)) = &row.key {
            tx.remove::<CommentKeys>(&(item, user, key.clone()));
        }
        tx.put::<Comments>(&place, &tables::CommentRow { key: None, fingerprint: [0; 16], ..row });
    }
    Ok(())
}

/// The range of the user's keys in a table whose keys are a user and a feed.
fn feeds_of(user: UserNo) -> std::ops::RangeInclusive<InboxKey> {
    let of = |feed| InboxKey { reader: user, feed: FeedId(feed) };
    of(0)..=of(u16::MAX)
}

/// The range of the user's keys in a table whose keys are a user and a text.
fn texts_of(user: UserNo) -> std::ops::Range<(UserNo, CompactString)> {
    let first = |no| (UserNo(no), CompactString::default());
    first(user.0)..first(user.0.saturating_add(1))
}

fn rest(view: &View, user: UserNo, after: u64, limit: usize) -> Result<(Removed, Option<u64>)> {
    let page = view.scan::<Directs>((user, after.saturating_add(1))..=(user, u64::MAX)).take(limit);
    let page: Vec<_> = page.collect::<Result<_>>()?;
    // The user stops being a recipient of an item when the first of its records is removed. Who has an item in a
    // ranking alone is none.
    let mut items = BTreeSet::new();
    for (_, record) in page.iter().filter(|(_, record)| record.op == Op::Add) {
        if view.has::<Recipients>(&(record.key.item, user))? {
            items.insert(record.key.item);
        }
    }
    let addressed = items.len() as u64;
    if page.len() == limit
        && let Some(((_, last), _)) = page.last()
    {
        return Ok((Removed { addressed, ..Removed::default() }, Some(*last)));
    }
    let notices = view.scan::<PushNotices>(feeds_of(user)).count() + view.scan::<PushDead>(feeds_of(user)).count();
    let (listed, listing) = audiences::count(view, user);
    let removed = Removed {
        listed,
        listing,
        person: u64::from(view.has::<People>(&user)?),
        devices: view.scan::<PushDevices>(texts_of(user)).count() as u64,
        notices: notices as u64,
        seen: view.scan::<Sights>(feeds_of(user)).count() as u64,
        addressed,
        keys: view.scan::<Retries>(texts_of(user)).count() as u64,
        ..Removed::default()
    };
    Ok((removed, None))
}

fn forget_rest(tx: &mut Tx<'_>, user: UserNo, limit: usize) -> Result<bool> {
    let seen: Vec<_> = tx.scan::<Sights>(feeds_of(user)).collect::<Result<_>>()?;
    seen.iter().for_each(|(key, _)| tx.remove::<Sights>(key));
    let keys: Vec<_> = tx.scan::<Retries>(texts_of(user)).take(limit).collect::<Result<_>>()?;
    for (key, row) in &keys {
        tx.remove::<Retries>(key);
        tx.remove::<Expiries>(&(row.expires, key.0, key.1.clone()));
    }
    let listed = audiences::forget(tx, user, limit)?;
    events::forget_direct(tx, user)?;
    let addressed = forget_addressed(tx, user, u64::MAX, limit)?;
    let more_lines = lines::forget(tx, user, limit)?;
    Ok([keys.len(), listed, addressed].contains(&limit) || more_lines)
}

/// Removes the oldest records up to this number that are addressed to the user, at most `limit`, and answers how many.
fn forget_addressed(tx: &mut Tx<'_>, user: UserNo, upto: u64, limit: usize) -> Result<usize> {
    let addressed: Vec<_> = tx.scan::<Directs>((user, 0)..=(user, upto)).take(limit).collect::<Result<_>>()?;
    for (key, row) in &addressed {
        tx.remove::<Directs>(key);
        rankings::erase(tx, *key, row)?;
        let item = row.key.item;
        if row.op != Op::Add {
            continue;
        }
        tx.remove::<DirectShown>(&(InboxKey { reader: user, feed: row.feed }, row.key));
        // An item that has moved has an add for each rank that it had.
        if !tx.has::<Recipients>(&(item, user))? {
            continue;
        }
        tx.remove::<Recipients>(&(item, user));
        // An item that reaches nobody any more still needs one row, so that it is found.
        if tx.scan::<Recipients>((Included((item, UserNo(0))), Included((item, NOBODY)))).next().transpose()?.is_none()
        {
            tx.put::<Recipients>(&(item, NOBODY), &row.author);
        }
    }
    Ok(addressed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_orders_as_its_number() {
        assert!([i64::MIN, -1, 0, 1, i64::MAX].map(ordered).is_sorted());
        assert_eq!(ordered(i64::MIN), 0);
    }
}
