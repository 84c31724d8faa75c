//! Lists of users that a user keeps, to narrow items to some of the followers. A change is durable when it is answered,
//! and counts for items that are published after that. It changes no item that was accepted before.
//!
//! A list exists only by its members: the first member makes the list, and it is gone with the last member.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use feedgate_common::audience::{LISTS_MAX, ListChange, ListRefused};
use feedgate_common::ids::ListName;
use feedgate_common::{Archive, UserId, UserNo};
use serde::Serialize;
use serde_json::value::RawValue;

use super::access::{Caller, PublishKey};
use super::batch;
use super::fields::Fields;
use super::follows::list;
use super::names::user_no;
use super::payload::Payload;
use super::problem::{Kind, Problem};
use super::query::{NoQuery, Query, Segment, Segments, Segments3};
use crate::clock;

/// The most bytes that one list takes in an answer.
const LINE_MAX: usize = 256;

/// What is wrong with a user who is to be on a list of its own.
pub(super) const NOT_ONESELF: &str = "must be another user than the owner of the list, who sees the items anyway";

/// The lists of a user, by name.
#[derive(Serialize)]
struct Lists {
    lists: Vec<ListJson>,
}

#[derive(Serialize)]
struct ListJson {
    list: ListName,
    members: u64,
}

/// Answers `GET /v1/users/{user}/lists` with all lists of the user.
pub(super) async fn all(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let permit = caller.permit(LISTS_MAX * LINE_MAX).await?;
    let lists = match user_no(&*archive, &user).await? {
        Some(owner) => archive.lists(owner).await?,
        None => vec![],
    };
    let lists = lists.into_iter().map(|(list, members)| ListJson { list, members }).collect();
    Ok(permit.answer(&Lists { lists }))
}

/// Answers `GET /v1/users/{user}/lists/{list}` with a page of members. A list that does not exist has no members.
pub(super) async fn members(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    Segments(user, name): Segments<UserId, ListName>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    list(&*archive, caller, &user, query, |owner, cursor, limit| archive.members(owner, &name, cursor, limit)).await
}

/// Answers `PUT /v1/users/{user}/lists/{list}/{member}`. It succeeds without a change if the member is on the list.
pub(super) async fn put_on(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    Segments3(user, list, member): Segments3<UserId, ListName, UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    let wanted = Wanted { user, list, member, on: true };
    wanted.check().map_err(|why| Problem::parameter("member", format!("member {why}")))?;
    carry_out(&*archive, std::slice::from_ref(&wanted)).await?.remove(0)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Answers `DELETE /v1/users/{user}/lists/{list}/{member}`. It succeeds without a change if the member is not there.
pub(super) async fn take_off(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    Segments3(user, list, member): Segments3<UserId, ListName, UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    carry_out(&*archive, &[Wanted { user, list, member, on: false }]).await?.remove(0)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The result of one operation that was done.
#[derive(Serialize)]
struct Done {
    status: u16,
}

/// Answers `POST /v1/lists/batch` with `{"ops":[{"op":"add"|"remove", user, list, member}, …]}`: carries out all
/// operations that are well-formed in one commit.
pub(super) async fn many(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    _: NoQuery,
    payload: Payload<{ batch::BYTES_MAX }>,
) -> Result<Response, Problem> {
    let read = batch::read(&payload, operation)?;
    let wanted: Vec<Wanted> = read.iter().flatten().cloned().collect();
    let mut done = carry_out(&*archive, &wanted).await?.into_iter();
    let results = read.into_iter().enumerate().map(|(i, op)| {
        op?;
        let done = done.next().expect("each operation is answered");
        done.map(|()| Done { status: 200 }).map_err(|problem| problem.within(&batch::pointer(i)))
    });
    Ok(batch::answer(results))
}

/// A change as it is asked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    user: UserId,
    list: ListName,
    member: UserId,
    on: bool,
}

impl Wanted {
    /// Checks that the change can be made; the error says what is wrong.
    fn check(&self) -> Result<(), &'static str> {
        match self.on && self.user == self.member {
            true => Err(NOT_ONESELF),
            false => Ok(()),
        }
    }
}

pub(super) fn operation(op: &RawValue, at: String) -> Result<Wanted, Problem> {
    let fields = Fields::of(op, at, &["op", "user", "list", "member"])?;
    let on = batch::adds(&fields)?;
    let (user, list, whom) =
        (fields.required("user")?.name()?, fields.required("list")?.name()?, fields.required("member")?);
    let wanted = Wanted { user, list, member: whom.name()?, on };
    wanted.check().map_err(|why| whom.refuse(why))?;
    Ok(wanted)
}

/// Makes these changes. A user who is only taken off a list is given no number.
async fn carry_out(archive: &dyn Archive, wanted: &[Wanted]) -> Result<Vec<Result<(), Problem>>, Problem> {
    let named =
        |on| wanted.iter().filter(move |one| one.on == on).flat_map(|one| [one.user.clone(), one.member.clone()]);
    let (added, removed): (Vec<UserId>, Vec<UserId>) = (named(true).collect(), named(false).collect());
    if !added.is_empty() {
        archive.intern(&added).await?;
    }
    let names = [added, removed].concat();
    let numbers = archive.user_nos(&names).await?;
    let numbers: HashMap<&UserId, UserNo> =
        names.iter().zip(numbers).filter_map(|(name, number)| Some((name, number?))).collect();
    let number = |name: &UserId| numbers.get(name).copied();
    let change = |one: &Wanted| {
        let (owner, member) = (number(&one.user)?, number(&one.member)?);
        Some(ListChange { owner, list: one.list.clone(), member, on: one.on, at: clock::now() })
    };
    let changes: Vec<Option<ListChange>> = wanted.iter().map(change).collect();
    let known: Vec<ListChange> = changes.iter().flatten().cloned().collect();
    let done = if known.is_empty() { vec![] } else { archive.change_lists(known).await? };
    let mut done = done.into_iter();
    let answer = |(change, one): (Option<ListChange>, &Wanted)| match change.and_then(|_| done.next()) {
        Some(Err(refused)) => Err(problem(refused, one)),
        Some(Ok(_)) | None => Ok(()),
    };
    Ok(changes.into_iter().zip(wanted).map(answer).collect())
}

fn problem(refused: ListRefused, Wanted { user, list, .. }: &Wanted) -> Problem {
    Problem::new(Kind::Conflict, format!("list {list} of user {user}: {refused}"))
}
