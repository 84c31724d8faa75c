//! A profile page: the items that one author has published to a feed and not deleted, newest first.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::around::Viewer;
use feedgate_common::feed::{Cards, Limit, Stretch};
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, DisplayKey, FeedId, ItemId, UserId, UserNo};
use serde::Serialize;

use super::access::Caller;
use super::names::user_no;
use super::problem::Problem;
use super::query::{Query, Segment};
use crate::around::{self, AROUND_MAX, Shown, authors_of};
use crate::limits::budget::{ANSWER_BYTES, most_with_people};
use crate::protocol::page_json;

/// A page of an outbox, strictly descending; `next` is `None` only at its end.
#[derive(Default, Serialize)]
struct Profile {
    items: Vec<Shown>,
    next: Option<String>,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// Answers `GET /v1/users/{user}/outbox` with a page of what the user has published.
pub(super) async fn page(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let params = query.only(&["name", "limit", "cursor"])?;
    let feed = params.feed(&named)?;
    let (before, limit) = (params.cursor()?, params.limit(page_json::LIMIT_DEFAULT, page_json::LIMIT_MAX)?);
    let reader = caller.reader().is_some();
    let permit = caller.permit(most_with_people(limit + 1, ANSWER_BYTES) + limit * AROUND_MAX).await?;
    let Some(author) = user_no(&*archive, &user).await? else {
        return Ok(permit.answer(&Profile::default()));
    };
    let stretch = living(&*archive, author, feed, before, Limit { items: limit, bytes: ANSWER_BYTES }).await?;
    let (found, mut next) = stretch.finish();
    let all = found.len();
    // A reader's token reads no profile but its own.
    let viewer = if reader { Viewer::User(Some(author)) } else { Viewer::Backend };
    let items = around::join(&*archive, viewer, found, ANSWER_BYTES).await?;
    if items.len() < all {
        next = items.last().map(|shown| shown.item().key());
    }
    let people = authors_of(&*archive, &items).await?;
    Ok(permit.answer(&Profile { items, next: next.map(page_json::cursor_text), people }))
}

/// The items below `before`. If one is deleted between the read of the outbox and the read of the item, the next one
/// takes its place.
async fn living(
    archive: &dyn Archive,
    author: UserNo,
    feed: FeedId,
    mut before: Option<DisplayKey>,
    limit: Limit,
) -> Result<Stretch, Problem> {
    let mut stretch = Stretch::new(limit);
    loop {
        let asked = stretch.wants();
        let keys = archive.profile(author, feed, before, asked).await?;
        let ids: Vec<ItemId> = keys.iter().map(|key| key.item).collect();
        let found = archive.items(&ids).await?.into_iter().zip(&keys);
        stretch.extend(found.filter_map(|(item, key)| Some(item?.at(*key))));
        if keys.len() < asked || stretch.is_cut() {
            return Ok(stretch);
        }
        before = keys.last().copied();
    }
}
