//! The circle of a user: the users whose reactions this user sees, where only those of some users are seen (S3). A
//! circle is read once for a whole page.

use std::collections::HashSet;

use feedgate_common::UserNo;
use feedgate_common::around::{Onlooker, Tie, Visible, shows_reaction};
use feedgate_common::error::Result;
use feedgate_common::graph::Shields;

use super::people::{blocked_with, mutual_with};
use crate::view::View;

/// The users with whom a user is mutual, and with whom in a block.
pub(super) struct Circle {
    user: Option<UserNo>,
    visible: Visible,
    /// The users whom the user follows and who follow the user, whatever shields are up.
    mutual: HashSet<UserNo>,
    /// The users with whom the user is in a block, by either side.
    blocked: HashSet<UserNo>,
}

impl Circle {
    /// The circle of an onlooker; `None` if it sees the reactions of everybody.
    pub(super) fn of(view: &View, onlooker: Onlooker) -> Result<Option<Self>> {
        if !onlooker.sees_some() {
            return Ok(None);
        }
        let (user, visible) = (onlooker.viewer.user(), onlooker.visible);
        let (mutual, blocked) = match user {
            Some(user) => (mutual_with(view, user, usize::MAX)?, blocked_with(view, user, usize::MAX)?),
            None => (vec![], vec![]),
        };
        let (mutual, blocked) = (mutual.into_iter().collect(), blocked.into_iter().collect());
        Ok(Some(Self { user, visible, mutual, blocked }))
    }

    /// About how many users the circle has.
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

    /// The users whose reactions to an item of `owner` the user does not see, if the item is the user's own; there the
    /// user sees all others.
    pub(super) fn sees_all_but(&self, owner: Option<UserNo>) -> Option<&HashSet<UserNo>> {
        (self.user.is_some() && self.user == owner).then_some(&self.blocked)
    }

    /// Everybody whose reactions to an item of `owner` the user may see, each once, if the item is not the user's own.
    pub(super) fn may_see(&self, owner: Option<UserNo>) -> impl Iterator<Item = UserNo> {
        let more = self.user.into_iter().chain(owner.filter(|owner| self.user != Some(*owner)));
        self.mutual.iter().copied().chain(more.filter(|user| !self.mutual.contains(user)))
    }
}
