//! Push notices that the webhook did not take: how to list them, try them again, and forget them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use feedgate_common::archive::DeadNotice;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, FeedId, InboxKey, ItemId, Millis, UserId, UserNo};
use serde::Serialize;

use super::access::AdminKey;
use super::names::user_no;
use super::problem::Problem;
use super::query::{Query, decimal};
use crate::clock;

/// Notices on a page if no limit is given.
const DEFAULT: usize = 100;

/// The most notices on a page, and how many change at a time.
const MOST: usize = 1000;

/// A page of notices that the webhook did not take.
#[derive(Serialize)]
pub(super) struct Dead {
    notices: Vec<DeadJson>,
    next: Option<String>,
}

#[derive(Serialize)]
struct DeadJson {
    id: String,
    user: UserId,
    /// The name of the feed; null if the feed is not configured any more.
    feed: Option<String>,
    item_id: ItemId,
    tries: u32,
    error: String,
    failed_at: Millis,
}

/// How many notices were changed.
#[derive(Serialize)]
pub(super) struct Changed {
    count: usize,
}

/// Answers `GET /v1/push/dead` with a page of notices, by user and feed.
pub(super) async fn list(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    query: Query,
) -> Result<Json<Dead>, Problem> {
    let params = query.only(&["limit", "cursor"])?;
    let (limit, after) = (params.limit(DEFAULT, MOST)?, params.cursor_of(cursor)?);
    let found = archive.dead(after, limit).await?;
    let readers: Vec<UserNo> = found.iter().map(|dead| dead.notice.key.reader).collect();
    let users = archive.user_ids(&readers).await?;
    let last = found.last().map(|dead| dead.notice.key).filter(|_| found.len() == limit);
    let line = |(DeadNotice { notice, why, at }, user)| DeadJson {
        id: format!("msg_{}", notice.number),
        user,
        feed: named.name(notice.key.feed).map(str::to_owned),
        item_id: notice.item,
        tries: notice.tries + 1,
        error: why,
        failed_at: at,
    };
    let notices = found.into_iter().zip(users).map(line).collect();
    Ok(Json(Dead { notices, next: last.map(|key| format!("{}-{}", key.reader.0, key.feed.0)) }))
}

fn cursor(text: &str) -> Option<InboxKey> {
    let (reader, feed) = text.split_once('-')?;
    let reader = UserNo(u32::try_from(decimal(reader)?).ok()?);
    Some(InboxKey { reader, feed: FeedId(u16::try_from(decimal(feed)?).ok()?) })
}

/// Answers `POST /v1/push/dead/retry`: the notices are due at once, those of one user if `user` is given.
pub(super) async fn retry(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    query: Query,
) -> Result<Json<Changed>, Problem> {
    changed(&*archive, query, Change::Retry).await
}

/// Answers `DELETE /v1/push/dead`: the notices are forgotten, those of one user if `user` is given.
pub(super) async fn forget(
    _: AdminKey,
    State(archive): State<Arc<dyn Archive>>,
    query: Query,
) -> Result<Json<Changed>, Problem> {
    changed(&*archive, query, Change::Forget).await
}

/// What becomes of dead notices.
#[derive(Clone, Copy)]
enum Change {
    /// Dead notices are tried again.
    Retry,
    /// Dead notices are not tried any more, and forgotten.
    Forget,
}

/// Changes the notices of the user in the query, or all, [`MOST`] at a time.
async fn changed(archive: &dyn Archive, query: Query, change: Change) -> Result<Json<Changed>, Problem> {
    let user = match query.only(&["user"])?.parse::<UserId>("user")? {
        None => None,
        Some(user) => match user_no(archive, &user).await? {
            Some(number) => Some(number),
            None => return Ok(Json(Changed { count: 0 })),
        },
    };
    let mut count = 0;
    loop {
        let some = match change {
            Change::Retry => archive.retry_dead(user, clock::now(), MOST).await?,
            Change::Forget => archive.forget_dead(user, MOST).await?,
        };
        count += some;
        if some < MOST {
            return Ok(Json(Changed { count }));
        }
    }
}
