//! Those whose reactions a user sees where only those of some are seen (S3). It is read once for a whole page.

use std::collections::HashSet;

use feedgate_common::UserNo;
use feedgate_common::around::{Onlooker, Tie, Visible, shows_reaction};
use feedgate_common::error::Result;
use feedgate_common::graph::Shields;

use super::tables::Edges;
use crate::view::{Read, View};

/// How a user stands to others, from one walk over the user's edges.
pub(super) struct Circle {
    user: Option<UserNo>,
    visible: Visible,
    /// Each of the two follows the other.
    mutual: HashSet<UserNo>,
    /// There is a block between the two, by either side.
    blocked: HashSet<UserNo>,
}

impl Circle {
    /// The circle of an onlooker; `None` if it sees the reactions of everybody.
    pub(super) fn of(view: &View, onlooker: Onlooker) -> Result<Option<Self>> {
        if !onlooker.sees_some() {
            return Ok(None);
        }
        let (user, visible) = (onlooker.viewer.user(), onlooker.visible);
        let mut circle = Self { user, visible, mutual: HashSet::new(), blocked: HashSet::new() };
        let Some(user) = user else { return Ok(Some(circle)) };
        for row in view.scan::<Edges>((user, UserNo(0))..=(user, UserNo(u32::MAX))) {
            let ((_, other), row) = row?;
            if row.held.shields.blocks() {
                circle.blocked.insert(other);
            } else if row.held.follows && view.get::<Edges>(&(other, user))?.is_some_and(|back| back.held.follows) {
                circle.mutual.insert(other);
            }
        }
        Ok(Some(circle))
    }

    /// About how many users it is.
    pub(super) fn len(&self) -> usize {
        self.mutual.len()
    }

    /// Whether the user sees what `other` does around an item of `owner`.
    pub(super) fn sees(&self, owner: Option<UserNo>, other: UserNo) -> bool {
        let blocked = self.blocked.contains(&other);
        let tie = Tie {
            own: self.user == Some(other),
            shields: if blocked { Shields::BLOCKED_BY_READER } else { Shields(0) },
            mutual: self.mutual.contains(&other),
            of_item: owner.is_some_and(|owner| owner == other || self.user == Some(owner)),
        };
        shows_reaction(tie, self.visible)
    }

    /// Those whose reactions the user does not see, if it sees all others: the item is the user's own.
    pub(super) fn sees_all_but(&self, owner: Option<UserNo>) -> Option<&HashSet<UserNo>> {
        (self.user.is_some() && self.user == owner).then_some(&self.blocked)
    }

    /// Everybody whose reactions to an item of `owner` the user may see, each once, if the item is not the user's own.
    pub(super) fn may_see(&self, owner: Option<UserNo>) -> impl Iterator<Item = UserNo> {
        let more = self.user.into_iter().chain(owner.filter(|owner| self.user != Some(*owner)));
        self.mutual.iter().copied().chain(more.filter(|user| !self.mutual.contains(user)))
    }
}
