//! Stores the changes of a plan as rows of tables.
//!
//! Invariants: `followers` has a row for each edge in `edges` that is on; each list has a line for each follow or
//! request as long as it lasts; `due` has a row for each author, edge and reader with something outstanding.

use compact_str::CompactString;
use feedgate_common::accept::{Change, Door, EdgeRow, ItemRow, Plan, RetryRow};
use feedgate_common::archive::Publish;
use feedgate_common::change::{Class, Record, Route};
use feedgate_common::error::Result;
use feedgate_common::graph::{Shield, listed_at};
use feedgate_common::mentions::text_of;
use feedgate_common::notify::is_notification;
use feedgate_common::{
    Body, DisplayKey, FeedId, Generation, InboxKey, ItemId, Millis, Op, OutboxSeq, PullSeq, StoreError, UserId, UserNo,
};

use super::comments;
use super::ledger::{Ledger, is_quiet};
use super::lines;
use super::load::add_of;
use super::rankings;
use super::reactions;
use super::reposts;
use super::tables::{
    self, AddRow, Adds, AudienceRow, Audiences, AuthorFeed, AuthorRow, DirectRow, DirectShown, Everyones, Expiries,
    FollowLine, FollowerList, FollowerRow, Followers, FollowingList, ForeignIds, Items, Life, NOBODY, Owed, Privates,
    PullHeads, PullRow, Pulls, Recipients, RecordRow, Records, RequestList, Retries, Sent, ShieldList, ShieldsUp,
    Shown, ShownRow, ToldHeads, Track,
};
use super::versions;
use crate::view::Read;

/// Stores all changes of a plan, in order. The caller has applied the plan to the ledger's rows.
pub(super) fn all(ledger: &mut Ledger<'_, '_>, plan: &Plan<'_>) -> Result<()> {
    let (history, mut ended) = (plan.history, vec![]);
    for change in &plan.changes {
        match change {
            Change::Append { author, record, aside } => append(ledger, *author, record, *aside, history)?,
            Change::Address { readers, op, author, feed, key } => {
                let record = DirectRow { op: *op, author: *author, feed: *feed, key: *key, at: ledger.now };
                readers.iter().try_for_each(|reader| ledger.address(*reader, &record, history).map(drop))?;
            }
            Change::Make { id, item, publish } => make(ledger, *id, item, publish),
            Change::Repost { original, id, counts } => reposts::count(ledger.tx, *original, *id, *counts)?,
            Change::Narrow { id, readers } => ledger.tx.put::<Audiences>(id, &AudienceRow(readers.clone())),
            Change::Edit { id, version, body, mentions, keeps } => {
                edit(ledger, *id, *version, (body, *mentions), *keeps)?;
            }
            Change::Move { id, item, by } => move_to(ledger, *id, item, *by)?,
            Change::End { id, by } => ended.extend(end(ledger, *id, *by)?.map(|key| (*id, key))),
            Change::Remember { author, key, retry } => remember(ledger, (*author, (*key).clone()), retry)?,
            Change::Edge { edge, before, now, listed, effect } => {
                hold(ledger, *edge, (*before, *now), *listed, effect.then_some(history))?;
            }
            Change::Shield { user, shield, other, since } => self::shield(ledger, (*user, *shield, *other), *since)?,
            Change::Line { id, line, begins, joined, left } => {
                lines::store(ledger.tx, *id, line, *begins, (joined, left))?;
            }
            Change::Classify { author, class, everyone_since } => classify(ledger, *author, *class, *everyone_since)?,
            Change::Private { author, private: true } => ledger.tx.put::<Privates>(author, &()),
            Change::Private { author, private: false } => ledger.tx.remove::<Privates>(author),
        }
    }
    // By now each line names the item that tells of it from here on.
    ended.iter().try_for_each(|(id, key)| lines::end(ledger.tx, *id, key))
}

fn append(ledger: &mut Ledger<'_, '_>, author: UserNo, record: &Record, aside: bool, history: bool) -> Result<()> {
    let Record { seq, op, route, feed, key } = *record;
    let mut row = ledger.author(author)?;
    row.head = seq;
    row.due = Some(ledger.owe(row.due, Owed::Outbox { author }));
    ledger.tx.put::<Records>(&(author, seq), &RecordRow { op, route, key, at: ledger.now, feed, history });
    let list = AuthorFeed { feed, author };
    let pull_seq = match route {
        Route::Push | Route::Narrow => 0,
        Route::Pull => number_pull(ledger, &mut row, list, PullRow { op, seq, key }, history),
    };
    if op == Op::Add {
        let track = if aside { Track::Aside } else { Track::InStep };
        match track {
            Track::InStep => row.last_in_step = Some(key),
            Track::Aside => row.has_aside = true,
        }
        ledger.tx.put::<Adds>(&(list, seq), &AddRow { key, route, track, deleted_by: None, pull_seq });
        ledger.tx.put::<Shown>(&(list, track, key), &ShownRow { seq, narrowed: route == Route::Narrow });
    }
    ledger.put_author(author, row);
    Ok(())
}

/// Gives the author's newest record its number among all records of route pull.
fn number_pull(
    ledger: &mut Ledger<'_, '_>,
    author: &mut AuthorRow,
    list: AuthorFeed,
    record: PullRow,
    history: bool,
) -> PullSeq {
    ledger.counters.pull += 1;
    let number = ledger.counters.pull;
    ledger.tx.put::<Pulls>(&(list, number), &record);
    ledger.tx.remove::<PullHeads>(&author.last_pull);
    ledger.tx.put::<PullHeads>(&number, &list.author);
    author.last_pull = number;
    if !history {
        ledger.tx.remove::<ToldHeads>(&author.last_told);
        ledger.tx.put::<ToldHeads>(&number, &list.author);
        author.last_told = number;
    }
    number
}

fn make(ledger: &mut Ledger<'_, '_>, id: ItemId, item: &ItemRow, publish: &Publish) {
    if let Door::Direct(readers) = &item.door {
        for &reader in readers {
            ledger.tx.put::<Recipients>(&(id, reader), &item.author);
        }
        show(ledger, (id, item));
        if !is_notification(publish.foreign_id.as_deref()) {
            ledger.tx.put::<Sent>(&(item.author, item.key(id)), &());
        }
        if readers.is_empty() {
            ledger.tx.put::<Recipients>(&(id, NOBODY), &item.author);
        }
    }
    if let Some(foreign_id) = &publish.foreign_id {
        ledger.tx.put::<ForeignIds>(foreign_id, &id);
    }
    if let Some(indexing) = &ledger.indexing {
        let (place, marks) = ((id, item.published_at), ledger.marks.take());
        indexing.make(ledger.tx, place, (item.author, publish.kind.as_deref(), &publish.body), marks);
    }
    let life = Life::Living {
        version: item.version,
        rank: item.rank,
        kind: publish.kind.clone(),
        foreign_id: publish.foreign_id.clone(),
        repost_of: publish.repost_of,
        narrowed: matches!(item.door, Door::Outbox(Route::Narrow)),
        mentions: text_of(&item.mentions),
        body: publish.body.get().to_owned(),
    };
    let ItemRow { author, seq, published_at, fingerprint, feed, .. } = *item;
    ledger.tx.put::<Items>(&id, &tables::ItemRow { author, seq, published_at, fingerprint, feed, life });
    ledger.counters.living_items += 1;
}

fn item(ledger: &Ledger<'_, '_>, id: ItemId) -> Result<tables::ItemRow> {
    let row = ledger.tx.get::<Items>(&id)?;
    row.ok_or_else(|| StoreError::corrupt(format_args!("item {id} is to be changed and has no row")))
}

fn edit(
    ledger: &mut Ledger<'_, '_>,
    id: ItemId,
    new_version: u32,
    (new_body, named): (&Body, Option<&[UserId]>),
    keeps: bool,
) -> Result<()> {
    let mut row = item(ledger, id)?;
    if let Life::Living { version, mentions, body, .. } = &mut row.life {
        if let Some(indexing) = &ledger.indexing {
            indexing.edit(ledger.tx, (id, row.published_at), (body, new_body), ledger.marks.take())?;
        }
        if keeps {
            versions::keep(ledger.tx, (id, *version), body, ledger.now)?;
        }
        *version = new_version;
        if let Some(named) = named {
            *mentions = text_of(named);
        }
        new_body.get().clone_into(body);
    }
    ledger.tx.put::<Items>(&id, &row);
    rankings::changed(ledger.tx, id)
}

/// Gives an item another rank and place. A record deletes the add that the item had so far; the next record is the new
/// add.
fn move_to(ledger: &mut Ledger<'_, '_>, id: ItemId, now: &ItemRow, by: Option<OutboxSeq>) -> Result<()> {
    let mut row = item(ledger, id)?;
    let add = end_add(ledger, (id, &row), by)?;
    if let Life::Living { version, rank, .. } = &mut row.life {
        let before = DisplayKey { rank: *rank, item: id };
        (*version, *rank) = (now.version, now.rank);
        match add {
            Some(add) => ledger.tx.remove::<Shown>(&(row.add().0, add.track, add.key)),
            None => {
                hide(ledger, (id, row.feed), before)?;
                show(ledger, (id, now));
                send_again(ledger, (row.author, before), now.key(id))?;
            }
        }
    }
    row.seq = now.seq;
    ledger.tx.put::<Items>(&id, &row);
    Ok(())
}

/// Marks the add of an item as deleted by the record `by`, and gives the add. An item that is addressed to readers has
/// no add: `by` is `None` then, and so is the answer.
fn end_add(
    ledger: &mut Ledger<'_, '_>,
    (id, row): (ItemId, &tables::ItemRow),
    by: Option<OutboxSeq>,
) -> Result<Option<AddRow>> {
    let Some(by) = by else { return Ok(None) };
    let add = add_of(ledger, id, row)?;
    ledger.tx.put::<Adds>(&row.add(), &AddRow { deleted_by: Some(by), ..add });
    Ok(Some(add))
}

/// Deletes an item. Answers its key if it was a notification that lived.
fn end(ledger: &mut Ledger<'_, '_>, id: ItemId, by: Option<OutboxSeq>) -> Result<Option<CompactString>> {
    let mut row = item(ledger, id)?;
    let add = end_add(ledger, (id, &row), by)?;
    let mut key = None;
    if let Life::Living { version, rank, kind, foreign_id, body, .. } = std::mem::replace(&mut row.life, Life::Gone) {
        key = foreign_id.filter(|key| is_notification(Some(key)));
        if let Some(indexing) = &ledger.indexing {
            indexing.end(ledger.tx, (id, row.published_at), (row.author, kind.as_deref(), &body))?;
        }
        match add {
            Some(add) => ledger.tx.remove::<Shown>(&(row.add().0, add.track, add.key)),
            None => {
                let place = DisplayKey { rank, item: id };
                hide(ledger, (id, row.feed), place)?;
                ledger.tx.remove::<Sent>(&(row.author, place));
            }
        }
        ledger.tx.put::<Items>(&id, &row);
        if version > 1 {
            versions::forget(ledger.tx, id)?;
        }
        reactions::end(ledger.tx, id)?;
        comments::end(ledger.tx, id)?;
        rankings::changed(ledger.tx, id)?;
        ledger.counters.living_items -= 1;
    }
    Ok(key)
}

/// Gives an item another place among those that its author has sent, unless it is a notification.
fn send_again(ledger: &mut Ledger<'_, '_>, before: (UserNo, DisplayKey), now: DisplayKey) -> Result<()> {
    if ledger.tx.has::<Sent>(&before)? {
        ledger.tx.remove::<Sent>(&before);
        ledger.tx.put::<Sent>(&(before.0, now), &());
    }
    Ok(())
}

/// Adds an item to the feeds of the readers to whom the item is addressed.
fn show(ledger: &mut Ledger<'_, '_>, (id, item): (ItemId, &ItemRow)) {
    for &reader in item.door.readers() {
        ledger.tx.put::<DirectShown>(&(InboxKey { reader, feed: item.feed }, item.key(id)), &item.author);
    }
}

/// Removes an item from the feeds of the readers to whom the item is addressed, except where a ranking holds it at the
/// same place.
fn hide(ledger: &mut Ledger<'_, '_>, (id, feed): (ItemId, FeedId), key: DisplayKey) -> Result<()> {
    let Ledger { tx, rows, .. } = ledger;
    let item = rows.items.get(&id).and_then(Option::as_ref);
    for &reader in item.map_or(&[][..], |item| item.door.readers()) {
        let to = InboxKey { reader, feed };
        if !rankings::is_ranked(&**tx, to, key)? {
            tx.remove::<DirectShown>(&(to, key));
        }
    }
    Ok(())
}

fn remember(ledger: &mut Ledger<'_, '_>, key: (UserNo, CompactString), retry: &RetryRow) -> Result<()> {
    if let Some(old) = ledger.tx.get::<Retries>(&key)? {
        ledger.tx.remove::<Expiries>(&(old.expires, key.0, key.1.clone()));
    }
    ledger.tx.put::<Retries>(&key, retry);
    ledger.tx.put::<Expiries>(&(retry.expires, key.0, key.1), &());
    Ok(())
}

/// Stores an edge: its row, its places in the lists, and its place among the followers. `effect` is `None` if the
/// effect of the edge stays. Otherwise the edge becomes outstanding, and `effect` says whether the change is history.
fn hold(
    ledger: &mut Ledger<'_, '_>,
    edge @ (reader, author): (UserNo, UserNo),
    (before, now): (Option<EdgeRow>, EdgeRow),
    listed: Option<Millis>,
    effect: Option<bool>,
) -> Result<()> {
    let mut row = ledger.edge(edge)?.unwrap_or_default();
    row.held = now;
    if before.is_some_and(|before| before.asked) && !now.asked {
        ledger.tx.remove::<RequestList>(&(author, row.listed));
        row.listed = 0;
    }
    let is_newest = now.generation > ledger.counters.generation;
    ledger.counters.generation = ledger.counters.generation.max(now.generation);
    if let Some(since) = listed {
        let number = if is_newest { now.generation } else { ledger.new_generation() };
        row.listed = if now.asked { ask(ledger, edge, number, since)? } else { list(ledger, edge, number, since)? };
    } else if !now.follows && !now.asked && row.listed > 0 {
        ledger.tx.remove::<FollowingList>(&(reader, row.listed));
        ledger.tx.remove::<FollowerList>(&(author, row.listed));
        row.listed = 0;
    }
    if let Some(history) = effect {
        row.quiet = is_quiet(history, row.due, row.quiet);
        row.due = Some(ledger.owe(row.due, Owed::Edge { reader, author }));
    }
    ledger.put_edge(edge, row);
    let more = Change::counted(edge, before, now);
    push_to(ledger, edge, now, Change::turned(before, now));
    count(ledger, edge.1, more)
}

/// The first place from `wanted` on that is not taken. Imported times may be whole days, so millions of lines may ask
/// for the same few places.
fn free_place(wanted: u64, is_taken: impl Fn(u64) -> Result<bool>) -> Result<u64> {
    let mut place = wanted;
    while is_taken(place)? {
        place += 1;
    }
    Ok(place)
}

/// Puts a follow into the lists of the reader and of the author. Answers its place, which is the same in both.
fn list(
    ledger: &mut Ledger<'_, '_>,
    (reader, author): (UserNo, UserNo),
    number: Generation,
    since: Millis,
) -> Result<u64> {
    let tx = &ledger.tx;
    let listed = free_place(listed_at(since, number), |place| {
        Ok(tx.has::<FollowerList>(&(author, place))? || tx.has::<FollowingList>(&(reader, place))?)
    })?;
    ledger.tx.put::<FollowingList>(&(reader, listed), &FollowLine { user: author, since });
    ledger.tx.put::<FollowerList>(&(author, listed), &FollowLine { user: reader, since });
    Ok(listed)
}

/// Puts a request into the list of its author. Answers its place in the list.
fn ask(
    ledger: &mut Ledger<'_, '_>,
    (reader, author): (UserNo, UserNo),
    number: Generation,
    since: Millis,
) -> Result<u64> {
    let listed = free_place(listed_at(since, number), |place| ledger.tx.has::<RequestList>(&(author, place)))?;
    ledger.tx.put::<RequestList>(&(author, listed), &FollowLine { user: reader, since });
    Ok(listed)
}

/// Adds the reader to the followers to whom the author's items are pushed (`more` is 1), or removes the reader (-1).
fn push_to(ledger: &mut Ledger<'_, '_>, (reader, author): (UserNo, UserNo), now: EdgeRow, more: i64) {
    let key = (author, reader.bucket(ledger.setup.buckets), reader);
    match more {
        0 => {}
        1.. => ledger.tx.put::<Followers>(&key, &FollowerRow { generation: now.generation, from: now.from }),
        _ => ledger.tx.remove::<Followers>(&key),
    }
}

/// Counts one more follower of the author (`more` is 1), or one less (-1).
fn count(ledger: &mut Ledger<'_, '_>, author: UserNo, more: i64) -> Result<()> {
    if more == 0 {
        return Ok(());
    }
    let mut row = ledger.author(author)?;
    row.followers = row.followers.saturating_add_signed(more);
    ledger.counters.edges_on = ledger.counters.edges_on.saturating_add_signed(more);
    ledger.put_author(author, row);
    Ok(())
}

fn shield(
    ledger: &mut Ledger<'_, '_>,
    (user, shield, other): (UserNo, Shield, UserNo),
    since: Option<Millis>,
) -> Result<()> {
    let key = (user, shield, other);
    if let Some(number) = ledger.tx.get::<ShieldsUp>(&key)? {
        ledger.tx.remove::<ShieldsUp>(&key);
        ledger.tx.remove::<ShieldList>(&(user, shield, number));
    }
    if let Some(since) = since {
        let wanted = listed_at(since, ledger.new_generation());
        let number = free_place(wanted, |place| ledger.tx.has::<ShieldList>(&(user, shield, place)))?;
        ledger.tx.put::<ShieldsUp>(&key, &number);
        ledger.tx.put::<ShieldList>(&(user, shield, number), &FollowLine { user: other, since });
    }
    Ok(())
}

fn classify(
    ledger: &mut Ledger<'_, '_>,
    author: UserNo,
    class: Class,
    everyone_since: Option<OutboxSeq>,
) -> Result<()> {
    let row = AuthorRow { class, ..ledger.author(author)? };
    ledger.put_author(author, row);
    if let Some(since) = everyone_since {
        ledger.tx.put::<Everyones>(&author, &since);
    }
    Ok(())
}
