//! What backends say of users: name, avatar and attributes. Only API keys may write it, since names are often
//! moderated; every reader may read it of every user.
//!
//! Whether a user is private is stored separately: a change or a removal of what is said of a user leaves it as it is.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use feedgate_common::archive::{Answer, Known, Write};
use feedgate_common::people::{self, ATTRS_MAX_BYTES, AVATAR_MAX_BYTES, Card, NAME_MAX, Person};
use feedgate_common::{Archive, UserId, UserNo};
use serde::Serialize;
use serde_json::value::RawValue;

use super::access::{Caller, PublishKey};
use super::batch;
use super::fields::{Field, Fields};
use super::names::{intern, user_no};
use super::payload::Payload;
use super::problem::{Kind, Problem};
use super::query::{NoQuery, Segment};
use super::writer::Writer;

/// The fields of a person, and whether the user is private.
const KNOWN: [&str; 4] = ["name", "avatar", "attrs", "private"];

/// How many requests to follow one commit accepts, when a user is not private any more.
const LET_IN: usize = 500;

/// The most bytes of a request: each character of the name and of the avatar may be escaped as twelve, and there is
/// room for spaces around the attributes.
const BODY_MAX: usize = 12 * NAME_MAX + 6 * AVATAR_MAX_BYTES + 2 * ATTRS_MAX_BYTES;

/// The most bytes of an answer, in which each byte of a name may be escaped as six.
const ANSWER: usize = 1024 + 24 * NAME_MAX + AVATAR_MAX_BYTES + ATTRS_MAX_BYTES;

/// All that is stored of a user.
#[derive(Serialize)]
struct PersonJson<'a> {
    user: &'a UserId,
    #[serde(flatten)]
    person: Person,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    private: bool,
}

/// Answers `GET /v1/users/{user}` with what was put. Every reader may read it.
pub(super) async fn read(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let permit = caller.permit(ANSWER).await?;
    let (person, private) = match user_no(&*archive, &user).await? {
        Some(number) => (archive.person(number).await?, archive.author(number).await?.private),
        None => (None, false),
    };
    let nothing =
        || Problem::new(Kind::NotFound, format!("nothing is said of user {user}; PUT /v1/users/{user} says it"));
    let person = person.or_else(|| private.then(Person::default)).ok_or_else(nothing)?;
    Ok(permit.answer(&PersonJson { user: &user, person, private }))
}

/// Answers `PUT /v1/users/{user}` with `{name?, avatar?, attrs?, private?}`, which replaces all that was put before.
/// Without `private`, the user stays private or not. With `private: false`, all users who have asked to follow are
/// followers when this is answered. A call that ran out of time before that must be made again.
pub(super) async fn put(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    State(writer): State<Writer>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
    payload: Payload<BODY_MAX>,
) -> Result<StatusCode, Problem> {
    let fields = payload.fields(&KNOWN)?;
    let (person, private) = (person(&fields)?, fields.get("private").map(|field| truth(&field)).transpose()?);
    if let Some(private) = private {
        let write = Write::Private { author: user.clone(), private };
        writer.write_one(write).await.map_err(|problem| problem.of_value("/private"))?;
    }
    let number = intern(&*archive, &user).await?;
    archive.put_people(vec![(number, person)], Known::Replaced).await?;
    if private == Some(false) {
        let_in(&*archive, &writer, (number, &user)).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

fn truth(field: &Field<'_>) -> Result<bool, Problem> {
    match field.raw().get() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(field.refuse("must be true or false")),
    }
}

/// Lets all users who have asked follow the author, several in each commit, until nobody asks or the author is private
/// again.
async fn let_in(archive: &dyn Archive, writer: &Writer, (number, author): (UserNo, &UserId)) -> Result<(), Problem> {
    loop {
        let asking = archive.requests(number, None, LET_IN).await?;
        let answer = |reader| Write::Answer { reader, author: author.clone(), answer: Answer::LetIn };
        let answers: Vec<Write> = asking.into_iter().map(|request| answer(request.user)).collect();
        if answers.is_empty() || writer.write(answers).await?.iter().all(Result::is_err) {
            return Ok(());
        }
    }
}

/// Answers `DELETE /v1/users/{user}`: removes what is said of the user. Everything else of the user stays. The removal
/// succeeds if nothing was said.
pub(super) async fn remove(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    if let Some(number) = user_no(&*archive, &user).await? {
        archive.remove_person(number).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The result of one operation that was done.
#[derive(Serialize)]
struct Done {
    status: u16,
    user: UserId,
}

/// Answers `POST /v1/people/batch` with `{"ops":[{user, name?, avatar?, attrs?}, …]}`: all operations that are
/// well-formed in one commit. If a user is named twice, the last operation counts.
pub(super) async fn many(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    _: NoQuery,
    payload: Payload<{ batch::BYTES_MAX }>,
) -> Result<Response, Problem> {
    let read = batch::read(&payload, operation)?;
    let (names, people): (Vec<UserId>, Vec<Person>) = read.iter().flatten().cloned().unzip();
    if !names.is_empty() {
        let numbers = archive.intern(&names).await?;
        archive.put_people(numbers.into_iter().zip(people).collect(), Known::Replaced).await?;
    }
    Ok(batch::answer(read.into_iter().map(|op| op.map(|(user, _)| Done { status: 200, user }))))
}

pub(super) fn operation(op: &RawValue, at: String) -> Result<(UserId, Person), Problem> {
    let fields = Fields::of(op, at, &["user", "name", "avatar", "attrs"])?;
    Ok((fields.required("user")?.name()?, person(&fields)?))
}

/// Reads the fields of a person. A field that is left out has no value.
pub(super) fn person(fields: &Fields<'_>) -> Result<Person, Problem> {
    let text = |name, check: fn(&str) -> Result<(), String>| {
        let read = |field: Field<'_>| {
            let text = field.string()?;
            check(&text).map(|()| text.into()).map_err(|why| field.refuse(why))
        };
        fields.get(name).map(read).transpose()
    };
    let attrs = |field: Field<'_>| people::attrs(field.raw().get().to_owned()).map_err(|why| field.refuse(why));
    let card = Card { name: text("name", people::check_name)?, avatar: text("avatar", people::check_avatar)? };
    Ok(Person { card, attrs: fields.get("attrs").map(attrs).transpose()? })
}
