//! Follow edges: set, removed, listed, and requests for them. A change is durable when it is answered; the lists show
//! it at once, the feed soon after. Setting an edge that is already set changes nothing and succeeds.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use feedgate_common::archive::{Answer, Follow, ListCursor, Names, Refused, Write, Written};
use feedgate_common::{Archive, Millis, UserId, UserNo, error};
use serde::Serialize;

use super::access::{Caller, PublishKey, ReadKey};
use super::names::user_no;
use super::problem::Problem;
use super::query::{NoQuery, Query, Segment, Segments, decimal};
use super::writer::Writer;

const LIST_DEFAULT: usize = 100;
const LIST_MAX: usize = 1000;

/// The most bytes that a line takes in memory, as it was read and as JSON together.
const LINE_MAX: usize = 512;

/// Says that a follow is only a request so far.
#[derive(Serialize)]
struct Pending {
    pending: bool,
}

/// Answers `PUT /v1/users/{user}/following/{author}` and sets the edge: 204, or 202 if the author is private and the
/// follow is only a request so far.
pub(super) async fn follow(
    _: PublishKey,
    State(writer): State<Writer>,
    Segments(reader, author): Segments<UserId, UserId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    Ok(match writer.write_one(Write::Follow { reader, author }).await? {
        Written::Edge { pending: true, .. } => (StatusCode::ACCEPTED, Json(Pending { pending: true })).into_response(),
        _ => StatusCode::NO_CONTENT.into_response(),
    })
}

/// Answers `PUT /v1/users/{user}/followers/{reader}`: the user accepts the request of the reader.
pub(super) async fn accept(
    _: PublishKey,
    State(writer): State<Writer>,
    Segments(author, reader): Segments<UserId, UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    writer.write_one(Write::Answer { reader, author, answer: Answer::Accept }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers `DELETE /v1/users/{user}/requests/{reader}`: the user refuses the request of the reader. The refusal of a
/// request that does not exist succeeds, and a reader who follows already stays a follower.
pub(super) async fn refuse(
    _: PublishKey,
    State(writer): State<Writer>,
    Segments(author, reader): Segments<UserId, UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let refused = writer.write(vec![Write::Answer { reader, author, answer: Answer::Refuse }]).await?;
    match refused.into_iter().next().expect("the Archive answers each write") {
        Ok(_) | Err(Refused::NoSuchRequest { .. }) => Ok(StatusCode::NO_CONTENT),
        Err(refused) => Err(refused.into()),
    }
}

/// Answers `DELETE /v1/users/{user}/following/{author}` and removes the edge.
pub(super) async fn unfollow(
    _: PublishKey,
    State(writer): State<Writer>,
    Segments(reader, author): Segments<UserId, UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    writer.write_one(Write::Unfollow { reader, author }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// One user in a list.
#[derive(Serialize)]
struct UserJson {
    user: UserId,
    since: Millis,
}

/// A page of a list, the newest edge first.
#[derive(Serialize)]
struct List {
    users: Vec<UserJson>,
    /// The `cursor` of the next page; `None` at the end of the list.
    next: Option<String>,
}

/// Answers `GET /v1/users/{user}/following` with the authors whom the user follows.
pub(super) async fn following(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    list(&*archive, caller, &user, query, |user, cursor, limit| archive.following(user, cursor, limit)).await
}

/// Answers `GET /v1/users/{user}/followers`, for backends only.
pub(super) async fn followers(
    ReadKey(caller): ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    list(&*archive, caller, &user, query, |user, cursor, limit| archive.followers(user, cursor, limit)).await
}

/// Answers `GET /v1/users/{user}/requests` with the users who have asked to follow the user and have no answer yet.
pub(super) async fn requests(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    list(&*archive, caller, &user, query, |user, cursor, limit| archive.requests(user, cursor, limit)).await
}

/// Answers `GET /v1/users/{user}/mutual`: the users whom a user follows and is followed by. For backends only, since it
/// tells of followers.
pub(super) async fn mutual(
    ReadKey(caller): ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    list(&*archive, caller, &user, query, |user, cursor, limit| archive.mutual(user, cursor, limit)).await
}

/// A cursor as text: its number `listed`, and then, if it is not zero, `tie`, which orders lines of the same number.
fn cursor_text(ListCursor { listed, tie }: ListCursor) -> String {
    if tie == 0 { listed.to_string() } else { format!("{listed}-{tie}") }
}

/// Reads what [`cursor_text`] writes.
fn cursor_of(text: &str) -> Option<ListCursor> {
    let (listed, tie) = text.split_once('-').unwrap_or((text, "0"));
    Some(ListCursor { listed: decimal(listed)?, tie: u32::try_from(decimal(tie)?).ok()? })
}

/// Answers with a page of a list of the user. `ask` gets the user, a cursor and a limit.
pub(super) async fn list<Asked: Future<Output = error::Result<Vec<Follow>>>>(
    names: &dyn Names,
    caller: Caller,
    user: &UserId,
    query: Query,
    ask: impl FnOnce(UserNo, Option<ListCursor>, usize) -> Asked,
) -> Result<Response, Problem> {
    let params = query.only(&["limit", "cursor"])?;
    let cursor = params.cursor_of(cursor_of)?;
    let limit = params.limit(LIST_DEFAULT, LIST_MAX)?;
    let permit = caller.permit((limit + 1) * LINE_MAX).await?;
    // Reading one more than asked shows whether there is a next page.
    let mut lines = match user_no(names, user).await? {
        Some(user) => ask(user, cursor, limit + 1).await?,
        None => vec![],
    };
    let next = (lines.len() > limit).then(|| cursor_text(lines[limit - 1].cursor));
    lines.truncate(limit);
    let users = lines.into_iter().map(|line| UserJson { user: line.user, since: line.since }).collect();
    Ok(permit.answer(&List { users, next }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_nothing_else_is_one() {
        for (listed, tie) in [(0, 0), (u64::MAX, 0), (7, 1), (u64::MAX, u32::MAX)] {
            let cursor = ListCursor { listed, tie };
            assert_eq!(cursor_of(&cursor_text(cursor)), Some(cursor));
        }
        assert_eq!(cursor_text(ListCursor::at(7)), "7", "as the version before wrote it");
        for text in ["", "-", "7-", "-7", "x", "7-x", "7-4294967296", "7-1-1"] {
            assert_eq!(cursor_of(text), None, "{text}");
        }
    }
}
