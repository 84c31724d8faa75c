//! A page of a reader's feed, newest first.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::feed::Limit;
use feedgate_common::{Archive, InboxKey, UserId};

use super::access::Caller;
use super::names::intern;
use super::problem::Problem;
use super::query::{Query, Segment};
use crate::limits::budget::{ANSWER_BYTES, most};
use crate::node::Node;
use crate::protocol::page_json::{self, PageJson};

/// Answers `GET /v1/users/{user}/feed`. The position is read before the page, so a client may subscribe from it: it
/// gets changes that it has already seen rather than miss one.
pub(super) async fn page(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(node): State<Arc<Node>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let params = query.only(&["name", "limit", "cursor"])?;
    let feed = params.feed(node.feeds.named())?;
    let (before, limit) = (params.cursor()?, params.limit(page_json::LIMIT_DEFAULT, page_json::LIMIT_MAX)?);
    let permit = caller.permit(most(limit + 1, ANSWER_BYTES)).await?;
    let reader = intern(&*archive, &user).await?;
    let key = InboxKey { reader, feed };
    node.touches.note(key);
    let page = node.pages.page(key, before, Limit { items: limit, bytes: ANSWER_BYTES }).await?;
    Ok(permit.answer(&PageJson::from(page)))
}
