//! A page of a reader's feed, newest first.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::around::Viewer;
use feedgate_common::feed::Limit;
use feedgate_common::{Archive, InboxKey, UserId};

use super::access::Caller;
use super::names::{intern, user_no};
use super::problem::Problem;
use super::query::{Query, Segment};
use super::seeing::viewer;
use crate::around::AROUND_MAX;
use crate::limits::budget::{ANSWER_BYTES, SHARE_MIN, most_with_people};
use crate::node::Reads;
use crate::protocol::page_json::{self, PageJson};

/// The most bytes that it takes to put together a page of `limit` items, with their authors and with what stands around
/// them. One more item is read, which tells whether there is another page.
pub(super) const fn page_most(limit: usize) -> usize {
    most_with_people(limit + 1, ANSWER_BYTES) + limit * AROUND_MAX
}

// A reader gets the largest page however few bytes the node may hold.
const _: () = assert!(page_most(page_json::LIMIT_MAX) <= SHARE_MIN);

/// Answers `GET /v1/users/{user}/feed`. The position is read before the page, so a client may subscribe from that
/// position: the client may get changes that it has already seen, but misses none. The viewer is the user of the feed,
/// unless a backend names another one.
pub(super) async fn page(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(reads): State<Arc<Reads>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let params = query.only(&["name", "limit", "cursor", "viewer"])?;
    let feed = params.feed(&reads.feeds.named())?;
    let (before, limit) = (params.cursor()?, params.limit(page_json::LIMIT_DEFAULT, page_json::LIMIT_MAX)?);
    let viewer = viewer(&caller, &params)?;
    let permit = caller.permit(page_most(limit)).await?;
    let reader = intern(&*archive, &user).await?;
    let key = InboxKey { reader, feed };
    reads.touches.note(key);
    let page = reads.pages.page(key, before, Limit { items: limit, bytes: ANSWER_BYTES }).await?;
    let viewer = match viewer {
        Some(viewer) => Viewer::User(user_no(&*archive, &viewer).await?),
        None => Viewer::User(Some(reader)),
    };
    Ok(permit.answer(&PageJson::joined(page, &*archive, reads.feeds.onlooker(viewer), ANSWER_BYTES).await?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::budget::{Budget, NODE_MIN};

    #[test]
    fn a_share_of_the_least_budget_has_room_for_a_whole_page_with_people_and_reactions() {
        let share = Budget::new(NODE_MIN).of(&"ann".parse().unwrap());
        let most = page_most(page_json::LIMIT_MAX);
        assert_eq!(share.try_reserve(most).map(|held| held.bytes()), Some(most));
    }
}
