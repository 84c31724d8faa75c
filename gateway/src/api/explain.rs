//! Answers why a reader sees an item or not, from what is stored now. Changes nothing: no inbox is built or touched.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use feedgate_common::archive::Below;
use feedgate_common::around::Reach;
use feedgate_common::change::Route;
use feedgate_common::explain::{Door, Evidence, Finding, Place, Verdict, explain, explain_ranking};
use feedgate_common::feed::{Feeds, living};
use feedgate_common::inboxes::Log;
use feedgate_common::named::NamedFeeds;
use feedgate_common::{Archive, DisplayKey, InboxKey, Item, ItemId, Op, UserId, UserNo};
use serde::Serialize;

use super::access::ReadKey;
use super::names::user_no;
use super::problem::{Kind, Problem};
use super::query::{Params, Query};
use crate::clock;

/// Why a reader sees an item or not.
#[derive(Serialize)]
pub(super) struct Answer {
    reader: UserId,
    item: ItemId,
    /// The feed to which the item goes.
    feed: String,
    verdict: Verdict,
    /// The rules in their order, up to the one that decides.
    findings: Vec<Finding>,
    /// Whether each ranking of the reader that holds the item shows the item.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rankings: Vec<Finding>,
}

/// Answers `GET /v1/explain?reader=…&item=…` with a verdict and the rules that lead to it.
pub(super) async fn read(
    _: ReadKey,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    query: Query,
) -> Result<Json<Answer>, Problem> {
    let params = query.only(&["reader", "item"])?;
    let (reader, id): (UserId, ItemId) = (required(&params, "reader")?, required(&params, "item")?);
    let no = user_no(&*archive, &reader).await?;
    let no = no.ok_or_else(|| Problem::new(Kind::NotFound, format!("no user {reader} was ever named")))?;
    let item = archive.items(&[id]).await?.into_iter().flatten().next();
    let item = item.ok_or_else(|| {
        Problem::new(Kind::NotFound, format!("no item {id} lives: it was deleted or never published"))
    })?;
    Ok(Json(found(&feeds, &*archive, &reader, no, &item).await?))
}

/// A parameter that must be given.
fn required<T: std::str::FromStr<Err: std::fmt::Display>>(params: &Params, name: &'static str) -> Result<T, Problem> {
    let missing = || Problem::parameter(name, format!("give ?{name}=; the route takes reader and item"));
    params.parse(name)?.ok_or_else(missing)
}

/// Reads what is stored of the reader and the item, and explains it.
async fn found(
    feeds: &Feeds,
    archive: &dyn Archive,
    reader: &UserId,
    no: UserNo,
    item: &Item,
) -> Result<Answer, Problem> {
    let author = archive.author(item.author_no).await?;
    let record = match item.outbox_seq {
        0 => None,
        seq => archive.outbox(item.author_no, seq - 1, 1).await?.records.into_iter().next(),
    };
    let named = feeds.named();
    let feed = record.map_or_else(|| named.of_kind(item.kind.as_deref()), |record| record.feed);
    let key = InboxKey { reader: no, feed };
    let log = feeds.inboxes().log(key).await?;
    let taken = log.as_ref().map(|log| log.taken);
    let door = match record.map(|record| record.route) {
        None => Door::Direct(taken.map(|taken| taken.direct)),
        Some(Route::Pull) => Door::Pull(taken.map(|taken| taken.pull)),
        Some(Route::Push | Route::Narrow) => {
            let bucket = no.bucket(feeds.inboxes().buckets());
            let progress = feeds.inboxes().progress(&[(item.author_no, bucket)]).await?;
            Door::Push(progress.first().map_or(0, |progress| progress.cut_for(no)))
        }
    };
    let here = Below { before: item.key().just_above(), ..Below::newest(1) };
    let below = archive.feed_below(key, here, feeds.backfill()).await?;
    let evidence = Evidence {
        reader,
        item,
        reach: Reach::of(item, !archive.addressed(no, &[item.id]).await?.is_empty()),
        belongs: below.first().is_some_and(|add| add.key.item == item.id),
        held: archive.held(no, before(item.author_no), 1).await?.into_iter().find(|held| held.author == item.author_no),
        author,
        backfill: feeds.backfill(),
        feed: named.name(feed).unwrap_or("one that is not configured"),
        expired_before: named.expired_before(feed, clock::now()),
        door,
        place: place(log.as_ref(), item.key()),
    };
    let (verdict, findings) = explain(&evidence);
    let rankings = rankings(&named, archive, &evidence, no).await?;
    Ok(Answer { reader: reader.clone(), item: item.id, feed: evidence.feed.to_owned(), verdict, findings, rankings })
}

/// What is said of each ranking of the reader that holds the item.
async fn rankings(
    named: &NamedFeeds,
    archive: &dyn Archive,
    evidence: &Evidence<'_>,
    reader: UserNo,
) -> Result<Vec<Finding>, Problem> {
    let mut rankings = vec![];
    for feed in named.ranked() {
        let ranking = archive.ranking(InboxKey { reader, feed: feed.id }).await?;
        let place = ranking.iter().find(|place| place.item == evidence.item.id);
        rankings.extend(place.map(|place| explain_ranking(evidence, &feed.name, place.rank)));
    }
    Ok(rankings)
}

/// The number before this one; `None` before the first.
fn before(user: UserNo) -> Option<UserNo> {
    user.0.checked_sub(1).map(UserNo)
}

/// The place of the item with this key in a log, which was read as a whole.
fn place(log: Option<&Log>, key: DisplayKey) -> Place {
    let Some(log) = log else { return Place::NoInbox };
    if living(&log.entries).contains(&key) {
        let added = log.entries.iter().rev().find(|n| n.entry.op == Op::Add && n.entry.key == key);
        return added.map_or(Place::Nowhere, |n| Place::Log(n.seq));
    }
    if log.floor.is_some_and(|floor| key <= floor) { Place::BelowFloor } else { Place::Nowhere }
}
