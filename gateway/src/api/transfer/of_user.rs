//! `GET /v1/users/{user}/export`: all that is known of one user, one line for each thing. Lines that an import knows
//! have the form that the import reads; the rest has lines of other types.
//!
//! ```text
//!   items, deletes, class, follows, shields       as an export of all has them
//!   earlier bodies of items
//!   direct items, comments, reactions             those of the user
//!   follows, requests and shields of others       that lead to the user
//!   audiences of others that have the user
//!   lists of the user, and lists of others on which the user is
//!   person, rankings, pins, devices, sessions, what was seen, since when tokens are valid
//!   what is addressed to the user
//! ```
//!
//! One piece is in memory at a time. The export is no snapshot.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use feedgate_common::archive::ListCursor;
use feedgate_common::around::{Comment, Onlooker};
use feedgate_common::erase::{Mark, Stage, Trace};
use feedgate_common::error::Result;
use feedgate_common::feed::traces;
use feedgate_common::ids::ListName;
use feedgate_common::import::Place;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{
    Archive, DisplayKey, InboxKey, Item, ItemId, Millis, Op, OutboxSeq, Replaced, UserId, UserNo, Watermarks,
};
use futures_util::stream;
use tracing::Span;

use super::super::access::AdminKey;
use super::super::names::user_no;
use super::super::problem::{Kind, Problem};
use super::super::query::{NoQuery, Segment};
use super::NDJSON;
use super::export::{self, Cursor, Lines, PIECE};
use super::line::{Out, place_text};
use crate::node::LocalSessions;

/// How many items that are addressed to the user are read at a time.
const ADDRESSED: usize = 200;

/// What comes next in the export of a user.
enum Next {
    /// A part of the export of all: the outbox, the follows or the shields of the user.
    Part(Cursor),
    /// The bodies that items of the outbox had before they were edited, behind this record.
    Versions(OutboxSeq),
    /// The earlier bodies of items that the user has addressed to readers, below this item.
    SentVersions(Option<DisplayKey>),
    /// Traces of this stage behind this place.
    Traces(Stage, Option<Mark>),
    /// The user's lists that are left, the next one last, and behind which of its members; `None` before they are read.
    Lists(Option<(Vec<ListName>, Option<ListCursor>)>),
    /// The lists of others on which the user is, behind this one.
    Listing(Option<(UserNo, ListName)>),
    /// What else is stored for the user: person, rankings, pins, devices, sessions, what was seen, and a revocation.
    Kept,
    /// What is addressed to the user in one feed, which has this number in the list of feeds, behind this record.
    Addressed(usize, u64),
}

/// With so many bytes a piece has no room for the earlier bodies of a further item, which may have more than a MiB.
const VERSIONS_BYTES: usize = 1024 * 1024;

/// The stages whose traces have lines, in their order.
const STAGES: [Stage; 7] = [
    Stage::Direct,
    Stage::Comments,
    Stage::Reactions,
    Stage::Followers,
    Stage::Requests,
    Stage::Shielded,
    Stage::Audiences,
];

/// What an export of one user reads from.
struct Reader {
    archive: Arc<dyn Archive>,
    named: Arc<NamedFeeds>,
    local: Arc<LocalSessions>,
    user: UserNo,
    name: UserId,
    span: Span,
}

/// Answers `GET /v1/users/{user}/export` with a stream of lines.
pub(in super::super) async fn of_user(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    State(local): State<Arc<LocalSessions>>,
    Segment(name): Segment<UserId>,
    _: NoQuery,
) -> std::result::Result<Response, Problem> {
    let nothing = || Problem::new(Kind::NotFound, format!("nothing is known of user {name}"));
    let user = user_no(&*archive, &name).await?.ok_or_else(nothing)?;
    // The body is made after the future of the request has ended, so it keeps the span of the request.
    let reader = Reader { archive, named, local, user, name, span: Span::current() };
    let start = Some(Next::Part(Cursor::Outbox(user, 0)));
    let pieces = stream::unfold((reader, start), |(reader, next)| async move {
        match reader.piece(next?).await {
            Ok((lines, next)) => Some((Ok(Bytes::from(lines)), (reader, next))),
            // The error breaks the body off, so that the client does not take it for a complete one.
            Err(error) => {
                tracing::warn!(parent: &reader.span, %error, "the export of a user was broken off");
                Some((Err(std::io::Error::other(error)), (reader, None)))
            }
        }
    });
    Ok(([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(pieces)).into_response())
}

impl Reader {
    /// Some lines, and what comes next; `None` at the end.
    async fn piece(&self, next: Next) -> Result<(Vec<u8>, Option<Next>)> {
        let mut lines = Lines(vec![]);
        let next = match next {
            Next::Part(cursor) => Some(self.part(cursor, &mut lines).await?),
            Next::Versions(after) => Some(self.versions(after, &mut lines).await?),
            Next::SentVersions(before) => Some(self.sent_versions(before, &mut lines).await?),
            Next::Traces(stage, after) => {
                let page = traces(&*self.archive, self.user, stage, after.as_ref()).await?;
                for (_, trace) in page.found {
                    self.put(trace, &mut lines).await?;
                }
                Some(match page.next {
                    Some(mark) => Next::Traces(stage, Some(mark)),
                    None => behind(stage),
                })
            }
            Next::Lists(after) => Some(self.lists(after, &mut lines).await?),
            Next::Listing(after) => Some(self.listing(after, &mut lines).await?),
            Next::Kept => {
                self.kept(&mut lines).await?;
                Some(Next::Addressed(0, 0))
            }
            Next::Addressed(feed, after) => self.addressed(feed, after, &mut lines).await?,
        };
        Ok((lines.0, next))
    }

    /// A piece of the export of all. That export goes on with the next user, but this one with the next part of this
    /// user.
    async fn part(&self, cursor: Cursor, lines: &mut Lines) -> Result<Next> {
        let (archive, user) = (&*self.archive, self.user);
        let behind = match cursor {
            Cursor::Outbox(_, after) => {
                let next = export::outbox(archive, &self.named, user, after, lines).await?;
                let more = matches!(next, Cursor::Outbox(author, _) if author == user);
                return Ok(Next::Part(if more { next } else { Cursor::Follows(user, UserNo(0)) }));
            }
            Cursor::Follows(_, after) => {
                let next = export::follows(archive, user, after, lines).await?;
                let more = matches!(next, Cursor::Follows(reader, _) if reader == user);
                return Ok(Next::Part(if more { next } else { Cursor::Shields(user) }));
            }
            Cursor::Shielded(_, shield, after) => Some((shield, after)),
            _ => None,
        };
        let next = export::shields(archive, user, behind, lines).await?;
        let more = matches!(next, Cursor::Shielded(..));
        Ok(if more { Next::Part(next) } else { Next::Versions(0) })
    }

    async fn versions(&self, after: OutboxSeq, lines: &mut Lines) -> Result<Next> {
        let outbox = self.archive.outbox(self.user, after, PIECE).await?;
        let Some(last) = outbox.records.last() else { return Ok(Next::SentVersions(None)) };
        let adds: Vec<_> = outbox.records.iter().filter(|record| record.op == Op::Add).collect();
        let ids: Vec<ItemId> = adds.iter().map(|add| add.key.item).collect();
        for (add, item) in adds.into_iter().zip(self.archive.items(&ids).await?) {
            // An item that was moved has an add for each rank that it had.
            if let Some(item) = item.filter(|item| item.outbox_seq == add.seq)
                && self.put_versions(&item, lines).await?
            {
                return Ok(Next::Versions(add.seq));
            }
        }
        Ok(Next::Versions(last.seq))
    }

    async fn sent_versions(&self, before: Option<DisplayKey>, lines: &mut Lines) -> Result<Next> {
        let sent = self.archive.sent(self.user, before, PIECE).await?;
        let Some(last) = sent.last() else { return Ok(Next::Traces(STAGES[0], None)) };
        let ids: Vec<ItemId> = sent.iter().map(|key| key.item).collect();
        for (key, item) in sent.iter().zip(self.archive.items(&ids).await?) {
            if let Some(item) = item
                && self.put_versions(&item, lines).await?
            {
                return Ok(Next::SentVersions(Some(*key)));
            }
        }
        Ok(Next::SentVersions(Some(*last)))
    }

    /// Writes a line for each body that an item had before it was edited. Answers whether the piece is full.
    async fn put_versions(&self, item: &Item, lines: &mut Lines) -> Result<bool> {
        if item.version > 1 {
            for Replaced { version, body, at } in &self.archive.versions(item.id).await? {
                lines.put(&Out::Version { id: item.id, version: *version, body, replaced_at: *at });
            }
        }
        Ok(lines.0.len() >= VERSIONS_BYTES)
    }

    async fn put(&self, trace: Trace, lines: &mut Lines) -> Result<()> {
        let archive = &*self.archive;
        match trace {
            Trace::Item { id, lives: true, direct: true } => {
                let before = id.0.checked_sub(1).map(ItemId);
                let found = archive.direct_items(before, 1).await?;
                let readers = found.first().filter(|(of, _)| *of == id).map_or(&[][..], |(_, readers)| readers);
                let to = archive.user_ids(readers).await?;
                if let Some(item) = archive.items(&[id]).await?.remove(0) {
                    lines.put(&Out::Item { item: &item, to: Some(&to), audience: None });
                }
            }
            Trace::Comment { item, id, lives: true } => {
                let Some(comment) = archive.comment_of(item, id, Onlooker::BACKEND).await? else { return Ok(()) };
                let Comment { place, author, reply_to, version, body, mentions, .. } = &comment;
                let (reply_to, version, body) = (*reply_to, *version, body.as_ref());
                lines.put(&Out::Comment {
                    id,
                    item,
                    author,
                    created_at: place.at,
                    reply_to,
                    version,
                    body,
                    mentions,
                    deleted: false,
                });
            }
            Trace::Reactions { item, kinds } => {
                for (kind, since) in &kinds {
                    lines.put(&Out::Reaction { id: item, kind, user: &self.name, since: *since });
                }
            }
            Trace::Follower(reader) => {
                let (reader, since) = self.leads_here(reader).await?;
                lines.put(&Out::Follow { reader: &reader, author: &self.name, since, from: place_text(Place::Head) });
            }
            Trace::Asker(reader) => {
                let (reader, since) = self.leads_here(reader).await?;
                lines.put(&Out::Request { reader: &reader, author: &self.name, since });
            }
            Trace::Shielded(shield, owner) => {
                let owner = archive.user_ids(&[owner]).await?.remove(0);
                lines.put(&Out::Shield { shield, user: &owner, other: &self.name, since: 0 });
            }
            Trace::Audience(id) => {
                if let Some(item) = archive.items(&[id]).await?.remove(0) {
                    lines.put(&Out::Addressed { user: &self.name, id, author: &item.author });
                }
            }
            // The other stages come as parts of the export of all. An item or a comment that was deleted has no
            // content.
            _ => {}
        }
        Ok(())
    }

    /// The name of a reader who follows the user or asks to, and since when.
    async fn leads_here(&self, reader: UserNo) -> Result<(UserId, Millis)> {
        let held = self.archive.held(reader, Some(UserNo(self.user.0.saturating_sub(1))), 1).await?;
        let since = held.first().filter(|edge| edge.author == self.user).map_or(0, |edge| edge.since);
        Ok((self.archive.user_ids(&[reader]).await?.remove(0), since))
    }

    /// Writes a line for each of the next members of one list of the user.
    async fn lists(&self, left: Option<(Vec<ListName>, Option<ListCursor>)>, lines: &mut Lines) -> Result<Next> {
        let (mut left, after) = match left {
            Some(left) => left,
            None => (self.archive.lists(self.user).await?.into_iter().rev().map(|(list, _)| list).collect(), None),
        };
        let Some(list) = left.last() else { return Ok(Next::Listing(None)) };
        let members = self.archive.members(self.user, list, after, PIECE).await?;
        for member in &members {
            lines.put(&Out::Listed { user: &self.name, list, member: &member.user, since: member.since });
        }
        let after = members.get(PIECE - 1).map(|last| last.cursor);
        if after.is_none() {
            left.pop();
        }
        Ok(Next::Lists(Some((left, after))))
    }

    /// Writes a line for each of the next lists of others on which the user is.
    async fn listing(&self, after: Option<(UserNo, ListName)>, lines: &mut Lines) -> Result<Next> {
        let found = self.archive.listing(self.user, after, PIECE).await?;
        export::listed(&*self.archive, &found, lines).await?;
        let last = found.into_iter().nth(PIECE - 1);
        Ok(last.map_or(Next::Kept, |last| Next::Listing(Some((last.owner, last.list)))))
    }

    async fn kept(&self, lines: &mut Lines) -> Result<()> {
        let (archive, user) = (&*self.archive, &self.name);
        if let Some(person) = archive.person(self.user).await? {
            lines.put(&Out::Person { user, person: &person });
        }
        export::rankings_of(archive, &self.named, (self.user, user), lines).await?;
        export::pins_of(archive, (self.user, user), lines).await?;
        for device in archive.push_devices(&[self.user]).await?.remove(0) {
            let feeds = device.feeds.iter().filter_map(|feed| self.named.name(*feed)).collect();
            let (name, platform, token) = (&device.device, &*device.platform, &*device.token);
            lines.put(&Out::Device { user, device: name, platform, push_token: token, feeds, since: device.since });
        }
        for session in self.local.sessions.list(self.user).await? {
            lines.put(&Out::Session {
                user,
                device: &session.device,
                position: session.position,
                since: session.since,
            });
        }
        for feed in archive.feeds().await? {
            let seen = archive.seen(InboxKey { reader: self.user, feed }).await?;
            if let (Some(seen), Some(feed)) = (seen, self.named.name(feed)) {
                lines.put(&Out::Seen { user, feed, position: seen.position, until: seen.until });
            }
        }
        if let Some(before) = archive.revoked(self.user).await? {
            lines.put(&Out::Revoked { user, before });
        }
        Ok(())
    }

    async fn addressed(&self, nth: usize, after: u64, lines: &mut Lines) -> Result<Option<Next>> {
        let feeds = self.archive.feeds().await?;
        let Some(feed) = feeds.get(nth) else { return Ok(None) };
        // The items of a ranking are in the line of that ranking.
        if self.named.is_ranked(*feed) {
            return Ok(Some(Next::Addressed(nth + 1, 0)));
        }
        let from = Watermarks { pull: u64::MAX, direct: after };
        let news = self.archive.news(InboxKey { reader: self.user, feed: *feed }, from, ADDRESSED).await?;
        let adds = news.entries.iter().filter(|entry| entry.op == Op::Add && entry.is_direct());
        let ids: Vec<ItemId> = adds.map(|entry| entry.key.item).collect();
        for item in self.archive.items(&ids).await?.iter().flatten() {
            lines.put(&Out::Addressed { user: &self.name, id: item.id, author: &item.author });
        }
        let more = news.entries.len() >= ADDRESSED && news.upto.direct > after;
        Ok(Some(if more { Next::Addressed(nth, news.upto.direct) } else { Next::Addressed(nth + 1, 0) }))
    }
}

/// What comes behind a stage.
fn behind(stage: Stage) -> Next {
    let place = STAGES.iter().position(|of| *of == stage).map_or(STAGES.len(), |place| place + 1);
    STAGES.get(place).map_or(Next::Lists(None), |next| Next::Traces(*next, None))
}
