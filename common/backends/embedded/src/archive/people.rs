//! Reads who follows whom, and what shields are up between them.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

use feedgate_common::archive::{Author, Edge, Follow, ListCursor};
use feedgate_common::around::{Reach, Terms, Viewer, shows_original};
use feedgate_common::error::Result;
use feedgate_common::graph::Shield;
use feedgate_common::{Bucket, Item, ItemId, OutboxSeq, UserNo};

use super::audiences;
use super::tables::{
    Authors, EdgeRow, Edges, Everyones, FollowLine, Followers, FollowingList, Items, Privates, Recipients, ShieldList,
};
use super::users::KnownUsers;
use crate::table::Table;
use crate::view::{Read, View};

/// The edge between a reader and an author.
pub(super) fn edge(view: &View, reader: UserNo, author: UserNo) -> Result<Edge> {
    Ok(held(view, reader, author)?.held.edge())
}

/// The stored row of an edge. If no row is stored: the row of a follow if everyone else follows the author, else an
/// empty row.
pub(super) fn held(view: &impl Read, reader: UserNo, author: UserNo) -> Result<EdgeRow> {
    if let Some(row) = view.get::<Edges>(&(reader, author))? {
        return Ok(row);
    }
    if reader == author {
        return Ok(EdgeRow::default());
    }
    Ok(view.get::<Everyones>(&author)?.map_or_else(EdgeRow::default, EdgeRow::of_everyone))
}

/// All edges of the reader that are on, ascending by author.
pub(super) fn edges(view: &View, reader: UserNo) -> Result<Vec<(UserNo, EdgeRow)>> {
    let rows = view.scan::<Edges>((reader, UserNo(0))..=(reader, UserNo(u32::MAX)));
    let held = rows.map(|row| row.map(|((_, author), row)| (author, row))).collect::<Result<_>>()?;
    with_everyones(view, reader, held)
}

/// Adds the authors whom everyone else follows to the rows `held` of the reader. Answers all edges that are on,
/// ascending by author.
pub(super) fn with_everyones(
    view: &View,
    reader: UserNo,
    mut held: Vec<(UserNo, EdgeRow)>,
) -> Result<Vec<(UserNo, EdgeRow)>> {
    let mut everyones = view.scan::<Everyones>(..).collect::<Result<BTreeMap<UserNo, OutboxSeq>>>()?;
    everyones.remove(&reader);
    if !everyones.is_empty() {
        for (author, _) in &held {
            everyones.remove(author);
        }
        held.extend(everyones.into_iter().map(|(author, since)| (author, EdgeRow::of_everyone(since))));
        held.sort_unstable_by_key(|(author, _)| *author);
    }
    held.retain(|(_, row)| row.held.edge().on);
    Ok(held)
}

pub(super) fn author(view: &View, author: UserNo) -> Result<Author> {
    let row = view.get::<Authors>(&author)?.unwrap_or_default();
    let everyone_since = view.get::<Everyones>(&author)?;
    Ok(Author {
        class: row.class,
        followers: row.followers,
        head: row.head,
        everyone_since,
        private: view.has::<Privates>(&author)?,
    })
}

/// The `readers` who follow the author. This function looks up each reader or reads all followers, whichever are fewer.
pub(super) fn followers_among(view: &View, author: UserNo, readers: &[UserNo]) -> Result<Vec<UserNo>> {
    let everyones = view.has::<Everyones>(&author)?;
    if !everyones && self::author(view, author)?.followers < readers.len() as u64 {
        let asked: HashSet<UserNo> = readers.iter().copied().collect();
        let all = (author, Bucket(0), UserNo(0))..=(author, Bucket(u16::MAX), UserNo(u32::MAX));
        let followers = view.scan::<Followers>(all).map(|row| row.map(|((.., reader), _)| reader));
        return followers.filter(|row| row.as_ref().map_or(true, |reader| asked.contains(reader))).collect();
    }
    in_effect(readers.iter().map(|&reader| Ok((reader, edge(view, reader, author)?))))
}

pub(super) fn followed_among(view: &View, user: UserNo, others: &[UserNo]) -> Result<Vec<UserNo>> {
    let mut followed = vec![];
    for &other in others {
        if view.get::<Edges>(&(user, other))?.is_some_and(|row| row.held.follows) {
            followed.push(other);
        }
    }
    Ok(followed)
}

pub(super) fn followees_among(view: &View, reader: UserNo, authors: &[UserNo]) -> Result<Vec<UserNo>> {
    in_effect(authors.iter().map(|&author| Ok((author, edge(view, reader, author)?))))
}

fn in_effect(edges: impl Iterator<Item = Result<(UserNo, Edge)>>) -> Result<Vec<UserNo>> {
    let on = edges.filter(|edge| edge.as_ref().map_or(true, |(_, edge)| edge.on));
    on.map(|edge| edge.map(|(user, _)| user)).collect()
}

/// The users with whom `user` is in a block, by number. A block of either side lies on the edges of both.
pub(super) fn blocked_with(view: &View, user: UserNo, limit: usize) -> Result<Vec<UserNo>> {
    let rows = view.scan::<Edges>((user, UserNo(0))..=(user, UserNo(u32::MAX)));
    let blocked = rows.filter(|row| row.as_ref().map_or(true, |(_, row)| row.held.shields.blocks()));
    blocked.take(limit).map(|row| row.map(|((_, other), _)| other)).collect()
}

/// The users that `user` follows and that follow it, by number.
pub(super) fn mutual_with(view: &View, user: UserNo, limit: usize) -> Result<Vec<UserNo>> {
    let mut found = vec![];
    for row in view.scan::<Edges>((user, UserNo(0))..=(user, UserNo(u32::MAX))) {
        let ((_, other), row) = row?;
        if found.len() == limit {
            break;
        }
        if other != user && row.held.follows && view.get::<Edges>(&(other, user))?.is_some_and(|back| back.held.follows)
        {
            found.push(other);
        }
    }
    Ok(found)
}

/// The `items` that are addressed to the reader and whose author is in no block with the reader.
pub(super) fn addressed(view: &View, reader: UserNo, items: &[ItemId]) -> Result<Vec<ItemId>> {
    let mut addressed = vec![];
    for &item in items {
        if let Some(author) = chosen_by(view, item, reader)?
            && !view.get::<Edges>(&(reader, author))?.is_some_and(|row| row.held.shields.blocks())
        {
            addressed.push(item);
        }
    }
    Ok(addressed)
}

/// The author of an item that is addressed to the reader, or whose audience has the reader; `None` of any other item.
fn chosen_by(view: &View, item: ItemId, reader: UserNo) -> Result<Option<UserNo>> {
    match view.get::<Recipients>(&(item, reader))? {
        Some(author) => Ok(Some(author)),
        None if !audiences::has(view, item, reader)? => Ok(None),
        None => Ok(view.get::<Items>(&item)?.map(|row| row.author)),
    }
}

/// The items of `found` that the viewer may see as originals of reposts, with `None` for the others. The view must be
/// taken after the items were read, so that a shield that was answered before hides them.
pub(super) fn originals(view: &View, viewer: Viewer, found: Vec<Option<Arc<Item>>>) -> Result<Vec<Option<Arc<Item>>>> {
    let Viewer::User(user) = viewer else { return Ok(found) };
    let shows = |item: &Item| {
        // A user that was never named follows nobody, and nothing is addressed to it.
        let Some(user) = user else {
            let terms = Terms { private: view.has::<Privates>(&item.author_no)?, ..Terms::default() };
            return Ok(shows_original(false, terms, Reach::of(item, false)));
        };
        let terms = terms(view, user, item.author_no)?;
        let has = match Reach::of(item, false) {
            Reach::Followers => false,
            Reach::Named(_) => view.has::<Recipients>(&(item.id, user))?,
            Reach::Narrowed(_) => audiences::has(view, item.id, user)?,
        };
        Ok(shows_original(user == item.author_no, terms, Reach::of(item, has)))
    };
    let shown = |item: Option<Arc<Item>>| match item {
        Some(item) => Ok(shows(&item)?.then_some(item)),
        None => Ok(None),
    };
    found.into_iter().map(shown).collect()
}

/// On which terms a reader and an author are.
pub(super) fn terms(view: &impl Read, reader: UserNo, author: UserNo) -> Result<Terms> {
    let held = held(view, reader, author)?.held;
    let follows = held.edge().on;
    // A follower sees the items of a private author, so the row of private authors is not read then.
    let private = !follows && view.has::<Privates>(&author)?;
    Ok(Terms { follows, shields: held.shields, private })
}

/// A part of one of the lists, newest follow or request first. The cursor is the number of the line.
pub(super) fn follows<List>(
    view: &View,
    users: &KnownUsers,
    user: UserNo,
    cursor: Option<ListCursor>,
    limit: usize,
) -> Result<Vec<Follow>>
where
    List: Table<Key = (UserNo, u64), Row = FollowLine>,
{
    let lines = view.scan::<List>((Included((user, 0)), end(cursor, |number| (user, number)))).rev().take(limit);
    lines.map(|row| row.and_then(|((_, number), line)| follow(view, users, number, line))).collect()
}

/// A part of the following list, of which only users who follow back are given.
pub(super) fn mutual(
    view: &View,
    users: &KnownUsers,
    user: UserNo,
    cursor: Option<ListCursor>,
    limit: usize,
) -> Result<Vec<Follow>> {
    let mut found = Vec::new();
    for row in view.scan::<FollowingList>((Included((user, 0)), end(cursor, |number| (user, number)))).rev() {
        if found.len() >= limit {
            break;
        }
        let ((_, number), line) = row?;
        if view.get::<Edges>(&(line.user, user))?.is_some_and(|back| back.held.follows) {
            found.push(follow(view, users, number, line)?);
        }
    }
    Ok(found)
}

pub(super) fn shielded(
    view: &View,
    users: &KnownUsers,
    (user, shield): (UserNo, Shield),
    cursor: Option<ListCursor>,
    limit: usize,
) -> Result<Vec<Follow>> {
    let range = (Included((user, shield, 0)), end(cursor, |number| (user, shield, number)));
    let lines = view.scan::<ShieldList>(range).rev().take(limit);
    lines.map(|row| row.and_then(|((.., number), line)| follow(view, users, number, line))).collect()
}

fn end<Key>(cursor: Option<ListCursor>, key: impl Fn(u64) -> Key) -> Bound<Key> {
    cursor.map_or_else(|| Included(key(u64::MAX)), |cursor| Excluded(key(cursor.listed)))
}

fn follow(view: &View, users: &KnownUsers, listed: u64, line: FollowLine) -> Result<Follow> {
    Ok(Follow { user: users.learn_id(view, line.user)?, since: line.since, cursor: ListCursor::at(listed) })
}
