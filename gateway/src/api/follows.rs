//! Follow edges: set, cleared, listed. Durable when answered; the lists show them at once, the feed
//! soon after. Setting an edge that is set changes nothing and succeeds.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use feedgate_common::archive::{Follow, Write};
use feedgate_common::{Millis, UserId};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Api;
use super::access::{Backend, Caller};
use super::batch::{self, Operation};
use super::fields::Fields;
use super::payload::Payload;
use super::problem::{Problem, short};
use super::query::{NoQuery, Params, Query, Segment, Segments, decimal};

const LIST_DEFAULT: usize = 100;
const LIST_MAX: usize = 1000;

/// `PUT /v1/users/{user}/following/{author}`
pub(super) async fn follow(
    _: Backend,
    State(api): State<Arc<Api>>,
    Segments(reader, author): Segments<UserId, UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    set(&api, Write::Follow { reader, author }).await
}

/// `DELETE /v1/users/{user}/following/{author}`
pub(super) async fn unfollow(
    _: Backend,
    State(api): State<Arc<Api>>,
    Segments(reader, author): Segments<UserId, UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    set(&api, Write::Unfollow { reader, author }).await
}

async fn set(api: &Api, edge: Write) -> Result<StatusCode, Problem> {
    let written = api.write(vec![edge]).await?;
    written.into_iter().next().expect("the Archive answers each write")?;
    Ok(StatusCode::NO_CONTENT)
}

/// What became of one operation of a batch.
#[derive(Serialize)]
struct Outcome {
    status: u16,
    user: UserId,
    author: UserId,
    following: bool,
}

/// `POST /v1/follows/batch`
pub(super) async fn many(
    _: Backend,
    State(api): State<Arc<Api>>,
    _: NoQuery,
    payload: Payload<{ batch::BYTES_MAX }>,
) -> Result<Response, Problem> {
    batch::carry_out(&api, payload, operation, |outcome, _| outcome).await
}

/// `{"op":"follow"|"unfollow","user","author"}`
fn operation(op: &RawValue, at: String) -> Operation<Outcome> {
    let fields = Fields::of(op, at, &["op", "user", "author"])?;
    let op = fields.required("op")?;
    let (reader, author): (UserId, UserId) = (fields.required("user")?.name()?, fields.required("author")?.name()?);
    let outcome = |following| Outcome { status: 200, user: reader.clone(), author: author.clone(), following };
    match &*op.string()? {
        "follow" => Ok((outcome(true), Write::Follow { reader, author })),
        "unfollow" => Ok((outcome(false), Write::Unfollow { reader, author })),
        other => Err(op.refuse(format_args!("must be \"follow\" or \"unfollow\", not {:?}", short(other)))),
    }
}

/// One line of a list.
#[derive(Serialize)]
struct Line {
    user: UserId,
    since: Millis,
}

/// Newest edge first.
#[derive(Serialize)]
pub(super) struct List {
    users: Vec<Line>,
    /// The `cursor` of the next page; `None` at the end.
    next: Option<String>,
}

/// `GET /v1/users/{user}/following`
pub(super) async fn following(
    caller: Caller,
    State(api): State<Arc<Api>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Json<List>, Problem> {
    caller.may_read(&user)?;
    let (cursor, limit) = stretch(&query.only(&["limit", "cursor"])?)?;
    let lines = match api.user_no(&user).await? {
        Some(reader) => api.archive().following(reader, cursor, limit + 1).await?,
        None => vec![],
    };
    Ok(list(lines, limit))
}

/// `GET /v1/users/{user}/followers`; who follows a user is for backends to know.
pub(super) async fn followers(
    _: Backend,
    State(api): State<Arc<Api>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Json<List>, Problem> {
    let (cursor, limit) = stretch(&query.only(&["limit", "cursor"])?)?;
    let lines = match api.user_no(&user).await? {
        Some(author) => api.archive().followers(author, cursor, limit + 1).await?,
        None => vec![],
    };
    Ok(list(lines, limit))
}

fn stretch(params: &Params) -> Result<(Option<u64>, usize), Problem> {
    let wrong = || Problem::parameter("cursor", "cursor must be the \"next\" of an earlier page of this list");
    let cursor = params.get("cursor").map(|text| decimal(text).ok_or_else(wrong)).transpose()?;
    Ok((cursor, params.limit(LIST_DEFAULT, LIST_MAX)?))
}

/// One line more than `limit` tells that there is a next page.
fn list(mut lines: Vec<Follow>, limit: usize) -> Json<List> {
    let next = (lines.len() > limit).then(|| lines[limit - 1].cursor.to_string());
    lines.truncate(limit);
    let users = lines.into_iter().map(|line| Line { user: line.user, since: line.since }).collect();
    Json(List { users, next })
}
