//! What a reader has seen of a feed, the same for all devices of the reader, and how much of the feed is unread.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::feed::Saw;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, FeedId, InboxKey, Position, UserId};

use super::access::{Caller, ReaderOrPublisher};
use super::fields::Fields;
use super::names::intern;
use super::payload::Payload;
use super::problem::Problem;
use super::query::{NoQuery, Query, Segment};
use crate::node::Reads;
use crate::protocol::sight_json::SightJson;

/// The most bytes of a request: a name, a position, and some room.
const BODY_MAX: usize = 1024;

/// The bytes that an answer takes at most.
const ANSWER: usize = 512;

/// Answers `GET /v1/users/{user}/seen` with what is seen and unread of one feed.
pub(super) async fn read(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    State(reads): State<Arc<Reads>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let feed = query.only(&["name"])?.feed(&named)?;
    let permit = caller.permit(ANSWER).await?;
    let key = InboxKey { reader: intern(&*archive, &user).await?, feed };
    reads.touches.note(key);
    Ok(permit.answer(&SightJson::from(reads.pages.sight(key).await?)))
}

/// Answers `PUT /v1/users/{user}/seen` with `{feed?, position}`. What is seen only moves forward: a position that is
/// not beyond the stored one changes nothing, and gets the same answer.
pub(super) async fn see(
    ReaderOrPublisher(caller): ReaderOrPublisher,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    State(reads): State<Arc<Reads>>,
    Segment(user): Segment<UserId>,
    _: NoQuery,
    payload: Payload<BODY_MAX>,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let fields = payload.fields(&["feed", "position"])?;
    let (feed, at) = (feed(&fields, &named)?, position(&fields)?);
    let permit = caller.permit(ANSWER).await?;
    let key = InboxKey { reader: intern(&*archive, &user).await?, feed };
    reads.touches.note(key);
    match reads.see(key, at, None).await? {
        Saw::More(sight) | Saw::Nothing(sight) => Ok(permit.answer(&SightJson::from(sight))),
        Saw::Gone(head) => Err(Problem::gone(head)),
        Saw::Ahead(head) => {
            let detail = format!("offset {} is beyond the head, which is {}", at.offset, head.offset);
            Err(Problem::at_pointer("/position/offset".to_owned(), detail))
        }
    }
}

/// The feed that the body names; without a name, the main one.
fn feed(fields: &Fields<'_>, named: &NamedFeeds) -> Result<FeedId, Problem> {
    let Some(field) = fields.get("feed") else { return Ok(FeedId::MAIN) };
    field.feed(named)
}

fn position(fields: &Fields<'_>) -> Result<Position, Problem> {
    let field = fields.required("position")?;
    let known = ["epoch", "offset"];
    let wrong = || field.refuse("must be a position, {\"epoch\":\"…\",\"offset\":N}, as a page or a change gives it");
    let position = field.object(&known).ok_or_else(wrong)??;
    Ok(Position { epoch: position.required("epoch")?.name()?, offset: position.required("offset")?.count()? })
}
