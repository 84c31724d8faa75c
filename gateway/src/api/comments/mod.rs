//! Comments on an item: written, read page by page, edited, deleted. A write is durable when it is answered, and its
//! repetition with the same id or key changes nothing. A reader comments in its own name, on items that it sees; a
//! backend comments in the name of any user.

pub(super) mod many;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use feedgate_common::around::{
    COMMENT_MAX_BYTES, CommentOrder, CommentPage, CommentWrite, Commented, NewComment, Onlooker, Uncommented, Viewer,
};
use feedgate_common::doorbell::{Talked, Touch};
use feedgate_common::feed::{Cards, Feeds, cards_of};
use feedgate_common::{Archive, Body, ItemId, Millis, UserId, UserNo};
use serde::Serialize;

use super::access::{Caller, ReaderOrPublisher};
use super::cursor;
use super::fields::Fields;
use super::items::if_match;
use super::names::{intern, user_no};
use super::payload::Payload;
use super::problem::{Kind, Problem, short};
use super::publish::{self, header_key};
use super::query::{ItemRef, NoQuery, Query, Segment, Segments};
use super::seeing::{Seen, missing, resolve, sees, viewer};
use super::writer::Writer;
use crate::around::CommentJson;
use crate::clock;
use crate::limits::budget::{CARD_MAX, NAMES_MAX};

const LIST_DEFAULT: usize = 20;
const LIST_MAX: usize = 100;

/// The most bytes of a request: the body, and room for spaces and names.
const REQUEST_MAX: usize = COMMENT_MAX_BYTES + 4 * 1024 + NAMES_MAX;

/// The most bytes that a comment takes in memory, as it was read and as JSON together.
const LINE_MAX: usize = 2 * (COMMENT_MAX_BYTES + NAMES_MAX) + 1024;

/// The answer to a comment that was written.
#[derive(Serialize)]
struct Accepted {
    id: ItemId,
    item: ItemId,
    created_at: Millis,
}

/// A page of comments in the order that was asked for.
#[derive(Serialize)]
struct List<'a> {
    comments: Vec<CommentJson<'a>>,
    /// The `cursor` of the next page in this order; `None` at its end.
    next: Option<String>,
    /// The cursor at the newest comment of this page: with `order=oldest` it leads to newer comments.
    newest: Option<String>,
    /// The cursor at the oldest comment of this page: with `order=newest` it leads to older comments.
    oldest: Option<String>,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// Answers `POST /v1/items/{id}/comments` with `{author?, body, reply_to?, id?, mentions?}`.
pub(super) async fn make(
    ReaderOrPublisher(caller): ReaderOrPublisher,
    State(feeds): State<Arc<Feeds>>,
    State(writer): State<Writer>,
    Segment(which): Segment<ItemRef>,
    _: NoQuery,
    headers: HeaderMap,
    payload: Payload<REQUEST_MAX>,
) -> Result<Response, Problem> {
    let key = header_key(&headers)?;
    // A caller who may not comment in this name is told so at once. Other problems are told only to who sees the item.
    let asked = match asked_for(&caller, &payload) {
        Err(problem) if problem.kind == Kind::Forbidden => return Err(problem),
        asked => asked,
    };
    let (reader, archive) = (caller.reader().cloned(), feeds.archive());
    let _permit = caller.permit(LINE_MAX).await?;
    let item = resolve(&**archive, &which).await?;
    if reader.is_some() && !sees(reader.as_ref(), &**archive, item).await? {
        return Err(missing(&which));
    }
    let Asked { author, id, body, reply_to, mentions } = asked?;
    let author = intern(&**archive, &author).await?;
    name_all(&**archive, &mentions).await?;
    if let (Some(_), Some(sibling)) = (&reader, reply_to)
        && is_hidden(&feeds, item, sibling, author).await?
    {
        return Err(Uncommented::NoSuchSibling(sibling).into());
    }
    let new = NewComment { item, author, reply_to, body, id, key, past: None, mentions };
    let made = write(archive, &writer, CommentWrite::Make(new)).await?.map_err(|refused| told(refused, &which))?;
    let status = if made.changed { StatusCode::CREATED } else { StatusCode::OK };
    let id = made.place.id;
    let location = [(header::LOCATION, format!("/v1/items/{item}/comments/{id}"))];
    Ok((status, location, Json(Accepted { id, item, created_at: made.place.at })).into_response())
}

/// The fields of the request for a new comment.
struct Asked {
    author: UserId,
    id: Option<ItemId>,
    body: Body,
    reply_to: Option<ItemId>,
    mentions: Vec<UserId>,
}

/// Reads the request for a new comment, or says what is wrong with it.
fn asked_for(caller: &Caller, payload: &Payload<REQUEST_MAX>) -> Result<Asked, Problem> {
    let fields = payload.fields(&["author", "body", "reply_to", "id", "mentions"])?;
    let author = author(caller, &fields)?;
    let id = fields.get("id").map(|field| match caller.reader() {
        Some(_) => Err(field.refuse(
            "only an API key chooses ids; send the header Idempotency-Key, so that a retry is no second comment",
        )),
        None => field.name(),
    });
    let (id, body) = (id.transpose()?, body(&fields)?);
    let reply_to = fields.get("reply_to").map(|field| field.name()).transpose()?;
    let mentions = mentions(caller.reader(), &fields)?.unwrap_or_default();
    Ok(Asked { author, id, body, reply_to, mentions })
}

/// The users whom a comment mentions. Each of these users is notified, so only a backend may name them, and no device.
fn mentions(reader: Option<&UserId>, fields: &Fields<'_>) -> Result<Option<Vec<UserId>>, Problem> {
    match (fields.get("mentions"), reader) {
        (Some(field), Some(_)) => {
            Err(field.refuse("only an API key names whom a comment mentions; let your backend write the comment"))
        }
        _ => publish::mentions(fields),
    }
}

/// Gives a number to each of these users who was never named, so that the user can be notified.
async fn name_all(archive: &dyn Archive, users: &[UserId]) -> Result<(), Problem> {
    if !users.is_empty() {
        archive.intern(users).await?;
    }
    Ok(())
}

/// The user in whose name a comment is written; a reader comments in its own name.
fn author(caller: &Caller, fields: &Fields<'_>) -> Result<UserId, Problem> {
    match (fields.get("author"), caller.reader()) {
        (None, Some(reader)) => Ok(reader.clone()),
        _ => {
            let author = fields.required("author")?.name()?;
            caller.may_read(&author)?;
            Ok(author)
        }
    }
}

/// The field `body`, with every byte as it was sent.
pub(super) fn body(fields: &Fields<'_>) -> Result<Body, Problem> {
    let body = publish::body(fields)?;
    match body.get().len() {
        ..=COMMENT_MAX_BYTES => Ok(body),
        bytes => Err(fields.required("body")?.refuse(format_args!(
            "the body of a comment holds at most {COMMENT_MAX_BYTES} bytes of JSON, this one has {bytes}"
        ))),
    }
}

/// Whether the comment exists, but this user does not see it.
async fn is_hidden(feeds: &Feeds, item: ItemId, id: ItemId, user: UserNo) -> Result<bool, Problem> {
    let (archive, onlooker) = (feeds.archive(), feeds.onlooker(Viewer::User(Some(user))));
    let shown = archive.comment_of(item, id, onlooker).await?.is_some();
    Ok(!shown && archive.comment_of(item, id, Onlooker::BACKEND).await?.is_some())
}

/// Makes one change, and notifies the watchers of the item.
async fn write(
    archive: &Arc<dyn Archive>,
    writer: &Writer,
    write: CommentWrite,
) -> Result<Result<Commented, Uncommented>, Problem> {
    Ok(write_all(archive, writer, vec![write]).await?.pop().expect("the Archive answers each change"))
}

/// Makes these changes in order, in one commit, and notifies the watchers of the items.
async fn write_all(
    archive: &Arc<dyn Archive>,
    writer: &Writer,
    writes: Vec<CommentWrite>,
) -> Result<Vec<Result<Commented, Uncommented>>, Problem> {
    if writes.is_empty() {
        return Ok(vec![]);
    }
    let talked = |write: &CommentWrite| match write {
        CommentWrite::Make(new) => (new.item, Talked::Made),
        CommentWrite::Edit { item, .. } => (*item, Talked::Edited),
        CommentWrite::Delete { item, .. } => (*item, Talked::Deleted),
    };
    let talked: Vec<_> = writes.iter().map(talked).collect();
    let (changing, telling) = (archive.clone(), writer.clone());
    let change = async move {
        let notified = changing.comment_and_notify(writes, clock::now()).await?;
        for ((item, talked), done) in talked.into_iter().zip(&notified.answers) {
            if let Ok(Commented { place, changed: true, .. }) = done {
                telling.touched(Touch { item, comment: Some((place.id, talked)) });
            }
        }
        Ok(notified)
    };
    Ok(writer.notify(change).await?)
}

/// The problem of a refused change. If there is no such item, it names the item as the caller did.
fn told(refused: Uncommented, which: &ItemRef) -> Problem {
    match refused {
        Uncommented::NoSuchItem(_) => missing(which),
        refused => refused.into(),
    }
}

impl From<Uncommented> for Problem {
    fn from(refused: Uncommented) -> Self {
        let kind = match refused {
            Uncommented::IsComment(_) => return Self::at_pointer(String::new(), refused.to_string()),
            Uncommented::NoSuchSibling(_) => return Self::at_pointer("/reply_to".to_owned(), refused.to_string()),
            Uncommented::NoSuchItem(_) | Uncommented::NoSuchComment(_) => Kind::NotFound,
            Uncommented::NotOwn(_) => Kind::Forbidden,
            Uncommented::IdTaken(_) | Uncommented::KeyReused(_) => Kind::Conflict,
            Uncommented::VersionMismatch { .. } => Kind::VersionMismatch,
        };
        Self::new(kind, refused.to_string())
    }
}

/// Answers `GET /v1/items/{id}/comments` with a page of comments.
pub(super) async fn list(
    caller: Caller,
    State(feeds): State<Arc<Feeds>>,
    Segment(which): Segment<ItemRef>,
    query: Query,
) -> Result<Response, Problem> {
    let params = query.only(&["order", "cursor", "limit", "viewer"])?;
    let order = match params.get("order") {
        None | Some("newest") => CommentOrder::Newest,
        Some("oldest") => CommentOrder::Oldest,
        Some(other) => {
            let detail = format!("order must be newest or oldest, not {:?}", short(other));
            return Err(Problem::parameter("order", detail));
        }
    };
    let from = params.cursor_of(cursor::parse)?;
    let limit = params.limit(LIST_DEFAULT, LIST_MAX)?;
    let viewer = viewer(&caller, &params)?;
    let (reader, archive) = (caller.reader().is_some(), feeds.archive());
    let permit = caller.permit((limit + 1) * (LINE_MAX + CARD_MAX)).await?;
    let seen = Seen::by(archive, viewer, reader).await?;
    let (item, onlooker) = (seen.resolve(&which).await?, feeds.onlooker(seen.viewer));
    let CommentPage { comments, next } = archive.comments(item, onlooker, order, from, limit).await?;
    let authors = comments.iter().filter(|comment| comment.body.is_some());
    let authors: BTreeMap<UserNo, &UserId> = authors.map(|comment| (comment.author_no, &comment.author)).collect();
    let people = cards_of(&**archive, authors).await?;
    let places = || comments.iter().map(|comment| comment.place);
    // A page without comments gives its own start as the cursors, so that a client that waits for newer comments can go
    // on.
    let (newest, oldest) = (places().max().or(from), places().min().or(from));
    Ok(permit.answer(&List {
        comments: comments.iter().map(CommentJson::from).collect(),
        next: next.as_ref().map(cursor::text),
        newest: newest.as_ref().map(cursor::text),
        oldest: oldest.as_ref().map(cursor::text),
        people,
    }))
}

/// Answers `GET /v1/items/{id}/comments/{comment}` with this comment.
pub(super) async fn read(
    caller: Caller,
    State(feeds): State<Arc<Feeds>>,
    Segments(which, id): Segments<ItemRef, ItemId>,
    query: Query,
) -> Result<Response, Problem> {
    let viewer = viewer(&caller, &query.only(&["viewer"])?)?;
    let (reader, archive) = (caller.reader().is_some(), feeds.archive());
    let permit = caller.permit(LINE_MAX).await?;
    let seen = Seen::by(archive, viewer, reader).await?;
    let (item, onlooker) = (seen.resolve(&which).await?, feeds.onlooker(seen.viewer));
    let found = archive.comment_of(item, id, onlooker).await?.ok_or(Uncommented::NoSuchComment(id))?;
    Ok((etag(found.version), permit.answer(&CommentJson::from(&found))).into_response())
}

/// Answers `PATCH /v1/items/{id}/comments/{comment}` with `{"body":…}`, and for a backend `"mentions"`.
pub(super) async fn edit(
    ReaderOrPublisher(caller): ReaderOrPublisher,
    State(feeds): State<Arc<Feeds>>,
    State(writer): State<Writer>,
    Segments(which, id): Segments<ItemRef, ItemId>,
    _: NoQuery,
    headers: HeaderMap,
    payload: Payload<REQUEST_MAX>,
) -> Result<Response, Problem> {
    let if_version = if_match(&headers)?;
    let (reader, archive) = (caller.reader().cloned(), feeds.archive());
    let asked = payload.fields(&["body", "mentions"]).and_then(|fields| {
        let mentions = mentions(reader.as_ref(), &fields)?;
        Ok((body(&fields)?, mentions))
    });
    let permit = caller.permit(LINE_MAX).await?;
    let (item, by) = who_asks(&**archive, &which, id, reader.as_ref()).await?;
    let (body, mentions) = asked?;
    name_all(&**archive, mentions.as_deref().unwrap_or_default()).await?;
    let edit = CommentWrite::Edit { item, id, by, body, mentions, if_version };
    carry_out(&feeds, &writer, &which, reader.as_ref(), edit, (id, by)).await?;
    let now = archive.comment_of(item, id, Onlooker::BACKEND).await?.ok_or(Uncommented::NoSuchComment(id))?;
    Ok((etag(now.version), permit.answer(&CommentJson::from(&now))).into_response())
}

/// Answers `DELETE /v1/items/{id}/comments/{comment}`. Deleting a comment again changes nothing and succeeds.
pub(super) async fn delete(
    ReaderOrPublisher(caller): ReaderOrPublisher,
    State(feeds): State<Arc<Feeds>>,
    State(writer): State<Writer>,
    Segments(which, id): Segments<ItemRef, ItemId>,
    _: NoQuery,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let if_version = if_match(&headers)?;
    let reader = caller.reader().cloned();
    let _permit = caller.permit(LINE_MAX).await?;
    let (item, by) = who_asks(&**feeds.archive(), &which, id, reader.as_ref()).await?;
    let delete = CommentWrite::Delete { item, id, by, if_version };
    carry_out(&feeds, &writer, &which, reader.as_ref(), delete, (id, by)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The item, and the user who asks; `None` for a backend. A user may change its own comment even if the user does not
/// see the item any more. A user who was never named has written nothing.
async fn who_asks(
    archive: &dyn Archive,
    which: &ItemRef,
    id: ItemId,
    reader: Option<&UserId>,
) -> Result<(ItemId, Option<UserNo>), Problem> {
    let item = resolve(archive, which).await?;
    match (reader, number_of(archive, reader).await?) {
        (Some(_), None) if !sees(reader, archive, item).await? => Err(missing(which)),
        (Some(_), None) => Err(Uncommented::NoSuchComment(id).into()),
        (_, by) => Ok((item, by)),
    }
}

/// Changes a comment. A caller who does not see the item is told that there is none, unless the comment is its own. If
/// the comment belongs to another user, only a caller who sees it is told that it exists.
async fn carry_out(
    feeds: &Feeds,
    writer: &Writer,
    which: &ItemRef,
    reader: Option<&UserId>,
    change: CommentWrite,
    (id, by): (ItemId, Option<UserNo>),
) -> Result<(), Problem> {
    let (item, archive) = (change.item(), feeds.archive());
    match write(archive, writer, change).await? {
        Ok(_) => Ok(()),
        Err(Uncommented::NotOwn(_) | Uncommented::NoSuchComment(_) | Uncommented::IsComment(_))
            if !sees(reader, &**archive, item).await? =>
        {
            Err(missing(which))
        }
        Err(Uncommented::NotOwn(_))
            if archive.comment_of(item, id, feeds.onlooker(Viewer::User(by))).await?.is_none() =>
        {
            Err(Uncommented::NoSuchComment(id).into())
        }
        Err(refused) => Err(told(refused, which)),
    }
}

async fn number_of(archive: &dyn Archive, user: Option<&UserId>) -> Result<Option<UserNo>, Problem> {
    match user {
        Some(user) => user_no(archive, user).await,
        None => Ok(None),
    }
}

fn etag(version: u32) -> [(HeaderName, String); 1] {
    [(header::ETAG, format!("\"{version}\""))]
}
