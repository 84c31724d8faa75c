//! Authors: how their items reach the followers, and how many followers they have.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use feedgate_common::archive::{Author, Write};
use feedgate_common::change::Class;
use feedgate_common::{Archive, OutboxSeq, UserId};
use serde::Serialize;

use super::access::{PublishKey, ReadKey};
use super::fields::Field;
use super::names::user_no;
use super::payload::{ONE, Payload};
use super::problem::{Problem, short};
use super::query::{NoQuery, Segment};
use super::writer::Writer;

/// What is known of an author.
#[derive(Serialize)]
pub(super) struct About {
    author: UserId,
    class: Class,
    followers: u64,
    outbox_seq: OutboxSeq,
}

/// Answers `GET /v1/authors/{author}`. A user that was never named is an author without followers.
pub(super) async fn read(
    _: ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    Segment(author): Segment<UserId>,
    _: NoQuery,
) -> Result<Json<About>, Problem> {
    let Author { class, followers, head, .. } = match user_no(&*archive, &author).await? {
        Some(number) => archive.author(number).await?,
        None => Author::default(),
    };
    Ok(Json(About { author, class, followers, outbox_seq: head }))
}

/// Answers `PUT /v1/authors/{author}` with `{"class":…}`. The class takes effect with the next item.
pub(super) async fn classify(
    _: PublishKey,
    State(writer): State<Writer>,
    Segment(author): Segment<UserId>,
    _: NoQuery,
    payload: Payload<ONE>,
) -> Result<StatusCode, Problem> {
    let class = class(&payload.fields(&["class"])?.required("class")?)?;
    let written = writer.write_one(Write::Classify { author, class }).await;
    written.map_err(|problem| problem.of_value("/class"))?;
    Ok(StatusCode::NO_CONTENT)
}

fn class(field: &Field<'_>) -> Result<Class, Problem> {
    match &*field.string()? {
        "auto" => Ok(Class::Auto),
        "push" => Ok(Class::Push),
        "pull" => Ok(Class::Pull),
        "everyone" => Ok(Class::Everyone),
        other => {
            Err(field
                .refuse(format_args!("must be \"auto\", \"push\", \"pull\" or \"everyone\", not {:?}", short(other))))
        }
    }
}
