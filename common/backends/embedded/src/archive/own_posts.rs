//! Whether the items of authors stand in their own feeds, and which items a user has sent.
//!
//! Invariant: a write uses the setting that was stored before the write, since both run on the only writer thread. So
//! an author whom the walk has passed by, because the author had published nothing yet, gets the edge with the first
//! item.

use std::ops::Bound::{Excluded, Included, Unbounded};

use async_trait::async_trait;
use feedgate_common::archive;
use feedgate_common::error::Result;
use feedgate_common::{DisplayKey, UserId, UserNo};

use super::EmbeddedArchive;
use super::tables::{Authors, Edges, OwnPosts, OwnPostsRow, Sent};
use crate::request::Durability;
use crate::view::{Read, Tx, View};

/// The place before all authors.
const START: UserNo = UserNo(0);

#[async_trait]
impl archive::OwnPosts for EmbeddedArchive {
    async fn set_own_posts(&self, on: bool) -> Result<()> {
        if is_on(&*self.db.view()?)? == on {
            return Ok(());
        }
        let set = move |tx: &mut Tx<'_>| {
            if is_on(tx)? != on {
                tx.put::<OwnPosts>(&(), &OwnPostsRow { on, at: Some(START) });
            }
            Ok(())
        };
        self.db.write(Durability::Synced, set).await
    }

    async fn own_posts_due(&self, on: bool, limit: usize) -> Result<Option<Vec<(UserNo, UserId)>>> {
        let Some(at) = stands(&*self.db.view()?, on)? else { return Ok(None) };
        let users = self.users.clone();
        let due = move |view: &View| {
            let rows = view.scan::<Authors>((Excluded(at), Unbounded));
            let published = rows.filter(|row| row.as_ref().map_or(true, |(_, row)| row.head > 0));
            let named = published.map(|row| row.and_then(|(author, _)| Ok((author, users.learn_id(view, author)?))));
            named.take(limit).collect::<Result<Vec<_>>>().map(Some)
        };
        self.db.read(due).await
    }

    async fn own_posts_done(&self, on: bool, upto: Option<UserNo>) -> Result<()> {
        let done = move |tx: &mut Tx<'_>| {
            if stands(tx, on)?.is_some_and(|at| upto.is_none_or(|upto| upto > at)) {
                tx.put::<OwnPosts>(&(), &OwnPostsRow { on, at: upto });
            }
            Ok(())
        };
        self.db.write(Durability::Synced, done).await
    }
}

fn is_on(from: &impl Read) -> Result<bool> {
    Ok(from.get::<OwnPosts>(&())?.is_some_and(|row| row.on))
}

/// The last author for whom the setting `on` is carried out; `None` if nothing is left to do, or if the stored setting
/// is another.
fn stands(from: &impl Read, on: bool) -> Result<Option<UserNo>> {
    Ok(from.get::<OwnPosts>(&())?.filter(|row| row.on == on).and_then(|row| row.at))
}

/// Whether the author's items are to stand in the author's own feed, and the author has no edge to itself yet.
pub(super) fn lacks_edge(tx: &Tx<'_>, author: UserNo) -> Result<bool> {
    Ok(is_on(tx)? && !tx.get::<Edges>(&(author, author))?.is_some_and(|row| row.held.follows))
}

/// What the user has addressed to readers, strictly below `before`, newest first.
pub(super) fn sent(view: &View, user: UserNo, before: Option<DisplayKey>, limit: usize) -> Result<Vec<DisplayKey>> {
    let end = match before {
        Some(before) => Excluded((user, before)),
        None => Included((user, DisplayKey::GREATEST)),
    };
    let rows = view.scan::<Sent>((Included((user, DisplayKey::LEAST)), end)).rev().take(limit);
    rows.map(|row| row.map(|((_, place), ())| place)).collect()
}
