//! The list of the reposts of an item, as far as the viewer may see them. The number of all reposts is in the counts of
//! the item.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::feed::{Cards, FETCH, Seeing, cards_of};
use feedgate_common::{Archive, Item, ItemId, Millis, UserId, UserNo};
use serde::Serialize;

use super::access::Caller;
use super::cursor::{self, Repost};
use super::problem::Problem;
use super::query::{ItemRef, Query, Segment};
use super::seeing::{Seen, viewer};
use crate::limits::budget::{ANSWER_BYTES, most_with_people};

const LIST_DEFAULT: usize = 20;
const LIST_MAX: usize = 100;

/// How many reposts one page looks at, at least, before it ends short of its limit. The next page goes on.
const LOOKED_AT: usize = 500;

/// One line of the list.
#[derive(Serialize)]
struct Line {
    id: ItemId,
    author: UserId,
    published_at: Millis,
}

/// A page of the list, the newest repost first.
#[derive(Serialize)]
struct List {
    reposts: Vec<Line>,
    /// The `cursor` of the next page; `None` at the end of the list.
    next: Option<String>,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// Answers `GET /v1/items/{id}/reposts` with a page of the reposts of an item, those with the greatest id first.
pub(super) async fn list(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    Segment(which): Segment<ItemRef>,
    query: Query,
) -> Result<Response, Problem> {
    let params = query.only(&["cursor", "limit", "viewer"])?;
    let viewer = viewer(&caller, &params)?;
    let before = params.cursor_of(cursor::parse)?.map(|Repost(below)| below);
    let limit = params.limit(LIST_DEFAULT, LIST_MAX)?;
    let reader = caller.reader().is_some();
    let permit = caller.permit(most_with_people(FETCH.max(limit), ANSWER_BYTES)).await?;
    let seen = Seen::by(&archive, viewer, reader).await?;
    let original = seen.resolve(&which).await?;
    let (found, next) = page(&*archive, original, &seen, before, limit).await?;
    let authors: BTreeMap<UserNo, &UserId> = found.iter().map(|(author, line)| (*author, &line.author)).collect();
    let people = cards_of(&*archive, authors).await?;
    let reposts = found.into_iter().map(|(_, line)| line).collect();
    Ok(permit.answer(&List { reposts, next: next.map(|below| cursor::text(&Repost(below))), people }))
}

/// The next lines, each with the number of its author; and the id below which the list goes on, `None` if all reposts
/// were looked at.
async fn page(
    archive: &dyn Archive,
    original: ItemId,
    seeing: &dyn Seeing,
    mut before: Option<ItemId>,
    limit: usize,
) -> Result<(Vec<(UserNo, Line)>, Option<ItemId>), Problem> {
    let (mut lines, mut looked) = (vec![], 0);
    while looked < LOOKED_AT {
        let ids = archive.reposts(original, before, FETCH).await?;
        let items = if ids.is_empty() { vec![] } else { seeing.of(&ids).await? };
        for (id, item) in ids.iter().zip(items) {
            if lines.len() == limit {
                return Ok((lines, before));
            }
            lines.extend(item.map(|item| line(&item)));
            before = Some(*id);
        }
        if ids.len() < FETCH {
            return Ok((lines, None));
        }
        looked += ids.len();
    }
    Ok((lines, before))
}

fn line(item: &Item) -> (UserNo, Line) {
    let Item { id, author, author_no, published_at, .. } = item;
    (*author_no, Line { id: *id, author: author.clone(), published_at: *published_at })
}
