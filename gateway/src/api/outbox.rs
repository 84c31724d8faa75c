//! A profile page: the items that one author has published to a feed and not deleted, newest first, as the viewer may
//! see them. The first page begins with the items that the author has pinned. Also the items that a user has sent to
//! named readers, for that user and backends alone; these have no pins.
//!
//! ```text
//!   first page     pinned, then the newest    next = the last key, and what was pinned
//!   a later page   below the key, without what was pinned then
//! ```

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::feed::{Cards, Feeds, ItemsOf, Limit, pinned, profile};
use feedgate_common::pins::PINS_MAX;
use feedgate_common::{Archive, Body, ItemId, UserId, UserNo};
use serde::Serialize;

use super::access::Caller;
use super::feed::page_most;
use super::names::user_no;
use super::problem::{Kind, Problem};
use super::query::{Params, Query, Segment};
use super::seeing::{Seen, viewer};
use crate::around::{self, Shown, authors_of};
use crate::limits::budget::{ANSWER_BYTES, SHARE_MIN};
use crate::protocol::page_json;

/// However many items are pinned, an answer has room for them and for one item more, each with an original.
const _: () = assert!((PINS_MAX + 1) * 2 * Body::MAX_BYTES < ANSWER_BYTES);

// A reader gets the largest profile however few bytes the node may hold.
const _: () = assert!(page_most(page_json::LIMIT_MAX + PINS_MAX) <= SHARE_MIN);

/// A page of an outbox, strictly descending behind what is pinned; `next` is `None` only at its end.
#[derive(Default, Serialize)]
struct Profile {
    items: Vec<Shown>,
    next: Option<String>,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// Answers `GET /v1/users/{user}/outbox` with a page of what the user has published: all of it, or what `?viewer=` may
/// see of it. A reader's token opens the whole outbox of that reader; with the reader as `?viewer=`, it opens what the
/// reader sees of any outbox.
pub(super) async fn page(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    let params = query.only(&["name", "limit", "cursor", "viewer"])?;
    let viewer = match params.get("viewer") {
        Some(_) => viewer(&caller, &params)?,
        None => whole(&caller, &user)?,
    };
    let feed = params.feed(&feeds.named())?;
    list(caller, (archive, &feeds), (&user, viewer), |author| ItemsOf::Outbox(author, feed), &params).await
}

/// Answers `GET /v1/users/{user}/sent` with a page of the items that the user has addressed to named readers, in
/// whatever feed of these readers they are. A reader's token opens the reader's own.
pub(super) async fn sent(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    Segment(user): Segment<UserId>,
    query: Query,
) -> Result<Response, Problem> {
    caller.may_read(&user)?;
    let params = query.only(&["limit", "cursor"])?;
    let viewer = caller.reader().cloned();
    list(caller, (archive, &feeds), (&user, viewer), ItemsOf::Sent, &params).await
}

/// Answers with a page of these items `of` a user, as `viewer` sees them; the viewer `None` is a backend.
async fn list(
    caller: Caller,
    (archive, feeds): (Arc<dyn Archive>, &Feeds),
    (user, viewer): (&UserId, Option<UserId>),
    of: impl FnOnce(UserNo) -> ItemsOf,
    params: &Params,
) -> Result<Response, Problem> {
    let (cursor, limit) = (params.profile_cursor()?, params.limit(page_json::LIMIT_DEFAULT, page_json::LIMIT_MAX)?);
    let reader = caller.reader().is_some();
    let items = limit + PINS_MAX;
    let permit = caller.permit(page_most(items)).await?;
    let Some(author) = user_no(&*archive, user).await? else {
        return Ok(permit.answer(&Profile::default()));
    };
    let seen = Seen::by(&archive, viewer, reader).await?;
    if !seen.opens(author).await? {
        return Ok(permit.answer(&Profile::default()));
    }
    let of = of(author);
    let (mut found, before, shown) = match cursor {
        Some((key, shown)) => (vec![], Some(key), shown),
        None => {
            let pinned = pinned(&*archive, of, &seen).await?;
            let ids: Vec<ItemId> = pinned.iter().map(|item| item.id).collect();
            (pinned, None, ids)
        }
    };
    let pinned = found.len();
    let bytes = ANSWER_BYTES - found.iter().map(|item| item.bytes()).sum::<usize>();
    let (newest, mut next) = profile(&*archive, of, &seen, before, Limit { items: limit, bytes }, &shown).await?;
    found.extend(newest);
    let all = found.len();
    let mut items = around::join(&*archive, feeds.onlooker(seen.viewer), found, ANSWER_BYTES).await?;
    if items.len() < all {
        next = items.last().map(|shown| shown.item().key());
    }
    items.iter_mut().take(pinned).for_each(Shown::pin);
    let people = authors_of(&*archive, &items).await?;
    let next = next.map(|key| page_json::profile_cursor_text(key, &shown));
    Ok(permit.answer(&Profile { items, next, people }))
}

/// The viewer as whom the whole outbox is read; 403 for a reader, unless the outbox is the reader's own.
fn whole(caller: &Caller, user: &UserId) -> Result<Option<UserId>, Problem> {
    match caller.reader() {
        Some(me) if me != user => Err(Problem::new(
            Kind::Forbidden,
            format!(
                "this token is of user {me} and opens nothing of user {user} but what {me} sees: ask for ?viewer={me}"
            ),
        )),
        reader => Ok(reader.cloned()),
    }
}
