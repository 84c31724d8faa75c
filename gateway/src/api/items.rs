//! One item: read, edited, deleted; and several items read by their ids.
//!
//! An item's version is its `ETag`. An item that a reader [does not see](feedgate_common::around::sees) is answered as
//! one that does not exist.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use feedgate_common::archive::{Refused, Write, Written};
use feedgate_common::feed::{Cards, FETCH, Feeds, Limit, Seeing, Stretch};
use feedgate_common::{Archive, Item, ItemId};
use serde::Serialize;

use super::access::{Caller, PublishKey};
use super::payload::{ONE, Payload};
use super::problem::{Problem, short};
use super::publish;
use super::query::{ItemRef, NoQuery, Query, Segment};
use super::seeing::{Seen, missing, resolve, viewer};
use super::writer::Writer;
use crate::around::{self, AROUND_MAX, Shown, authors_of};
use crate::limits::budget::{ANSWER_BYTES, most, most_with_people};

/// The most ids in one request.
const IDS_MAX: usize = 100;

/// One item, with what to show of its author and of the author of its original.
#[derive(Serialize)]
struct One<'a> {
    #[serde(flatten)]
    item: &'a Shown,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// Answers `GET /v1/items/{id}` with the item, if the caller may see it.
pub(super) async fn read(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    Segment(which): Segment<ItemRef>,
    query: Query,
) -> Result<Response, Problem> {
    let viewer = viewer(&caller, &query.only(&["viewer"])?)?;
    let reader = caller.reader().is_some();
    let permit = caller.permit(most_with_people(1, ANSWER_BYTES) + 2 * AROUND_MAX).await?;
    let seen = Seen::by(&archive, viewer, reader).await?;
    let id = resolve(&*archive, &which).await?;
    let found = seen.of(&[id]).await?.into_iter().flatten().collect();
    let shown = around::join(&*archive, feeds.onlooker(seen.viewer), found, ANSWER_BYTES).await?;
    let item = shown.first().ok_or_else(|| missing(&which))?;
    let people = authors_of(&*archive, &shown).await?;
    Ok((etag(item.item()), permit.answer(&One { item, people })).into_response())
}

/// Several items, and the ids of those that the caller does not see.
#[derive(Serialize)]
struct Items {
    items: Vec<Shown>,
    missing: Vec<ItemId>,
    /// The `ids` of the next request, for items that found no room; `None` if all were looked at.
    next: Option<String>,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// Answers `GET /v1/items?ids=a,b`: the items that exist and are visible, in the order asked, and the ids of the
/// others.
pub(super) async fn by_ids(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    query: Query,
) -> Result<Response, Problem> {
    let params = query.only(&["ids", "viewer"])?;
    let (ids, viewer) = (ids(params.get("ids"))?, viewer(&caller, &params)?);
    let reader = caller.reader().is_some();
    let permit = caller.permit(most_with_people(ids.len(), ANSWER_BYTES) + ids.len() * AROUND_MAX).await?;
    let seen = Seen::by(&archive, viewer, reader).await?;
    let mut stretch = Stretch::new(Limit { items: IDS_MAX, bytes: ANSWER_BYTES });
    let (mut missing, mut left) = (Vec::new(), &ids[..]);
    while !left.is_empty() && !stretch.is_cut() {
        let some = &left[..left.len().min(FETCH)];
        for (id, found) in some.iter().zip(seen.of(some).await?) {
            match found {
                Some(item) => stretch.extend([item]),
                None => missing.push(*id),
            }
            if stretch.is_cut() {
                break;
            }
            left = &left[1..];
        }
    }
    let (found, _) = stretch.finish();
    let mut later: Vec<ItemId> = found.iter().map(|item| item.id).collect();
    let items = around::join(&*archive, feeds.onlooker(seen.viewer), found, ANSWER_BYTES).await?;
    let people = authors_of(&*archive, &items).await?;
    later.drain(..items.len());
    let later: Vec<String> = later.iter().chain(left).map(ItemId::to_string).collect();
    let next = (!later.is_empty()).then(|| later.join(","));
    Ok(permit.answer(&Items { items, missing, next, people }))
}

/// Answers `PATCH /v1/items/{id}` with `{"body":…}`, `{"rank":…}` or both. `"mentions"` may stand beside a body.
pub(super) async fn edit(
    PublishKey(caller): PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    State(writer): State<Writer>,
    Segment(which): Segment<ItemRef>,
    _: NoQuery,
    headers: HeaderMap,
    payload: Payload<ONE>,
) -> Result<Response, Problem> {
    let if_version = if_match(&headers)?;
    let fields = payload.fields(&["body", "rank", "mentions"])?;
    let rank = fields.get("rank").map(|rank| publish::rank(&rank)).transpose()?;
    let body = fields.get("body").map(|_| publish::body(&fields)).transpose()?;
    if body.is_none() && rank.is_none() {
        let detail = "field \"body\" is missing; give \"body\", \"rank\" or both";
        return Err(Problem::at_pointer("/body".to_owned(), detail.to_owned()));
    }
    let mentions = publish::mentions(&fields)?;
    if let (None, Some(field)) = (&body, fields.get("mentions")) {
        return Err(field.refuse("must stand beside \"body\": an item mentions users in what it says"));
    }
    let permit = caller.permit(most(1, ANSWER_BYTES)).await?;
    let item = resolve(&*archive, &which).await?;
    write(&writer, &which, Write::Edit { item, body, rank, mentions, if_version }).await?;
    let now = archive.items(&[item]).await?.into_iter().flatten().next();
    let item = now.ok_or_else(|| missing(&which))?;
    Ok((etag(&item), permit.answer(&item)).into_response())
}

/// Answers `DELETE /v1/items/{id}`. Deleting an item again changes nothing and succeeds.
pub(super) async fn delete(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    State(writer): State<Writer>,
    Segment(which): Segment<ItemRef>,
    _: NoQuery,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let if_version = if_match(&headers)?;
    let item = resolve(&*archive, &which).await?;
    write(&writer, &which, Write::Delete { item, if_version }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn write(writer: &Writer, which: &ItemRef, write: Write) -> Result<Written, Problem> {
    let written = writer.write(vec![write]).await?;
    match written.into_iter().next().expect("the Archive answers each write") {
        Ok(written) => Ok(written),
        Err(Refused::NoSuchItem(_)) => Err(missing(which)),
        Err(refused) => Err(refused.into()),
    }
}

fn etag(item: &Item) -> [(header::HeaderName, String); 1] {
    [(header::ETAG, format!("\"{}\"", item.version))]
}

/// The version that `If-Match` asks for; `None` for any version.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<u32>, Problem> {
    let wrong = || {
        Problem::header(
            "If-Match",
            "If-Match takes one version as GET gave it in ETag, such as \"1\" with its quotes, or *",
        )
    };
    let mut lines = headers.get_all(header::IF_MATCH).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    let text = line.to_str().map_err(|_| wrong())?.trim();
    if lines.next().is_some() {
        return Err(wrong());
    }
    if text == "*" {
        return Ok(None);
    }
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let version = inner.filter(|inner| !inner.starts_with('0')).and_then(super::query::decimal);
    version.and_then(|version| u32::try_from(version).ok()).map(Some).ok_or_else(wrong)
}

/// Reads the value of `?ids=`.
fn ids(text: Option<&str>) -> Result<Vec<ItemId>, Problem> {
    let wrong = |why: String| Problem::parameter("ids", why);
    let text = text.ok_or_else(|| wrong(format!("give ?ids= with 1 to {IDS_MAX} item ids, separated by commas")))?;
    let parts: Vec<&str> = text.split(',').take(IDS_MAX + 1).collect();
    if parts.len() > IDS_MAX {
        return Err(wrong(format!("ids takes at most {IDS_MAX} item ids, there are {}", text.split(',').count())));
    }
    parts.iter().map(|part| short(part).parse().map_err(|why| wrong(format!("ids: {why}")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::problem::Kind;

    #[test]
    fn if_match_is_a_version_in_quotes_or_a_star() {
        let of = |text: &str| if_match(&HeaderMap::from_iter([(header::IF_MATCH, text.parse().unwrap())]));
        assert_eq!(of("\"7\""), Ok(Some(7)));
        assert_eq!(of("*"), Ok(None));
        assert_eq!(if_match(&HeaderMap::new()), Ok(None));
        for bad in ["7", "\"\"", "W/\"7\"", "\"1\", \"2\"", "\"-1\"", "\"01\"", "\"0\"", "\"4294967296\"", ""] {
            assert_eq!(of(bad).unwrap_err().kind, Kind::BadHeader, "{bad}");
        }
    }

    #[test]
    fn ids_are_1_to_100_item_ids() {
        assert_eq!(ids(Some("1,20")), Ok(vec![ItemId(1), ItemId(20)]));
        assert_eq!(ids(Some(&vec!["1"; 100].join(","))).unwrap().len(), 100);
        for bad in [None, Some(""), Some("1,"), Some("x"), Some("1, 2"), Some(&*vec!["1"; 101].join(","))] {
            assert_eq!(ids(bad).unwrap_err().kind, Kind::BadParameter, "{bad:?}");
        }
    }
}
