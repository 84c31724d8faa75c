//! Which items a request means, and as whom a caller sees them. One rule holds for items by their ids, for what
//! stands around them, for searches and for profiles.
//!
//! ```text
//!   an API key                  everything that lives
//!   an API key with ?viewer=    what a repost may bring before the viewer: no shield is up between the two sides, the
//!                               viewer follows an author who is private, and what is for some is for the viewer
//!   a reader's token            what the reader sees otherwise too: followed, own, addressed
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::around::{Reach, Terms, Viewer, seen_by, shows_original};
use feedgate_common::feed::Seeing;
use feedgate_common::graph::Shields;
use feedgate_common::{Archive, Item, ItemId, UserId, UserNo, error};

use super::access::Caller;
use super::names::user_no;
use super::problem::{Kind, Problem};
use super::query::{ItemRef, Params};

/// The user as whom the items are seen: the reader of the token, or the user whom a backend names with `?viewer=`;
/// `None` if a backend names no user.
pub(super) fn viewer(caller: &Caller, params: &Params) -> Result<Option<UserId>, Problem> {
    let named = params.parse::<UserId>("viewer")?;
    if let Some(named) = &named {
        caller.may_read(named)?;
    }
    Ok(caller.reader().cloned().or(named))
}

/// The id of this item, whether it exists or not. Fails for a foreign id that no item has.
pub(super) async fn resolve(archive: &dyn Archive, which: &ItemRef) -> Result<ItemId, Problem> {
    match which {
        ItemRef::Id(id) => Ok(*id),
        ItemRef::Foreign(key) => archive.item_by_foreign_id(key).await?.ok_or_else(|| missing(which)),
    }
}

/// The id of each of these items, in the order asked, whether it exists or not; `None` for a foreign id that no item
/// has. Each foreign id is looked up once.
pub(super) async fn resolve_all<'a>(
    archive: &dyn Archive,
    all: impl Iterator<Item = &'a ItemRef>,
) -> Result<Vec<Option<ItemId>>, Problem> {
    let (mut known, mut found) = (HashMap::<&str, Option<ItemId>>::new(), vec![]);
    for which in all {
        found.push(match which {
            ItemRef::Id(id) => Some(*id),
            ItemRef::Foreign(foreign) => match known.get(foreign.as_str()) {
                Some(item) => *item,
                None => {
                    let item = archive.item_by_foreign_id(foreign).await?;
                    known.insert(foreign, item);
                    item
                }
            },
        });
    }
    Ok(found)
}

/// The problem for an item that never existed, was deleted, or is not for this reader; the text does not tell which.
pub(super) fn missing(which: &ItemRef) -> Problem {
    Problem::new(Kind::NotFound, format!("there is no item {which}"))
}

/// Whether the reader sees the item. Without a `reader`, the caller is a backend: then, whether the item lives.
pub(super) async fn sees(reader: Option<&UserId>, archive: &dyn Archive, item: ItemId) -> Result<bool, Problem> {
    let found = archive.items(&[item]).await?;
    let found = match reader {
        Some(reader) => seen_by(archive, user_no(archive, reader).await?, found).await?,
        None => found,
    };
    Ok(found.iter().any(Option::is_some))
}

/// The viewer for whom items are read.
pub(super) struct Seen {
    pub(super) archive: Arc<dyn Archive>,
    pub(super) viewer: Viewer,
    /// Whether the viewer is a reader with a token, who sees no more than by any other read.
    pub(super) reader: bool,
}

impl Seen {
    /// Sees items as `viewer`, or as a backend if there is no `viewer`. `reader`: whether the viewer is the reader of a
    /// token.
    pub(super) async fn by(archive: &Arc<dyn Archive>, viewer: Option<UserId>, reader: bool) -> Result<Self, Problem> {
        let viewer = match viewer {
            Some(viewer) => Viewer::User(user_no(&**archive, &viewer).await?),
            None => Viewer::Backend,
        };
        Ok(Self { archive: archive.clone(), viewer, reader })
    }

    /// The id of the item, if it lives and may be seen; otherwise the problem that there is none.
    pub(super) async fn resolve(&self, which: &ItemRef) -> Result<ItemId, Problem> {
        let item = resolve(&*self.archive, which).await?;
        let found = self.of(&[item]).await?;
        if found.iter().any(Option::is_some) { Ok(item) } else { Err(missing(which)) }
    }

    /// Whether any item in the outbox of this author may be seen: no item may be, if the reader does not follow, if a
    /// shield is up, or if the author is private and the viewer does not follow. A viewer who sees none of the items
    /// does not learn that there are any.
    pub(super) async fn opens(&self, author: UserNo) -> error::Result<bool> {
        match self.viewer {
            Viewer::Backend => Ok(true),
            Viewer::User(Some(me)) if me == author => Ok(true),
            Viewer::User(None) => Ok(!self.reader && !self.archive.author(author).await?.private),
            Viewer::User(Some(me)) if self.reader => Ok(!self.archive.followees_among(me, &[author]).await?.is_empty()),
            Viewer::User(Some(me)) => {
                let held = self.archive.held(me, author.0.checked_sub(1).map(UserNo), 1).await?;
                let edge = held.iter().find(|edge| edge.author == author);
                let (follows, shields) = edge.map_or((false, Shields(0)), |edge| (edge.follows, edge.shields));
                let follows = follows && shields == Shields(0);
                let private = !follows && self.archive.author(author).await?.private;
                Ok(shows_original(false, Terms { follows, shields, private }, Reach::Followers))
            }
        }
    }
}

#[async_trait]
impl Seeing for Seen {
    async fn of(&self, ids: &[ItemId]) -> error::Result<Vec<Option<Arc<Item>>>> {
        match self.viewer {
            Viewer::User(reader) if self.reader => {
                seen_by(&*self.archive, reader, self.archive.items(ids).await?).await
            }
            viewer => self.archive.originals(ids, viewer).await,
        }
    }
}
