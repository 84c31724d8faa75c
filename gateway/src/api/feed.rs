//! A page of a reader's feed, newest first.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use feedgate_common::{InboxKey, UserId};

use super::Api;
use super::access::Caller;
use super::problem::Problem;
use super::query::{Query, Segment};
use crate::page_json::{self, PageJson};

/// `GET /v1/users/{user}/feed`. The position is read before the page: changes after it come on top,
/// so it goes unchanged into a client's `since`.
pub(super) async fn page(
    caller: Caller,
    State(api): State<Arc<Api>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Json<PageJson>, Problem> {
    caller.may_read(&user)?;
    let params = query.only(&["name", "limit", "cursor"])?;
    let feed = params.feed(api.feeds().named())?;
    let (before, limit) = (params.cursor()?, params.limit(page_json::LIMIT_DEFAULT, page_json::LIMIT_MAX)?);
    let reader = api.intern(&user).await?;
    let key = InboxKey { reader, feed };
    api.gateway.touches.note(key);
    let page = api.feeds().page(key, before, limit).await?;
    Ok(Json(page.into()))
}
