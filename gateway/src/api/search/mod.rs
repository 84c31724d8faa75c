//! Search: items by the words of their text, and users by their names. The newest come first.
//!
//! The index gives candidates. Each candidate is read as it is now, and shown only if it [matches](ItemQuery::takes)
//! and the viewer may see it: so an edit, a delete or a block takes effect at once. [`Seen`] says as whom a caller sees
//! items.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use compact_str::CompactString;
use feedgate_common::feed::{Cards, Feeds, FoundItems, Limit, find_items};
use feedgate_common::named::KIND_MAX;
use feedgate_common::people::Card;
use feedgate_common::search::{
    Hits, ItemQuery, Phrase, QUERY_MAX, SearchPlace, TextFields, look_for_users, phrases, takes_user,
};
use feedgate_common::{Archive, Millis, UserId, UserNo};
use serde::Serialize;

use super::access::Caller;
use super::cursor;
use super::feed::page_most;
use super::names::user_no;
use super::problem::{Kind, Problem, short};
use super::query::{Params, Query};
use super::seeing::{Seen, viewer};
use super::time;
use crate::around::{self, Shown, authors_of};
use crate::limits::budget::{ANSWER_BYTES, CARD_MAX};
use crate::protocol::page_json::{LIMIT_DEFAULT, LIMIT_MAX};

/// How often one page of users asks the index. Each time reads a bounded number of rows.
const LOOKS_MAX: usize = 16;

/// A page of items that were found, newest first.
#[derive(Default, Serialize)]
struct Items {
    items: Vec<Shown>,
    /// The `cursor` of the next page; `None` if everything was looked at.
    next: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    building: bool,
    #[serde(skip_serializing_if = "Cards::is_empty")]
    people: Cards,
}

/// A user who was found.
#[derive(Serialize)]
struct User {
    user: UserId,
    #[serde(flatten)]
    card: Card,
}

/// A page of users who were found. The user whose name was set last comes first.
#[derive(Default, Serialize)]
struct Users {
    users: Vec<User>,
    /// The `cursor` of the next page; `None` if everybody was looked at.
    next: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    building: bool,
}

/// Answers `GET /v1/search/items?q=…` with a page of items whose text holds all words of the query.
pub(super) async fn items(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    query: Query,
) -> Result<Response, Problem> {
    let params = query.only(&["q", "author", "kind", "since", "until", "viewer", "cursor", "limit"])?;
    let fields = on(&feeds)?;
    let (phrases, kind, published) = (wanted(&params)?, kind(&params)?, published(&params)?);
    let (author, viewer) = (params.parse::<UserId>("author")?, viewer(&caller, &params)?);
    let (behind, limit) = (params.cursor_of(cursor::parse)?, params.limit(LIMIT_DEFAULT, LIMIT_MAX)?);
    let reader = caller.reader().is_some();
    let permit = caller.permit(page_most(limit)).await?;
    let author = match author {
        Some(author) => match user_no(&*archive, &author).await? {
            Some(author) => Some(author),
            // An author who was never named has published nothing.
            None => return Ok(permit.answer(&Items::default())),
        },
        None => None,
    };
    let seen = Seen::by(&archive, viewer, reader).await?;
    let query = ItemQuery { phrases, author, kind, published };
    let page = Limit { items: limit, bytes: ANSWER_BYTES };
    let FoundItems { items, mut next, building } = find_items(&*archive, fields, &query, &seen, behind, page).await?;
    let all = items.len();
    let items = around::join(&*archive, feeds.onlooker(seen.viewer), items, ANSWER_BYTES).await?;
    if items.len() < all {
        next = items.last().map(|shown| SearchPlace::of_item(shown.item().published_at, shown.item().id));
    }
    let people = authors_of(&*archive, &items).await?;
    Ok(permit.answer(&Items { items, next: next.as_ref().map(cursor::text), building, people }))
}

/// Answers `GET /v1/search/users?q=…` with a page of users whose name or id holds all words of the query.
pub(super) async fn users(
    caller: Caller,
    State(archive): State<Arc<dyn Archive>>,
    State(feeds): State<Arc<Feeds>>,
    query: Query,
) -> Result<Response, Problem> {
    let params = query.only(&["q", "cursor", "limit"])?;
    let fields = on(&feeds)?;
    let phrases = wanted(&params)?;
    let (mut behind, limit) = (params.cursor_of(cursor::parse)?, params.limit(LIMIT_DEFAULT, LIMIT_MAX)?);
    let permit = caller.permit((limit + 1) * 2 * CARD_MAX).await?;
    let mut page = Users::default();
    for _ in 0..LOOKS_MAX {
        let look = look_for_users(&phrases, behind, limit + 1 - page.users.len());
        let Hits { places, next, building } = archive.find(fields, &look).await?;
        page.building |= building;
        for (place, found) in named(&*archive, &places).await? {
            if let Some(user) = found.filter(|user| takes_user(&phrases, &user.user, user.card.name.as_deref())) {
                if page.users.len() == limit {
                    page.next = behind.as_ref().map(cursor::text);
                    return Ok(permit.answer(&page));
                }
                page.users.push(user);
            }
            behind = Some(place);
        }
        if next.is_none() {
            return Ok(permit.answer(&page));
        }
        behind = next;
    }
    page.next = behind.as_ref().map(cursor::text);
    Ok(permit.answer(&page))
}

/// The users at these places, each as the user is now; `None` for a user of whom nothing is said any more.
async fn named(archive: &dyn Archive, places: &[SearchPlace]) -> Result<Vec<(SearchPlace, Option<User>)>, Problem> {
    if places.is_empty() {
        return Ok(vec![]);
    }
    let numbers = places.iter().filter_map(|place| u32::try_from(place.id).ok().map(UserNo));
    let numbers = Vec::from_iter(numbers);
    let (ids, cards) = (archive.user_ids(&numbers).await?, archive.cards(&numbers).await?);
    let users = ids.into_iter().zip(cards).map(|(user, card)| card.map(|card| User { user, card }));
    Ok(places.iter().copied().zip(users).collect())
}

/// The fields that are searched; the problem of a server whose search is off.
fn on(feeds: &Feeds) -> Result<&TextFields, Problem> {
    let off = "search is off on this server: name the fields that are the text of items in its settings, such as [search] \
               fields = [\"text\"]";
    feeds.search().ok_or_else(|| Problem::new(Kind::NotFound, off))
}

/// The words that `?q=` looks for.
fn wanted(params: &Params) -> Result<Vec<Phrase>, Problem> {
    let wrong = |why: String| Problem::parameter("q", why);
    let text = params.get("q").ok_or_else(|| wrong("give ?q= with the words to look for".to_owned()))?;
    let characters = text.chars().take(QUERY_MAX + 1).count();
    if characters > QUERY_MAX {
        return Err(wrong(format!("q has at most {QUERY_MAX} characters, this one has {}", text.chars().count())));
    }
    let phrases = phrases(text);
    if phrases.is_empty() {
        return Err(wrong(format!("q must hold a word: a letter or a digit, {:?} has none", short(text))));
    }
    Ok(phrases)
}

/// The value of `?kind=`, which must be one that an item may have.
fn kind(params: &Params) -> Result<Option<CompactString>, Problem> {
    let Some(kind) = params.get("kind") else { return Ok(None) };
    if !(1..=KIND_MAX).contains(&kind.chars().count()) || kind.contains(char::is_control) {
        let detail = format!(
            "kind must be one that an item may have, 1 to {KIND_MAX} characters without a control character, not {:?}",
            short(kind)
        );
        return Err(Problem::parameter("kind", detail));
    }
    Ok(Some(kind.into()))
}

/// The earliest and the latest time at which an item may have been published.
fn published(params: &Params) -> Result<(Millis, Millis), Problem> {
    let time = |name: &'static str, else_: Millis| {
        let Some(text) = params.get(name) else { return Ok(else_) };
        let at = text
            .parse()
            .map_err(|_| format!("must be a time in Unix ms, such as 1795185562024, not {:?}", short(text)))
            .and_then(|at| time::not_seconds(at).map(|()| at));
        at.map_err(|why| Problem::parameter(name, format!("{name} {why}")))
    };
    let (since, until) = (time("since", Millis::MIN)?, time("until", Millis::MAX)?);
    if since > until {
        let detail = format!("since must not be later than until, and {since} is later than {until}");
        return Err(Problem::parameter("since", detail));
    }
    Ok((since, until))
}
