//! A profile page: the living items that one author has published to a feed, newest first.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use feedgate_common::{DisplayKey, FeedId, Item, ItemId, UserId, UserNo};
use serde::Serialize;

use super::Api;
use super::access::Caller;
use super::problem::Problem;
use super::query::{Query, Segment};
use crate::page_json;

/// A stretch of an outbox, strictly descending; shorter than asked only at its end.
#[derive(Serialize)]
pub(super) struct Profile {
    items: Vec<Arc<Item>>,
    next: Option<String>,
}

/// `GET /v1/users/{user}/outbox`
pub(super) async fn page(
    caller: Caller,
    State(api): State<Arc<Api>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Json<Profile>, Problem> {
    caller.may_read(&user)?;
    let params = query.only(&["name", "limit", "cursor"])?;
    let feed = params.feed(api.feeds().named())?;
    let (before, limit) = (params.cursor()?, params.limit(page_json::LIMIT_DEFAULT, page_json::LIMIT_MAX)?);
    let Some(author) = api.user_no(&user).await? else {
        return Ok(Json(Profile { items: vec![], next: None }));
    };
    // One more than asked tells whether there is a next page.
    let mut items = living(&api, author, feed, before, limit + 1).await?;
    let next = (items.len() > limit).then(|| page_json::cursor_text(items[limit - 1].key()));
    items.truncate(limit);
    Ok(Json(Profile { items, next }))
}

/// `wanted` items below `before`, or all there are. An item deleted between the look at the outbox
/// and the look at the item makes room for the next one.
async fn living(
    api: &Api,
    author: UserNo,
    feed: FeedId,
    mut before: Option<DisplayKey>,
    wanted: usize,
) -> Result<Vec<Arc<Item>>, Problem> {
    let mut items = Vec::with_capacity(wanted);
    loop {
        let asked = wanted - items.len();
        let keys = api.archive().profile(author, feed, before, asked).await?;
        let ids: Vec<ItemId> = keys.iter().map(|key| key.item).collect();
        items.extend(api.archive().items(&ids).await?.into_iter().flatten());
        if keys.len() < asked || items.len() == wanted {
            return Ok(items);
        }
        before = keys.last().copied();
    }
}
