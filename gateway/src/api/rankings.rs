//! Rankings: the items that a recommender puts into a ranked feed of a reader. A ranking is replaced as a whole, and
//! devices get what has changed.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use feedgate_common::named::NamedFeeds;
use feedgate_common::notify::Notified;
use feedgate_common::ranking::{NoSuchItem, RANKING_MAX, Ranked};
use feedgate_common::{Archive, DisplayKey, FeedId, InboxKey, ItemId, UserId, error};
use serde::Serialize;
use serde_json::value::RawValue;

use super::access::{PublishKey, ReadKey};
use super::fields::Fields;
use super::names::user_no;
use super::payload::{ONE, Payload};
use super::problem::{Problem, short};
use super::publish;
use super::query::{NoQuery, Segments};
use super::writer::Writer;
use crate::clock;

/// The place of an item in a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Place {
    id: ItemId,
    rank: i64,
}

impl From<DisplayKey> for Place {
    fn from(key: DisplayKey) -> Self {
        Self { id: key.item, rank: key.rank }
    }
}

/// Answers `PUT /v1/users/{user}/feeds/{feed}/ranking` with `[{"id":…,"rank":…},…]`: replaces the ranking, in one
/// commit, and says how much of it is new.
pub(super) async fn put(
    _: PublishKey,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    State(writer): State<Writer>,
    Segments(user, feed): Segments<UserId, String>,
    _: NoQuery,
    payload: Payload<ONE>,
) -> Result<Json<Ranked>, Problem> {
    let feed = ranked(&named, &feed).map_err(|why| Problem::parameter("feed", why))?;
    let (list, count) = payload.list(RANKING_MAX)?;
    if count > RANKING_MAX {
        let detail = format!("a ranking holds at most {RANKING_MAX} items, this one has {count}");
        return Err(Problem::at_pointer(String::new(), detail));
    }
    let ranking = places(&list, "")?;
    let reader = archive.intern(std::slice::from_ref(&user)).await?[0];
    let ranked = rank(archive, &writer, InboxKey { reader, feed }, ranking).await?;
    ranked.map(Json).map_err(|missing| refused(missing, ""))
}

/// Answers `GET /v1/users/{user}/feeds/{feed}/ranking` with the ranking, the greatest rank first.
pub(super) async fn read(
    _: ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    State(named): State<Arc<NamedFeeds>>,
    Segments(user, feed): Segments<UserId, String>,
    _: NoQuery,
) -> Result<Json<Vec<Place>>, Problem> {
    let feed = ranked(&named, &feed).map_err(|why| Problem::parameter("feed", why))?;
    let ranking = match user_no(&*archive, &user).await? {
        Some(reader) => archive.ranking(InboxKey { reader, feed }).await?,
        None => vec![],
    };
    Ok(Json(ranking.into_iter().map(Place::from).collect()))
}

/// Replaces a ranking, and tells the workers.
pub(super) async fn rank(
    archive: Arc<dyn Archive>,
    writer: &Writer,
    key: InboxKey,
    ranking: Vec<DisplayKey>,
) -> error::Result<Result<Ranked, NoSuchItem>> {
    let telling = writer.clone();
    let change = async move {
        let answer = archive.rank(key, &ranking, clock::now()).await?;
        if answer.is_ok_and(|ranked| ranked.removed > 0) {
            telling.narrowed(key.reader);
        }
        // The workers are told even if nothing has changed: an earlier request may have ended before they were told.
        let told = if answer.is_ok() { vec![key.reader] } else { vec![] };
        Ok(Notified { answers: vec![answer], told })
    };
    Ok(writer.notify(change).await?.remove(0))
}

/// The feed of this name, if the feed holds rankings; else the reason why not.
pub(super) fn ranked(named: &NamedFeeds, name: &str) -> Result<FeedId, String> {
    let right = match named.names_of_ranked() {
        none if none.is_empty() => "no feed of the settings has ranked = true".to_owned(),
        names => format!("feeds with ranked = true are {names}"),
    };
    match named.by_name(name) {
        Some(feed) if named.is_ranked(feed) => Ok(feed),
        Some(_) => Err(format!("feed {name:?} holds what is published for it, so it takes no ranking; {right}")),
        None => Err(format!("there is no feed named {:?}; {right}", short(name))),
    }
}

/// Reads the places of a ranking, which is at the pointer `at`. No item may be in the ranking twice.
pub(super) fn places(list: &[&RawValue], at: &str) -> Result<Vec<DisplayKey>, Problem> {
    let (mut places, mut seen) = (Vec::with_capacity(list.len()), HashMap::new());
    for (nth, raw) in list.iter().enumerate() {
        let fields = Fields::of(raw, format!("{at}/{nth}"), &["id", "rank"])?;
        let id = fields.required("id")?;
        let item: ItemId = id.name()?;
        if let Some(earlier) = seen.insert(item, nth) {
            return Err(id.refuse(format_args!("item {item} stands at {at}/{earlier} already; name it once")));
        }
        places.push(DisplayKey { rank: publish::rank(&fields.required("rank")?)?, item });
    }
    Ok(places)
}

/// The problem of a ranking at the pointer `at` that names an item which does not exist.
pub(super) fn refused(NoSuchItem { nth, item }: NoSuchItem, at: &str) -> Problem {
    let detail = format!("there is no item {item}; name one that lives, or leave it out");
    Problem::at_pointer(format!("{at}/{nth}/id"), detail)
}
