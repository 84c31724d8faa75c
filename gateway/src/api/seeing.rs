//! As whom a caller sees items, one rule for searches and profiles.
//!
//! ```text
//!   an API key                  everything that lives
//!   an API key with ?viewer=    what a repost may bring before the viewer: no shield is up between the two sides, and
//!                               what is for some readers is for the viewer
//!   a reader's token            what the reader sees otherwise too: followed, own, addressed
//! ```

use std::sync::Arc;

use async_trait::async_trait;
use feedgate_common::around::{Viewer, seen_by};
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
    /// Whether any item in the outbox of this author may be seen: not if the reader does not follow, or a shield is up.
    /// Who sees none of them is not told that there are any.
    pub(super) async fn opens(&self, author: UserNo) -> error::Result<bool> {
        match self.viewer {
            Viewer::Backend => Ok(true),
            Viewer::User(Some(me)) if me == author => Ok(true),
            Viewer::User(None) => Ok(!self.reader),
            Viewer::User(Some(me)) if self.reader => Ok(!self.archive.followees_among(me, &[author]).await?.is_empty()),
            Viewer::User(Some(me)) => {
                let held = self.archive.held(me, author.0.checked_sub(1).map(UserNo), 1).await?;
                Ok(!held.iter().any(|edge| edge.author == author && edge.shields != Shields(0)))
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
