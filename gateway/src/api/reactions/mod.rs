//! Reactions to an item: given, taken back, listed. A change is durable when it is answered, and its repetition
//! succeeds and changes nothing. A reader reacts in its own name, to items that it sees; a backend reacts in the name
//! of any user.

pub(super) mod many;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use feedgate_common::around::{Around, Onlooker, Reacted, Reaction, ReactionKind, Unreacted, Viewer};
use feedgate_common::doorbell::Touch;
use feedgate_common::feed::{Cards, Feeds, cards_of};
use feedgate_common::{Archive, Body, ItemId, Millis, UserId};
use serde::Serialize;

use super::access::{Caller, ReaderOrPublisher};
use super::cursor;
use super::names::{intern, user_no};
use super::problem::{Kind, Problem};
use super::query::{ItemRef, NoQuery, Query, Segment, Segments3};
use super::seeing::{Seen, missing, resolve, sees, viewer};
use super::writer::Writer;
use crate::around::{AROUND_MAX, Counts, told_to};
use crate::clock;
use crate::limits::budget::{ANSWER_BYTES, CARD_MAX, ITEM_MAX, SHARE_MIN, most};

const LIST_DEFAULT: usize = 100;
const LIST_MAX: usize = 1000;

/// The most bytes that a line of a list takes in memory, as it was read and as JSON together.
const LINE_MAX: usize = 1024;

// A share has room for the longest list, and for the item that decides who sees it.
const _: () = assert!((LIST_MAX + 1) * (LINE_MAX + CARD_MAX) + Body::MAX_BYTES + 2 * ITEM_MAX <= SHARE_MIN);

/// The answer to a change: how often each kind was given to the item, and which kinds the user has given.
#[derive(Serialize)]
struct Now<'a> {
    id: ItemId,
    counts: Counts<'a>,
    own: &'a [ReactionKind],
}

/// Answers `PUT /v1/items/{id}/reactions/{kind}/{user}` and gives the reaction.
pub(super) async fn give(
    ReaderOrPublisher(caller): ReaderOrPublisher,
    State(feeds): State<Arc<Feeds>>,
    State(writer): State<Writer>,
    Segments3(which, kind, user): Segments3<ItemRef, ReactionKind, UserId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    change(caller, (&feeds, &writer), &which, kind, &user, true).await
}

/// Answers `DELETE /v1/items/{id}/reactions/{kind}/{user}`. A reader may take back its own reaction even if it does not
/// see the item any more.
pub(super) async fn take_back(
    ReaderOrPublisher(caller): ReaderOrPublisher,
    State(feeds): State<Arc<Feeds>>,
    State(writer): State<Writer>,
    Segments3(which, kind, user): Segments3<ItemRef, ReactionKind, UserId>,
    _: NoQuery,
) -> Result<Response, Problem> {
    change(caller, (&feeds, &writer), &which, kind, &user, false).await
}

async fn change(
    caller: Caller,
    (feeds, writer): (&Feeds, &Writer),
    which: &ItemRef,
    kind: ReactionKind,
    user: &UserId,
    on: bool,
) -> Result<Response, Problem> {
    let archives = feeds.archive();
    let archive = &**archives;
    caller.may_read(user)?;
    let reader = caller.reader().cloned();
    let permit = caller.permit(most(1, ANSWER_BYTES) + AROUND_MAX).await?;
    let item = resolve(archive, which).await?;
    let open = sees(reader.as_ref(), archive, item).await?;
    if !open && (on || !has(archive, item, user, &kind).await?) {
        return Err(missing(which));
    }
    let user = intern(archive, user).await?;
    let asked = vec![Reaction { item, kind, user, at: clock::now() }];
    let changed = react(archives, writer, asked, on).await?;
    match changed.into_iter().next().expect("the Archive answers each reaction") {
        Ok(_) => {}
        Err(Unreacted::NoSuchItem(_)) => return Err(missing(which)),
        Err(refused @ Unreacted::TooManyKinds(_)) => return Err(refused.into()),
    }
    let onlooker = feeds.onlooker(Viewer::User(Some(user)));
    // Who may no longer see the item can take a reaction back, and learns nothing of the item by that.
    let around = if open { archive.around(&[item], onlooker).await?.pop() } else { None };
    let now = told_to(onlooker, around.unwrap_or_default());
    Ok(permit.answer(&Now { id: item, counts: Counts(&now), own: &now.own }))
}

/// Gives these reactions, or takes them back, and notifies the watchers of the items. Answers each in its place. If the
/// future is dropped, the change and the notifications still happen.
async fn react(
    archive: &Arc<dyn Archive>,
    writer: &Writer,
    asked: Vec<Reaction>,
    on: bool,
) -> Result<Vec<Result<bool, Unreacted>>, Problem> {
    let (changing, telling) = (archive.clone(), writer.clone());
    let change = async move {
        let notified = changing.react_and_notify(&asked, on).await?;
        let changed = asked.iter().zip(&notified.answers).filter(|(_, outcome)| **outcome == Ok(true));
        let items: BTreeSet<ItemId> = changed.map(|(reaction, _)| reaction.item).collect();
        items.into_iter().for_each(|item| telling.touched(Touch { item, comment: None }));
        Ok(notified)
    };
    Ok(writer.notify(change).await?)
}

impl From<Unreacted> for Problem {
    fn from(refused: Unreacted) -> Self {
        let kind = match refused {
            Unreacted::NoSuchItem(_) => Kind::NotFound,
            Unreacted::TooManyKinds(_) => Kind::Conflict,
        };
        Self::new(kind, refused.to_string())
    }
}

/// Whether the user has reacted to the item with this kind.
async fn has(archive: &dyn Archive, item: ItemId, user: &UserId, kind: &ReactionKind) -> Result<bool, Problem> {
    let Some(user) = user_no(archive, user).await? else { return Ok(false) };
    let Around { own, .. } = archive.around(&[item], Onlooker::user(user)).await?.pop().unwrap_or_default();
    Ok(own.contains(kind))
}

/// One line of the list.
#[derive(Serialize)]
struct Line {
    user: UserId,
    kind: ReactionKind,
    since: Millis,
}

/// A page of the list, the newest reaction first.
#[derive(Serialize)]
struct List {
    reactions: Vec<Line>,
    /// The `cursor` of the next page; `None` at the end of the list.
    next: Option<String>,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// Answers `GET /v1/items/{id}/reactions` with a page of the users who have reacted to the item, as far as the viewer
/// sees them. The viewer is the reader of the token, or the user that `viewer` names.
pub(super) async fn list(
    caller: Caller,
    State(feeds): State<Arc<Feeds>>,
    Segment(which): Segment<ItemRef>,
    query: Query,
) -> Result<Response, Problem> {
    let params = query.only(&["kind", "cursor", "limit", "viewer"])?;
    let kind: Option<ReactionKind> = params.parse("kind")?;
    let before = params.cursor_of(cursor::parse)?;
    let limit = params.limit(LIST_DEFAULT, LIST_MAX)?;
    let (reader, viewer) = (caller.reader().is_some(), viewer(&caller, &params)?);
    let permit = caller.permit(most(1, ANSWER_BYTES) + (limit + 1) * (LINE_MAX + CARD_MAX)).await?;
    let archive = feeds.archive();
    let seen = Seen::by(archive, viewer, reader).await?;
    let (item, onlooker) = (seen.resolve(&which).await?, feeds.onlooker(seen.viewer));
    // Reading one more than asked shows whether there is a next page.
    let mut lines = archive.reactions(item, onlooker, kind.as_ref(), before.as_ref(), limit + 1).await?;
    let next = (lines.len() > limit).then(|| cursor::text(&lines[limit - 1].place));
    lines.truncate(limit);
    let users = lines.iter().map(|Reacted { user, place }| (place.user, user)).collect();
    let people = cards_of(&**archive, users).await?;
    let line = |Reacted { user, place }| Line { user, kind: place.kind, since: place.at };
    Ok(permit.answer(&List { reactions: lines.into_iter().map(line).collect(), next, people }))
}
