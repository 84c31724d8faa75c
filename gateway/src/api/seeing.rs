//! As whom a caller sees items, one rule for searches and profiles.
//!
//! ```text
//!   an API key                  everything that lives
//!   an API key with ?viewer=    what a repost may bring before the viewer: no shield is up between the two sides, the
//!                               viewer follows an author who is private, and what is for some is for the viewer
//!   a reader's token            what the reader sees otherwise too: followed, own, addressed
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::around::{Reach, Terms, Viewer, seen_by, shows_original};
use feedgate_common::feed::Seeing;
use feedgate_common::graph::Shields;
use feedgate_common::{Archive, Item, ItemId, UserNo, error};

/// As whom items are seen.
pub(super) struct Seen {
    pub(super) archive: Arc<dyn Archive>,
    pub(super) viewer: Viewer,
    /// Whether it is a reader with a token, who sees no more than by any other read.
    pub(super) reader: bool,
}

impl Seen {
    /// Whether any item in the outbox of this author may be seen: not if the reader does not follow, a shield is up, or
    /// the author is private and the viewer does not follow. Who sees none of them is not told that there are any.
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
