//! `GET /v1/export`: everything that readers' feeds are made of, a line each.
//!
//! ```text
//!   1  outboxes, by author's number: the class and whether the author is private, then adds and deletes in their order
//!   2  direct items, by id, with their readers
//!   3  follows and requests to follow, by reader's number, with their place in the outbox
//!   4  shields, by user's number: behind the follows, for they act on what is held
//!   5  reactions, by item's id, newest first
//!   6  people, by user's number
//!   7  comments, by item's id, oldest first: replies behind what they answer
//!   8  members of lists
//!   9  members of lines of notifications whose items live, by line
//!   10 rankings, by reader's number
//!   11 pins, by user's number
//! ```
//!
//! A cursor line says how far the export is; `?cursor=` goes on from there. Only one piece is in memory at a time.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use feedgate_common::archive::{ListCursor, Names, Reactions, Transfer};
use feedgate_common::around::{Comment, CommentOrder, CommentPlace, Onlooker, Place, Reacted};
use feedgate_common::audience::Listed;
use feedgate_common::change::{Class, Route};
use feedgate_common::error::Result;
use feedgate_common::graph::{Shield, Shields};
use feedgate_common::ids::ListName;
use feedgate_common::import;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, InboxKey, ItemId, Op, OutboxSeq, Record, UserId, UserNo};
use futures_util::stream;
use tracing::Span;

use super::super::access::AdminKey;
use super::super::cursor;
use super::super::problem::Problem;
use super::super::query::Query;
use super::NDJSON;
use super::line::{Out, place_text};
use crate::protocol::one_line::one_line;

/// How many records, items, edges, shields or lists are read at a time, and how many users without any are skipped at a
/// time.
pub(super) const PIECE: usize = 500;

/// How many comments are read at a time.
const COMMENTS: usize = 100;

/// How many records one read looks back for the record after which an edge begins.
const LOOK_BACK: OutboxSeq = 64;

/// How far an export is: what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum Cursor {
    /// The records of this author after this one.
    Outbox(UserNo, OutboxSeq),
    /// The direct items after this one.
    Direct(Option<ItemId>),
    /// This reader's follows of authors after this one.
    Follows(UserNo, UserNo),
    /// The shields of this user.
    Shields(UserNo),
    /// The shields of this user behind this one: the rest of its kind, and the kinds after it.
    Shielded(UserNo, Shield, ListCursor),
    /// The reactions to items after this one.
    Reactions(Option<ItemId>),
    /// The reactions to this item below this place of its list.
    Below(ItemId, Place),
    /// The people after this user.
    People(UserNo),
    /// The comments on items after this one.
    Comments(Option<ItemId>),
    /// The comments on this item behind this place.
    Behind(ItemId, CommentPlace),
    /// The members of lists after this one.
    Lists(Option<(UserNo, ListName, UserNo)>),
    /// The members of lines of notifications behind this one.
    Members(Option<(ItemId, u64)>),
    /// The rankings of readers after this one.
    Rankings(UserNo),
    /// The pins of users after this one.
    Pins(UserNo),
}

const START: Cursor = Cursor::Outbox(UserNo(0), 0);

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Outbox(author, seq) => write!(f, "1:{}:{seq}", author.0),
            Self::Direct(None) => f.write_str("2"),
            Self::Direct(Some(id)) => write!(f, "2:{id}"),
            Self::Follows(reader, author) => write!(f, "3:{}:{}", reader.0, author.0),
            Self::Shields(user) => write!(f, "4:{}", user.0),
            Self::Shielded(user, shield, ListCursor { listed, tie }) => {
                write!(f, "4:{}:{}:{listed}:{tie}", user.0, *shield as u8)
            }
            Self::Reactions(None) => f.write_str("5"),
            Self::Reactions(Some(id)) => write!(f, "5:{id}"),
            Self::Below(id, place) => write!(f, "5:{id}:{}", cursor::text(place)),
            Self::People(user) => write!(f, "6:{}", user.0),
            Self::Comments(None) => f.write_str("7"),
            Self::Comments(Some(id)) => write!(f, "7:{id}"),
            Self::Behind(id, place) => write!(f, "7:{id}:{}", cursor::text(place)),
            Self::Lists(None) => f.write_str("8"),
            // The name of a list may contain a colon, so it is the last part.
            Self::Lists(Some((owner, list, member))) => write!(f, "8:{}:{}:{list}", owner.0, member.0),
            Self::Members(None) => f.write_str("9"),
            Self::Members(Some((line, seq))) => write!(f, "9:{line}:{seq}"),
            Self::Rankings(reader) => write!(f, "10:{}", reader.0),
            Self::Pins(user) => write!(f, "11:{}", user.0),
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |part: &str| part.parse::<u32>().map(UserNo).map_err(drop);
        match parts[..] {
            ["1", author, seq] => Ok(Self::Outbox(number(author)?, seq.parse().map_err(drop)?)),
            ["2"] => Ok(Self::Direct(None)),
            ["2", id] => Ok(Self::Direct(Some(id.parse().map_err(drop)?))),
            ["3", reader, author] => Ok(Self::Follows(number(reader)?, number(author)?)),
            ["4", user] => Ok(Self::Shields(number(user)?)),
            ["4", user, shield, listed, tie] => {
                let shield = shield.parse().ok().and_then(Shield::from_u8).ok_or(())?;
                let after = ListCursor { listed: listed.parse().map_err(drop)?, tie: tie.parse().map_err(drop)? };
                Ok(Self::Shielded(number(user)?, shield, after))
            }
            ["5"] => Ok(Self::Reactions(None)),
            ["5", id] => Ok(Self::Reactions(Some(id.parse().map_err(drop)?))),
            ["5", id, place] => Ok(Self::Below(id.parse().map_err(drop)?, cursor::parse(place).ok_or(())?)),
            ["6", user] => Ok(Self::People(number(user)?)),
            ["7"] => Ok(Self::Comments(None)),
            ["7", id] => Ok(Self::Comments(Some(id.parse().map_err(drop)?))),
            ["7", id, place] => Ok(Self::Behind(id.parse().map_err(drop)?, cursor::parse(place).ok_or(())?)),
            ["8"] => Ok(Self::Lists(None)),
            ["8", owner, member, ..] => {
                let list = text.splitn(4, ':').nth(3).ok_or(())?.parse().map_err(drop)?;
                Ok(Self::Lists(Some((number(owner)?, list, number(member)?))))
            }
            ["9"] => Ok(Self::Members(None)),
            ["9", line, seq] => Ok(Self::Members(Some((line.parse().map_err(drop)?, seq.parse().map_err(drop)?)))),
            ["10", reader] => Ok(Self::Rankings(number(reader)?)),
            ["11", user] => Ok(Self::Pins(number(user)?)),
            _ => Err(()),
        }
    }
}

/// Answers `GET /v1/export` with a stream of lines.
pub(in super::super) async fn export(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    query: Query,
) -> std::result::Result<Response, Problem> {
    let cursor = match query.only(&["cursor"])?.get("cursor") {
        None => START,
        Some(text) => text.parse().map_err(|()| {
            Problem::parameter("cursor", format!("cursor must be one that an export has given, not {text:?}"))
        })?,
    };
    // The body is made after the future of the request has ended, so it keeps the span of the request.
    let state = (archive, named, Span::current(), Some(cursor));
    let pieces = stream::unfold(state, |(archive, named, span, cursor)| async move {
        let cursor = cursor?;
        match piece(&*archive, &named, cursor.clone()).await {
            Ok((lines, next)) => Some((Ok(Bytes::from(lines)), (archive, named, span, next))),
            // The error breaks the body off, so that the client does not take it for a complete one.
            Err(error) => {
                tracing::warn!(parent: &span, %error, %cursor, "an export was broken off");
                Some((Err(std::io::Error::other(error)), (archive, named, span, None)))
            }
        }
    });
    Ok(([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(pieces)).into_response())
}

/// Gives some lines from `cursor` on, and where to go on; `None` at the end. Users without any lines are skipped, up to
/// [`PIECE`] of them: a client that receives nothing for long would give up.
async fn piece(archive: &dyn Archive, named: &NamedFeeds, cursor: Cursor) -> Result<(Vec<u8>, Option<Cursor>)> {
    let (mut lines, mut next) = (Lines(vec![]), Some(cursor));
    for _ in 0..PIECE {
        next = match next {
            Some(Cursor::Outbox(author, after)) => Some(outbox(archive, named, author, after, &mut lines).await?),
            Some(Cursor::Direct(after)) => Some(direct(archive, after, &mut lines).await?),
            Some(Cursor::Follows(reader, after)) => Some(follows(archive, reader, after, &mut lines).await?),
            Some(Cursor::Shields(user)) => Some(shields(archive, user, None, &mut lines).await?),
            Some(Cursor::Shielded(user, shield, after)) => {
                Some(shields(archive, user, Some((shield, after)), &mut lines).await?)
            }
            Some(Cursor::Reactions(after)) => match archive.reacted_item(after).await? {
                Some(item) => Some(reactions(archive, item, None, &mut lines).await?),
                None => Some(Cursor::People(UserNo(0))),
            },
            Some(Cursor::Below(item, place)) => Some(reactions(archive, item, Some(&place), &mut lines).await?),
            Some(Cursor::People(after)) => Some(people(archive, after, &mut lines).await?),
            Some(Cursor::Comments(after)) => match archive.commented_item(after).await? {
                Some(item) => Some(talk(archive, item, None, &mut lines).await?),
                None => Some(Cursor::Lists(None)),
            },
            Some(Cursor::Behind(item, place)) => Some(talk(archive, item, Some(place), &mut lines).await?),
            Some(Cursor::Lists(after)) => Some(lists(archive, after, &mut lines).await?),
            Some(Cursor::Members(after)) => Some(members(archive, after, &mut lines).await?),
            Some(Cursor::Rankings(after)) => Some(rankings(archive, named, after, &mut lines).await?),
            Some(Cursor::Pins(after)) => pins(archive, after, &mut lines).await?,
            None => break,
        };
        if !lines.0.is_empty() {
            break;
        }
    }
    if let Some(next) = &next {
        lines.put(&Out::Cursor { cursor: next.to_string() });
    }
    Ok((lines.0, next))
}

/// Lines that are written, as bytes.
pub(super) struct Lines(pub(super) Vec<u8>);

impl Lines {
    pub(super) fn put(&mut self, line: &Out<'_>) {
        let start = self.0.len();
        serde_json::to_writer(&mut self.0, line).expect("a line is JSON");
        one_line(&mut self.0[start..]);
        self.0.push(b'\n');
    }
}

pub(super) async fn outbox(
    archive: &dyn Archive,
    named: &NamedFeeds,
    author: UserNo,
    after: OutboxSeq,
    lines: &mut Lines,
) -> Result<Cursor> {
    let outbox = archive.outbox(author, after, PIECE).await?;
    let known = archive.author(author).await?;
    if after == 0 && known.private {
        let user = &archive.user_ids(&[author]).await?[0];
        lines.put(&Out::Private { user });
    }
    let Some(last) = outbox.records.last() else {
        // An author without records is skipped, unless a class is set for the author.
        if after == 0 && known.class != Class::Auto {
            let author = &archive.user_ids(&[author]).await?[0];
            lines.put(&Out::Class { author, class: known.class });
        }
        let users = archive.users(Some(author), 1).await?;
        return Ok(users.first().map_or(Cursor::Direct(None), |(next, _)| Cursor::Outbox(*next, 0)));
    };
    let name = &archive.user_ids(&[author]).await?[0];
    if after == 0 && matches!(known.class, Class::Push | Class::Pull) {
        lines.put(&Out::Class { author: name, class: known.class });
    }
    let adds: Vec<ItemId> = outbox.records.iter().filter(|r| r.op == Op::Add).map(|r| r.key.item).collect();
    let items: HashMap<_, _> = archive.items(&adds).await?.into_iter().flatten().map(|item| (item.id, item)).collect();
    let moves = archive.moves(author, &outbox.records).await?;
    for (record, moved) in outbox.records.iter().zip(moves) {
        if known.everyone_since == Some(record.seq - 1) {
            lines.put(&Out::Class { author: name, class: Class::Everyone });
        }
        let audience = match (record.op, record.route) {
            (Op::Add, Route::Narrow) => Some(archive.user_ids(&archive.audience(record.key.item).await?).await?),
            _ => None,
        };
        put_record((record, moved), name, (&items, audience.as_deref()), named, lines);
    }
    if known.everyone_since == Some(last.seq) && outbox.head == last.seq {
        lines.put(&Out::Class { author: name, class: Class::Everyone });
    }
    Ok(Cursor::Outbox(author, last.seq))
}

/// Writes the line of a record. An add that an item had before it moved to another rank is written as a deleted item.
fn put_record(
    (record, moved): (&Record, Option<OutboxSeq>),
    author: &UserId,
    (items, audience): (&HashMap<ItemId, Arc<feedgate_common::Item>>, Option<&[UserId]>),
    named: &NamedFeeds,
    lines: &mut Lines,
) {
    let id = id_of(record, moved);
    match (record.op, items.get(&id)) {
        (Op::Add, Some(item)) => lines.put(&Out::Item { item, to: None, audience }),
        (Op::Add, None) => {
            // The kind of the item is gone too. Any kind of the same feed will do, so that a follow counts the item in
            // that feed.
            let (kind, rank) = (named.a_kind(record.feed), record.key.rank);
            lines.put(&Out::Gone { id, author, kind, published_at: rank.max(0), rank, deleted: true, audience });
        }
        (Op::Delete, _) => lines.put(&Out::Delete { id }),
        // The item's line has its newest version already.
        (Op::Update | Op::Forget, _) => {}
    }
}

async fn direct(archive: &dyn Transfer, after: Option<ItemId>, lines: &mut Lines) -> Result<Cursor> {
    let found = archive.direct_items(after, PIECE).await?;
    let Some((last, _)) = found.last() else { return Ok(Cursor::Follows(UserNo(0), UserNo(0))) };
    let ids: Vec<ItemId> = found.iter().map(|(id, _)| *id).collect();
    for ((_, readers), item) in found.iter().zip(archive.items(&ids).await?) {
        if let Some(item) = item {
            let to = archive.user_ids(readers).await?;
            lines.put(&Out::Item { item: &item, to: Some(&to), audience: None });
        }
    }
    Ok(Cursor::Direct(Some(*last)))
}

pub(super) async fn follows(
    archive: &dyn Transfer,
    reader: UserNo,
    after: UserNo,
    lines: &mut Lines,
) -> Result<Cursor> {
    let held = archive.held(reader, Some(after), PIECE).await?;
    let Some(last) = held.last() else {
        let next = archive.users(Some(reader), 1).await?;
        return Ok(next.first().map_or(Cursor::Shields(UserNo(0)), |(next, _)| Cursor::Follows(*next, UserNo(0))));
    };
    let reader_name = &archive.user_ids(&[reader]).await?[0];
    let numbers: Vec<UserNo> = held.iter().map(|edge| edge.author).collect();
    for (edge, author) in held.iter().zip(archive.user_ids(&numbers).await?) {
        // The edge of an author to itself is left out: where the file is imported, the settings decide about such
        // edges.
        if edge.author == reader {
            continue;
        }
        let (since, author) = (edge.since, &author);
        if edge.follows {
            let from = match edge.generation {
                // The edge begins anew when its last shield is taken down.
                _ if edge.shields != Shields(0) => import::Place::Head,
                0 => import::Place::Everyone,
                _ => place(archive, edge.author, edge.past).await?,
            };
            let from = place_text(from);
            lines.put(&Out::Follow { reader: reader_name, author, since, from });
        } else if edge.asked {
            lines.put(&Out::Request { reader: reader_name, author, since });
        } else if archive.author(edge.author).await?.everyone_since.is_some() {
            lines.put(&Out::Unfollow { reader: reader_name, author });
        }
    }
    Ok(Cursor::Follows(reader, last.author))
}

/// Writes a line for each of the next shields that the user has up, behind this one.
pub(super) async fn shields(
    archive: &dyn Transfer,
    user: UserNo,
    behind: Option<(Shield, ListCursor)>,
    lines: &mut Lines,
) -> Result<Cursor> {
    let (first, mut after) = behind.unzip();
    let kinds = [Shield::Mute, Shield::Hide, Shield::Block].into_iter();
    for shield in kinds.filter(|shield| first.is_none_or(|first| first <= *shield)) {
        let listed = archive.shielded(user, shield, after.take(), PIECE).await?;
        if listed.is_empty() {
            continue;
        }
        let name = &archive.user_ids(&[user]).await?[0];
        for line in &listed {
            lines.put(&Out::Shield { shield, user: name, other: &line.user, since: line.since });
        }
        if let Some(last) = listed.get(PIECE - 1) {
            return Ok(Cursor::Shielded(user, shield, last.cursor));
        }
    }
    let next = archive.users(Some(user), 1).await?;
    Ok(next.first().map_or(Cursor::Reactions(None), |(next, _)| Cursor::Shields(*next)))
}

/// Writes a line for the next reactions to an item.
async fn reactions(archive: &dyn Reactions, item: ItemId, before: Option<&Place>, lines: &mut Lines) -> Result<Cursor> {
    let listed = archive.reactions(item, Onlooker::BACKEND, None, before, PIECE).await?;
    for Reacted { user, place } in &listed {
        lines.put(&Out::Reaction { id: item, kind: &place.kind, user, since: place.at });
    }
    Ok(match listed.into_iter().nth(PIECE - 1) {
        Some(last) => Cursor::Below(item, last.place),
        None => Cursor::Reactions(Some(item)),
    })
}

/// Writes a line for each of the next members of lists; goes on with members of lines of notifications at the end.
async fn lists(archive: &dyn Archive, after: Option<(UserNo, ListName, UserNo)>, lines: &mut Lines) -> Result<Cursor> {
    let found = archive.listed(after, PIECE).await?;
    listed(archive, &found, lines).await?;
    let last = found.into_iter().last();
    Ok(last.map_or(Cursor::Members(None), |last| Cursor::Lists(Some((last.owner, last.list, last.member)))))
}

pub(super) async fn listed(archive: &dyn Names, found: &[Listed], lines: &mut Lines) -> Result<()> {
    let numbers: Vec<UserNo> = found.iter().flat_map(|line| [line.owner, line.member]).collect();
    let names = archive.user_ids(&numbers).await?;
    for (line, names) in found.iter().zip(names.chunks(2)) {
        lines.put(&Out::Listed { user: &names[0], list: &line.list, member: &names[1], since: line.since });
    }
    Ok(())
}

async fn people(archive: &dyn Archive, after: UserNo, lines: &mut Lines) -> Result<Cursor> {
    let found = archive.people(Some(after), PIECE).await?;
    let Some((last, _)) = found.last() else { return Ok(Cursor::Comments(None)) };
    let numbers: Vec<UserNo> = found.iter().map(|(user, _)| *user).collect();
    for ((_, person), user) in found.iter().zip(archive.user_ids(&numbers).await?) {
        lines.put(&Out::Person { user: &user, person });
    }
    Ok(Cursor::People(*last))
}

/// Writes a line for the next comments on an item, and for placeholders, since replies name them.
async fn talk(archive: &dyn Archive, item: ItemId, from: Option<CommentPlace>, lines: &mut Lines) -> Result<Cursor> {
    let page = archive.comments(item, Onlooker::BACKEND, CommentOrder::Oldest, from, COMMENTS).await?;
    for comment in &page.comments {
        let Comment { place, author, reply_to, version, body, mentions, .. } = comment;
        let (id, created_at, deleted) = (place.id, place.at, body.is_none());
        let (reply_to, version, body) = (*reply_to, *version, body.as_ref());
        lines.put(&Out::Comment { id, item, author, created_at, reply_to, version, body, mentions, deleted });
    }
    Ok(page.next.map_or(Cursor::Comments(Some(item)), |place| Cursor::Behind(item, place)))
}

/// Writes a line for the next members of lines of notifications. A line whose item was deleted is left out.
async fn members(archive: &dyn Archive, after: Option<(ItemId, u64)>, lines: &mut Lines) -> Result<Cursor> {
    let found = archive.line_members(after, PIECE).await?;
    let items: Vec<ItemId> = found.iter().map(|(_, line, _)| line.item).collect();
    let users: Vec<UserNo> = found.iter().flat_map(|(_, line, member)| [line.reader, member.actor]).collect();
    let (living, names) = (archive.items(&items).await?, archive.user_ids(&users).await?);
    for (((line, of, member), names), item) in found.iter().zip(names.chunks(2)).zip(living) {
        let ([reader, actor], Some(_)) = (names, item) else { continue };
        lines.put(&Out::Member {
            line: *line,
            seq: member.seq,
            item: of.item,
            reader,
            group: &of.group,
            kind: &of.kind,
            actor,
            key: &member.key,
            body: &member.told,
        });
    }
    let last = found.last();
    Ok(last.map_or(Cursor::Rankings(UserNo(0)), |(line, _, member)| Cursor::Members(Some((*line, member.seq)))))
}

/// Writes a line for each ranking of the next reader; goes on with pins at the end, or if no feed is ranked.
async fn rankings(archive: &dyn Archive, named: &NamedFeeds, after: UserNo, lines: &mut Lines) -> Result<Cursor> {
    const END: Cursor = Cursor::Pins(UserNo(0));
    if named.ranked().next().is_none() {
        return Ok(END);
    }
    let next = archive.users(Some(after), 1).await?;
    let Some((reader, name)) = next.first() else { return Ok(END) };
    rankings_of(archive, named, (*reader, name), lines).await?;
    Ok(Cursor::Rankings(*reader))
}

/// Writes a line with the pins of the next user; `None` at the end.
async fn pins(archive: &dyn Archive, after: UserNo, lines: &mut Lines) -> Result<Option<Cursor>> {
    let next = archive.users(Some(after), 1).await?;
    let Some((user, name)) = next.first() else { return Ok(None) };
    pins_of(archive, (*user, name), lines).await?;
    Ok(Some(Cursor::Pins(*user)))
}

/// Writes a line with the pins of a user, if there are any.
pub(super) async fn pins_of(archive: &dyn Archive, (no, user): (UserNo, &UserId), lines: &mut Lines) -> Result<()> {
    let ids: Vec<ItemId> = archive.pins(no).await?.into_iter().map(|pin| pin.item).collect();
    let living = if ids.is_empty() { vec![] } else { archive.items(&ids).await? };
    let items: Vec<ItemId> = living.into_iter().flatten().map(|item| item.id).collect();
    if !items.is_empty() {
        lines.put(&Out::Pins { user, items });
    }
    Ok(())
}

/// Writes a line for each ranking of a reader.
pub(super) async fn rankings_of(
    archive: &dyn Archive,
    named: &NamedFeeds,
    (reader, user): (UserNo, &UserId),
    lines: &mut Lines,
) -> Result<()> {
    for feed in named.ranked() {
        let ranking = archive.ranking(InboxKey { reader, feed: feed.id }).await?;
        if !ranking.is_empty() {
            let ranking = ranking.into_iter().map(Into::into).collect();
            lines.put(&Out::Ranking { user, feed: &feed.name, ranking });
        }
    }
    Ok(())
}

/// The id under which an export writes an add: `record` is that add, or the delete that ends it.
fn id_of(record: &Record, moved: Option<OutboxSeq>) -> ItemId {
    moved.map_or(record.key.item, |by| import::id_before_move(record.key.item, by))
}

/// The place of an import for `from`: the newest add or delete at or below it, since updates are not exported.
async fn place(archive: &dyn Transfer, author: UserNo, from: OutboxSeq) -> Result<import::Place> {
    let mut end = from;
    while end > 0 {
        let after = end.saturating_sub(LOOK_BACK);
        let records = archive.outbox(author, after, (end - after) as usize).await?.records;
        let mut places = records.iter().rev().filter(|record| matches!(record.op, Op::Add | Op::Delete));
        if let Some(record) = places.next() {
            let id = id_of(record, archive.moves(author, &[*record]).await?[0]);
            return Ok(if record.op == Op::Add { import::Place::Add(id) } else { import::Place::Delete(id) });
        }
        end = after;
    }
    Ok(import::Place::Start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_nothing_else_is_one() {
        for cursor in [
            START,
            Cursor::Outbox(UserNo(7), 9),
            Cursor::Direct(None),
            Cursor::Direct(Some(ItemId(u64::MAX))),
            Cursor::Follows(UserNo(u32::MAX), UserNo(3)),
            Cursor::Shields(UserNo(7)),
            Cursor::Shielded(UserNo(7), Shield::Block, ListCursor { listed: 8, tie: 9 }),
            Cursor::Reactions(None),
            Cursor::Reactions(Some(ItemId(7))),
            Cursor::Below(ItemId(7), Place { at: 5, user: UserNo(3), kind: ":a\"b".parse().unwrap() }),
            Cursor::People(UserNo(7)),
            Cursor::Comments(None),
            Cursor::Comments(Some(ItemId(7))),
            Cursor::Behind(ItemId(7), CommentPlace { at: 5, id: ItemId(8) }),
            Cursor::Lists(None),
            Cursor::Lists(Some((UserNo(7), "close:friends".parse().unwrap(), UserNo(8)))),
            Cursor::Members(None),
            Cursor::Members(Some((ItemId(7), 8))),
            Cursor::Rankings(UserNo(7)),
            Cursor::Pins(UserNo(7)),
        ] {
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
        for bad in [
            "",
            "1",
            "1:2",
            "2:x",
            "3:1",
            "4:1:1",
            "4:1:4:1:1",
            "4:1:1:x:1",
            "5:x",
            "5:1:2",
            "6",
            "7:x",
            "7:1:2",
            "8:1",
            "8:1:2",
            "8:x:2:a",
            "9:1",
            "9:1:x",
            "10",
            "10:x",
            "11",
            "11:x",
            "12",
            "1:-1:0",
            "1:1:1:1",
        ] {
            assert!(bad.parse::<Cursor>().is_err(), "{bad}");
        }
    }
}
